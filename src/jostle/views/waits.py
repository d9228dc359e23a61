"""Why each listed job waits: what the engine says, and what the rows themselves tell when it is not asked or not there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jostle.core.reasons import ABSENT

Row = Mapping[str, Any]
Ahead = Callable[[int], tuple[int, int | None]]


class Waits:
    """The reasons of one listing. `engine` is the answer to `reasons`, None if no engine runs; `needs` looks up dependencies."""

    def __init__(
        self,
        rows: Sequence[Row],
        engine: Mapping[str, Any] | None,
        needs: Callable[[int], list[Any]] | None = None,
        ahead: Ahead | None = None,
    ) -> None:
        self.needs = needs
        self.ahead = ahead  # for a queue that is not listed whole
        self.engine = engine
        self.shapes = (engine or {}).get("shapes") or {}
        self.running = (engine or {}).get("running") or {}
        self.position: dict[int, int] = {}
        self.head: dict[str, int] = {}
        waiting = [row for row in rows if row["queue"] is not None and row["ended_at"] is None]
        counts: dict[str, int] = {}
        for row in sorted(waiting, key=_turn):
            queue = row["queue"]
            self.position[row["id"]] = counts.get(queue, 0)
            self.head.setdefault(queue, row["id"])
            counts[queue] = counts.get(queue, 0) + 1

    def fill(self, rows: Iterable[dict[str, Any]]) -> None:
        """Sets `reason` on these rows: code and numbers; what is alike shares one."""
        for row in rows:
            if row["state"] == "queued":
                row["reason"] = self._of(row)
            elif row["state"] == "stopping":
                reason = self.running.get(str(row["id"]))
                row["reason"] = reason if reason and reason["code"] == ABSENT else {"code": "cancelling", "params": {}}
            elif row["state"] == "running" and not row["reason"]:
                row["reason"] = self.running.get(str(row["id"]))

    def _of(self, row: Row) -> dict[str, Any] | None:
        """As the engine says it of one job; only what it says of shapes it has to be asked for."""
        from jostle.core.explain import explain
        from jostle.core.reasons import kept

        if self.engine is None and row["intent"] != "hold":
            return {"code": "no_engine", "params": {}}
        ahead: tuple[int, int | None] = (0, None)
        if row["queue"] is not None:
            ahead = self.ahead(row["id"]) if self.ahead else (self.position.get(row["id"], 0), self.head.get(row["queue"]))
        needs = self.needs(row["id"]) if self.needs is not None and not row["ready"] and not ahead[0] else ()
        now = float((self.engine or {}).get("now") or 0.0)
        reason = explain(row, now=now, wall=time.time(), ahead=ahead, needs=needs)
        of_shape: dict[str, Any] | None = self.shapes.get(str(row["shape"])) if row["ready"] == 1 else None
        if reason is None or (of_shape is not None and reason.code == "starting_soon"):
            return of_shape
        return kept(reason)


def _turn(row: Row) -> tuple[bool, bool, float, int]:
    """As the engine takes them: what runs, then what has begun and waits for another try, then the places."""
    return (row["state"] == "queued", not row["attempt"], row.get("place") or 0.0, row["id"])
