"""The copy that is kept of a database from before it is changed for a newer jostle."""

from __future__ import annotations

import contextlib
import os
import sqlite3

from jostle.failpoint import failpoint

HALF = ".copying"


def kept(db: sqlite3.Connection, path: str, mark: str) -> str:
    """Where it lies. It is whole when it has its name; one with the same mark, of an upgrade that was killed, makes way for it,
    and what was left of half a copy is gone: however often an upgrade is killed, there is one."""
    half, copy = f"{path}{HALF}", f"{path}.{mark}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(half)
    os.close(os.open(half, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with contextlib.closing(sqlite3.connect(half)) as made:
            made.execute("PRAGMA journal_mode = OFF")  # one would be left beside it
            db.backup(made)
        failpoint("store.mid_copy")
        os.replace(half, copy)
    except (sqlite3.DatabaseError, OSError):
        os.unlink(half)
        raise
    return copy
