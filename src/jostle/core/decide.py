"""decide(world) -> plan: the one place where it is decided what happens next. Pure; see docs/architecture.md.

The story: faulty cards are set aside; runs that have ended become results or new tries; runs that people want to end are
stopped, and so is what runs inside an allocation that is released; cards are kept for a big job that has waited long; then each
job that is ready is placed in its order, or gets the reason why not; and what nobody could use goes to runs that may grow, as
what others need comes from those that may shrink; and runs that are to stand still for somebody else do, and go on.
"""

from __future__ import annotations

import math

from jostle.core import health, inside, pausing, resize
from jostle.core.model import Job, World
from jostle.core.order import Turns
from jostle.core.place import Places
from jostle.core.plan import Fail, Plan, Start
from jostle.core.reasons import IMPOSSIBLE_CARDS, Reason, counted
from jostle.core.reserve import reserve_at
from jostle.core.retry import finish_or_requeue

# Waiting for anything else (a hold, a driver, its own batch) never makes a job run out of time.
FOR_GPUS = IMPOSSIBLE_CARDS | {"gpus", "limit", "user_limit"}


def decide(world: World) -> Plan:
    decisions = health.verdicts(world)
    world = health.without_faulty(world, decisions)
    decisions += [finish_or_requeue(world, run) for run in world.runs if run.ended is not None or run.voided]
    decisions += [*inside.stops(world), *inside.given_up(world)]
    world = inside.without_orphans(world)
    idle_at = inside.wake_at(world)
    elastic = resize.concerns(world)
    if not world.lanes and not elastic:
        return Plan(decisions=tuple(decisions), waits={}, wake_at=idle_at)
    waiting: list[tuple[Job, Reason]] = []
    begun: list[tuple[Job, Start]] = []  # those that may get more of what is left
    waits: dict[int, Reason] = {}
    judged: set[int] = set()  # batches whose next job waits
    places, turns = Places(world), Turns(world)
    places.keep()
    for due in (health.look_again_at(world), idle_at):
        if due is not None:
            places.wake(due)
    while (head := turns.head()) is not None:
        job, at, lane = head
        answer = places.place(job)
        if isinstance(answer, Start):
            turns.started()
            decisions.append(answer)
            if job.elastic:
                begun.append((job, answer))
        else:
            turns.blocked()
            if elastic:
                waiting.append((job, answer))
            if (due_at := reserve_at(world, job)) > world.now and places.big(job):
                places.wake(due_at)
            given_up = expired(places, answer, job) if job.batch not in judged else []
            judged.add(job.batch)
            decisions += given_up
            if len(given_up) < len(lane) - at:
                waits[job.shape] = answer
    keeps = {}
    if elastic or begun:
        resizes = resize.Resizes(world, places)
        decisions += resizes.decided(waiting, begun)
        decisions += pausing.decided(places, resizes.leaves)
        decisions = [resizes.widened(d) if isinstance(d, Start) else d for d in decisions] if begun else decisions
        keeps = resizes.keeps
    kept_for = tuple(kept.job.id for table in places.tables for kept in table.keepers)
    return Plan(decisions=tuple(decisions), waits=waits, wake_at=places.wake.at, keeps=keeps, kept_for=kept_for)


def waits_for_gpus(reason: Reason) -> bool:
    """Whether cards would help: all that the job waits for is some, and it could ever have them."""
    each = reason.params["places"] if reason.code == "nowhere" else [{"code": reason.code}]
    return for_gpus(reason) and not all(place["code"] in IMPOSSIBLE_CARDS for place in each)


def for_gpus(reason: Reason) -> bool:
    """Whether all that the job waits for is cards."""
    each = reason.params["places"] if reason.code == "nowhere" else [{"code": reason.code}]
    return all(place["code"] in FOR_GPUS for place in each)


def expired(places: Places, reason: Reason, job: Job) -> list[Fail]:
    """The next job of a batch has been blocked: gives it up if it has waited for GPUs longer than its policy allows.

    The time counts from the batch's last start or end, and not at all while a run of the batch is alive where its jobs may go:
    whoever waits for their own has to wait.
    """
    world, policy = places.world, places.world.policy_of(job.batch)
    limit = policy.max_wait
    if limit is None or not for_gpus(reason) or places.waits_for_its_own(job):
        return []
    since = max(job.ready_at, world.last_start.get(job.batch, -math.inf), world.last_end.get(job.batch, -math.inf))
    if world.now < since + limit:
        places.wake(since + limit)
        return []
    why = Reason(code="wait_timeout", params={"limit_s": limit, "last": reason.code, "refused": counted(reason.gpus)})
    closes = policy.on_failure == "stop"
    return [Fail(job=job.id, batch=job.batch, error_type="wait_timeout", reason=why, closes_queue=closes)]
