"""Whether the files that a job is made of are still those of its fingerprint, looked at right before its first command (SPEC B7).

Each is given as [path, digest, known]: the digest that went into the fingerprint (None: there was nothing to read), and inode,
size, mtime and ctime of the file when it was taken (None: not to be relied on). What has the same four is the same file with the
same content; anything else is read, up to a size: then the content decides, and not the time of a file.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from typing import Any

SAME, OTHER, UNKNOWN = "same", "other", "unknown"
LARGEST = 16 << 20  # what is larger is not read while a GPU waits
BLOCK = 1 << 20


def compared(inputs: Iterable[Any]) -> str:
    found = {_one(*entry) for entry in inputs}
    return OTHER if OTHER in found else UNKNOWN if UNKNOWN in found else SAME


def identity(found: os.stat_result) -> list[int]:
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _one(path: str, digest: str | None, known: list[int] | None) -> str:
    try:
        now = os.stat(path)
        if known is not None and identity(now) == known:
            return SAME
        if not stat.S_ISREG(now.st_mode):
            found = None
        elif now.st_size > LARGEST:
            return UNKNOWN
        else:
            found = _digest(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        found = None  # as the fingerprint has it: nothing that could be read
    except (OSError, ValueError):
        return UNKNOWN
    return SAME if found == digest else OTHER


def _digest(path: str) -> str:
    found = hashlib.sha256()
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe that took its place is not waited for
    try:
        left = LARGEST
        while left >= 0 and (block := os.read(fd, BLOCK)):
            found.update(block)
            left -= len(block)
    finally:
        os.close(fd)
    return found.hexdigest() if left >= 0 else ""
