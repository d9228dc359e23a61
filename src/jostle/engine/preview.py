"""What would become of jobs if they were queued now: they are submitted and decided on like any others, in a transaction that is
undone. So it is never another opinion than the one that would count; it promises nothing that is drawn by chance, and nothing of
what others do meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from typing import Any

from jostle.core import survey
from jostle.core.decide import decide
from jostle.core.explain import explain
from jostle.core.model import Gpu, Job, Policy, World
from jostle.core.plan import Fail, Plan, Start
from jostle.core.reasons import Reason, plain
from jostle.engine import checks, outlook
from jostle.engine.engine import DEPTH, Engine
from jostle.engine.writes import Writes
from jostle.errors import Invalid
from jostle.store import jobs
from jostle.store.amend import amend
from jostle.store.previews import Queued, queued

Answer = dict[str, Any]
FOR_CARDS = ("gpus", "limit", "user_limit", "max_concurrent", "start_interval")  # why one waits that might have been drawn first
MOST = 200  # jobs of one question: who waits for a card waits for the answer, too


class Undone(Exception):
    """Ends the transaction; all that was written in it is gone."""


class Preview:
    def __init__(self, engine: Engine, writes: Writes) -> None:
        self._engine, self._writes, self._store = engine, writes, engine.store

    def answer(self, request: Mapping[str, Any]) -> Answer:
        checked = checks.request({**request, "once": None})
        if len(checked["jobs"]) > MOST:
            raise Invalid(f"a preview is of at most {MOST} jobs, not {len(checked['jobs'])}")
        never = self._writes.hopeless(checked)
        rules = checked["batch"].get("policy") or {}
        answer: Answer = {
            "checked": never is not None, "never": outlook.listed(never, checked["jobs"]),
            "drawn": rules.get("order") == "random" and len(checked["jobs"]) > 1,
        }  # fmt: skip
        with self._undone():
            answer.update(self._decided(checked))
            raise Undone
        return {**answer, "jobs": _drawn(answer["jobs"])} if answer["drawn"] else answer

    def what_if(self, request: Mapping[str, Any]) -> Answer:
        """What these rules would mean: for the cards that there are now, and for the jobs that wait in batches which get them."""
        rules = checks.policy(request.get("policy") or {})
        batches = {int(batch): policy for batch, policy in (request.get("batches") or {}).items()}
        answer: Answer = {}
        with self._undone():
            for batch, policy in batches.items():
                change = checks.amendment({"batch": batch, "policy": policy})
                amend(self._store, change, at=self._engine.clock.wall(), now=self._engine.clock.now(), rank=lambda: 0.5)
                self._engine.rules_changed(batch)
            answer.update(self._under(rules, set(batches)))
            raise Undone
        return answer

    def _under(self, rules: Policy, batches: AbstractSet[int]) -> Answer:
        world = self._world()
        plan = decide(world)
        asked = [job for lane in world.lanes if lane[0].batch in batches for job in lane][:MOST]
        index = {g.uuid: g.index for g in world.gpus}
        starts = {d.job: sorted(index[uuid] for uuid in d.uuids) for d in plan.decisions if isinstance(d, Start)}
        waiting = [
            {"id": job.id, "starts": job.id in starts, "gpus": starts.get(job.id, []), "needed": job.gpus_min,
             "reason": None if job.id in starts or job.shape not in plan.waits else plain(plan.waits[job.shape])}
            for job in asked
        ]  # fmt: skip
        return {"courtesy": survey.courtesy_of(world, rules).indices(world), "waiting": waiting}

    def _world(self, depth: int = DEPTH) -> World:
        engine, now = self._engine, self._engine.clock.now()
        gpus = engine.cards.gpus(now)
        return engine.world(now, gpus, engine.carried.claims({g.uuid for g in gpus}), depth=depth)

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """Around what is written; afterwards neither the store nor the engine knows of it."""
        with self._engine.unchanged(), suppress(Undone), self._store.transaction(durable=False):
            yield

    def _decided(self, checked: dict[str, Any]) -> Answer:
        engine, now = self._engine, self._engine.clock.now()
        ids = jobs.submit(self._store, checked, at=engine.clock.wall(), now=now, rank=lambda: 0.5)["ids"]
        first, last = ids
        world = self._world(depth=max(DEPTH, last - first + 1))
        plan = decide(world)
        answers = [_outlook(row, plan, world.gpus, first, now, engine.clock.wall()) for row in queued(self._store, first, last)]
        return {"jobs": answers, **_leeway(world, first, last)}


def _outlook(row: Queued, plan: Plan, gpus: tuple[Gpu, ...], first: int, now: float, wall: float) -> Answer:
    """One job: the cards it starts on, or why not; `after`: those of the others that it comes after, by places in the request."""
    index = {g.uuid: g.index for g in gpus}
    answer: Answer = {"name": row["name"], "starts": False, "chance": False, "gpus": [], "reason": None, "after": []}
    for decision in plan.decisions:
        if isinstance(decision, Start) and decision.job == row["id"]:
            return {**answer, "starts": True, "gpus": sorted(index[uuid] for uuid in decision.uuids), "target": decision.target}
        if isinstance(decision, Fail) and decision.job == row["id"]:
            return {**answer, "reason": plain(decision.reason)}
    if row["state"] != "queued":
        return {**answer, "reason": row["reason"]}
    before = row["ahead"] or row["needs"]
    if before and before[0] >= first:
        nearest = before if row["needs"] == before else before[-1:]
        return {**answer, "after": [id - first for id in nearest]}
    reason = explain(
        row, shape_reason=plan.waits.get(row["shape"]) if row["ready"] == 1 else None, now=now, wall=wall,
        ahead=(len(row["ahead"]), row["ahead"][0] if row["ahead"] else None),
        needs=[{"id": id, "state": "queued"} for id in row["needs"] if id < first],
    )  # fmt: skip
    return {**answer, "reason": plain(reason or Reason(code="starting_soon"))}


def _drawn(answers: list[Answer]) -> list[Answer]:
    """Of jobs whose order is drawn: each starts, on cards that are drawn with it; or any of those that fit may be the one."""
    ready = [job for job in answers if job["starts"] or (job["reason"] and job["reason"]["code"] in FOR_CARDS)]
    certain = all(job["starts"] for job in ready)
    if not any(job["starts"] for job in ready):
        return answers
    chance = {"starts": certain, "chance": not certain, "gpus": [], "reason": None}
    return [{**job, **chance} if job in ready else job for job in answers]


def _leeway(world: World, first: int, last: int) -> Answer:
    """Of a single job that is ready: what each card says to it, how many cards are held, and how many may be."""
    alone = next((job for lane in world.lanes for job in lane if job.id == first), None) if first == last else None
    return {"cards": [], "held": None, "may": None} if alone is None else _of_one(world, alone)


def _of_one(world: World, job: Job) -> Answer:
    refusals, held, may = survey.leeway(world, job)
    return {
        "cards": [{"index": g.index, "uuid": g.uuid, "refusal": no and {"code": no.code, "params": dict(no.params)}}
                  for g in world.gpus if (no := refusals.get(g.uuid)) is not None or g.uuid in refusals],
        "held": sorted(held), "may": may,
    }  # fmt: skip
