"""The store: one SQLite file, one writing connection. Opening, checking, migrating, transactions, events.

Rules: a commit that returned outlives this process and, by default, this boot (WAL, synchronous=FULL). One that was asked not to
wait for the disk is there when sync() has returned, and followers are not told of it before. A database that is damaged,
newer than we are, or open to others is refused with a sentence that says what to do; it is never replaced by an empty one.
Files are 0600 at every instant.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any

from jostle.errors import Damaged, DiskError, DiskFull, Forbidden, JostleError, Unwritten
from jostle.failpoint import failpoint
from jostle.store import copies, seen, texts, ways
from jostle.store.file import NAME, DatabaseFile, check_beside, database
from jostle.store.lanes import Lanes
from jostle.store.private import check_private
from jostle.store.reads import uri

MIGRATIONS = [name for name in os.listdir(os.path.dirname(__file__)) if name.endswith(".sql")]
MIGRATIONS.sort(key=lambda name: (len(name), name))
"""schema.sql, schema2.sql and so on, as many as there are. Script k brings a database from version k to k+1."""

UNFIT = (sqlite3.ProgrammingError, sqlite3.InterfaceError)
"""What SQLite says to a value that it cannot keep."""

CHECK_BELOW = 32 << 20
"""A whole integrity check of a larger file would keep people waiting at each start."""

BUSY_FOR = 5
"""Seconds that a commit waits for another program that writes."""

FULL = (errno.ENOSPC, errno.EDQUOT)

UNTIL_OVER = "nothing is recorded or begun until that is over"


def script(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as f:  # importlib.resources costs 20 ms
        return f.read()


def version() -> int:
    return len(MIGRATIONS)


def damaged(path: str, what: object) -> Damaged:
    return Damaged(
        f"the database {path} is damaged ({what}). It was left as it is; "
        "`jostle doctor --salvage` writes what can be read of it into a new one"
    )


class Store:
    """The writing connection."""

    def __init__(self, home: str, remains: Callable[[], str] = lambda: "") -> None:
        """`remains`: where runs lie of which the database would tell, if any do; asked where there is none."""
        self.path = database(home)
        check_private(home)
        if not os.path.lexists(self.path):
            refuse_to_begin_anew(home, remains())
            for half in [name for name in os.listdir(home) if name.startswith(f"{NAME}.new-")]:
                os.unlink(os.path.join(home, half))  # of an engine that was killed while it made the first one
            create(self.path)
        check_file(self.path)
        check_beside(self.path)
        check_private(self.path)
        check_header(self.path)
        expected = seen.noted(self.path)
        self.db = connect(self.path)
        try:
            self._check()
            migrate(self.db, self.path)
            if (newest := seen.last_seq(self.db)) < expected:
                raise seen.older(self.path, newest, expected)
            for wrong in texts.broken(self.db, everything=False):
                raise damaged(self.path, wrong)
            next_id, next_batch = self.db.execute(
                "SELECT (SELECT max(id) FROM job), (SELECT max(id) FROM batch)"
            ).fetchone()
        except (sqlite3.DatabaseError, UnicodeError) as e:
            self.db.close()
            raise translated(e, self.path) from e
        except BaseException:
            self.db.close()
            raise
        self.file = DatabaseFile(self.path)
        self.in_place, self.lost = self.file.in_place, self.file.lost
        self.next_job: int = (next_id or 0) + 1
        self.next_batch: int = (next_batch or 0) + 1
        self.generation = 0  # grows with each commit: what was read at the same generation still holds
        self.waits_for_disk = True  # whether commits do, as SQLite was last told
        self.unsynced = True  # some commit did not, perhaps one of the process before this
        self.holed = False  # the disk has failed under the journal: there may be a hole that we cannot see
        self.forgetting = False  # something was removed for good, and may be in the journal yet
        journal = journal_of(self.path)
        self.has_journal = journal != self.path  # where the file system allows no WAL each commit waits for the disk
        self.journal = os.open(journal, os.O_RDONLY | os.O_CLOEXEC)
        self._begin_journal()
        self.shapes: dict[tuple[Any, ...], int] = {}
        self.lanes = Lanes(self.db)
        self.db.executescript(ways.HELD)
        self.seen_file = seen.SeenFile(self.path)
        self.seen_file.note(newest)

    def _check(self) -> None:
        schema = self.db.execute("PRAGMA user_version").fetchone()[0]
        if schema > version():
            raise Damaged(
                f"{self.path} was written by a newer jostle (schema {schema}, this one knows {version()}): "
                "upgrade jostle, or point JOSTLE_HOME elsewhere"
            )
        if os.path.getsize(self.path) < CHECK_BELOW:
            answer = self.db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if answer != "ok":
                raise damaged(self.path, " ".join(answer.split()))

    def close(self) -> None:
        if not self.in_place():
            _abandoned.append(self.db)
            return
        with contextlib.suppress(sqlite3.Error):
            self._moved()
        self.db.close()
        os.close(self.journal)

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """All or nothing. `durable`: what it returns from is on the disk; else sync() brings it there."""
        try:
            if self.holed and durable:
                self.sync()  # what is written behind a hole is lost with a power cut
            durable = durable or not self.has_journal
            if durable != self.waits_for_disk:  # a script is always compiled anew, and it is then that this pragma acts
                self.db.executescript(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self.waits_for_disk = durable
            self.db.execute("BEGIN IMMEDIATE")
            ids = self.next_job, self.next_batch
            try:
                yield self.db
                failpoint("store.before_commit")
                newest = self.last_seq()
                self.db.execute("COMMIT")
                self.seen_file.note(newest)
                self.generation += 1
                self.unsynced = self.unsynced or not durable  # a commit that changed nothing makes nothing durable
            except BaseException:
                self.next_job, self.next_batch = ids
                self.shapes.clear()  # some may have been made in what is now undone
                self.lanes.forget()
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as e:
            if "disk I/O error" in str(e):
                self.holed = True
                self._bury()
            raise unrecorded(e, self.path) from e
        except OSError as e:
            if e.errno not in (*FULL, errno.EIO):
                raise
            kind = DiskFull if e.errno in FULL else DiskError
            raise kind(f"{e.strerror} under {self.path}: nothing was recorded; it goes on by itself once mended") from e
        failpoint("store.after_commit")

    @contextlib.contextmanager
    def part(self, *, first: bool = False) -> Iterator[None]:
        """A part of the open transaction: if it fails it is undone by itself, and the rest goes on. The first is undone with the
        whole: within a savepoint each statement walks over every page that was changed before, for minutes if jobs are many."""
        if not first:
            self.db.execute("SAVEPOINT part")
        before = self.next_job, self.next_batch
        try:
            yield
        except BaseException:
            self.next_job, self.next_batch = before
            self.shapes.clear()
            if self.db.in_transaction:
                for sql in ("ROLLBACK", "BEGIN IMMEDIATE") if first else ("ROLLBACK TO part",):
                    self.db.execute(sql)
            raise
        finally:
            if self.db.in_transaction and not first:
                self.db.execute("RELEASE part")

    def sync(self) -> None:
        """What was committed without waiting for the disk is on it when this returns.

        A disk that failed once and then says "done" has dropped what it could not write (Linux forgets it): from then on nothing
        is trusted before all of the journal is in the file itself, and the journal begins anew.
        """
        try:
            if self.unsynced or self.holed:
                failpoint("store.before_sync")
            if self.holed:
                if not self._moved():
                    raise DiskError(
                        f"the disk under {self.path} has reported an error, and another program keeps the journal open that must "
                        f"begin anew: {UNTIL_OVER}"
                    )
            elif self.unsynced:
                os.fdatasync(self.journal)
        except (OSError, sqlite3.DatabaseError) as e:
            self.holed = True
            why = e.strerror if isinstance(e, OSError) else e
            full = e.errno in FULL if isinstance(e, OSError) else "full" in str(e)
            raise (DiskFull if full else DiskError)(f"the disk under {self.path} reports an error ({why}): {UNTIL_OVER}") from e
        self.unsynced = self.holed = False

    def _bury(self) -> None:
        """A commit that could not be synced lies whole in the journal, and the next process would take it for made: another is
        written over it."""
        with contextlib.suppress(sqlite3.DatabaseError):
            self.db.executescript("PRAGMA synchronous = NORMAL")
            self.waits_for_disk = False
            self.put("buried", time.time_ns())

    def _begin_journal(self) -> None:
        """That of an engine that was killed, perhaps after the disk had failed under it, is not built upon if need not be."""
        if self.has_journal and os.fstat(self.journal).st_size:
            try:
                self._moved()
            except sqlite3.DatabaseError:
                self.holed = True

    def _moved(self) -> bool:
        """All of the journal is in the file and it begins anew. False: another program reads it, and is not waited for."""
        self.db.execute("PRAGMA busy_timeout = 0")
        try:
            return not self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            self.db.execute(f"PRAGMA busy_timeout = {1000 * BUSY_FOR}")

    def event(
        self, at: float, kind: str, *, batch: int | None = None, job: int | None = None, run: int | None = None, **data: Any
    ) -> None:
        self.db.execute(
            "INSERT INTO event (at, kind, batch, job, run, data) VALUES (?, ?, ?, ?, ?, ?)",
            (at, kind, batch, job, run, json.dumps(data) if data else None),
        )

    def last_seq(self) -> int:
        return seen.last_seq(self.db)

    def get(self, key: str, default: Any = None) -> Any:
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else default

    def put(self, key: str, value: Any) -> None:
        self.db.execute(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, json.dumps(value)),
        )

    def forget(self) -> None:
        """What was removed is not to be found in the journal either; if another program reads it, later."""
        try:
            self.forgetting = not self._moved()
        except sqlite3.DatabaseError:
            self.forgetting = True

    def checkpoint(self) -> None:
        """Moves the journal into the file while nothing is in a hurry."""
        if self.forgetting:
            self.forget()
        try:
            if self.has_journal and os.fstat(self.journal).st_size > 4 << 20:
                self.db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.OperationalError as e:
            self.holed = self.holed or "disk I/O error" in str(e)


_abandoned: list[sqlite3.Connection] = []
"""Of databases that are not at their path any more: when SQLite closes one it removes the journal by its name, and that may be
the journal of the one which is there now."""


def connect(path: str) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(uri(path, "rw"), uri=True, isolation_level=None, cached_statements=400, timeout=BUSY_FOR)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA wal_autocheckpoint = 8000")  # a backstop: Store.checkpoint works at quieter times
        db.execute("PRAGMA cache_size = -8000")
        db.execute("PRAGMA foreign_keys = OFF")  # rows are never deleted before their dependants
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("CREATE TEMP TABLE chosen (id INTEGER)")  # the jobs that a request is about; see readiness.choose
    except (sqlite3.DatabaseError, UnicodeError) as e:  # a damaged schema may not even be text
        raise translated(e, path) from e
    return db


def journal_of(path: str) -> str:
    """What holds the newest commits: the journal, or the file itself where the file system allows no WAL."""
    return path + "-wal" if os.path.exists(path + "-wal") else path


def room(path: str) -> bool:
    """Whether the disk takes a little more: where SQLite wants to map a file, it calls a full one an error."""
    s = os.statvfs(os.path.dirname(path))
    return s.f_bavail * s.f_frsize > 1 << 16


def check_file(path: str) -> None:
    mode = os.lstat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):  # a link is refused as such
        what = "a directory" if stat.S_ISDIR(mode) else "no file"
        raise Damaged(f"{path} is {what}. It was left as it is: move it away and put the database, or a copy, in its place")


def check_header(path: str) -> None:
    """Before SQLite sees it: to an empty file it would write a header, and the evidence would be gone."""
    with open(path, "rb") as f:
        if f.read(16) != b"SQLite format 3\0":
            raise damaged(path, "it does not begin as a database")


def translated(e: Exception, path: str) -> JostleError:
    text = " ".join(str(e).split())  # SQLite likes several lines
    if "full" in text or ("disk I/O error" in text and not room(path)):
        return DiskFull(f"no space left for {path}: nothing was recorded; free some and it goes on by itself")
    if "readonly" in text or "unable to open" in text:
        return Forbidden(f"{path} cannot be written ({text}): check the file system and `chmod 600 {path}`")
    if "disk I/O error" in text:
        return DiskError(f"the disk under {path} reports an error ({text}): nothing was recorded")
    return damaged(path, text)


def unrecorded(e: Exception, path: str) -> JostleError:
    """Of an open store: what may pass by itself (a full, failing or read-only disk, another program's lock) is waited out."""
    text = str(e)
    if "locked" in text or "busy" in text:
        return Unwritten(f"another program keeps {path} locked: nothing was recorded; it goes on by itself when that ends")
    if "readonly" in text or "unable to open" in text:
        return Unwritten(f"{path} cannot be written any more ({text}): nothing was recorded; it goes on by itself when it can")
    return translated(e, path)


def refuse_to_begin_anew(home: str, runs: str) -> None:
    if runs:
        raise Damaged(
            f"{home} holds runs but its database {NAME} is missing: put it back, "
            f"or move {runs} away if you mean to begin anew"
        )
    if seen.noted(database(home)):
        raise Damaged(
            f"the database {NAME} of {home} is missing: put it back, or `jostle doctor --accept` if you mean to begin anew"
        )


def create(path: str) -> None:
    """The file appears under its name only with its tables in it, so an empty file is always damage."""
    new = f"{path}.new-{os.getpid()}"
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        db = sqlite3.connect(new, isolation_level=None)
        apply(db, 0)
        db.close()
        fd = os.open(new, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        os.rename(new, path)
    except sqlite3.DatabaseError as e:
        os.unlink(new)
        raise translated(e, path) from e


def apply(db: sqlite3.Connection, since: int) -> None:
    """Runs the migrations after `since` in one transaction."""
    steps = "\n".join(script(name) for name in MIGRATIONS[since:])
    db.executescript(f"BEGIN IMMEDIATE;\n{steps}\nPRAGMA user_version = {version()};")
    failpoint("store.mid_migration")
    db.execute("COMMIT")


def migrate(db: sqlite3.Connection, path: str) -> None:
    schema = db.execute("PRAGMA user_version").fetchone()[0]
    if schema == 0:
        raise damaged(path, "it has no tables")
    if schema == version():
        return
    backup = copies.kept(db, path, f"schema{schema}-{seen.last_seq(db)}")
    try:
        apply(db, schema)
    except (sqlite3.DatabaseError, OSError):
        os.unlink(backup)  # nothing was changed that it would be needed for
        raise
