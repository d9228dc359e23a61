"""The batches: what each was made of, how its jobs stand, and when it will be done."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jostle.core.states import OPEN, QUEUED, UNFINISHED
from jostle.store import batchreads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostle.session import Session
    from jostle.views.types import Batch

NEWEST = 50  # of a list that a person reads
LAST = 200  # how many of the newest durations an estimate is made of
LATE = 2  # times the mean; a job that has run for longer is not like those that have ended


def batches(session: Session, *, everything: bool = False) -> list[Batch]:
    """The newest first."""
    now = time.time()
    return [_plain(session, one, now) for one in batchreads.sums(session.reader, newest=None if everything else NEWEST)]


def _plain(session: Session, one: batchreads.Sum, now: float) -> Batch:
    unfinished = sum(one.counts.get(state, 0) for state in UNFINISHED)
    return {
        "id": one.id, "name": one.name or "", "file": one.about.get("file"), "suite": one.about.get("suite"),
        "sweep": one.sweep, "submitted_at": one.submitted_at, "started_at": one.started_at,
        "ended_at": None if unfinished else one.ended_at, "jobs": sum(one.counts.values()), "counts": one.counts,
        "done_before": one.done_before, "left_s": _left(session, one, now) if unfinished else None,
    }  # fmt: skip


def _left(session: Session, one: batchreads.Sum, now: float) -> float | None:
    if not any(one.counts.get(state) for state in OPEN):
        return None
    mean, begun = batchreads.pace(session.reader, one.id, LAST)
    return None if mean is None or not begun else remaining(mean, [now - at for at in begun], one.counts.get(QUEUED, 0))


def remaining(mean: float, ages: Sequence[float], queued: int, at_once: int = 0) -> float | None:
    """Seconds until all is done, from how long those took that have ended and with as many at once as now, or as were. None where
    one takes much longer than those: nobody can tell when it ends."""
    if max(ages) > LATE * mean:
        return None
    rest = [max(0.0, mean - age) for age in ages]
    return max((sum(rest) + mean * queued) / max(at_once, len(rest)), *rest)
