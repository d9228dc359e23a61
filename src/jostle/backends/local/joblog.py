"""The log of a run: a file the job appends to by itself, kept under a cap by dropping its middle.

Only regular files are renamed, capped or read; anything else a person may have named (/dev/null, a FIFO) is just
written to.
"""

from __future__ import annotations

import ctypes
import os
import stat

TAIL = 4096  # of the log, in the record
LOOKED_AT = 65536  # … and at its end, for a traceback
TRACEBACK = b"Traceback (most recent call last):"
MESSAGE = 1024  # of what stands in and after the last line of one
BLOCK = 4096

_PUNCH_KEEP = 0x02 | 0x01
_libc = ctypes.CDLL(None, use_errno=True)
_fallocate = getattr(_libc, "fallocate64", None) or getattr(_libc, "fallocate", None)
if _fallocate is not None:
    _fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def open_log(path: str, again: bool = False) -> int:
    """The log, open for appending; an older one with something in it is first put aside as path.N.

    `again`: it is of an earlier try of the same job, and put aside even if that printed nothing."""
    try:
        before = os.lstat(path)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    else:
        if stat.S_ISREG(before.st_mode) and (before.st_size or again):
            n = 1
            while os.path.lexists(f"{path}.{n}"):
                n += 1
            os.rename(path, f"{path}.{n}")
        if not stat.S_ISREG(before.st_mode):
            return _open_special(path)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, 0o600)


def _open_special(path: str) -> int:
    """A link, a device, a FIFO; one that nobody reads is an error, not a wait."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK, 0o600)
    os.set_blocking(fd, True)
    return fd


def cap_log(fd: int, cap: int) -> bool:
    """Punches out the middle of a log that passed its cap; True if it fills so fast that it should be looked at again soon."""
    try:
        s = os.fstat(fd)
        if not stat.S_ISREG(s.st_mode) or _fallocate is None:
            return False
        used = s.st_blocks * 512
        if used > cap:
            head, tail = cap // 4 // BLOCK * BLOCK, (s.st_size - cap // 4) // BLOCK * BLOCK
            if tail > head and _fallocate(fd, _PUNCH_KEEP, head, tail - head) == 0:
                _mark(fd, head, tail - head, cap)
        return used > cap // 2
    except OSError:
        return False


def _mark(fd: int, head: int, dropped: int, cap: int) -> None:
    """Says in the log itself what happened (our own descriptor would append, wherever we point it)."""
    # of one length, for the next one is written over it
    text = f"\n[jostle: {dropped / (1 << 20):11,.1f} MiB of this log were dropped here to keep it under {cap >> 20} MiB]\n"
    if head < len(text):
        return
    own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(own, text.encode(), head - len(text))
    finally:
        os.close(own)


def tail(fd: int) -> str:
    """What of the log says why its run failed."""
    try:
        s = os.fstat(fd)
        if not stat.S_ISREG(s.st_mode):
            return ""
        own = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return telling(os.pread(own, LOOKED_AT, max(0, s.st_size - LOOKED_AT))).decode(errors="replace")
        finally:
            os.close(own)
    except OSError:
        return ""


def telling(log: bytes) -> bytes:
    """The first traceback in what was read of a log, with the line that says what it is; else the log's end.

    The first, for of several processes the others fail because it did, and what launched them goes on to say so for long."""
    begin = log.find(TRACEBACK)
    if begin < 0:
        return log[-TAIL:]
    begin = log.rfind(b"\n", 0, begin) + 1
    end = min(_error_line(log, begin) + MESSAGE, len(log))
    begin = max(begin, end - TAIL)
    return log[begin : begin + TAIL]


def _error_line(log: bytes, begin: int) -> int:
    """Where the traceback's last line stands: the first that is not indented, but for what a launcher put before each line."""
    at = log.find(b"\n", begin) + 1
    before = log[begin : log.find(TRACEBACK, begin)]
    before = before if at and log.startswith(before, at) else b""
    while 0 < at < len(log):
        if log.startswith(before, at) and not log[at + len(before) : at + len(before) + 1].isspace():
            return at
        at = log.find(b"\n", at) + 1
    return begin


def identity(fd: int) -> list[int] | None:
    """Which file it is, whatever its name may be later."""
    try:
        s = os.fstat(fd)
    except OSError:
        return None
    return [s.st_dev, s.st_ino]


def note(fd: int, text: str) -> None:
    """A line of ours in the job's log."""
    try:
        os.write(fd, f"jostle: {text}\n".encode(errors="replace"))
    except OSError:
        pass  # a full disk; the exit record says it too
