"""Where one job goes: to the first of the places it may go to that takes it.

Rules: a job names targets; they are tried in its order, and of a target that places, its nodes in theirs. What holds for a batch
wherever its jobs go (how many at once, how soon after each other) is asked once. A place that is held up holds up nobody who may
go elsewhere. Cards are kept for one big job a node, and for a job on one node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from jostle.core import coming, reserve
from jostle.core.ledger import alive
from jostle.core.model import Job, Policy, Run, Target, World
from jostle.core.order import ORDERS
from jostle.core.plan import Start
from jostle.core.reasons import Reason, counted, kept
from jostle.core.scope import impossible
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
        return Reason(code="on_hold", params={"hold": self._target.hold}) if self._target.hold else None

    def place(self, job: Job) -> Start | Reason:
        if self._room is not None:
            if self._room <= 0:
                return Reason(code="no_room", params={"target": self.name})
            self._room -= 1
        share = job.share or policy_of(self._world, job.batch).share
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


def policy_of(world: World, batch: int) -> Policy:
    return world.policies.get(batch, world.policy)


def nowhere(reasons: Mapping[Place, Reason]) -> Reason:
    """The reason of the one place there is; of several, each with its own."""
    if len(reasons) == 1:
        return next(iter(reasons.values()))
    each = [{"place": place.name, **kept(reason), "refused": counted(reason.gpus)} for place, reason in reasons.items()]
    return Reason(code="nowhere", params={"places": each}, gpus=tuple(no for reason in reasons.values() for no in reason.gpus))


class Places:
    """All places of a World while one plan is made."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wake_at: float | None = None
        self.runs = alive(world)
        self.tables: list[Table] = []
        self._places: dict[str, list[Place]] = {}  # by target
        for target in world.targets:
            tables = [Table(world, target, node, self.runs, self.wake) for node in target.nodes]
            self.tables += tables
            self._places[target.name] = places_at(world, target, tables)
        self._by_on: dict[tuple[str, ...], list[Place]] = {}
        self._last_start = dict(world.last_start)
        self._running: dict[int, int] = {}
        for run in self.runs.values():
            self._running[run.batch] = self._running.get(run.batch, 0) + 1

    def wake(self, at: float) -> None:
        if self.wake_at is None or at < self.wake_at:
            self.wake_at = at

    def of(self, job: Job) -> list[Place]:
        """The places that may take a job, in the order in which they are tried."""
        places = self._by_on.get(job.on)
        if places is None:
            lists = [self._places.get(name) or [Closed(name, no_target(self.world, name))] for name in dict.fromkeys(job.on)]
            places = self._by_on[job.on] = [place for each in lists for place in each]
        return places

    def big(self, job: Job) -> bool:
        """Whether the job may come to keep cards somewhere."""
        return any(table.target in job.on and reserve.big(job, table.easiest_mib) for table in self.tables)

    def place(self, job: Job) -> Start | Reason:
        """Start a job now, or say why not."""
        if self.world.hold:
            return Reason(code="on_hold", params={"hold": self.world.hold})
        places = self.of(job)
        if len(places) == 1:  # nearly always, and a tick may have thousands of them
            answer = places[0].hold(job) or self._gate(job) or places[0].place(job)
            if isinstance(answer, Start):
                self._started(job)
            return answer
        held = {place: reason for place in places if (reason := place.hold(job)) is not None}
        if len(held) == len(places):
            return nowhere(held)
        if (reason := self._gate(job)) is not None:
            return reason
        refused: dict[Place, Reason] = {}
        for place in places:
            answer = held.get(place) or place.place(job)
            if isinstance(answer, Start):
                self._started(job)
                return answer
            refused[place] = answer
        return nowhere(refused)

    def _started(self, job: Job) -> None:
        self._running[job.batch] = self._running.get(job.batch, 0) + 1
        self._last_start[job.batch] = self.world.now
        for table in self.tables:
            if table.kept is not None and table.kept.job.id == job.id:
                table.kept = None

    # What holds for a batch, wherever its jobs go.

    def _gate(self, job: Job) -> Reason | None:
        policy = policy_of(self.world, job.batch)
        reason = self._too_many(job, policy.max_concurrent) if policy.max_concurrent is not None else None
        return reason or (self._too_soon(job, policy.start_interval) if policy.start_interval > 0 else None)

    def _too_many(self, job: Job, most: int) -> Reason | None:
        running = self._running.get(job.batch, 0)
        big = [table.kept for table in self.tables if table.kept is not None and table.kept.job.batch == job.batch]
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

    # Cards for big jobs.

    def keep_cards(self) -> None:
        """Choose the big jobs that cards are kept for: of each node the first in line for which enough will be there."""
        open_ = [] if self.world.hold else [t for t in self.tables if not t.on_hold and not t.blind]
        by_job: dict[int, tuple[Job, bool, list[Table]]] = {}
        for table in open_:
            for job, late in reserve.waiting(self.world, table.heads, table.easiest_mib):
                by_job.setdefault(job.id, (job, late, []))[2].append(table)
        for job, late, tables in sorted(by_job.values(), key=lambda w: reserve.in_line(w[0], w[1])):
            able = [t for t in tables if t.kept is None and impossible(job, t.scope(job.batch)) is None]
            if able and not any(isinstance(place, Handover) and place.takes for place in self.of(job)):
                self._keep(job, late, able)
                if all(table.kept is not None for table in open_):
                    return

    def _keep(self, job: Job, late: bool, tables: list[Table]) -> None:
        """On the node where they will be there first."""
        policy = policy_of(self.world, job.batch)
        served = any(r.batch == job.batch and len(r.uuids) >= job.gpus_min for r in self.runs.values())
        plain = reserve.Kept(job=job, late=late, rank=ORDERS[policy.order], served=served, running=self._running)
        if policy.max_concurrent is not None and self._too_many(job, policy.max_concurrent) is not None:
            tables[0].kept = plain
            return
        options: list[tuple[float, Table, reserve.Kept]] = []
        for table in tables:
            answer = coming.with_cards(plain, table)
            if isinstance(answer, reserve.Kept):
                options.append((answer.until, table, answer))
            else:
                table.unkept[job.shape] = answer
        if options:
            _, table, table.kept = min(options, key=lambda f: f[0])
