"""Which runs get other cards while they live, and which give way: only those whose jobs agreed to it (SPEC C7, C8).

Rules. A run gives up cards, never below its least, as soon as somebody else has come onto one, courtesy says that we hold too
many, a job of ours that waits could start on them, or its load is low; at its least it moves to another card, if one is free. It
gets cards that no job of ours could use, the run with the fewest first, within courtesy and limits: as it starts, for it begins
with its least; then not before a while after its last change, twice as long for each that others soon undid, so that who comes
and goes cannot make it dance, and not before they have stood idle for as much as the change costs it, unless it must leave a card
anyway. Cards that are kept for a big job it gets only if that job cannot start while it lives. What a person asks for waits for
free cards alone. A job that says so leaves altogether when somebody comes; no other is touched. One that stands still
(core.pausing) keeps the cards it has until it goes on.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from jostle.core import coming, courtesy, fit
from jostle.core.ledger import Card
from jostle.core.model import Elastic, Job, Run, RunId, World
from jostle.core.place import Places
from jostle.core.plan import Resize, Start, Yield
from jostle.core.reasons import Reason
from jostle.core.table import Table

HOLD = "hold"  # a run without a program: only people change its cards
MOST_JOBS = 8  # that wait, for which room is made in one plan
MOST_PAUSE = 6  # doublings
PRICE = 0.5  # of `resize_interval`: what a change costs on each card that a run has, as it begins again from what it saved
TOO_DEAR = "too_dear"  # the one reason to keep cards that time alone undoes and that the engine remembers the beginning of
FOR_CARDS = frozenset({"gpus", "limit", "user_limit"})

Waiting = Sequence[tuple[Job, Reason]]
"""Jobs that could not be placed, in their order, and why."""
Begun = Sequence[tuple[Job, Start]]
"""Jobs that start now, and may get more cards."""


def pause(policy_interval: float, elastic: Elastic) -> float:
    """How long after its last change it gets no further card."""
    return policy_interval * 2.0 ** min(elastic.lost_to_others, MOST_PAUSE)


def concerns(world: World) -> bool:
    """Whether there is anything to decide here."""
    return any(run.elastic is not None or run.paused or (run.intruded and (run.yields or run.pausing)) for run in world.runs)


class Resizes:
    """One plan's changes to runs that live."""

    def __init__(self, world: World, places: Places) -> None:
        self._world, self._places = world, places
        self.keeps: dict[RunId, Reason] = {}  # why one stays as it is
        self._why: dict[RunId, Reason] = {}
        self._lists: dict[RunId, list[str]] = {}  # the cards that each is to use
        self._whole: dict[RunId, list[str]] = {}
        self._tables: dict[RunId, Table] = {}
        self._runs: dict[RunId, tuple[Run, Elastic]] = {}
        self._spoken: dict[str, int] = {}  # cards that a job of ours will have in a moment -> the job
        for run in places.runs.values():
            if run.elastic is not None and is_at_work(run):
                self._take_up(run, run.elastic)

    def _take_up(self, run: Run, elastic: Elastic) -> None:
        table = next((t for t in self._places.tables if any(c.gpu.uuid in run.uuids for c in t.cards)), None)
        left = elastic.not_before - self._world.now
        busy = elastic.busy or (Reason("resize_failed", {"why": elastic.failed, "left_s": left}) if left > 0 else None)
        if left > 0:
            self._places.wake(elastic.not_before)
        if busy is not None or table is None or table.held_up or self._world.hold:
            if busy is not None:
                self.keeps[run.id] = busy
            return
        if not {card.gpu.uuid for card in table.cards}.issuperset(elastic.listed):
            return  # one is gone from sight, so how the others are to be named is not known
        self._runs[run.id] = run, elastic
        self._tables[run.id] = table
        self._lists[run.id] = list(elastic.listed)

    def decided(self, waiting: Waiting, begun: Begun = ()) -> Iterator[Resize | Yield]:
        self._leave_strangers()
        self._obey_people()
        self._be_courteous()
        for job, reason in waiting[:MOST_JOBS]:
            if reason.code in FOR_CARDS and job.gpus_min and job.inside is None:
                any(self._make_room(job, table) for table in self._places.tables if table.target in job.on)
        self._leave_idle()
        for job, start in begun:
            self._begins(job, start)
        self._grow()
        yield from (self._resize(id) for id in self._why if id[1])
        yield from self._yields()

    def _begins(self, job: Job, start: Start) -> None:
        """One that starts with the least in this very plan may get more of what is left, as if it ran."""
        run = Run(
            id=(job.id, 0), batch=job.batch, uuids=start.uuids, target=start.target, memory_mib=job.memory_mib, share=start.share,
        )  # fmt: skip
        elastic = Elastic(
            how="", least=job.gpus_min, most=job.gpus_max, priority=job.priority, listed=start.uuids, resized_at=-math.inf
        )
        self._take_up(run, elastic)

    def widened(self, start: Start) -> Start:
        """A start of this plan with what it gets beyond its least."""
        id = start.job, 0
        if id not in self._why:
            return start
        return replace(start, uuids=self._resize(id).uuids, whole=(*start.whole, *self._whole.get(id, ())))

    def _resize(self, id: RunId) -> Resize:
        run, _ = self._runs[id]
        index = {card.gpu.uuid: card.gpu.index for card in self._tables[id].cards}
        uuids = tuple(sorted(self._lists[id], key=lambda uuid: (index.get(uuid, -1), uuid)))
        whole = tuple(self._whole.get(id, ()))
        return Resize(run=id, uuids=uuids, reason=self._why[id], memory_mib=run.memory_mib, whole=whole)

    # Who gives up what.

    def _free_to_give(self, id: RunId) -> int:
        return len(self._lists[id]) - max(1, self._runs[id][1].least)

    def _give(self, id: RunId, uuid: str, reason: Reason) -> None:
        self._lists[id].remove(uuid)
        self._why.setdefault(id, reason)

    def _programs(self) -> list[RunId]:
        return [id for id, (_, elastic) in self._runs.items() if elastic.how != HOLD]

    def _leave_strangers(self) -> None:
        for id in self._programs():
            run, elastic = self._runs[id]
            if self._world.policy_of(run.batch).strangers == "share":
                continue
            for uuid in [uuid for uuid in run.intruded if uuid in self._lists[id]]:
                reason = came(self._tables[id], uuid)
                if self._free_to_give(id) > 0:
                    self._give(id, uuid, reason)
                elif self._may_grow(id) is None and self._add(id, reason, beyond=1):
                    self._give(id, uuid, reason)  # it moves
                else:
                    self.keeps[id] = Reason("at_minimum", {"least": elastic.least, **reason.params})

    def _obey_people(self) -> None:
        for id, (run, elastic) in self._runs.items():
            reason = Reason("asked_for", {"least": elastic.least, "most": elastic.most})
            while len(self._lists[id]) > max(1, elastic.most):
                self._give(id, self._worst(id, run), reason)

    def _worst(self, id: RunId, run: Run) -> str:
        """The card that is given up where it does not matter which: one that somebody else is on, or the last."""
        index = {card.gpu.uuid: card.gpu.index for card in self._tables[id].cards}
        return max(self._lists[id], key=lambda uuid: (uuid in run.intruded, index.get(uuid, -1), uuid))

    def _be_courteous(self) -> None:
        """Others came, so fewer cards are ours to hold than there were."""
        for table in self._places.tables:
            ours = [id for id in self._programs() if self._tables[id] is table]
            for batch in {self._runs[id][0].batch for id in ours}:
                scope = table.scope(batch)
                if not courtesy.limited(scope.policy):
                    continue
                held = {c.gpu.uuid for c in table.cards if c.mine is not None} | scope.by_hand
                limit = courtesy.limit(scope.policy, len(scope.roomy | held))
                leaving = {uuid for id in ours for uuid in self._runs[id][0].uuids if uuid not in self._lists[id]}
                reason = Reason("courtesy", {"limit": limit, "held": len(held)})
                of_batch = [id for id in ours if self._runs[id][0].batch == batch]
                for _ in range(len(held - leaving) - limit):
                    self._shed(of_batch, reason)

    def _shed(self, runs: Iterable[RunId], reason: Reason) -> None:
        able = [id for id in runs if self._free_to_give(id) > 0]
        if able:
            largest = max(able, key=lambda id: (len(self._lists[id]), id))
            self._give(largest, self._worst(largest, self._runs[largest][0]), reason)

    def _leave_idle(self) -> None:
        for id in self._programs():
            run, elastic = self._runs[id]
            least = self._world.policy_of(run.batch).scale_down
            if least is None or elastic.load is None or elastic.load >= least or id in self._why or self._free_to_give(id) <= 0:
                continue
            if self._pause_left(id) <= 0:
                self._give(id, self._worst(id, run), Reason("low_load", {"load": round(elastic.load), "least": least}))

    # Room for jobs that wait.

    def _make_room(self, job: Job, table: Table) -> bool:
        """Whether the job will start here when runs have left the cards that they are told to, or were told to before."""
        scope = table.scope(job.batch)
        if table.hold(job) is not None or table.never(job) is not None:
            return False
        closed = {*table.closed(job), *self._spoken}
        pairs = [p for p in zip(table.cards, table.view(job, scope).refusals, strict=True) if p[0].gpu.uuid not in closed]
        fitting = [card for card, no in pairs if no is None]
        ranked = fit.together(fit.ranked(fitting, scope.policy), job.gpus_min)
        allowed = fit.chosen(ranked, job.gpus_min, table.budgets(job, scope))
        any_card = len(fitting) >= job.gpus_min  # then it is only that we hold too many
        leaving = [card for card in table.cards if self._is_leaving(card) and self._would_do(job, table, card, any_card)]
        leaving += [card for card, no in pairs if no is not None and not card.promises and coming.was_left(table, card, no)]
        short = job.gpus_min - len(allowed) - len(leaving)
        donors = self._donors(job, table, any_card, max(0, short))
        if len(donors) < short:
            return False
        for id, card in donors:
            self._give(id, card.gpu.uuid, Reason("for_job", {"job": job.id}))
        self._spoken.update({card.gpu.uuid: job.id for card in (*allowed, *leaving, *(card for _, card in donors))})
        return True

    def _is_leaving(self, card: Card) -> bool:
        """Whether a run of ours was told to leave it, before or in this plan."""
        uuid = card.gpu.uuid
        if uuid in self._spoken:
            return False
        holders = [(run.id, run.elastic) for run in self._places.runs.values() if run.elastic is not None and uuid in run.uuids]
        return any(uuid not in self._lists.get(id, elastic.listed) for id, elastic in holders)

    def _would_do(self, job: Job, table: Table, card: Card, any_card: bool) -> bool:
        ours = {p.run for p in card.promises if p.run is not None}
        return len(ours) == 1 and (any_card or coming.fits_when_left(table, card, job, table.scope(job.batch)))

    def _donors(self, job: Job, table: Table, any_card: bool, count: int) -> list[tuple[RunId, Card]]:
        """So many cards, of the runs that have most; fewer if there are not enough."""
        cards = {card.gpu.uuid: card for card in table.cards}
        donors: list[tuple[RunId, Card]] = []
        left = {id: self._free_to_give(id) for id in self._programs()
                if self._tables[id] is table and self._runs[id][1].priority <= job.priority and id[0] != job.id}  # fmt: skip
        lists = {id: [u for u in self._lists[id] if self._would_do(job, table, cards[u], any_card)] for id in left}
        while len(donors) < count:
            able = [id for id in left if left[id] > 0 and lists[id]]
            if not able:
                break
            id = max(able, key=lambda id: (left[id], id))
            left[id] -= 1
            donors.append((id, cards[lists[id].pop()]))
        return donors

    # Who gets what is left.

    def _grow(self) -> None:
        """One card after the other, each to the run that has fewest."""
        forced = {id for id, reason in self._why.items() if reason.code == "stranger_came"}  # one change instead of two
        hungry = [id for id in self._runs if (id not in self._why or id in forced) and self._wants_more(id)]
        while hungry:
            id = min(hungry, key=lambda id: (len(self._lists[id]), id))
            _, elastic = self._runs[id]
            had = len(elastic.listed)
            reason = Reason("asked_for", {"least": elastic.least, "most": elastic.most}) if had < elastic.least else None
            more = len(self._lists[id]) + 1 - had
            if not self._add(id, reason or Reason("free_cards", {"more": more})):
                hungry.remove(id)
                continue
            if id not in forced:
                self._why[id] = reason or Reason("free_cards", {"more": more})
            if not self._has_room(id, self._tables[id]):
                hungry.remove(id)
        self._wait_for_the_price(forced)

    def _wait_for_the_price(self, forced: Collection[RunId]) -> None:
        """Cards that have just become free are left idle until that has cost as much as the change will. Who rents until the rent
        is the price, and then buys, never pays more than twice what was best, however soon somebody else wants them."""
        for id in [id for id in self._why if id[1] and id not in forced and self._why[id].code == "free_cards"]:
            run, elastic = self._runs[id]
            more = len(self._lists[id]) - len(elastic.listed)
            price = len(elastic.listed) * PRICE * self._world.policy_of(run.batch).resize_interval
            left = price / more - elastic.tempted_for
            if left > 0:
                self._places.wake(self._world.now + left)
                self.keeps[id] = Reason(TOO_DEAR, {"more": more, "left_s": left})
                self._lists[id] = list(elastic.listed)
                self._whole.pop(id, None)
                del self._why[id]

    def _wants_more(self, id: RunId) -> bool:
        if not self._has_room(id, self._tables[id]):
            self.keeps.setdefault(id, Reason("at_most", {"most": len(self._lists[id])}))
            return False
        if (reason := self._may_grow(id)) is not None:
            self.keeps.setdefault(id, reason)
            return False
        return True

    def _has_room(self, id: RunId, table: Table, beyond: int = 0) -> bool:
        run, elastic = self._runs[id]
        asked = elastic.least if elastic.how == HOLD else elastic.most
        most = min(asked, table.scope(run.batch).per_task)
        cards = [card for card in table.cards if card.gpu.uuid in run.uuids]
        return len(self._lists[id]) < most + beyond and not any(card.gpu.mig_slice for card in cards)

    def _pause_left(self, id: RunId) -> float:
        run, elastic = self._runs[id]
        interval = self._world.policy_of(run.batch).resize_interval
        return elastic.resized_at + pause(interval, elastic) - self._world.now

    def _may_grow(self, id: RunId) -> Reason | None:
        """What keeps a run from further cards, whatever cards there are."""
        run, elastic = self._runs[id]
        asked = len(elastic.listed) < elastic.least
        left = 0.0 if asked else self._pause_left(id)
        if left > 0:
            self._places.wake(self._world.now + left)
            return Reason("resize_pause", {"left_s": left, "lost": elastic.lost_to_others})
        least = self._world.policy_of(run.batch).scale_up
        if asked or not id[1] or least is None or (elastic.load is not None and elastic.load >= least):
            return None
        return Reason("load_too_low", {"load": None if elastic.load is None else round(elastic.load), "least": least})

    def _add(self, id: RunId, reason: Reason, beyond: int = 0) -> bool:
        """Whether it gets another card."""
        run, elastic = self._runs[id]
        table = self._tables[id]
        if not self._has_room(id, table, beyond):
            return False
        asks = as_job(run, elastic, self._world.now)
        if table.kept is not None and self._outlives(elastic, table):
            asks = replace(asks, priority=table.kept.job.priority + 1)
        slices = [card.gpu.uuid for card in table.cards if card.gpu.mig_slice]
        table.spoken = {**self._spoken, **dict.fromkeys((*run.uuids, *self._lists[id], *slices), 0)}
        answer = table.hold(asks) or table.place(asks)
        table.spoken = {}
        if not isinstance(answer, Start):
            self.keeps.setdefault(id, answer)
            return False
        self._lists[id] += answer.uuids
        self._whole.setdefault(id, []).extend(answer.whole)
        self._why.setdefault(id, reason)
        return True

    def _outlives(self, elastic: Elastic, table: Table) -> bool:
        """Whether the big job that cards are kept for cannot start before this run has ended, however few cards it keeps."""
        assert table.kept is not None
        job = table.kept.job
        cards = {uuid for _, uuid in table.coming.get(table.request(job, table.scope(job.batch)), ())}
        beside = sum(uuid not in cards for uuid in elastic.listed)
        return len(cards) - max(0, elastic.least - beside) < job.gpus_min

    # Who leaves altogether.

    def _yields(self) -> Iterator[Yield]:
        for run in self._places.runs.values():
            if not (run.yields and run.intruded and is_at_work(run)):
                continue
            if (reason := who_came(self._places, run)) is not None and not self.leaves(run):
                yield Yield(run=run.id, reason=reason)

    def leaves(self, run: Run) -> bool:
        """Whether it is told to do without a card that somebody else has come onto, in this plan or before."""
        listed = self._lists.get(run.id, run.uuids if run.elastic is None else run.elastic.listed)
        return any(uuid not in listed for uuid in run.intruded)


def is_at_work(run: Run) -> bool:
    return run.state == "running" and not run.cancel and not run.yielding and not run.paused


def as_job(run: Run, elastic: Elastic, now: float) -> Job:
    """What asks for one more card for a run: the last in every line."""
    return Job(
        id=run.id[0], batch=run.batch, shape=-1, priority=elastic.priority, rank=1e300, place=1 << 62, memory_mib=run.memory_mib,
        share=run.share, ready_at=now, on=(run.target,),
    )  # fmt: skip


def who_came(places: Places, run: Run) -> Reason | None:
    """None: of its cards, those that somebody has come onto are out of sight."""
    table = next((t for t in places.tables if any(c.gpu.uuid in run.intruded for c in t.cards)), None)
    return None if table is None else came(table, run.intruded[0])


def came(table: Table, uuid: str) -> Reason:
    """Who has come onto a card."""
    card = next((card for card in table.cards if card.gpu.uuid == uuid), None)
    people = card.holders("stranger") if card is not None else []
    who = max(people, key=lambda h: h.used_mib or 0, default=None)
    name = "" if who is None else who.user or f"uid {who.uid}"
    return Reason("stranger_came", {"gpu": None if card is None else card.gpu.index, "user": name})
