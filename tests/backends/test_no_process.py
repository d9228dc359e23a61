"""A user who may have no more processes: what a shim does then, at the very spawn of its commands. Needs a real uid, for the
limit does not hold for root."""

from __future__ import annotations

import json
import os
import pwd
import resource
import select
import signal
from pathlib import Path
from typing import Any

import pytest

from jostle import proc
from jostle.backends.local import commands, shim
from jostle.backends.local.records import exit_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root to become it")

SHORT = 0.3  # instead of 30 s


def lonely_uid() -> int:
    """One that nobody has."""
    taken = {proc.uid(pid) for pid in proc.pids()} | {entry.pw_uid for entry in pwd.getpwall()}
    return next(uid for uid in range(62_000, 63_000) if uid not in taken)


def carried(place: Path, argvs: list[list[str]], most: int, **more: Any) -> dict[str, Any]:
    """The record of a run with these commands, of a shim whose user may have so many processes."""
    for folder in (place, *place.parents):
        folder.chmod(folder.stat().st_mode | (0o777 if folder == place else 0o055))
    spec = {"commands": argvs, "env": {"PATH": os.environ["PATH"]}, "workdir": "/", "log": str(place / "log"), **more}
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            log = os.open(place / "log", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            os.setgid(65534)
            os.setuid(lonely_uid())
            resource.setrlimit(resource.RLIMIT_NPROC, (most, 1000))
            signal.pthread_sigmask(signal.SIG_BLOCK, commands.WAITED_FOR)
            run = commands.CommandTree(spec, log)
            run.execute(lambda: None)
            run.sweep()
            os.write(w, json.dumps(run.record()).encode())
        finally:
            os._exit(0)
    os.close(w)
    with open(r, "rb") as f:
        told = f.read()
    os.waitpid(pid, 0)
    found = json.loads(told)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "FORK_TRIES_FOR", SHORT)


@pytest.mark.usefixtures("impatient")
def test_a_run_whose_first_command_gets_no_process_has_not_begun(tmp_path: Path) -> None:
    found = carried(tmp_path, [["/bin/sh", "-c", "echo never"]], most=1)
    end = exit_of(found)
    assert end is not None and end.unable and "unavailable" in end.error
    text = (tmp_path / "log").read_text()
    assert "never\n" not in text and "no process can be had" in text, "and its log says what it waited for"


@pytest.mark.usefixtures("impatient")
def test_a_later_command_waits_for_a_process_for_as_long_as_it_takes(tmp_path: Path) -> None:
    """The first command takes the user's last process away, and gives it back long after the time for a first command is over."""
    late = f"until grep -q 'no process' {tmp_path}/log; do sleep 0.05; done; sleep 5.5; exec prlimit --pid $PPID --nproc=100:1000"
    argvs = [
        ["/bin/sh", "-c", f"echo one; ({late}) & prlimit --pid $PPID --nproc=1:1000"],
        ["/bin/sh", "-c", "echo two"],
    ]
    found = carried(tmp_path, argvs, most=100, time_limit=5.0)
    end = exit_of(found)
    assert end is not None and (end.code, end.error, end.unable, end.timed_out) == (0, "", False, False)
    told = [line for line in (tmp_path / "log").read_text().splitlines() if line in ("one", "two")]
    assert told == ["one", "two"], "each once"


def test_a_program_that_is_not_there_is_a_failure_at_once_and_not_a_want_of_processes(tmp_path: Path) -> None:
    end = exit_of(carried(tmp_path, [["/nowhere/tool"]], most=100))
    assert end is not None and not end.unable and end.code == 127


def test_a_spare_that_is_made_while_there_are_no_processes_is_ready_at_once() -> None:
    """What it rehearses waits for nothing: else a run that it gets holds its card for that time, too."""
    done, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgid(65534)
            os.setuid(lonely_uid())
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            signal.pthread_sigmask(signal.SIG_BLOCK, commands.WAITED_FOR)
            shim.rehearse(None)
            os.write(told, b"rehearsed")
        finally:
            os._exit(0)
    os.close(told)
    try:
        assert select.select([done], [], [], commands.FORK_TRIES_FOR / 2)[0], "it waits"
        assert os.read(done, 100) == b"rehearsed"
    finally:
        os.close(done)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
