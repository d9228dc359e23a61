"""What can still be read of a damaged database, written into a new one beside it. The damaged file is never touched."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from shlex import quote

from jostle.errors import Damaged, JostleError, NotFound
from jostle.store.file import check_beside
from jostle.store.reads import uri
from jostle.store.store import MIGRATIONS, check_file, script, version
from jostle.store.texts import broken, json_columns, readable

TABLES = {  # parents first; the key by which rows are walked
    "meta": "key", "context": "id", "batch": "id", "shape": "id", "job": "id", "dep": "job, needs", "run": "job, n",
    "lease": "job, n, uuid", "lease_past": "rowid", "leg": "job, n, leg", "event": "seq", "once": "key",
}  # fmt: skip
WALKED_BY_ROWID = ("context", "batch", "shape", "job", "event", "lease_past")


def read_only(path: str) -> sqlite3.Connection:
    check_beside(path)
    return sqlite3.connect(uri(path, "ro"), uri=True, isolation_level=None, timeout=5)


def complaints(path: str) -> list[str]:
    """What SQLite finds wrong with the file; nothing if it is sound."""
    try:
        db = read_only(path)
        try:
            texts = [str(row[0]) for row in db.execute("PRAGMA integrity_check(10)")]
            texts = [text for text in texts if text != "ok"]
            return texts or list(broken(db, everything=True))
        finally:
            db.close()
    except (sqlite3.DatabaseError, UnicodeError) as e:
        return [str(e)]


def salvage_beside(path: str) -> tuple[str, dict[str, tuple[int, int]]]:
    """The new file, and what it has."""
    if not os.path.exists(path):
        raise NotFound(f"there is no database at {path}")
    to = os.path.join(os.path.dirname(path), f"salvaged-{time.strftime('%Y%m%d-%H%M%S')}.db")
    counts = salvage(path, to)
    if not any(saved for saved, _ in counts.values()):
        os.unlink(to)
        raise Damaged(f"nothing can be read of {path}; it is as it was. Put a copy in its place, if there is one")
    return to, counts


def going_on(path: str, new: str) -> list[str]:
    """How to go on with it: the damaged file goes together with its journal, which would be played into the new one."""
    aside = new.replace("salvaged-", "damaged-").removesuffix(".db")
    return ["jostle down", f"mkdir {quote(aside)} && mv {quote(path)}* {quote(aside)}", f"mv {quote(new)} {quote(path)}"]


def salvage(path: str, to: str) -> dict[str, tuple[int, int]]:
    """Rows saved and gaps skipped, by table."""
    check_file(path)
    old = read_only(path)
    old.text_factory = _text
    mask = os.umask(0o077)
    try:
        os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as e:
        raise JostleError(f"cannot make {to}: {e.strerror}") from e
    finally:
        os.umask(mask)
    new = sqlite3.connect(to, isolation_level=None)
    try:
        for name in MIGRATIONS:
            new.executescript(script(name))
        new.execute("BEGIN")
        counts = {table: _table(old, new, table) for table in TABLES}
        new.execute(f"PRAGMA user_version = {version()}")
        new.execute("COMMIT")
    finally:
        new.close()
        old.close()
    return counts


NO_TEXT = object()


def _text(data: bytes) -> object:
    """One broken text costs its row; as an error it would cost its neighbours, too."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return NO_TEXT


def _table(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> tuple[int, int]:
    try:
        theirs = {row[1] for row in old.execute(f"PRAGMA table_info({table})")}
    except sqlite3.DatabaseError:
        return 0, 1
    columns = [row[1] for row in new.execute(f"PRAGMA table_info({table})") if row[1] in theirs]
    if not columns:
        return 0, 1
    texts = {columns.index(name): begins for name, begins in json_columns(new, table).items() if name in columns}
    insert = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    saved = gaps = 0
    rows = _by_rowid(old, table, columns) if table in WALKED_BY_ROWID else _both_ways(old, table, columns)
    for row in rows:
        if row is None or NO_TEXT in row or not all(readable(row[k], begins) for k, begins in texts.items()):
            gaps += 1
            continue
        try:
            saved += new.execute(insert, row).rowcount
        except sqlite3.IntegrityError:
            gaps += 1  # torn: a value that no row may have
    return saved, gaps


def _by_rowid(old: sqlite3.Connection, table: str, columns: list[str]) -> Iterator[tuple[object, ...] | None]:
    """Each row; None for a stretch that cannot be read, which is jumped over in growing steps."""
    at, step = 0, 1
    sql = f"SELECT rowid, {', '.join(columns)} FROM {table} WHERE rowid >= ? ORDER BY rowid"
    while at < 1 << 62 and step < 1 << 40:
        try:
            for row in old.execute(sql, (at,)):
                at, step = row[0] + 1, 1
                yield row[1:]
            return
        except sqlite3.DatabaseError:
            at += step
            step *= 2
            yield None


def _both_ways(old: sqlite3.Connection, table: str, columns: list[str]) -> Iterator[tuple[object, ...] | None]:
    """From the beginning up to the damage, and from the end back to it."""
    for way in ("ASC", "DESC"):
        order = ", ".join(f"{key.strip()} {way}" for key in TABLES[table].split(","))
        try:
            yield from old.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")
            return
        except sqlite3.DatabaseError:
            yield None
