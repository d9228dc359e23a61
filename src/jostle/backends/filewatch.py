"""Hearing that a file was written, replaced or removed, as SIGIO, by inotify on its directory.

Where that cannot be had (no inotify, too many watches, the directory was moved away), `fd` is None and the owner must look
from time to time.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct

_IN_CLOSE_WRITE, _IN_MOVED_FROM, _IN_MOVED_TO, _IN_DELETE, _IN_DELETE_SELF, _IN_MOVE_SELF = 0x8, 0x40, 0x80, 0x200, 0x400, 0x800
_IN_OVERFLOW, _IN_IGNORED = 0x4000, 0x8000
_WANTED = _IN_CLOSE_WRITE | _IN_MOVED_FROM | _IN_MOVED_TO | _IN_DELETE | _IN_DELETE_SELF | _IN_MOVE_SELF
_HEAD = struct.Struct("iIII")

_libc = ctypes.CDLL(None, use_errno=True)
_init = getattr(_libc, "inotify_init1", None)
_add = getattr(_libc, "inotify_add_watch", None)
if _add is not None:
    _add.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)


class FileWatch:
    def __init__(self, path: str) -> None:
        self._name = os.fsencode(os.path.basename(path))
        self.fd: int | None = None
        if _init is None or _add is None:
            return
        fd = _init(os.O_NONBLOCK | os.O_CLOEXEC)
        if fd < 0:
            return
        self.fd = fd
        try:
            fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
            if _add(fd, os.fsencode(os.path.dirname(path)), _WANTED) < 0:
                self.close()
        except OSError:
            self.close()

    def changed(self) -> bool:
        """Whether the file was written since the last call, as far as was heard."""
        found = False
        while self.fd is not None:
            try:
                events = os.read(self.fd, 1 << 16)
            except OSError:
                break
            at = 0
            while at < len(events):
                _, mask, _, length = _HEAD.unpack_from(events, at)
                name = events[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
                at += _HEAD.size + length
                found |= name == self._name or bool(mask & _IN_OVERFLOW)
                if mask & (_IN_IGNORED | _IN_DELETE_SELF | _IN_MOVE_SELF):
                    self.close()
                    return True
        return found

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
