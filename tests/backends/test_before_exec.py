"""A child between fork and exec looks like its parent, which listens for SIGUSR1; the program that it becomes would die of it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from local_bench import Bench
from tests.e2e.instance import until

from jostle import proc
from jostle.backends.local import control, legs
from jostle.port import Resizing

RUN = (7, 1)
CARD = "GPU-a"
LISTS = {"CUDA_VISIBLE_DEVICES": "a", "JOSTLE_GPUS": "a"}
BECOMES = """
import os, signal, time
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
open("lives", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
"""
PARENT = f"""
import os, signal, sys, time
def heard(*_):
    open("child heard" if child == 0 else "heard", "w").close()
signal.signal(signal.SIGUSR1, heard)
child = os.fork()
if child == 0:
    if sys.argv[1] == "blocked":
        signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
    open("waits", "w").close()
    while not os.path.exists("exec"):
        time.sleep(0.02)
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", {BECOMES!r}])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_that_keeps_signals_out_until_its_exec_gets_none(bench: Bench) -> None:
    """As the C library does it: what came meanwhile would meet the other program when it lets signals in."""
    command = ["python3", "-I", "-S", "-c", PARENT, "blocked"]
    bench.start(RUN, command, wants=[(CARD, None)], resize="signal", env=LISTS)
    bench.running(RUN, "waits")
    bench.local.resize([Resizing(RUN, 2, (CARD,), LISTS)])
    bench.until(lambda: (bench.home / "heard").exists(), what="its parent hears of the list")
    (bench.home / "exec").touch()
    bench.until(lambda: (bench.home / "lives").exists(), what="it has become another program, and lets signals in")
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0


@pytest.fixture
def shim(tmp_path: Path) -> Iterator[legs.Legs]:
    """The part of a shim that tells processes of another list; here those of this very process."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    claim = tmp_path / f"jostle-{CARD}~x~{os.getpid()}~00000000~7.1"
    claim.touch()
    spec = {"resize": "signal", "claims": [str(claim)], "dir": str(tmp_path), "env": dict(LISTS), "run": "7.1"}
    fd = os.open(claim, os.O_RDONLY)
    made = legs.Legs(spec, [fd], lambda text: None)
    yield made
    made.close()
    os.close(fd)
    signal.signal(signal.SIGIO, before)


def test_a_process_that_may_be_about_to_exec_is_not_signalled_until_it_is_old_enough(
    shim: legs.Legs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legs, "LOOKS_FOR", 3600.0)
    with subprocess.Popen(["python3", "-I", "-S", "-c", PARENT, "open"], cwd=tmp_path) as parent:
        try:
            until(there(tmp_path, "waits"), "a child is between fork and exec")
            monkeypatch.setattr(proc, "age", lambda ticks: legs.GROWN_UP / 2)
            sock = control.connected(str(tmp_path))
            assert sock is not None
            with sock:
                assert control.sent(sock, {"resize": 2, "cards": [CARD], "claims": [], "env": LISTS})
                until(lambda: shim.step(lambda: True) or shim.effective == 2, "the list is in effect")
            (tmp_path / "exec").touch()
            until(there(tmp_path, "lives"), "it has become another program")
            assert not list(tmp_path.glob("*heard")), "nobody was signalled who may be about to"
            monkeypatch.setattr(proc, "age", lambda ticks: legs.GROWN_UP)
            shim.step(lambda: True)
            until(there(tmp_path, "heard"), "who listens hears of it")
            (tmp_path / "go").touch()
            assert parent.wait(60) == 0, "and the other program does not"
        finally:
            parent.kill()


def there(directory: Path, name: str) -> Callable[[], bool]:
    return (directory / name).exists
