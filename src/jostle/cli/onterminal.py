"""A job that has a terminal of its own, which is shown in this one."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable
from typing import Any

from jostle.cli.terminal import Terminal
from jostle.core.runvariables import TERMINAL
from jostle.core.states import FINAL
from jostle.errors import Usage

HERE = ("TERM", "COLORTERM", "LANG", "LC_ALL")
"""What a program on a terminal needs to know of it, and a submit leaves out."""


def bridged(terminal: Terminal, submit: Callable[[dict[str, str]], int]) -> int:
    """Shows here the terminal of a job until that has ended; its exit code. `submit` is given the variables by which its shim
    knows the terminal."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise Usage("start: -t needs a terminal on both sides; expected to be run in one")
    ours, theirs = os.openpty()
    _resize(ours)
    id = submit({TERMINAL: os.ttyname(theirs), **{key: os.environ[key] for key in HERE if key in os.environ}})
    before = termios.tcgetattr(0)
    signal.signal(signal.SIGWINCH, lambda *_: _resize(ours))
    tty.setraw(0)
    try:
        _carry(terminal, id, ours, theirs)
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
    row: Any = terminal.reader.job(id)
    return int(row["exit_code"]) if row["exit_code"] is not None else 1


def _resize(ours: int) -> None:
    try:
        termios.tcsetwinsize(ours, termios.tcgetwinsize(0))  # type: ignore[attr-defined,unused-ignore]
    except (OSError, AttributeError, termios.error):
        pass  # before Python 3.11: it has the size of any new terminal


def _carry(terminal: Terminal, id: int, ours: int, theirs: int) -> None:
    """Keys there, letters here. Our own hold on its side keeps it open until the job has it, and until all is read."""
    ended = False
    while True:
        ready, _, _ = select.select([ours, *([] if ended else [0])], [], [], 0.2)
        if ours in ready:
            os.write(1, os.read(ours, 65536))
            continue
        if ended:
            os.close(theirs)
            return
        if 0 in ready:
            os.write(ours, os.read(0, 65536))
        else:
            row = terminal.reader.job(id)
            ended = row is None or row["state"] in FINAL
