"""Allocations, and what runs inside them: placing a job on the cards that its allocation holds, and ending what outlived it.

Rules. An allocation is a run that starts nothing and keeps its cards. A job inside gets cards of the living allocation and no
others; rules about others' cards (courtesy, strangers, idling) were met when the allocation got them. Of the memory that the
allocation was promised each job inside gets what it asks for, all together never more; who asks for none has a card to itself,
unless it was said to run beside others (`share`). Nothing starts in an allocation that is being released, and all that runs
inside is ended before its cards are given up. One whose process ends before it has its cards, or before who waits for it was told
of them, is given up. An allocation that was lost (its shim was killed) takes nothing with it: what runs
inside holds its cards itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from jostle.core import fit
from jostle.core.ledger import Card, offer_mib
from jostle.core.model import Job, Orphan, Promise, Run, RunId, World
from jostle.core.plan import Fail, Start, Stop
from jostle.core.reasons import Reason, Refusal

if TYPE_CHECKING:
    from jostle.core.table import Table


def leaving(run: Run) -> bool:
    """Whether an allocation is being given up, or has been in good order."""
    lost = run.ended is not None and run.ended.lost
    return run.cancel or run.state == "stopping" or ((run.ended is not None or run.voided) and not lost)


def evicted(world: World) -> frozenset[RunId]:
    """Runs whose allocation is being released, or has been."""
    if not any(run.inside for run in world.runs):
        return frozenset()
    gone = {run.id[0] for run in world.runs if run.allocation and leaving(run)}
    return frozenset(run.id for run in world.runs if run.inside is not None and (run.evicted or run.inside in gone))


def idle_due(run: Run) -> float | None:
    """When an allocation that nobody uses is to be released."""
    if not run.allocation or run.idle_since is None or run.idle_release is None or run.ended is not None or run.voided:
        return None
    return run.idle_since + run.idle_release


def idle_too_long(world: World, run: Run) -> bool:
    """Unknown is no idleness: all its cards must be read."""
    due = idle_due(run)
    if due is None or world.now < due:
        return False
    read = {gpu.uuid for gpu in world.gpus if gpu.state == "ok"}
    return read.issuperset(run.uuids)


def wake_at(world: World) -> float | None:
    """When the next allocation will have been idle for too long."""
    return min((due for run in world.runs if (due := idle_due(run)) is not None and due > world.now), default=None)


def alone(orphan: Orphan) -> Reason:
    return Reason(code="waiter_ended" if orphan.awaited else "tied_ended")


def given_up(world: World) -> list[Fail]:
    """Allocations that nobody waits for any more."""
    return [
        Fail(job=id, batch=orphan.batch, state="cancelled", reason=alone(orphan))
        for id, orphan in world.orphans.items()
        if orphan.queued
    ]


def without_orphans(world: World) -> World:
    """What is given up starts no more."""
    if not world.orphans:
        return world
    lanes = (tuple(job for job in lane if job.id not in world.orphans) for lane in world.lanes)
    return replace(world, lanes=tuple(lane for lane in lanes if lane))


def stops(world: World) -> Iterator[Stop]:
    """What is to end: once, but a kill at every tick until it is gone. An allocation goes last of all that is in it."""
    inner = evicted(world)
    open_runs = [run for run in world.runs if run.ended is None and not run.voided]
    busy = {run.inside for run in open_runs}
    hurried = {run.id[0] for run in open_runs if run.allocation and run.kill}
    for run in open_runs:
        wanted = run.cancel or run.id in inner or run.id[0] in world.orphans or idle_too_long(world, run)
        kill = run.kill or run.inside in hurried
        if wanted and (run.state != "stopping" or kill) and run.id[0] not in busy:
            yield Stop(run=run.id, kill=kill)


class Within:
    """The cards of one allocation, as a place for the jobs inside it."""

    def __init__(self, run: Run, table: Table) -> None:
        self._run, self._table = run, table
        listed = run.uuids if run.elastic is None else run.elastic.listed  # not those that it is about to let go
        self._cards = [card for card in table.cards if card.gpu.uuid in listed and card.gpu.uuid in run.uuids]
        self._parts = {card.gpu.uuid: [p for p in card.nested if p.inside == run.id[0]] for card in self._cards}
        self.name = run.target

    def hold(self, job: Job) -> Reason | None:
        if leaving(self._run):
            return Reason(code="inside_releasing", params={"allocation": self._run.id[0]})
        if self._run.state == "starting":
            return Reason(code="inside_waits", params={"allocation": self._run.id[0]})
        if self._run.elastic is not None and self._run.elastic.busy is not None and self._run.elastic.busy.code == "resizing":
            return Reason(code="inside_resizing", params={"allocation": self._run.id[0]})
        return self._table.hold(job)

    def place(self, job: Job) -> Start | Reason:
        table = self._table
        if table.asked and (short := table.stock.short(job, table.keepers, table.world.now)) is not None:
            return short
        refusals = [self._refusal(card, job) for card in self._cards]
        fitting = [card for card, no in zip(self._cards, refusals, strict=True) if no is None]
        if len(fitting) >= job.gpus_min:
            cards = fitting[: job.gpus_max]
            return table.account.over_by_use({card.gpu.uuid for card in cards}) or self._start(job, cards)
        if (never := self.never(job)) is not None:
            return never
        params = {"allocation": self._run.id[0], "needed": job.gpus_min, "fit": len(fitting), "total": len(self._cards)}
        return Reason(code="inside_full", params=params, gpus=tuple(no for no in refusals if no is not None))

    def never(self, job: Job) -> Reason | None:
        total, most = len(self._cards), min(map(self._share_of, self._cards), default=0)
        if job.gpus_min <= total and (job.memory_mib or 0) <= most:
            return None
        params = {"allocation": self._run.id[0], "needed": job.gpus_min, "total": total, "most_mib": most}
        return Reason(code="inside_impossible", params={**params, "asked_mib": job.memory_mib})

    def carries(self, run: Run, batch: int) -> bool:
        return run.inside == self._run.id[0]

    def _share_of(self, card: Card) -> int:
        """What the allocation was promised of a card."""
        promised = next((p.mib for p in card.promises if p.run == self._run.id), None)
        return offer_mib(card.gpu) if promised is None else promised

    def _refusal(self, card: Card, job: Job) -> Refusal | None:
        unfit = fit.unfit(card, suspects=True)
        if unfit is not None or job.gpus_max == 0:
            return unfit
        parts = self._parts[card.gpu.uuid]
        if parts and not job.share:
            return fit.taken(card, parts[0])
        if job.memory_mib is None:
            return None
        owed = sum(max(0, (p.mib or 0) - p.used_mib) for p in parts)
        left = min(self._share_of(card) - sum(p.mib or 0 for p in parts), card.gpu.free_mib - owed)
        if left >= job.memory_mib:
            return None
        return fit.no(card, "memory", available_mib=max(0, left), needed_mib=job.memory_mib)

    def _start(self, job: Job, cards: list[Card]) -> Start:
        if self._table.asked:
            self._table.stock.take(job)
        for card in cards:
            part = Promise(uuid=card.gpu.uuid, mib=job.memory_mib, uid=card.uid, run=(job.id, 0), inside=job.inside)
            self._parts[card.gpu.uuid].append(part)
            self._table.account.enter(card.gpu.uuid, automatic=False)
        uuids = tuple(card.gpu.uuid for card in cards)
        return Start(
            job=job.id, uuids=uuids, memory_mib=job.memory_mib, share=job.share, target=self._run.target, node=self._table.node
        )


def waiting(job: Job) -> Reason:
    """Of a job whose allocation has no cards yet."""
    return Reason(code="inside_waits", params={"allocation": job.inside})
