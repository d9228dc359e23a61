"""decide(world) -> plan: the one place where it is decided what happens next. Pure; see docs/architecture.md.

The story: faulty cards are set aside; runs that have ended become results or new tries; runs that people want to end are
stopped; cards are kept for a big job that has waited long; then each job that is ready is placed in its order, or gets the
reason why not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jostle.core import health
from jostle.core.model import Job, Lane, World
from jostle.core.order import Turns
from jostle.core.place import Table
from jostle.core.plan import Fail, Plan, Start, Stop
from jostle.core.reasons import Reason, counted
from jostle.core.reserve import big, reserve_at
from jostle.core.retry import ending

# Waiting for anything else (a hold, a driver, its own batch) never makes a job run out of time.
FOR_GPUS = frozenset({"gpus", "limit", "impossible", "impossible_count", "impossible_slices", "impossible_limit"})


def decide(world: World) -> Plan:
    decisions = health.verdicts(world)
    world = replace(world, gpus=health.set_aside(world.gpus, decisions)) if decisions else world
    decisions += [ending(world, run) for run in world.runs if run.ended is not None or run.voided]
    decisions += stops(world)
    if not world.lanes:
        return Plan(decisions=tuple(decisions), waits={})
    waits: dict[int, Reason] = {}
    table, turns = Table(world), Turns(world)
    table.keep_cards()
    if (due := health.look_again_at(world)) is not None:
        table.wake(due)
    while (head := turns.head()) is not None:
        job, at, lane = head
        answer = table.place(job)
        if isinstance(answer, Start):
            turns.started()
            decisions.append(answer)
            remember_rest(table, waits, job, at, lane)
        else:
            turns.blocked()
            given_up = expired(table, answer, lane.jobs[at:])
            decisions += given_up
            if len(given_up) < max(lane.count, len(lane.jobs)) - at:
                waits[job.shape] = answer
    kept_for = table.kept.job.id if table.kept is not None else None
    return Plan(decisions=tuple(decisions), waits=waits, wake_at=table.wake_at, kept_for=kept_for)


def stops(world: World) -> Iterator[Stop]:
    """Ends of runs that people want; sent again at every tick until the run is gone, so acting must not mind."""
    for run in world.runs:
        open_ = run.ended is None and not run.voided
        if open_ and run.cancel and (run.state != "stopping" or run.kill):
            yield Stop(run=run.id, kill=run.kill)


def remember_rest(table: Table, waits: dict[int, Reason], job: Job, at: int, lane: Lane) -> None:
    """The jobs of a lane that this World does not show are decided at the next tick, which should come at once."""
    rest = lane.count - len(lane.jobs)
    if at + 1 == len(lane.jobs) and rest > 0:
        waits[job.shape] = Reason(code="starting_soon", params={"jobs": rest})
        table.wake(table.world.now)


def expired(table: Table, reason: Reason, jobs: tuple[Job, ...]) -> list[Fail]:
    """The jobs of a blocked lane that have waited longer than their policy allows; and when the next thing is due."""
    world, policy = table.world, table.scope(jobs[0].batch).policy
    limit, closes = policy.max_wait, policy.on_failure == "stop"
    if (at := reserve_at(world, jobs[0])) > world.now and big(jobs[0], table.easiest_mib):
        table.wake(at)
    if limit is None or reason.code not in FOR_GPUS:
        return []
    for job in jobs:
        if world.now < job.ready_at + limit:
            table.wake(job.ready_at + limit)
    over = [j for j in jobs if world.now >= j.ready_at + limit]
    if not over:
        return []
    why = Reason(code="wait_timeout", params={"limit_s": limit, "last": reason.code, "refused": counted(reason.gpus)})
    return [Fail(job=j.id, error_type="wait_timeout", reason=why, closes_queue=closes) for j in over]
