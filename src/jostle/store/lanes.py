"""The jobs that are ready, by shape, as a decision sees them: read anew only for shapes of which a job has changed.

A tick must not cost what waits. SQLite itself notes the shapes that a write has touched, in a table of this connection alone; it
is part of the transaction, so what is undone is noted again.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from jostle.core.model import Job, Lane
from jostle.store import jobrow

SEEN_OF_A_JOB = "id, queue, place, sort, ready_at, resize IS NOT NULL"
WATCH = """
CREATE TEMP TABLE touched (shape INTEGER PRIMARY KEY);
CREATE TEMP TRIGGER touched_job AFTER UPDATE OF ready, shape, queue, place, sort, ready_at, resize ON main.job
WHEN OLD.ready = 1 OR NEW.ready = 1
BEGIN INSERT OR IGNORE INTO touched VALUES (OLD.shape), (NEW.shape); END;
CREATE TEMP TRIGGER touched_new AFTER INSERT ON main.job WHEN NEW.ready = 1
BEGIN INSERT OR IGNORE INTO touched VALUES (NEW.shape); END;
"""
SHAPES = """WITH RECURSIVE s(x) AS (
    SELECT min(shape) FROM job WHERE ready = 1
    UNION ALL SELECT (SELECT min(shape) FROM job WHERE ready = 1 AND shape > s.x) FROM s WHERE s.x IS NOT NULL)
    SELECT x FROM s WHERE x IS NOT NULL"""


class Lanes:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._keys: dict[int, list[Any]] = {}  # of each shape; they never change
        self._lanes: dict[int, Lane] = {}
        self._depth = 0
        db.executescript(WATCH)

    def forget(self) -> None:
        """A transaction was undone, in which something may have been read."""
        self._depth = 0
        self._keys.clear()

    def read(self, depth: int) -> tuple[Lane, ...]:
        """The first ready jobs of each shape, in order of shapes."""
        if depth != self._depth:
            self._depth, self._lanes = depth, {}
            shapes = self._db.execute(SHAPES).fetchall()
        else:
            shapes = self._db.execute("SELECT shape FROM touched").fetchall()
        self._db.execute("DELETE FROM touched")
        for (shape,) in shapes:
            lane = self._lane(shape)
            if lane:
                self._lanes[shape] = lane
            else:
                self._lanes.pop(shape, None)
        return tuple(self._lanes[shape] for shape in sorted(self._lanes))

    def _lane(self, shape: int) -> Lane:
        batch, *parts, avoid = self._key(shape)
        alike = jobrow.alike(parts)
        rows = self._db.execute(
            f"SELECT {SEEN_OF_A_JOB} FROM job WHERE ready = 1 AND shape = ? ORDER BY sort LIMIT ?", (shape, self._depth)
        ).fetchall()
        return tuple(
            Job(id=id, batch=batch, shape=shape, queue=queue, rank=sort, place=place, ready_at=ready_at,
                avoid=frozenset(avoid), elastic=bool(elastic), **alike)
            for id, queue, place, sort, ready_at, elastic in rows
        )  # fmt: skip

    def _key(self, shape: int) -> list[Any]:
        if shape not in self._keys:
            if len(self._keys) > 100_000:
                self._keys.clear()  # of batches long gone
            (key,) = self._db.execute("SELECT key FROM shape WHERE id = ?", (shape,)).fetchone()
            self._keys[shape] = json.loads(key)
        return self._keys[shape]
