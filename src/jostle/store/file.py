"""The file that a store has open, as distinct from whatever is at its path now: homes are removed, moved and replaced."""

from __future__ import annotations

import os
import stat

from jostle.errors import Damaged

NAME = "jostle.db"


def database(home: str) -> str:
    """Where the state of a home lies."""
    return os.path.join(home, NAME)


def check_beside(path: str) -> None:
    """Before SQLite is called: it opens whatever has the name of a journal of the database, and would wait at a pipe for ever."""
    for name in (f"{path}-journal", f"{path}-wal", f"{path}-shm"):
        try:
            regular = stat.S_ISREG(os.lstat(name).st_mode)
        except OSError:
            continue
        if not regular:
            raise Damaged(f"{name} is no file, and a journal of the database belongs there: remove it, or move it away")


class DatabaseFile:
    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)  # closing any other would undo SQLite's locks
        self.identity = identity(os.fstat(self.fd))

    def __del__(self) -> None:
        os.close(self.fd)

    def in_place(self) -> bool:
        """Whether the database at its path is the file that we have open."""
        try:
            return identity(os.lstat(self.path)) == self.identity
        except OSError:
            return False

    def lost(self) -> bool:
        """Whether it never will be again: it was removed, or another of ours is there. What somebody has moved away, or hides by
        a directory of his own, may come back."""
        if not os.fstat(self.fd).st_nlink:
            return True
        try:
            status = os.lstat(self.path)
        except OSError:
            return False
        return status.st_uid == os.getuid() and identity(status) != self.identity


def identity(s: os.stat_result) -> tuple[int, int]:
    return s.st_dev, s.st_ino
