"""What people ask about, answered from what the engine knows and the store has: one function per request."""

from __future__ import annotations

import os
from typing import Any

from jostle import __version__, config
from jostle.core.explain import explain
from jostle.core.reasons import ABSENT, plain
from jostle.engine import shown
from jostle.engine.cards import Cards
from jostle.engine.engine import Engine
from jostle.errors import NotFound
from jostle.store import store
from jostle.store.reads import Reader

Answer = dict[str, Any]
SILENT = "probe_waits"
GPUS_WITHIN = 3.0  # s; a driver that takes longer is not waited for


class Answers:
    def __init__(self, engine: Engine, cards: Cards, reader: Reader) -> None:
        self._engine, self._cards, self._reader, self._clock = engine, cards, reader, engine.clock
        self.began = engine.clock.now()

    def hello(self, *, counts: bool) -> Answer:
        """With a million jobs counting them takes longer than a hand-over may: who can read the store counts there."""
        e = self._engine
        return {
            "version": __version__, "store_version": store.version(), "pid": os.getpid(), "gpus_spec": e.spec, "home": e.home,
            "lease_dir": e.lease_dir, "uptime_s": round(self._clock.now() - self.began, 1),
            "sim_dir": config.sim_dir(e.home) if e.spec.startswith("sim:") else None,
            **({"counts": self._reader.counts()} if counts else {}), "hold": e.hold(), "driver": self._cards.driver,
            "probe": self._cards.trouble() or (SILENT if self._cards.owed_for() > GPUS_WITHIN else ""), "kept_for": e.kept_for,
            "tally": e.tally.plain(),
        }  # fmt: skip

    def why(self, request: dict[str, Any]) -> Answer:
        row = self._reader.job(int(request.get("id") or 0))
        if row is None:
            raise NotFound(f"there is no job {request.get('id')}")
        reason = explain(
            row, shape_reason=self._engine.waits.get(row["shape"]), now=self._clock.now(), wall=self._clock.wall(),
            ahead=self._reader.ahead(row["id"]), needs=self._reader.needs(row["id"]),
        )  # fmt: skip
        remark = self._engine.remarks().get(row["id"])
        reason = remark if reason is None or (remark is not None and remark.code == ABSENT) else reason
        row["reason"] = plain(reason) if reason else row["reason"]
        behind = self._reader.alike(row["shape"], row["id"]) if row["ready"] == 1 else 0
        return {"job": row, "reason": row["reason"], "behind": behind, "models": self._models()}

    def reasons(self) -> Answer:
        return {
            "shapes": {shape: plain(reason) for shape, reason in self._engine.waits.items()},
            "running": {job: plain(reason) for job, reason in self._engine.remarks().items()},
            "hold": self._engine.hold(), "now": self._clock.now(), "models": self._models(), "next": self._next(),
        }  # fmt: skip

    def _models(self) -> dict[str, str]:
        return {g["uuid"]: g["name"] or "" for g in self._cards.facts()}

    def _next(self) -> list[int]:
        """Who is next, in order, where that can be said: if all that are ready are of one shape."""
        lanes = self._engine.lanes
        return [job.id for job in lanes[0]] if len(lanes) == 1 else []

    def history(self, request: dict[str, Any]) -> Answer:
        """What of it is not written yet."""
        return {"cards": self._engine.history.tail(seconds=bool(request.get("seconds")))}

    def gpus(self) -> Answer:
        now = self._clock.now()
        age = self._cards.age(now)
        return {
            "gpus": [shown.gpu(*card) for card in self._engine.surveyed(now)],
            "spec": self._engine.spec,
            "age_s": None if age is None else round(age, 2),
            "error": self._cards.trouble() or ("" if self._cards.fresh(now) else SILENT),
        }
