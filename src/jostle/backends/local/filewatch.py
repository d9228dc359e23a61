"""Hearing what happens to a file or in a directory, by inotify: FileWatch as SIGIO, DirWatch by a descriptor to wait for.

Where that cannot be had (no inotify, too many watches, the directory was moved away), `fd` is None or nothing is heard, and the
owner must look from time to time.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from collections.abc import Iterator

_IN_CLOSE_WRITE, _IN_MOVED_FROM, _IN_MOVED_TO, _IN_DELETE, _IN_DELETE_SELF, _IN_MOVE_SELF = 0x8, 0x40, 0x80, 0x200, 0x400, 0x800
_IN_CREATE, _IN_OVERFLOW, _IN_IGNORED, _IN_ONLYDIR = 0x100, 0x4000, 0x8000, 0x1000000
_WANTED = _IN_CLOSE_WRITE | _IN_MOVED_FROM | _IN_MOVED_TO | _IN_DELETE | _IN_DELETE_SELF | _IN_MOVE_SELF
_HEAD = struct.Struct("iIII")

_libc = ctypes.CDLL(None, use_errno=True)
_init = getattr(_libc, "inotify_init1", None)
_add = getattr(_libc, "inotify_add_watch", None)
_remove = getattr(_libc, "inotify_rm_watch", None)
if _add is not None:
    _add.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)


def _events(fd: int, reads: int = -1) -> Iterator[tuple[int, int, bytes]]:
    """What was heard since the last call, or the first so many reads of it: (watch, mask, name)."""
    while reads:
        reads -= 1
        try:
            events = os.read(fd, 1 << 16)
        except OSError:
            return
        at = 0
        while at < len(events):
            watch, mask, _, length = _HEAD.unpack_from(events, at)
            yield watch, mask, events[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
            at += _HEAD.size + length


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
        stirred = False
        for _, mask, name in _events(self.fd) if self.fd is not None else ():
            stirred |= name == self._name or bool(mask & _IN_OVERFLOW)
            if mask & (_IN_IGNORED | _IN_DELETE_SELF | _IN_MOVE_SELF):
                self.close()
                return True
        return stirred

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


class DirWatch:
    """Names that come into a directory and go from it, also when the directory itself goes and comes again."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._watches: dict[int, bool] = {}  # watch -> whether it is on the directory, or on the one above, for its coming
        fd = _init(os.O_NONBLOCK | os.O_CLOEXEC) if _init is not None and _add is not None else -1
        self.fd: int | None = fd if fd >= 0 else None
        self.attach()

    def attach(self) -> None:
        """Watches the directory that has the name now, or waits for one to get it."""
        if self._add(self.path, _IN_MOVED_FROM | _IN_MOVED_TO | _IN_DELETE | _IN_DELETE_SELF | _IN_MOVE_SELF, here=True):
            return
        self._add(os.path.dirname(self.path), _IN_CREATE | _IN_MOVED_TO, here=False)
        self._add(self.path, _IN_MOVED_FROM | _IN_MOVED_TO | _IN_DELETE | _IN_DELETE_SELF | _IN_MOVE_SELF, here=True)

    def _add(self, path: str, mask: int, *, here: bool) -> bool:
        watch = _add(self.fd, os.fsencode(path), mask | _IN_ONLYDIR) if self.fd is not None and _add is not None else -1
        if watch < 0:
            return False
        for other in self._watches.keys() - {watch} if here else ():
            if _remove is not None:
                _remove(self.fd, other)
        self._watches = {watch: True} if here else {**self._watches, watch: False}
        return True

    def changes(self) -> tuple[dict[str, bool], bool]:
        """What was heard since the last call: names and whether they came or went; and whether more may have happened.

        At most what one read gives: in a directory of everybody somebody may be quicker than we are. The rest is there at once.
        """
        names: dict[str, bool] = {}
        missed = False
        for watch, mask, name in _events(self.fd, reads=1) if self.fd is not None else ():
            here = self._watches.get(watch)
            if here and name:
                names[os.fsdecode(name)] = bool(mask & _IN_MOVED_TO)
            elif mask & _IN_OVERFLOW or (here is False and os.fsdecode(name) == os.path.basename(self.path)):
                missed = True
            elif here:  # the directory itself
                del self._watches[watch]
                if mask & _IN_MOVE_SELF and _remove is not None:
                    _remove(self.fd, watch)
                missed = True
        if missed:
            self.attach()
        return names, missed

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
