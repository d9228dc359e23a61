"""Reading the history of cards: read-only, by any process of the same user, while the engine writes. One that is not there, or
cannot be read, reads as empty; `error` says why."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jostle.store.history import COARSE, FINE, WEIGHED, Mean, Stay, history_path, unfit
from jostle.store.reads import uri

WAIT = 0.5  # s for another program that keeps it locked


@dataclass(frozen=True, slots=True)
class KnownCard:
    id: int
    uuid: str
    index: int
    name: str
    total_mib: int


class HistoryReader:
    def __init__(self, home: str) -> None:
        self.error = ""
        self._db: sqlite3.Connection | None = None
        path = history_path(home)
        try:
            self.error = unfit(path)
            if not self.error and os.path.lexists(path):
                self._db = sqlite3.connect(uri(path, "ro"), uri=True, isolation_level=None, timeout=WAIT)
        except (OSError, sqlite3.DatabaseError) as e:
            self.error = str(e)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _rows(self, sql: str, args: Iterable[Any] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            if self._db is not None:
                yield from self._db.execute(sql, tuple(args))
        except (sqlite3.DatabaseError, UnicodeError) as e:
            self.error = " ".join(str(e).split())

    def cards(self, since: float) -> list[KnownCard]:
        """Those that were read since then."""
        rows = self._rows("SELECT id, uuid, idx, name, total_mib FROM card WHERE seen >= ? ORDER BY idx, seen DESC", (since,))
        return [KnownCard(*row) for row in rows]

    def means(self, card: int, since: float, until: float, step: int) -> list[Mean]:
        """Over `step` seconds each, from beginnings that are multiples of it."""
        table = "coarse" if step >= COARSE else "fine"
        sql = f"SELECT at - at % ?2 AS began, {WEIGHED} FROM {table} WHERE card = ?1 AND at >= ?3 AND at < ?4 GROUP BY began"
        return [Mean(*row) for row in self._rows(sql, (card, step, since, until))]

    def backwards(self, card: int, before: float) -> Iterator[tuple[float, float, float | None]]:
        """Beginning, end and load of each mean, the newest first: ten seconds each for as long as they are kept, then minutes."""
        oldest = before
        for table, step in (("fine", FINE), ("coarse", COARSE)):
            sql = f"SELECT at, load FROM {table} WHERE card = ? AND at + {step} <= ? ORDER BY at DESC"
            for at, load in self._rows(sql, (card, oldest)):
                oldest = at
                yield at, at + step, load

    def held(self, card: int, since: float) -> list[Stay]:
        """Who else was seen there since then, the oldest first."""
        rows = self._rows("SELECT began, who, pid, seen FROM held WHERE card = ? AND seen >= ? ORDER BY began", (card, since))
        return [Stay(*row) for row in rows]
