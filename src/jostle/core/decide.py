"""decide(world) -> plan: the one place where it is decided what happens next. Pure; see docs/architecture.md.

The story: faulty cards are set aside; runs that have ended become results or new tries; runs that people want to end are
stopped; cards are kept for a big job that has waited long; then each job that is ready is placed in its order, or gets the
reason why not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from jostle.core import health
from jostle.core.model import Job, World
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
    judged: set[int] = set()  # batches whose next job waits
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
        else:
            turns.blocked()
            if (due_at := reserve_at(world, job)) > world.now and big(job, table.easiest_mib):
                table.wake(due_at)
            given_up = expired(table, answer, job) if job.batch not in judged else []
            judged.add(job.batch)
            decisions += given_up
            if len(given_up) < len(lane) - at:
                waits[job.shape] = answer
    kept_for = table.kept.job.id if table.kept is not None else None
    return Plan(decisions=tuple(decisions), waits=waits, wake_at=table.wake_at, kept_for=kept_for)


def stops(world: World) -> Iterator[Stop]:
    """Ends of runs that people want; sent again at every tick until the run is gone, so acting must not mind."""
    for run in world.runs:
        open_ = run.ended is None and not run.voided
        if open_ and run.cancel and (run.state != "stopping" or run.kill):
            yield Stop(run=run.id, kill=run.kill)


def expired(table: Table, reason: Reason, job: Job) -> list[Fail]:
    """The next job of a batch has been blocked: gives it up if it has waited for GPUs longer than its policy allows.

    The time counts from the batch's last start or end, and not at all while a run of the batch is alive where its jobs may go:
    whoever waits for their own has to wait.
    """
    world, scope = table.world, table.scope(job.batch)
    limit = scope.policy.max_wait
    if limit is None or reason.code not in FOR_GPUS:
        return []
    if any(run.batch == job.batch and not scope.range.isdisjoint(run.uuids) for run in table.runs.values()):
        return []
    since = max(job.ready_at, world.last_start.get(job.batch, -math.inf), world.last_end.get(job.batch, -math.inf))
    if world.now < since + limit:
        table.wake(since + limit)
        return []
    why = Reason(code="wait_timeout", params={"limit_s": limit, "last": reason.code, "refused": counted(reason.gpus)})
    closes = scope.policy.on_failure == "stop"
    return [Fail(job=job.id, batch=job.batch, error_type="wait_timeout", reason=why, closes_queue=closes)]
