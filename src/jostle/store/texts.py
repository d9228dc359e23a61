"""Texts in the database that cannot be read: not UTF-8, or not the JSON that they should be. SQLite's own check does not look."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

OPEN = "SELECT {} FROM job WHERE ended_at IS NULL"

# table: (columns that hold JSON, the rows that an engine reads, None: it reads none)
TABLES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "meta": (("value",), ""),
    "batch": (("owner", "policy", "about"), f"WHERE id IN ({OPEN.format('batch')})"),
    "shape": (("key",), f"WHERE id IN ({OPEN.format('shape')})"),
    "context": (("data",), f"WHERE id IN ({OPEN.format('context')})"),
    "job": (("commands", "env", "retry", "tags", "targets", "avoid", "reason", "params", "inputs"), "WHERE ended_at IS NULL"),
    "run": (("leftovers",), "WHERE ended_at IS NULL"),
    "event": (("data",), None),
}


def broken(db: sqlite3.Connection, *, everything: bool) -> Iterator[str]:
    """What is wrong, one sentence per table: in all rows, or in those that an engine begins with."""
    for table, (_, rows) in TABLES.items():
        if everything or rows is not None:
            wrong = _first(db, table, "" if everything else rows or "")
            if wrong:
                yield wrong


def json_columns(db: sqlite3.Connection, table: str) -> list[str]:
    have = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
    return [name for name in TABLES.get(table, ((), None))[0] if name in have]


def _first(db: sqlite3.Connection, table: str, rows: str) -> str:
    columns = json_columns(db, table)
    try:
        # SQLite's opinion is quick and a little stricter than ours (NaN), so only what it doubts is read here
        doubt = " OR ".join(f"coalesce(json_valid({name}), 1) = 0" for name in columns)
        for row in db.execute(f"SELECT ({doubt}), {', '.join(columns)}, * FROM {table} {rows}"):
            if row[0]:
                for name, text in zip(columns, row[1:], strict=False):
                    if not readable(text):
                        return f"{table} {row[len(columns) + 1]}: {name} is not what was written there"
    except sqlite3.OperationalError as e:
        if "decode" not in str(e):
            raise
        return f"{table}: {str(e).partition(' with text')[0]}"
    return ""


def readable(text: Any) -> bool:
    try:
        return text is None or json.loads(text) is not ...
    except (ValueError, TypeError, RecursionError):
        return False
