"""A run that was told to end has not succeeded, though its program heard it too and left with exit code 0: real processes."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from local_bench import PATIENCE, Bench

from jostle import proc
from jostle.backends.local import commands, process
from jostle.backends.local.commands import WAITED_FOR, CommandTree

RUN = (7, 1)
TRIES = 25
PR_SET_CHILD_SUBREAPER = 36


def polite(bench: Bench, n: int) -> list[str]:
    """A program that is gone well under a millisecond after it was told to end."""
    return ["bash", "-c", f"trap 'exit 0' TERM; sleep 1000 & touch {bench.home}/ready{n}; wait"]


def tell_all(bench: Bench, shim: int, n: int) -> None:
    """As a shutdown does: everybody is told to end, one after the other, here the shim first."""
    bench.until(lambda: (bench.home / f"ready{n}").exists() and len(proc.tree(shim)) == 2)
    for pid in [shim, *proc.tree(shim)]:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass  # it has gone with its parent


def test_a_shutdown_that_comes_to_the_shim_first_leaves_no_success(bench: Bench) -> None:
    ends = []
    for n in range(TRIES):
        shim = bench.start((n, 1), polite(bench, n)).pid
        tell_all(bench, shim, n)
        ends.append(bench.end((n, 1)))
        bench.forget((n, 1))
    assert {(end.code, end.stopped) for end in ends} == {(0, True)}


def forked(
    spec: dict[str, Any], kind: type[CommandTree] = CommandTree, started: Callable[[], None] = lambda: None
) -> tuple[int, int]:
    """A child that carries the run as a shim does, and where its record can be read."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            run = kind(spec)
            run.execute(started=started)
            run.sweep()
            run.last_word()
            os.write(w, json.dumps(run.record()).encode())
        finally:
            os._exit(0)
    os.close(w)
    return pid, r


def record_of(child: tuple[int, int]) -> dict[str, Any]:
    with open(child[1], "rb") as f:
        text = f.read()
    os.waitpid(child[0], 0)
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_shutdown_that_ended_the_program_before_its_shim_heard_anything_leaves_no_success(bench: Bench) -> None:
    """The shim stands still meanwhile, as one that does not get the processor."""
    child = forked(bench.spec(RUN, [polite(bench, 0)], log=os.devnull))
    bench.until(lambda: (bench.home / "ready0").exists() and len(proc.tree(child[0])) == 2)
    main = proc.tree(child[0])[0]  # the nearest
    os.kill(child[0], signal.SIGSTOP)
    os.kill(main, signal.SIGTERM)
    bench.until(lambda: (stat := proc.stat(main)) is None or stat.state == "Z")
    os.kill(child[0], signal.SIGTERM)
    os.kill(child[0], signal.SIGCONT)
    record = record_of(child)
    assert (record["code"], record["stopped"]) == (0, True)


def test_a_stop_that_comes_when_the_program_has_just_ended_is_heard(bench: Bench) -> None:
    class Told(CommandTree):
        def sweep(self) -> None:
            super().sweep()
            os.kill(os.getpid(), signal.SIGTERM)

    record = record_of(forked(bench.spec(RUN, ["true"], log=os.devnull), Told))
    assert (record["code"], record["stopped"]) == (0, True)


@pytest.mark.parametrize("kill", [True, False])
def test_a_run_that_is_cancelled_while_its_leftovers_are_waited_for_has_not_succeeded(bench: Bench, kill: bool) -> None:
    bench.start(RUN, "sleep 1000 & true", leftovers="wait")
    bench.until(lambda: (bench.dir(RUN) / "log").exists() and "waiting for what they left" in bench.log(RUN))
    bench.stop(RUN, kill=kill)
    end = bench.end(RUN)
    assert (end.code, end.stopped, end.timed_out) == (0, True, False)


@pytest.mark.parametrize("limit", [0.01, 0.5])
def test_a_run_whose_time_is_up_while_its_leftovers_are_waited_for_has_not_succeeded(bench: Bench, limit: float) -> None:
    """Also in the first moment, in which nothing has been told of them yet."""
    end = bench.carry(RUN, "sleep 1000 & true", leftovers="wait", time_limit=limit)
    assert (end.code in (0, 143), end.stopped, end.timed_out) == (True, True, True)
    assert end.ran_for is not None and end.ran_for >= limit


def test_a_run_whose_time_was_up_before_its_leftovers_were_looked_at_has_not_succeeded(bench: Bench) -> None:
    """The shim does not get the processor until its command has ended and the time is up, nor then until the leftover is dead."""
    limit = 1.0

    def waiting(condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not condition() and time.monotonic() < until:
            time.sleep(0.001)

    def states() -> list[str]:
        return [stat.state for pid in proc.tree(os.getpid()) if (stat := proc.stat(pid)) is not None]

    def time_is_up() -> None:
        (bench.home / "go").touch()
        began = time.monotonic()
        waiting(lambda: len(states()) == 2 and "Z" in states() and time.monotonic() - began > limit)

    class Late(CommandTree):
        def sweep(self) -> None:
            waiting(lambda: set(states()) == {"Z"})
            super().sweep()

    command = "sleep 1000 & until [ -e go ]; do :; done"
    spec = bench.spec(RUN, [command], log=os.devnull, leftovers="wait", time_limit=limit)
    record = record_of(forked(spec, Late, started=time_is_up))
    assert (record["stopped"], record["timed_out"]) == (True, True)


def test_output_that_a_process_substitution_still_writes_is_not_cut_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends by itself within LINGER was not left behind; here that is as long as a slow host needs."""
    monkeypatch.setattr(commands, "LINGER", PATIENCE)
    log = bench.home / "log"
    spec = bench.spec(RUN, ["exec > >(cat; until [ -e go ]; do sleep 0.02; done; echo tail end); seq 1000"], log=str(log))
    child = forked(spec)
    bench.until(lambda: log.exists() and log.read_text().endswith("\n1000\n"))
    (bench.home / "go").touch()
    record = record_of(child)
    assert (record["code"], record["leftovers"]) == (0, []) and log.read_text().endswith("1000\ntail end\n")


def test_nor_is_it_where_the_host_gives_it_no_core_within_that_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here that time is none at all; what works on, or would if it could, is waited for, and what only sleeps is not."""
    monkeypatch.setattr(commands, "LINGER", 0.0)
    monkeypatch.setattr(commands, "AT_WORK", PATIENCE)
    looked = process.at_work

    def looks() -> bool:
        found = looked()
        (bench.home / "go").touch()  # not before it was looked at: the main process has ended by then
        return found

    monkeypatch.setattr(process, "at_work", looks)
    log = bench.home / "log"
    writes = "exec > >(cat; until [ -e go ]; do :; done; echo tail end); seq 1000"
    record = record_of(forked(bench.spec(RUN, [writes], log=str(log))))
    assert (record["code"], record["leftovers"]) == (0, []) and log.read_text().endswith("1000\ntail end\n")
    asleep = record_of(forked(bench.spec(RUN, ["exec > >(exec sleep 1000); true"], log=str(log))))
    assert asleep["code"] == 0 and len(asleep["leftovers"]) == 1


def test_the_time_in_which_leftovers_are_waited_for_is_time_of_the_run(bench: Bench) -> None:
    bench.start(RUN, "(until [ -e go ]; do sleep 0.01; done) & true", leftovers="wait")
    bench.until(lambda: (bench.dir(RUN) / "log").exists() and "waiting for what they left" in bench.log(RUN))
    waited_since = time.time()
    (bench.home / "go").touch()
    end = bench.end(RUN)
    assert (end.code, end.stopped) == (0, False)
    assert end.ended_at is not None and end.ended_at >= waited_since
    assert end.ran_for is not None and end.ran_for >= commands.LINGER
