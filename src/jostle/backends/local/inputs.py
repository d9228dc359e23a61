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
    answers = {_compared(*entry) for entry in inputs}
    return OTHER if OTHER in answers else UNKNOWN if UNKNOWN in answers else SAME


def identity(status: os.stat_result) -> list[int]:
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _compared(path: str, digest: str | None, identity_then: list[int] | None) -> str:
    try:
        now = os.stat(path)
        if identity_then is not None and identity(now) == identity_then:
            return SAME
        if not stat.S_ISREG(now.st_mode):
            digest_now = None
        elif now.st_size > LARGEST:
            return UNKNOWN
        else:
            digest_now = _digest(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        digest_now = None  # as the fingerprint has it: nothing that could be read
    except (OSError, ValueError):
        return UNKNOWN
    return SAME if digest_now == digest else OTHER


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe that took its place is not waited for
    try:
        left = LARGEST
        while left >= 0 and (block := os.read(fd, BLOCK)):
            digest.update(block)
            left -= len(block)
    finally:
        os.close(fd)
    return digest.hexdigest() if left >= 0 else ""
