"""floor.py SLOTS [DB] < LIST: what c/floor.c does, in Python: asyncio, pidfds and posix_spawn.

With DB each hand-over is also committed to SQLite before the spawn (WAL, synchronous=FULL): what remembering costs on
this disk when nothing else is done. LIST has one command a line, its words separated by tabs.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys


class Journal:
    """One row per task; the ends since the last commit and the next start share a transaction."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        self.db.execute("CREATE TABLE task(pid INTEGER, code INTEGER)")

    def commit(self, ended: int | None, code: int) -> None:
        self.db.execute("BEGIN")
        if ended is not None:
            self.db.execute("UPDATE task SET pid=?, code=? WHERE rowid=(SELECT max(rowid) FROM task)", (ended, code))
        self.db.execute("INSERT INTO task(code) VALUES(NULL)")
        self.db.execute("COMMIT")


class Floor:
    def __init__(self, journal: Journal | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.empty = self.loop.create_future()
        self.journal = journal
        self.env = dict(os.environ)
        self.alive = 0

    def spawn_next(self) -> None:
        line = sys.stdin.readline().rstrip("\n")
        if line:
            words = line.split("\t")
            pidfd = os.pidfd_open(os.posix_spawn(words[0], words, self.env, setsid=True))
            self.alive += 1
            self.loop.add_reader(pidfd, self.ended, pidfd)
        elif not self.alive and not self.empty.done():
            self.empty.set_result(None)

    def ended(self, pidfd: int) -> None:
        self.loop.remove_reader(pidfd)
        result = os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        os.close(pidfd)
        self.alive -= 1
        if self.journal is not None and result is not None:
            self.journal.commit(result.si_pid, result.si_status)
        self.spawn_next()


async def main(slots: int, db: str | None) -> None:
    floor = Floor(Journal(db) if db else None)
    for _ in range(slots):
        floor.spawn_next()
    await floor.empty


asyncio.run(main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
