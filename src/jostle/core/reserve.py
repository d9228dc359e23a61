"""Keeping cards for a big job, so that small ones that come later cannot starve it.

Rules: a big job asks for more than others: several cards, or more of one than some other job; or more cores, host memory or of a
counter. Against jobs of lower priority it keeps cards as soon as it is ready, against all others when it has waited longer than
its policy's `reserve_after`. One job a node, and one that wants no card: of the highest priority, the oldest. It keeps as many
cards as it needs: those that fit now, then those that our own runs will leave soonest; no new run goes there unless its time
limit ends before the big job could start. If these do not suffice (strangers have the rest, or courtesy forbids), it keeps
nothing: what others have may stay theirs for days.
Not held back are jobs of higher priority, those before it in its own batch, and older jobs of another batch that has nothing
running, or while a run as big of its own batch is alive: so neither side starves. A job that can never fit keeps nothing, nor one
whose batch runs all it may.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from jostle.core.ledger import Card
from jostle.core.model import Job, Run, RunId, World
from jostle.core.order import Key, by_file
from jostle.core.reasons import Refusal

LEAVES_WITHIN = 5.0
"""For so many seconds a driver may go on showing what an ended run of ours used …"""
LEAVING = frozenset({"unexplained", "newcomer", "leaving", "quarantined", "not_empty", "memory", "min_free", "utilization"})
"""… and the card is refused for one of these."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptCards:
    job: Job
    late: bool  # it has waited so long that jobs of its own priority stand back, too
    uuids: frozenset[str] = frozenset()
    until: float = math.inf  # when the big job can start, as far as time limits tell
    rank: Callable[[Job], Key] = by_file  # the order of its batch
    served: bool = False  # its batch has a run as big
    running: Mapping[int, int] = field(default_factory=dict)  # how many runs each batch has now

    def binds(self, job: Job) -> bool:
        """Whether a job must stand back for the big one."""
        big = self.job
        if job.id == big.id or job.priority != big.priority:
            return job.priority < big.priority
        if not self.late:
            return False
        if job.batch == big.batch:
            return self.rank(job) > self.rank(big)
        left_out = self.served or not self.running.get(job.batch)
        return not (left_out and job.ready_at <= big.ready_at)

    def closed_to(self, job: Job, now: float) -> bool:
        """Whether a job must leave the kept cards alone: unless it is sure to be gone in time."""
        return job.time_limit is None or not math.isfinite(self.until) or now + job.time_limit > self.until


def waiting(world: World, big: Iterable[Job], lowest: float) -> list[tuple[Job, bool]]:
    """Of big jobs those that may keep something, and whether they have waited long; `lowest` is the least priority of a rival."""
    candidates = [(j, world.now > reserve_at(world, j)) for j in big]
    return [(j, late) for j, late in candidates if late or j.priority > lowest]


def in_line(job: Job, late: bool) -> Key:
    """Who comes first."""
    return (-job.priority, not late, job.ready_at, job.id)


def reserve_at(world: World, job: Job) -> float:
    """When a job that waits may begin to keep cards."""
    return job.ready_at + world.policy_of(job.batch).reserve_after


def easiest_mib(heads: list[Job], runs: list[Run]) -> float:
    """The least memory that any other one-card job asks for: whoever wants more can be passed over by it."""
    asked = [job.memory_mib for job in heads if job.gpus_min == 1]
    asked += [run.memory_mib for run in runs if run.share]
    return min((mib for mib in asked if mib is not None), default=math.inf)


def big(job: Job, easiest_mib: float) -> bool:
    if job.gpus_min != 1:
        return job.gpus_min > 1
    return easiest_mib < (math.inf if job.memory_mib is None else job.memory_mib)


def in_turn(
    now: float, fitting: list[Card], later: list[tuple[Card, Refusal]], runs: dict[RunId, Run]
) -> list[tuple[float, str]]:
    """When each card will be there: `fitting` in the order of choice, then those that fall free first."""
    to_come = [(free_at(c, now, r, runs), _youngest(c, runs), c.gpu.index, c.gpu.uuid) for c, r in later]
    return [(now, c.gpu.uuid) for c in fitting] + [(at, uuid) for at, _, _, uuid in sorted(to_come)]


def free_at(card: Card, now: float, refusal: Refusal, runs: dict[RunId, Run]) -> float:
    if refusal.code == "idle":
        return now + float(refusal.params["left_s"])
    return max((end_of(runs.get(p.run) if p.run else None) for p in card.promises), default=math.inf)


def end_of(run: Run | None) -> float:
    """When a run will have ended at the latest."""
    if run is None or run.time_limit is None or run.paused:
        return math.inf
    return run.started_at + run.time_limit + (run.pausing.paused_s if run.pausing is not None else 0.0)


def _youngest(card: Card, runs: dict[RunId, Run]) -> float:
    """A card that is kept gets no younger runs, so the choice stays the same until it is free."""
    return max((runs[p.run].started_at for p in card.promises if p.run in runs), default=0.0)
