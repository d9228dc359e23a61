"""Jobs of the open transaction, as a preview tells of them before it is undone."""

from __future__ import annotations

from typing import Any

from jostle.store.reads import AHEAD
from jostle.store.rows import loaded
from jostle.store.store import Store

Queued = dict[str, Any]
COLUMNS = ("id", "name", "state", "reason", "intent", "queue", "not_before", "retries", "error_type", "begin_at", "shape",
           "ready")  # fmt: skip
JOBS = f"SELECT {', '.join(COLUMNS)} FROM job WHERE id BETWEEN ? AND ? ORDER BY id"
BEFORE = f"SELECT o.id FROM job j, job o WHERE j.id = ? AND {AHEAD} ORDER BY o.state = 'queued', o.attempt = 0, o.place, o.id"
NEEDED = "SELECT needs FROM dep JOIN job ON job.id = needs WHERE job = ? AND job.ended_at IS NULL ORDER BY needs"


def queued(store: Store, first: int, last: int) -> list[Queued]:
    """Each with the ids of those before it in its queue, in their order, and of the unfinished ones that it comes after."""
    jobs = [dict(zip(COLUMNS, row, strict=True)) for row in store.db.execute(JOBS, (first, last)).fetchall()]
    for job in jobs:
        job["reason"] = loaded(job["reason"], dict) if job["reason"] else None
        job["ahead"] = [id for (id,) in store.db.execute(BEFORE, (job["id"],))] if job["queue"] is not None else []
        job["needs"] = [id for (id,) in store.db.execute(NEEDED, (job["id"],))]
    return jobs
