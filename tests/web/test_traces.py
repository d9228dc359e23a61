"""What is left behind on the disk, and for how long others could see it (S38, S43)."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiled import library
from tests.web.console import Console

MADE = str(Path(__file__).with_name("made.c"))
SWEEP = "command: 'echo {lr}'\nmatrix: {lr: [1, 2]}\njob: {gpus: 0}\n"


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Each Python that is started from now on tells this file of what it makes, in the instant in which it is there: a look from
    outside would come too late. It is an interpreter of its own, for some of our processes keep nothing of the environment."""
    path = tmp_path / "told"
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), venv)
    (venv / "lib").symlink_to(Path(sys.prefix, "lib"))
    python = venv / "bin" / "python"
    say = f"export LD_PRELOAD={library(MADE, 'made.so')} MADE={path}"
    python.write_text(f'#!/bin/bash\n{say}\nexec -a "$0" {os.path.realpath(sys.executable)} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    return path


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="needs to run in a virtual environment")
@pytest.mark.parametrize("umask", [0o000, 0o077], ids=["umask 000", "umask 077"])
def test_s38_nothing_of_the_home_is_open_to_others_not_even_for_a_moment(instance, told, umask):
    for folder in ("command", "config"):
        (instance.work / folder).mkdir()
    (instance.work / "command" / "command_gpu.txt").write_text("1\necho task\n2\n")
    try:
        words = ("up", "--gpus", "sim:1x24", "--port", "0", str(instance.work))
        out = instance.ok(*words, umask=umask, env={"JOSTLE_WEB": ""})
        console = Console.on(instance, int(re.search(r":(\d+)/", out)[1]))
        console.log_in(console.new_code())
        instance.ok("web", "--token", "--new", "--read-only", umask=umask)
        id = instance.add("-m", "1GiB", "--", "echo printed", umask=umask)
        instance.ok("run", "--detach", instance.file(SWEEP, "sweep.yaml"), umask=umask)
        instance.ok("compete", str(instance.work), umask=umask)
        instance.end(id, *instance.states())
        instance.kill_engine()
        instance.ok("add", "--", "true", umask=umask)
    finally:
        instance.ok("web", "--stop", umask=umask)
        instance.ok("down", "--stop-jobs", umask=umask)
    made = [line.split(" ", 2) for line in told.read_text().splitlines()]
    home = [(how, int(mode, 8), path) for how, mode, path in made if path.startswith(str(instance.home))]
    seen = {os.path.basename(path.removesuffix(" (deleted)")) for _, _, path in home}
    assert {"engine.sock", "engine.log", "engine.lock", "web.log", "runs", "sessions", "history.db", "log", "claim"} <= seen, seen
    assert all(any(name.startswith(start) for name in seen) for start in ("jostle.db.new-", "token.", "cookie-name."))
    assert {how for how, _, _ in home} >= {"open", "mkdir", "bind"}
    for_others = tuple(f"{instance.home}/{name}" for name in ("leases", "sim"))  # there only in tests: all users see claims
    assert [(how, oct(mode), path) for how, mode, path in home if mode & 0o077 and not path.startswith(for_others)] == []


def aborted(argv, place, given=None):
    """Whether a process that ends by a fault, and may leave a dump of itself, does so. It is ended when it has said a line."""
    ready, told = os.pipe()
    child = subprocess.Popen(
        [*argv, str(told)], cwd=place, pass_fds=[told], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=dumps
    )  # fmt: skip
    os.close(told)
    child.stdin.write(json.dumps(given).encode())
    child.stdin.close()
    with open(ready) as said:
        assert said.readline()
    os.kill(child.pid, signal.SIGABRT)
    status = os.waitpid(child.pid, 0)[1]
    child.returncode = -signal.SIGABRT
    assert os.WTERMSIG(status) == signal.SIGABRT
    return os.WCOREDUMP(status)


def dumps():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)


def test_s43_a_console_that_dies_of_a_fault_leaves_no_dump_in_which_its_token_is(tmp_path):
    plain = "import os, signal, sys; os.write(int(sys.argv[1]), b'x\\n'); signal.pause()"
    if not aborted([sys.executable, "-c", plain], tmp_path):
        pytest.skip("no process leaves a dump of itself here")
    (tmp_path / "home").mkdir(mode=0o700)
    wanted = {"home": str(tmp_path / "home"), "port": 0, "trusted_uids": []}
    assert not aborted([sys.executable, "-m", "jostle.web.server", "--ready"], tmp_path, wanted)


def test_s43_no_dump_of_an_engine_or_shim_is_made_and_runs_have_the_limit_of_their_user(instance):
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    instance.ok("up", "--gpus", "sim:1x24", preexec_fn=dumps)
    id = instance.add("-g", "0", "--", "ulimit -c; touch limited; sleep 600", preexec_fn=dumps)
    instance.made("limited")
    for pid in (instance.engine, instance.runs(id)[0]["shim_pid"]):
        assert re.search(r"^Max core file size +0 ", Path(f"/proc/{pid}/limits").read_text(), re.M)
    assert instance.output(id) == ("unlimited" if hard == resource.RLIM_INFINITY else str(hard // 1024)) + "\n"
    instance.ok("cancel", "--now", str(id))
    instance.end(id)
