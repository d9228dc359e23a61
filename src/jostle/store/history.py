"""The history of cards, in a file of its own beside the database: means of what they showed, and who else held them.

Rules: it is a help and never a need. Nothing waits for the disk or for another program here; what cannot be written now is
`Later`, a file that is no history of ours any more is `Spoilt`, and whoever writes begins another. It may be removed at any time.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jostle import proc
from jostle.core.model import RunId
from jostle.failpoint import failpoint
from jostle.store.file import DatabaseFile
from jostle.store.reads import uri

NAME = "history.db"
VERSION = 1
FINE, COARSE = 10, 300
"""Seconds of a mean: of the last day, and of the last month."""
DAY, MONTH = 86400, 30 * 86400
PAGE, PAGES = 4096, 32768
"""128 MiB at the most; a month of 16 cards takes 13."""
CHECK_BELOW = 1 << 20
"""A larger one is checked once a boot: nothing is forced to the disk, and so a power cut may leave anything."""
BEHIND = 60  # rows a card that are removed at once
SET_BACK = 5.0  # s that a clock is set back without a word; by more, and what was seen after now was seen before that
FILES = ("", "-wal", "-shm", "-journal")  # SQLite's, by what follows the name

MEANS = """card INTEGER NOT NULL, at INTEGER NOT NULL, covered REAL NOT NULL, load REAL, used_mib REAL NOT NULL,
    temperature REAL, power_w REAL, PRIMARY KEY (card, at)"""
SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE card (
    id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, idx INTEGER NOT NULL, name TEXT NOT NULL, total_mib INTEGER NOT NULL,
    seen INTEGER NOT NULL
);
CREATE TABLE fine ({MEANS}) WITHOUT ROWID;
CREATE TABLE coarse ({MEANS}) WITHOUT ROWID;
CREATE TABLE held (
    card INTEGER NOT NULL, began REAL NOT NULL, who TEXT NOT NULL, pid INTEGER, seen REAL NOT NULL,
    PRIMARY KEY (card, began, who)
) WITHOUT ROWID;
CREATE TABLE open_run (job INTEGER NOT NULL, n INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (job, n)) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
COMMIT;
"""

WEIGHED = """sum(covered), sum(load * covered) / sum(CASE WHEN load IS NOT NULL THEN covered END),
    sum(used_mib * covered) / sum(covered),
    sum(temperature * covered) / sum(CASE WHEN temperature IS NOT NULL THEN covered END),
    sum(power_w * covered) / sum(CASE WHEN power_w IS NOT NULL THEN covered END)"""

MERGED = """ON CONFLICT (card, at) DO UPDATE SET
    load = coalesce((load * covered + excluded.load * excluded.covered) / (covered + excluded.covered), load, excluded.load),
    used_mib = (used_mib * covered + excluded.used_mib * excluded.covered) / (covered + excluded.covered),
    temperature = coalesce(excluded.temperature, temperature), power_w = coalesce(excluded.power_w, power_w),
    covered = covered + excluded.covered"""
"""A mean whose first part was written before: by an engine that has ended, or before the reading that speaks for its end."""

PASSING = ("locked", "busy", "readonly", "unable to open", "disk I/O error", "database or disk is full")
"""What SQLite says of a state that ends by itself."""


class Later(Exception):
    """It cannot be written now."""


class Spoilt(Exception):
    """It is no history of ours, or cannot be used any more."""


class Mean(NamedTuple):
    """What a card showed over some seconds, as far as they were covered by readings."""

    at: int
    covered: float
    load: float | None
    used_mib: float
    temperature: float | None
    power_w: float | None


class Stay(NamedTuple):
    """Somebody else's time on a card."""

    began: float
    who: str  # "": nobody could see who
    pid: int | None
    seen: float  # last


@dataclass(frozen=True, slots=True)
class CardPage:
    """What is new of one card."""

    uuid: str
    index: int
    name: str
    total_mib: int
    means: Sequence[Mean]
    held: Sequence[Stay]


def history_path(home: str) -> str:
    return os.path.join(home, NAME)


def unfit(path: str) -> str:
    """Why it cannot be opened: SQLite would wait at a pipe for good. Empty if it can, or is not there."""
    for name in (path + suffix for suffix in FILES):
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(name)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
                return f"{os.path.basename(name)} is no file of ours"
    return ""


class HistoryFile:
    """The writing connection, opened when it is first needed."""

    def __init__(self, home: str) -> None:
        self.path = history_path(home)
        self._db: sqlite3.Connection | None = None
        self._file: DatabaseFile | None = None

    def _opened(self) -> sqlite3.Connection:
        if self._db is not None and self._file is not None:
            if not self._file.in_place():
                raise Spoilt("it was removed, or another is in its place")
            return self._db
        if why := unfit(self.path):
            raise Spoilt(why)
        if not os.path.lexists(self.path):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        db = sqlite3.connect(uri(self.path, "rw"), uri=True, isolation_level=None, timeout=0)
        try:
            _prepare(db, self.path)
            self._file = DatabaseFile(self.path)
        except BaseException:
            db.close()
            raise
        self._db = db
        return db

    def close(self) -> None:
        db, self._db, self._file = self._db, None, None
        if db is not None:
            with contextlib.suppress(sqlite3.Error):
                db.close()

    def begin_anew(self) -> None:
        """Removes what is there; the next write makes another."""
        self.close()
        try:
            for suffix in FILES:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path + suffix)
        except OSError as e:
            raise Later(str(e.strerror)) from e

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            db = self._opened()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                failpoint("history.before_commit")
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as e:
            text = " ".join(str(e).split())
            if "full" in text and self._at_its_bound():
                raise Spoilt(f"it has reached {PAGE * PAGES >> 20} MiB") from e
            if any(word in text for word in PASSING):
                self.close()  # a failing disk may have left it behind
                raise Later(text) from e
            raise Spoilt(text) from e
        except OSError as e:
            self.close()
            raise Later(str(e.strerror)) from e

    def _at_its_bound(self) -> bool:
        try:
            return self._db is not None and int(self._db.execute("PRAGMA page_count").fetchone()[0]) > PAGES * 0.9
        except sqlite3.DatabaseError:
            return False

    def write(self, pages: Iterable[CardPage]) -> None:
        """All or nothing of these."""
        with self._transaction() as db:
            for page in pages:
                card = _card(db, page)
                db.executemany(f"INSERT INTO fine VALUES (?, ?, ?, ?, ?, ?, ?) {MERGED}", [(card, *mean) for mean in page.means])
                for window in sorted({mean.at - mean.at % COARSE for mean in page.means}):
                    db.execute(
                        f"""INSERT OR REPLACE INTO coarse SELECT card, ?, {WEIGHED} FROM fine
                            WHERE card = ? AND at >= ? AND at < ? GROUP BY card""",
                        (window, card, window, window + COARSE),
                    )
                db.executemany("INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?, ?)", [(card, *held) for held in page.held])

    def prune(self, now: float, open_runs: Collection[RunId] = ()) -> None:
        """Removes of each card what is too old, a little at a time, and what was seen of runs that are not open any more."""
        with self._transaction() as db:
            over = set(db.execute("SELECT job, n FROM open_run")) - set(open_runs)
            db.executemany("DELETE FROM open_run WHERE job = ? AND n = ?", over)
            for (card,) in db.execute("SELECT id FROM card").fetchall():
                for table, step, kept in (("fine", FINE, DAY), ("coarse", COARSE, MONTH)):
                    db.execute(
                        f"""DELETE FROM {table} WHERE card = ?1 AND at < min(?2, ?3 + (SELECT min(at) FROM {table}
                            WHERE card = ?1))""",
                        (card, now - kept, step * BEHIND),
                    )
                db.execute(
                    """DELETE FROM held WHERE card = ?1 AND seen < ?2
                       AND began < 86400 + (SELECT min(began) FROM held WHERE card = ?1)""",
                    (card, now - MONTH),
                )
            db.execute("DELETE FROM card WHERE seen < ? AND id NOT IN (SELECT card FROM coarse)", (now - MONTH,))

    def keep_open(self, uses: Mapping[RunId, Mapping[str, Any]]) -> None:
        """What has been seen of runs that live."""
        with self._transaction() as db:
            rows = [(*id, json.dumps(use)) for id, use in uses.items()]
            db.executemany("INSERT OR REPLACE INTO open_run VALUES (?, ?, ?)", rows)

    def open_runs(self) -> dict[RunId, dict[str, Any]]:
        """The same, as it was kept last."""
        if not os.path.lexists(self.path):
            return {}
        with self._transaction() as db:
            rows = db.execute("SELECT job, n, data FROM open_run").fetchall()
        try:
            return {(job, n): json.loads(data) for job, n, data in rows}
        except (ValueError, RecursionError) as e:
            raise Spoilt(str(e)) from e

    def still_held(self, since: float) -> dict[str, list[Stay]]:
        """By card, who was seen there since then, the oldest first."""
        with self._transaction() as db:
            sql = """SELECT uuid, began, who, pid, h.seen FROM held h JOIN card ON id = card
                WHERE h.seen BETWEEN ? AND 1e12 AND began BETWEEN 0 AND 1e12 ORDER BY began"""  # a text is more than any number
            by_card: dict[str, list[Stay]] = {}
            for uuid, *held in db.execute(sql, (since,)):
                by_card.setdefault(uuid, []).append(Stay(*held))
        return by_card


def _prepare(db: sqlite3.Connection, path: str) -> None:
    db.execute(f"PRAGMA page_size = {PAGE}")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA wal_autocheckpoint = 200")
    db.execute(f"PRAGMA max_page_count = {PAGES}")
    db.execute("PRAGMA cache_size = -1000")
    version, boot, tables = (
        db.execute(sql).fetchone()[0]
        for sql in ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
    )
    this_boot = zlib.crc32(proc.boot_id().encode()) >> 1
    if version == 0 and tables == 0:
        db.executescript(SCHEMA)
    elif version != VERSION:
        raise Spoilt(f"it is of another version ({version}, this one knows {VERSION})")
    elif boot != this_boot or os.path.getsize(path) < CHECK_BELOW:
        answer = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if answer != "ok":
            raise Spoilt(" ".join(answer.split()))
    if boot != this_boot:
        db.execute(f"PRAGMA application_id = {this_boot}")


def _card(db: sqlite3.Connection, page: CardPage) -> int:
    seen = page.means[-1].at if page.means else 0
    db.execute(
        """INSERT INTO card (uuid, idx, name, total_mib, seen) VALUES (?, ?, ?, ?, ?) ON CONFLICT (uuid) DO UPDATE SET
           idx = excluded.idx, name = excluded.name, total_mib = excluded.total_mib, seen = max(seen, excluded.seen)""",
        (page.uuid, page.index, page.name, page.total_mib, seen),
    )
    return int(db.execute("SELECT id FROM card WHERE uuid = ?", (page.uuid,)).fetchone()[0])
