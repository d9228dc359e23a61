"""What was recorded of a run of this host, as it is read: its handle, and the small files of its directory (S41).

Of the package this imports nothing: people wait for commands that show what stands there.
"""

from __future__ import annotations

import errno
import json
import os
from typing import Any, NamedTuple, TypeGuard

MAX_RECORD = 1 << 20
FAR = 1 << 62
"""Larger numbers are nobody's, and SQLite could not keep them."""


class Handle(NamedTuple):
    """How a run is found again: its shim, which is a process of one boot of this host. The store keeps it as text."""

    pid: int | None = None
    ticks: int | None = None
    boot: str | None = None  # None: nobody has told of such a run; "": what the store had could not be read

    def text(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def of(cls, text: str) -> Handle:
        try:
            parts = json.loads(text)
            pid, ticks, boot = parts["pid"], parts["ticks"], parts["boot"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return UNREADABLE
        sound = isinstance(boot, str) and (pid is ticks is None or (is_pid(pid) and is_ticks(ticks)))
        return cls(pid, ticks, boot) if sound else UNREADABLE


NO_HANDLE, UNREADABLE = Handle(), Handle(boot="")


def is_pid(value: Any) -> TypeGuard[int]:
    """Whether a process could have it: asked about a larger one, the system's calls raise."""
    return type(value) is int and 0 < value < 1 << 31


def is_ticks(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < FAR


def read(path: str) -> bytes | None:
    """A small regular file of a run; None if there is none (S41: the job could have put anything there)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        return b""
    try:
        return os.read(fd, MAX_RECORD)
    except OSError:
        return b""
    finally:
        os.close(fd)


def record(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
