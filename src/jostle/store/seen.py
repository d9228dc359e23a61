"""How far the database had come, in a small file beside it: a journal that was lost, or an older copy put back, is noticed.

After each commit the number of the newest event is written there with the boot, and not forced to the disk: a kill takes
neither, and of what a power cut takes the journal itself knows better. So only within one boot is a database older than that a
loss. The file may be behind, never ahead.
"""

from __future__ import annotations

import os
import sqlite3

from jostle import proc
from jostle.errors import Damaged

SUFFIX = "-seen"


class SeenFile:
    def __init__(self, path: str) -> None:
        self.tail = f" {proc.boot_id():<40.40}\n".encode()
        self.newest = -1
        try:
            self.fd = os.open(path + SUFFIX, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            self.fd = -1  # it is a help, and no reason to do without an engine

    def note(self, seq: int) -> None:
        """One write of fixed size."""
        if seq != self.newest and self.fd >= 0:
            self.newest = seq
            try:
                os.pwrite(self.fd, b"%020d" % seq + self.tail, 0)
            except OSError:
                pass  # behind, then

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


def noted(path: str) -> int:
    """The newest event that was recorded in this boot; 0 if nothing is known of it."""
    try:
        with open(path + SUFFIX, "rb", opener=_at_once) as f:
            number, _, boot = f.read(100).partition(b" ")
        return int(number) if boot.strip().decode("ascii", "replace") == proc.boot_id()[:40] else 0
    except (OSError, ValueError):
        return 0


def _at_once(path: str, flags: int) -> int:
    """Whatever lies there, a pipe for one, is not waited for."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


def last_seq(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])


def older(path: str, newest: int, expected: int) -> Damaged:
    return Damaged(
        f"the database {path} is older than what was recorded and answered: its newest event is {newest}, and {expected} was "
        f"there. Its journal ({os.path.basename(path)}-wal) was lost, or an older copy was put in its place. It was left as it "
        "is: put the newer one back, or `jostle doctor --accept` goes on with this one, if that is what you want"
    )


def accept(path: str, newest: int) -> int:
    """The database, whose newest event this is, is to be taken as it is; up to which event that gives up what was recorded. 0:
    nothing is missing."""
    expected = noted(path)
    if newest >= expected:
        return 0
    try:
        os.unlink(path + SUFFIX)
    except FileNotFoundError:
        pass
    return expected
