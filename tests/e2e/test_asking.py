"""Ctrl-C in `jostle run` on a real terminal: it asks, and does what it is told."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from tests.e2e.instance import PATIENCE, Instance, until

ASKS = "[c] cancel batch"
HEARS = "Ctrl-C asks whether to cancel, to detach or to go on"
JOBS = "jobs: [{name: long, run: 'touch began; until [ -e go ]; do sleep 0.02; done', gpus: 0}]\n"


class Terminal:
    """A `jostle run` whose terminal we are."""

    def __init__(self, jostle: Instance, *words: str) -> None:
        self.master, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 200, 0, 0))
        self.child = subprocess.Popen(
            [sys.executable, "-m", "jostle", "run", *words], env={**jostle.env, "TERM": "xterm"}, cwd=jostle.work, stdin=theirs,
            stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        jostle.children.append(self.child)  # type: ignore[arg-type]
        os.close(theirs)
        self.seen = ""

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read(self) -> bool:
        """Something more, or False when the other side has gone."""
        if not select.select([self.master], [], [], 1.0)[0]:
            return self.child.poll() is None
        try:
            more = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += more.decode("utf-8", "replace")
        return bool(more)

    def says(self, text: str, times: int = 1) -> None:
        end = time.monotonic() + PATIENCE
        while self.seen.count(text) < times:
            assert self.read() and time.monotonic() < end, f"never said {text!r}: {self.seen}"

    def ends(self) -> int:
        while self.read():
            pass
        return self.child.wait(PATIENCE)


@pytest.fixture
def file(shared: Instance) -> Iterator[str]:
    path = shared.file(JOBS)
    for name in ("began", "go"):
        (shared.work / name).unlink(missing_ok=True)
    yield path
    (shared.work / "go").touch()
    until(lambda: all(row["ended_at"] for row in shared.newest(1)), "the end of the job")


def begun(jostle: Instance, file: str) -> Terminal:
    terminal = Terminal(jostle, file)
    terminal.says(HEARS)
    until((jostle.work / "began").exists, "a job that runs")
    return terminal


def test_one_interrupt_on_a_terminal_asks_and_detaching_leaves_the_batch_running(shared: Instance, file: str) -> None:
    terminal = begun(shared, file)
    terminal.press("\x03")
    terminal.says(ASKS)
    shared.reach(shared.newest(1)[0]["id"], "running")
    terminal.press("d\n")
    assert terminal.ends() == 130 and "runs on (1 running)" in terminal.seen
    assert shared.newest(1)[0]["state"] == "running"
    again = Terminal(shared, file)
    again.says("attached to it again")
    (shared.work / "go").touch()
    assert again.ends() == 0 and "1 succeeded" in again.seen


def test_go_on_goes_on_and_the_next_interrupt_asks_again(shared: Instance, file: str) -> None:
    terminal = begun(shared, file)
    for times, answer in enumerate(("g\n", "\n", "\x04"), 1):
        terminal.press("\x03")
        terminal.says(ASKS, times)
        terminal.press(answer)
        before = len(terminal.seen)
        terminal.says("1 running", terminal.seen[:before].count("1 running") + 1)  # the picture is back
    terminal.press("\x03")
    terminal.says(ASKS, 4)
    terminal.press("what?\n")
    terminal.says(ASKS, 5)
    (shared.work / "go").touch()
    assert terminal.ends() == 0, "the end of the batch answers, too"
    assert "succeeded" in terminal.seen


def test_a_second_interrupt_cancels_and_so_does_the_answer(shared: Instance, file: str) -> None:
    for first in ("\x03", "c\n"):
        (shared.work / "began").unlink(missing_ok=True)
        terminal = begun(shared, file)
        terminal.press("\x03")
        terminal.says(ASKS)
        terminal.press(first)
        assert terminal.ends() == 130 and "1 cancelled" in terminal.seen
        assert shared.newest(1)[0]["state"] == "cancelled"


def test_sigterm_cancels_without_a_question(shared: Instance, file: str) -> None:
    terminal = begun(shared, file)
    terminal.child.send_signal(signal.SIGTERM)
    assert terminal.ends() == 130 and ASKS not in terminal.seen and "1 cancelled" in terminal.seen
