"""A run's directory, made before there is a run, under a dot name beside the others.

Making files is the slowest part of a start, and a card waits for it. So a spare shim makes them ahead, and a start only writes
the claim into the directory and gives it the run's name. That rename is the claim: a directory can take the place of nothing or
of an empty one, so exactly one ever gets the name, and it appears whole, with its lock held. Making a run impossible (void) is
the same: a directory with an empty promise in it takes the name.

Two locks lie in it. `lock` is the shim's alone: it says that there is one. The one on `claim` is handed on to all commands: it
says that somebody of the run lives, and unlike the locks on GPUs nobody else can have it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

from jostle import proc

_NEW = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class SpareDir:
    def __init__(self, runs: str) -> None:
        """Raises OSError if it cannot be made; then nothing is left of it."""
        self.path = f"{runs}/.{os.getpid()}-{time.monotonic_ns()}"
        self._fds: list[int] = []
        self.life = -1
        try:
            os.mkdir(self.path, 0o700)
        except FileNotFoundError:  # somebody removed the directory of all runs
            _make_again(runs)
            os.mkdir(self.path, 0o700)
        try:
            self.lock = self._make("lock", os.O_RDWR)
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.log = self._make("log", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY)
            self._claim = self._make("claim", os.O_WRONLY)
            self.life = os.open(f"{self.path}/claim", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            fcntl.flock(self.life, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(os.open(f"{self.path}/exit.new", os.O_WRONLY | _NEW, 0o600))
        except OSError:
            self.discard()
            raise

    def _make(self, name: str, how: int) -> int:
        self._fds.append(os.open(f"{self.path}/{name}", how | _NEW, 0o600))
        return self._fds[-1]

    def take(self, directory: str, claim: bytes) -> bool:
        """Takes the run's name, once in the life of the run; False: it is taken. OSError: it cannot be had now."""
        if os.pwrite(self._claim, claim, 0) != len(claim):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        os.ftruncate(self._claim, len(claim))
        try:
            os.rename(self.path, directory)
        except OSError as e:
            if e.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            return False
        self.path = directory
        return True

    def is_complete(self) -> bool:
        """Whether its files are still there: it may have waited for days, and cleaners remove what is old."""
        return all(os.fstat(fd).st_nlink for fd in self._fds)

    def close(self) -> None:
        """Lets go of the lock: whoever had it is gone."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        if self.life >= 0:
            os.close(self.life)
            self.life = -1

    def discard(self) -> None:
        self.close()
        remove(self.path)


def _make_again(runs: str) -> None:
    try:
        os.mkdir(runs, 0o700)
    except FileExistsError:
        pass  # another was quicker


def remove(path: str) -> None:
    for name in ("claim", "log", "exit.new", "lock"):  # the lock last: what has none is only half removed
        try:
            os.unlink(f"{path}/{name}")
        except OSError:
            pass
    try:
        os.rmdir(path)
    except OSError:
        pass  # gone, or not as we made it


def sweep(runs: str) -> None:
    """Removes what spares left that were killed."""
    try:
        names = [name for name in os.listdir(runs) if name.startswith(".")]
    except OSError:
        return
    for name in names:
        path, pid = f"{runs}/{name}", name[1:].partition("-")[0]
        if pid.isdecimal() and proc.stat(int(pid)) is not None:
            continue  # it may be making it at this moment
        try:
            fd = os.open(f"{path}/lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            remove(path)  # killed before there was one, or while it was removed
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            remove(path)
        except OSError:
            pass  # its spare lives, in another namespace
        finally:
            os.close(fd)
