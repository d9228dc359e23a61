"""What tells a living claim from a dead one: its lock, unless its owner has given it back. Light: shims have it in memory too."""

from __future__ import annotations

import fcntl
import os
import stat

GIVEN_BACK = 0o044
"""The mode of a claim that its owner has given up: a lock on it is some reader's, who may keep it for as long as he likes."""


HELD, HELD_AUTOMATICALLY = 0o444, 0o445
"""The modes of a claim that is held, and of one that nobody asked for by hand: only its owner can set that."""


def give_back(fd: int) -> None:
    """A claim of ours is one no more, also for those who have it open; who waits for its lock gets that, and no GPU by it."""
    try:
        os.fchmod(fd, GIVEN_BACK)
    except OSError:
        pass
    fcntl.flock(fd, fcntl.LOCK_UN)


def given_back(s: os.stat_result) -> bool:
    return stat.S_IMODE(s.st_mode) == GIVEN_BACK


def automatic(s: os.stat_result) -> bool:
    return stat.S_IMODE(s.st_mode) == HELD_AUTOMATICALLY


def is_free(fd: int) -> bool:
    """A shared try-lock: two who test at once do not see each other. Who gets it must close the file."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
