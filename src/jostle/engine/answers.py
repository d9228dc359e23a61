"""What people ask about, answered from what the engine knows and the store has: one function per request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jostle import __version__
from jostle.core.decide import waits_for_gpus
from jostle.core.explain import explain
from jostle.core.ledger import alive
from jostle.core.limits import Account
from jostle.core.model import Job, World
from jostle.core.reasons import ABSENT, as_text, plain
from jostle.core.runvariables import DEVICE_ORDER
from jostle.core.states import OPEN
from jostle.core.survey import leeway, room, survey
from jostle.engine import capacity, launch, shown
from jostle.engine.cards import KnownCards
from jostle.engine.engine import Engine
from jostle.errors import NotFound
from jostle.store import store
from jostle.store.reads import Reader

Answer = dict[str, Any]
SILENT = "probe_waits"
GPUS_WITHIN = 3.0  # s; a driver that takes longer is not waited for


class Answers:
    def __init__(self, engine: Engine, cards: KnownCards, reader: Reader, paths: Mapping[str, str | None]) -> None:
        self._engine, self._cards, self._reader, self._clock = engine, cards, reader, engine.clock
        self._paths, self.began = paths, engine.clock.now()

    def hello(self, *, counts: bool, resources: bool) -> Answer:
        """With a million jobs counting them takes longer than a hand-over may: who can read the store counts there."""
        e = self._engine
        return {
            "version": __version__, "store_version": store.version(), "pid": os.getpid(), "gpus_spec": e.devices, "home": e.home,
            "uptime_s": round(self._clock.now() - self.began, 1), **self._paths,
            **({"counts": self._reader.counts()} if counts else {}), "hold": as_text(e.hold()), "driver": self._cards.driver,
            "probe": self._cards.trouble() or (SILENT if self._cards.owed_for() > GPUS_WITHIN else ""), "kept_for": e.kept_for,
            "tally": e.tally.plain(), **({"resources": capacity.left(self._world())} if resources else {}),
        }  # fmt: skip

    def why(self, request: dict[str, Any]) -> Answer:
        row = self._reader.job(int(request.get("id") or 0))
        if row is None:
            raise NotFound(f"there is no job {request.get('id')}")
        reason = explain(
            row, shape_reason=self._engine.waits.get(row["shape"]), now=self._clock.now(), wall=self._clock.wall(),
            ahead=self._reader.ahead(row["id"]), needs=self._reader.needs(row["id"]),
        )  # fmt: skip
        remark = self._engine.remarks().get(row["id"]) or self._engine.resizer.keeps(row["id"], self._engine.keeps)
        reason = remark if reason is None or (remark is not None and remark.code == ABSENT) else reason
        row["reason"] = plain(reason) if reason else row["reason"]
        behind = self._reader.alike(row["shape"], row["id"]) if row["ready"] == 1 else 0
        history, run = self._engine.history, (row["id"], row["attempt"])
        lives: Answer = {}
        if row["state"] in OPEN:
            self._cards.watch()
            lives = {"used": history.so_far(run), "on_cards": history.on_cards(run, self._cards.observer)}
        return {"job": row, "reason": row["reason"], "behind": behind, "models": self._models(), **lives}

    def reasons(self) -> Answer:
        return {
            "shapes": {shape: plain(reason) for shape, reason in self._engine.waits.items()},
            "running": {job: plain(reason) for job, reason in self._engine.remarks().items()},
            "hold": as_text(self._engine.hold()), "now": self._clock.now(), "models": self._models(), "next": self._next(),
            "idle": self._engine.carried.idle(self._clock.now()),
        }  # fmt: skip

    def held(self, request: dict[str, Any]) -> Answer:
        """What a program on the cards of an allocation is to be told."""
        id = int(request.get("id") or 0)
        run = self._engine.carried.allocation(id)
        if run is None:
            raise NotFound(f"there is no allocation {id}")
        gpus = self._cards.gpus(self._clock.now())
        by_uuid = {g.uuid: g for g in gpus}
        listed = [lease.uuid for lease in run.leases] if run.elasticity is None else run.elasticity.listed
        cards = [by_uuid[lease.uuid] for lease in run.leases if lease.uuid in by_uuid and lease.uuid in listed]
        visible = launch.visible(cards, gpus, self._engine.rules.by_uuid())
        return {"env": {DEVICE_ORDER: "PCI_BUS_ID", **launch.card_variables(visible, cards)}}

    def _models(self) -> dict[str, str]:
        return {g["uuid"]: g["name"] or "" for g in self._cards.facts()}

    def _next(self) -> list[int]:
        """Who is next, in order, where that can be said: if all that are ready are of one shape."""
        lanes = self._engine.lanes
        return [job.id for job in lanes[0]] if len(lanes) == 1 else []

    def history(self, request: dict[str, Any]) -> Answer:
        """What of it is not written yet."""
        return {"cards": self._engine.history.tail(seconds=bool(request.get("seconds")))}

    def limits(self) -> Answer:
        """How many cards the person may hold and does, over all homes, and who says so."""
        world = self._world()
        account = Account(world, alive(world), shown=True)
        by_hand, automatic = account.manual, account.automatic
        held = {"total": len(by_hand | automatic), "manual": len(by_hand), "automatic": len(automatic)}
        return {**self._engine.rules.limits_answer(), "held": held}

    def room(self, request: dict[str, Any]) -> Answer:
        """How many cards the person holds and may hold under some rules, and whether jobs of theirs wait for cards."""
        e = self._engine
        seen = room(self._world(), e.rules.of_values(request.get("policy") or {}))
        heads = [lane[0] for lane in e.lanes if not e.rules.of(lane[0].batch).automatic]
        waiting = [job for job in heads if (reason := e.waits.get(job.shape)) is not None and waits_for_gpus(reason)]
        return {
            **seen._asdict(), "crowded": sorted(seen.crowded), "waiting": len(waiting),
            "blind": not self._cards.fresh(self._clock.now()), "used": sorted(e.carried.used()),
            "max_reserved_gpus": e.rules.limits_answer()["limits"]["max_reserved_gpus"],
        }  # fmt: skip

    def _world(self) -> World:
        e, now = self._engine, self._clock.now()
        gpus = self._cards.gpus(now)
        return e.world(now, gpus, e.carried.claims({g.uuid for g in gpus}))

    def _surveyed(self, world: World) -> list[Answer]:
        """Each card, what of it is to be had, why not, the runs on it, and for how long it has stood idle."""
        e = self._engine
        gpus, offers = world.gpus, survey(world)
        ours = {g.uuid: e.carried.on_card(g.uuid) for g in gpus}
        idle = {g.uuid: e.idleness.of_card(g.uuid, ours[g.uuid]) for g in gpus}
        return [shown.gpu(g, *offers[g.uuid], ours[g.uuid], idle[g.uuid]) for g in gpus]

    def gpus(self) -> Answer:
        self._cards.watch()
        now, world = self._clock.now(), self._world()
        age = self._cards.age(now)
        _, held, may = leeway(world, Job(id=0))
        return {
            "gpus": self._surveyed(world),
            "more": None if may is None else max(0, may - len(held)),
            "spec": self._engine.devices,
            "age_s": None if age is None else round(age, 2),
            "error": self._cards.trouble() or ("" if self._cards.fresh(now) else SILENT),
        }
