"""Texts in the database that cannot be read: not UTF-8, not JSON, or not the list or mapping that they should be. SQLite's own
check does not look."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from jostle.store.jobrow import JSON_COLUMNS

OPEN = "SELECT {} FROM job WHERE ended_at IS NULL"

LIST, MAPPING, ANY = "[", "{", ""  # how the text begins
NULL = "n"

# table: (columns that hold JSON, and how it may begin; the rows that an engine reads, None: it reads none)
TABLES: dict[str, tuple[dict[str, str], str | None]] = {
    "meta": ({"value": ANY}, ""),
    "batch": ({"owner": LIST + NULL, "policy": MAPPING, "about": MAPPING + NULL}, f"WHERE id IN ({OPEN.format('batch')})"),
    "shape": ({"key": LIST}, f"WHERE id IN ({OPEN.format('shape')})"),
    "context": ({"data": MAPPING}, f"WHERE id IN ({OPEN.format('context')})"),
    "job": (JSON_COLUMNS | {"avoid": LIST, "reason": MAPPING}, "WHERE ended_at IS NULL"),
    "run": ({"leftovers": LIST, **dict.fromkeys(("profile", "yielding", "paused"), MAPPING)}, "WHERE ended_at IS NULL"),
    "leg": ({"uuids": LIST, "before": LIST, "reason": MAPPING}, "WHERE job IN (SELECT job FROM run WHERE ended_at IS NULL)"),
    "event": ({"data": MAPPING}, None),
}


def broken(db: sqlite3.Connection, *, everything: bool) -> Iterator[str]:
    """What is wrong, one sentence per table: in all rows, or in those that an engine begins with."""
    for table, (_, rows) in TABLES.items():
        if everything or rows is not None:
            wrong = _first(db, table, "" if everything else rows or "")
            if wrong:
                yield wrong


def json_columns(db: sqlite3.Connection, table: str) -> dict[str, str]:
    have = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
    return {name: begins for name, begins in TABLES.get(table, ({}, None))[0].items() if name in have}


def _first(db: sqlite3.Connection, table: str, rows: str) -> str:
    columns = json_columns(db, table)
    try:
        # SQLite's opinion is quick and a little stricter than ours (NaN), so only what it doubts is read here; and not NULL,
        # which some of its versions call no valid JSON
        valid = "json_valid({0}) AND (instr('{1}', substr({0}, 1, 1)) OR '{1}' = '')"
        doubt = " OR ".join(f"({name} IS NOT NULL AND NOT ({valid.format(name, begins)}))" for name, begins in columns.items())
        for row in db.execute(f"SELECT ({doubt}), {', '.join(columns)}, * FROM {table} {rows}"):
            if row[0]:
                for (name, begins), text in zip(columns.items(), row[1:], strict=False):
                    if not readable(text, begins):
                        return f"{table} {row[len(columns) + 1]}: {name} is not what was written there"
    except sqlite3.OperationalError as e:
        if "decode" not in str(e):
            raise
        return f"{table}: {str(e).partition(' with text')[0]}"
    return ""


def readable(text: Any, begins: str = ANY) -> bool:
    try:
        return text is None or (json.loads(text) is not ... and (not begins or text[0] in begins))
    except (ValueError, TypeError, RecursionError):
        return False
