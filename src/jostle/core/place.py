"""Where one job goes: to the first of the places it may go to that takes it.

Rules: a job names targets; they are tried in its order, and of a target that places, its nodes in theirs. What holds for a batch
wherever its jobs go (how many at once, how soon after each other) is asked once, and so are counters. A place that is held up
holds up nobody who may go elsewhere. Cards are kept for one big job a node, and for a job on one node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

from jostle.core import coming, inside, reserve
from jostle.core.ledger import alive
from jostle.core.limits import Account
from jostle.core.model import Job, Run, Target, World
from jostle.core.order import ORDERS
from jostle.core.plan import Start
from jostle.core.reasons import Reason, counted, kept, on_hold
from jostle.core.stock import Stock, of_counters, of_node
from jostle.core.table import Table


class Place(Protocol):
    name: str  # for people

    def hold(self, job: Job) -> Reason | None: ...  # what keeps a job from here, whatever its batch may do
    def place(self, job: Job) -> Start | Reason: ...  # a start that counts from now on, or why not
    def never(self, job: Job) -> Reason | None: ...  # why a job can never go here, as far as that is known
    def carries(self, run: Run, batch: int) -> bool: ...  # whether a run is where jobs of this batch may go


class Handover:
    """A target that chooses nodes and cards itself: all there is to say is who goes next."""

    def __init__(self, world: World, target: Target) -> None:
        self._world, self._target, self.name = world, target, target.name
        self._room = target.room

    @property
    def takes(self) -> bool:
        return not self._target.hold and self._room != 0

    def hold(self, job: Job) -> Reason | None:
        return on_hold(self._target.hold, with_gpus=job.gpus_max > 0)

    def place(self, job: Job) -> Start | Reason:
        if self._room is not None:
            if self._room <= 0:
                return Reason(code="no_room", params={"target": self.name})
            self._room -= 1
        share = job.share or self._world.policy_of(job.batch).share
        return Start(job=job.id, uuids=(), memory_mib=job.memory_mib, share=share, target=self.name, node="")

    def never(self, job: Job) -> Reason | None:
        return None

    def carries(self, run: Run, batch: int) -> bool:
        return run.target == self.name


class Closed:
    """A target that takes nobody: this engine does not have it, or it has no nodes."""

    def __init__(self, name: str, reason: Reason) -> None:
        self.name, self._reason = name, reason

    def hold(self, job: Job) -> Reason | None:
        return self._reason

    def place(self, job: Job) -> Start | Reason:
        return self._reason

    def never(self, job: Job) -> Reason | None:
        return self._reason if self._reason.code == "no_target" else None

    def carries(self, run: Run, batch: int) -> bool:
        return False


def places_at(world: World, target: Target, tables: list[Table]) -> list[Place]:
    if not target.places:
        return [Handover(world, target)]
    return [*tables] or [Closed(target.name, Reason(code="gpus_unknown", params={"total": 0}))]


def no_target(world: World, name: str) -> Reason:
    return Reason(code="no_target", params={"target": name, "known": ", ".join(t.name for t in world.targets)})


def nowhere(reasons: Mapping[Place, Reason]) -> Reason:
    """The reason of the one place there is; of several, each with its own."""
    if len(reasons) == 1:
        return next(iter(reasons.values()))
    each = [{"place": place.name, **kept(reason), "refused": counted(reason.gpus)} for place, reason in reasons.items()]
    return Reason(code="nowhere", params={"places": each}, gpus=tuple(no for reason in reasons.values() for no in reason.gpus))


class Wake:
    """When to decide again even if nothing happens: the earliest of all that it is called with."""

    def __init__(self) -> None:
        self.at: float | None = None

    def __call__(self, at: float) -> None:
        if self.at is None or at < self.at:
            self.at = at


class Places:
    """All places of a World while one plan is made."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wake = Wake()
        self.runs = alive(world)
        self.tables: list[Table] = []
        account = Account(world, self.runs)
        self._places: dict[str, list[Place]] = {}  # by target
        for target in world.targets:
            tables = [Table(world, target, node, self.runs, account, self.wake) for node in target.nodes]
            self.tables += tables
            self._places[target.name] = places_at(world, target, tables)
        self._more = False  # whether any job asks for more than cards
        for lane in world.lanes:
            job = lane[0]
            if job.cpus is not None or job.host_memory_mib is not None or job.counters:
                self._more = True
                break
        for table in self.tables:
            table.asked = self._more
        self._plain = True  # whether nothing is kept for anybody, so that equal requests under equal rules are refused alike
        self._refused: dict[tuple[Any, ...], Reason] = {}  # what was answered since the last start
        self._by_on: dict[tuple[str, ...], list[Place]] = {}
        self._inside: dict[int, list[Place]] = {}  # by allocation
        self._last_start = dict(world.last_start)
        self._running: dict[int, int] = {}
        for run in self.runs.values():
            self._running[run.batch] = self._running.get(run.batch, 0) + 1

    def of(self, job: Job) -> list[Place]:
        """The places that may take a job, in the order in which they are tried."""
        if job.inside is not None:
            return self._within(job, job.inside)
        places = self._by_on.get(job.on)
        if places is None:
            lists = [self._places.get(name) or [Closed(name, no_target(self.world, name))] for name in dict.fromkeys(job.on)]
            places = self._by_on[job.on] = [place for each in lists for place in each]
        return places

    @cached_property
    def counters(self) -> Stock:
        return Stock(self.world.counters, of_counters, self.runs.values(), [lane[0] for lane in self.world.lanes])

    def _within(self, job: Job, allocation: int) -> list[Place]:
        """The cards of its allocation are the only place of a job inside one."""
        if allocation not in self._inside:
            run = next((run for run in self.runs.values() if run.allocation and run.id[0] == allocation), None)
            held = [t for t in self.tables if run is not None and t.target == run.target and t.holds(run)]
            places: list[Place] = [inside.Within(run, t) for t in held if run is not None]
            self._inside[allocation] = places or [Closed("allocation", inside.waiting(job))]
        return self._inside[allocation]

    def big(self, job: Job) -> bool:
        """Whether the job may come to keep something somewhere."""
        tables = [table for table in self.tables if table.target in job.on and job.inside is None]
        return any(reserve.big(job, t.easiest_mib) or (self._more and self._bigger(job, t)) for t in tables)

    def _bigger(self, job: Job, table: Table) -> bool:
        return table.stock.bigger(job) or self.counters.bigger(job)

    def place(self, job: Job) -> Start | Reason:
        """Start a job now, or say why not: looked at once for all batches whose rules and requests are equal."""
        alike = self._alike(job)
        if alike is not None and (known := self._refused.get(alike)) is not None:
            return known
        answer = self._looked_at(job)
        if isinstance(answer, Start):
            self._started(job)
        elif alike is not None:
            self._refused[alike] = answer
        return answer

    def _alike(self, job: Job) -> tuple[Any, ...] | None:
        """All that an answer depends on; None: it depends on more, on what its batch has begun or who comes before it."""
        policy = self.world.policy_of(job.batch)
        own = policy.max_concurrent is not None or policy.start_interval > 0
        if own or not self._plain or job.inside is not None or job.avoid or job.counters:
            return None
        cards = job.gpus_min, job.gpus_max, job.memory_mib, job.share, job.elastic
        return id(policy), job.on, cards, job.cpus, job.host_memory_mib

    def _looked_at(self, job: Job) -> Start | Reason:
        if (reason := on_hold(self.world.hold)) is not None:
            return reason
        places = self.of(job)
        if len(places) == 1:  # nearly always, and a tick may have thousands of them
            return places[0].hold(job) or self._gate(job) or places[0].place(job)
        held = {place: reason for place in places if (reason := place.hold(job)) is not None}
        if len(held) == len(places):
            return nowhere(held)
        if (reason := self._gate(job)) is not None:
            return reason
        refused: dict[Place, Reason] = {}
        for place in places:
            answer = held.get(place) or place.place(job)
            if isinstance(answer, Start):
                return answer
            refused[place] = answer
        return nowhere(refused)

    def _started(self, job: Job) -> None:
        self._refused.clear()
        self._running[job.batch] = self._running.get(job.batch, 0) + 1
        self._last_start[job.batch] = self.world.now
        for table in self.tables:
            if table.kept is not None and table.kept.job.id == job.id:
                table.kept = None
            if table.kept_beside is not None and table.kept_beside.job.id == job.id:
                table.kept_beside = None
        if job.counters:
            self.counters.take(job)

    # What holds for a batch, wherever its jobs go.

    def _gate(self, job: Job) -> Reason | None:
        policy = self.world.policy_of(job.batch)
        reason = self._too_many(job, policy.max_concurrent) if policy.max_concurrent is not None else None
        reason = reason or (self._too_soon(job, policy.start_interval) if policy.start_interval > 0 else None)
        return reason or (self._uncounted(job) if job.counters else None)

    def _uncounted(self, job: Job) -> Reason | None:
        keepers = [kept for table in self.tables for kept in table.keepers]
        return self.counters.short(job, keepers, self.world.now)

    def _too_many(self, job: Job, most: int) -> Reason | None:
        running = self._running.get(job.batch, 0)
        big = [kept for table in self.tables for kept in table.keepers if kept.job.batch == job.batch]
        if running + sum(kept.binds(job) for kept in big) < most:
            return None
        return Reason(code="max_concurrent", params={"running": running, "most": most})

    def _too_soon(self, job: Job, interval: float) -> Reason | None:
        next_at = self._last_start.get(job.batch, -math.inf) + interval
        if self.world.now >= next_at:
            return None
        self.wake(next_at)
        return Reason(code="start_interval", params={"left_s": next_at - self.world.now, "interval_s": interval})

    def waits_for_its_own(self, job: Job) -> bool:
        """Whether a run of its batch is alive where the job may go."""
        ours = [run for run in self.runs.values() if run.batch == job.batch]
        return any(place.carries(run, job.batch) for run in ours for place in self.of(job))

    # What is kept for big jobs.

    def keep(self) -> None:
        """Choose the big jobs that something is kept for: of each node the first in line for which enough cards will be there,
        and the first that wants cores, memory or counters and no card."""
        if self.world.hold:
            return
        self._keep_cards([t for t in self.tables if not t.held_up and not t.blind])
        if self._more:
            self._keep_beside()
        self._plain = not any(table.keepers or table.unkept for table in self.tables)

    def _keep_cards(self, open_: list[Table]) -> None:
        by_job: dict[int, tuple[Job, bool, list[Table]]] = {}
        for table in open_:
            for job, late in self._waiting(table):
                by_job.setdefault(job.id, (job, late, []))[2].append(table)
        for job, late, tables in sorted(by_job.values(), key=lambda w: reserve.in_line(w[0], w[1])):
            able = [t for t in tables if t.kept is None and t.never(job) is None]
            if able and not any(isinstance(place, Handover) and place.takes for place in self.of(job)):
                self._keep(job, late, able)
                if all(table.kept is not None for table in open_):
                    return

    def _waiting(self, table: Table) -> list[tuple[Job, bool]]:
        """Those that may keep cards of a node, and whether they have waited long."""
        heads, world = table.heads, self.world
        big = [job for job in heads if reserve.big(job, table.easiest_mib)]
        waiting = reserve.waiting(world, big, min((j.priority for j in heads if j.gpus_max), default=0))
        if self._more:
            known = {job.id for job, _ in waiting}
            bigger = [j for j in heads if j.gpus_min and j.id not in known and self._bigger(j, table)]
            waiting += reserve.waiting(world, bigger, min(table.stock.lowest, self.counters.lowest))
        return waiting

    def _keep(self, job: Job, late: bool, tables: list[Table]) -> None:
        """On the node where they will be there first."""
        policy = self.world.policy_of(job.batch)
        served = any(r.batch == job.batch and len(r.uuids) >= job.gpus_min for r in self.runs.values())
        plain = reserve.KeptCards(job=job, late=late, rank=ORDERS[policy.order], served=served, running=self._running)
        if policy.max_concurrent is not None and self._too_many(job, policy.max_concurrent) is not None:
            tables[0].kept = plain
            return
        options: list[tuple[float, Table, reserve.KeptCards]] = []
        for table in tables:
            answer = coming.with_cards(plain, table)
            if isinstance(answer, reserve.KeptCards):
                kept = replace(answer, until=max(answer.until, self._enough_at(job, table))) if self._more else answer
                options.append((kept.until, table, kept))
            else:
                table.unkept[job.shape] = answer
        if options:
            _, table, table.kept = min(options, key=lambda f: f[0])

    def _keep_beside(self) -> None:
        for table in self.tables:
            bigger = [j for j in table.heads if not j.gpus_min and self._bigger(j, table) and table.hold(j) is None]
            waiting = reserve.waiting(self.world, bigger, min(table.stock.lowest, self.counters.lowest))
            kept = {k.job.id for t in self.tables for k in t.keepers}
            for job, late in sorted(waiting, key=lambda w: reserve.in_line(*w)):
                if job.id not in kept and table.never(job) is None and self.counters.impossible(job) is None:
                    rank, served = ORDERS[self.world.policy_of(job.batch).order], table.stock.served(job)
                    table.kept_beside = reserve.KeptCards(
                        job=job, late=late, until=self._enough_at(job, table), rank=rank, served=served, running=self._running
                    )
                    break

    def _enough_at(self, job: Job, table: Table) -> float:
        """When there will be enough for it besides cards, as far as time limits tell."""
        at = table.stock.ready_at(job, self.world.now) if of_node(job) else self.world.now
        return max(at, self.counters.ready_at(job, self.world.now)) if job.counters else at
