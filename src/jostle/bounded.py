"""A module of ours in a process of its own, bounded in time, processor and memory (RELIABILITY S57): ended with all that it has
started, whatever it does."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

from jostle.errors import JostleError

NICE = 5  # behind whatever people wait for more
LARGEST = 32 << 20  # bytes of an answer


class Bounds(NamedTuple):
    within: float  # s
    processor: int  # s
    memory: int  # bytes of address space


def child(
    words: Sequence[str], bounds: Bounds, env: Mapping[str, str], *, bounded: bool = True, text: str = "", name: str = ""
) -> tuple[int, str, str]:  # fmt: skip
    """Its exit code, what it printed, and what it said. JostleError where it came to the end of its time or memory. `bounded`:
    also in processor time and memory. `name`: what people call what it does."""
    name = name or " ".join(words[:2])
    temporary = tempfile.TemporaryFile
    with temporary() as out, temporary() as err, temporary() as stdin:
        stdin.write(text.encode())
        stdin.seek(0)
        argv = [sys.executable, "-m", *words]
        process = subprocess.Popen(argv, stdin=stdin, stdout=out, stderr=err, env=env, cwd="/", start_new_session=True)
        if bounded:
            _bound(process.pid, bounds)
        try:
            code = process.wait(bounds.within)
        except subprocess.TimeoutExpired:
            raise JostleError(_too_long(name, f"{bounds.within:.0f} s")) from None
        finally:
            _end(process)
        printed, messages = _content(out), _content(err)
    if bounded and code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise JostleError(_too_long(name, f"{bounds.processor} s of the processor"))
    if messages.rstrip().endswith("MemoryError"):
        raise JostleError(f"`{name}` needs more memory than it may have here: ask the command line")
    return code, printed, messages


def _too_long(name: str, limit: str) -> str:
    return f"`{name}` took longer than {limit} and was ended: ask for less, or ask the command line, which has no limit"


def _bound(pid: int, bounds: Bounds) -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
        # the signal of the first of these says what happened
        resource.prlimit(pid, resource.RLIMIT_CPU, (bounds.processor, bounds.processor + 5))
        resource.prlimit(pid, resource.RLIMIT_AS, (bounds.memory, bounds.memory))
    except ProcessLookupError:
        pass  # it has ended already


def _end(child: subprocess.Popen[bytes]) -> None:
    """It, and whatever it has left behind in its session; an engine that it started has a session of its own."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise JostleError("the answer is too large: ask the command line")
    return raw.decode("utf-8", "replace")
