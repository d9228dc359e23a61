"""How jobs end, and what an end brings about: the event, the next of the queue, the end of the batch, those that come after it.

Every function works inside the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from jostle.core.states import SUCCEEDED
from jostle.store.readiness import CHOSEN, choose, refresh, refresh_queue, state_of
from jostle.store.reads import UNFINISHED_SQL
from jostle.store.store import Store

Row = Mapping[str, Any]

QUEUED_INSIDE = "SELECT id FROM job WHERE inside = ? AND ended_at IS NULL AND state = 'queued' ORDER BY id DESC"
"""The jobs that wait inside an allocation, from the end: else each head of a queue that goes makes the next ready for nothing."""


def settle_dependants(store: Store, id: int, state: str, *, at: float, now: float, since: int = 0) -> None:
    """A job has ended: those that come after it are a step nearer, or will never run. A list, not calls: chains may be long."""
    ended = [(id, state)]
    while ended:
        _settle(store, *ended.pop(), ended, at=at, now=now, since=since)
        since = 0


def _settle(store: Store, id: int, state: str, ended: list[tuple[int, str]], *, at: float, now: float, since: int) -> None:
    for (job,) in store.db.execute(QUEUED_INSIDE, (id,)).fetchall():
        _end_queued(store, job, "skipped", {"code": "allocation_over", "params": {"job": id}}, at=at, now=now)
        ended.append((job, "skipped"))
    rows = store.db.execute(
        "SELECT d.job, d.any FROM dep d CROSS JOIN job j ON j.id = d.job WHERE d.needs = ? AND d.job >= ? AND j.state = 'queued'",
        (id, since),
    ).fetchall()
    for job, any_end in rows:
        if any_end or state == SUCCEEDED:
            store.db.execute("UPDATE job SET blocked = blocked - 1 WHERE id = ?", (job,))
            refresh(store, job, now)
        elif state_of(store, job) == "queued":  # it may come after two that ended by the same failure
            reason = {"code": "after_failed", "params": {"job": id, "state": state}}
            _end_queued(store, job, "skipped", reason, at=at, now=now)
            ended.append((job, "skipped"))


def end_queued(
    store: Store, id: int, state: str, reason: Row | None, *, at: float, now: float, error_type: str | None = None
) -> None:
    """A job that waits ends without a run."""
    _end_queued(store, id, state, reason, at=at, now=now, error_type=error_type)
    settle_dependants(store, id, state, at=at, now=now)


def _end_queued(
    store: Store, id: int, state: str, reason: Row | None, *, at: float, now: float, error_type: str | None = None
) -> None:
    store.db.execute(
        "UPDATE job SET state = ?, ready = 0, reason = ?, error_type = ?, ended_at = ? WHERE id = ?",
        (state, json.dumps(reason) if reason else None, error_type, at, id),
    )
    batch, queue = store.db.execute("SELECT batch, queue FROM job WHERE id = ?", (id,)).fetchone()
    tell_end(store, id, batch, queue, state, at=at, now=now, reason=reason)


def cancel_queued(store: Store, ids: Iterable[int], *, at: float, now: float) -> None:
    """Ends many at once, which may be heads of queues and come after each other."""
    db, reason = store.db, {"code": "cancelled", "params": {}}
    choose(store, ids)
    db.execute(
        """UPDATE job SET intent = 'cancel', state = 'cancelled', ready = 0, reason = ?, ended_at = ?
           WHERE id IN (SELECT id FROM chosen)""",
        (json.dumps(reason), at),
    )
    db.execute(
        f"""INSERT INTO event (at, kind, batch, job, data)
            SELECT ?, 'cancelled', batch, job.id, ? FROM {CHOSEN} ORDER BY c.rowid""",
        (at, json.dumps({"reason": reason})),
    )
    for (queue,) in db.execute(f"SELECT DISTINCT queue FROM {CHOSEN} WHERE queue IS NOT NULL").fetchall():
        refresh_queue(store, queue, now)
    for (batch,) in db.execute(f"SELECT DISTINCT batch FROM {CHOSEN} ORDER BY batch").fetchall():
        tell_if_over(store, batch, at)
    waited_for = db.execute(
        """SELECT DISTINCT d.needs FROM chosen c CROSS JOIN dep d ON d.needs = c.id CROSS JOIN job j ON j.id = d.job
           WHERE j.state = 'queued'
           UNION SELECT j.inside FROM chosen c CROSS JOIN job j ON j.inside = c.id AND j.ended_at IS NULL
           WHERE j.state = 'queued' ORDER BY 1"""
    )
    for (id,) in waited_for.fetchall():
        settle_dependants(store, id, "cancelled", at=at, now=now)


def close_queue(store: Store, id: int, *, at: float, now: float) -> None:
    """A job failed for good, and its batch wants what has not begun of its queue not to run (SPEC A25)."""
    batch, queue = store.db.execute("SELECT batch, queue FROM job WHERE id = ?", (id,)).fetchone()
    if queue is None:
        return
    rest = store.db.execute(
        "SELECT id FROM job WHERE queue = ? AND batch = ? AND state = 'queued' AND attempt = 0 AND id <> ? ORDER BY place DESC",
        (queue, batch, id),
    ).fetchall()
    for (other,) in rest:  # from the end: else each head that goes makes the next one ready for nothing
        if state_of(store, other) == "queued":  # it may have come after one that was just skipped
            end_queued(store, other, "skipped", {"code": "queue_failed", "params": {"job": id}}, at=at, now=now)


def tell_end(
    store: Store, id: int, batch: int, queue: str | None, state: str, *, at: float, now: float, run: int | None = None,
    **data: Any,
) -> None:  # fmt: skip
    """What every end brings about at once: the event, the next of the queue, the end of the batch."""
    store.event(at, state, batch=batch, job=id, run=run, **{k: v for k, v in data.items() if v is not None})
    if queue is not None:
        refresh_queue(store, queue, now)
    tell_if_over(store, batch, at)


def tell_if_over(store: Store, batch: int, at: float) -> None:
    more = f"SELECT 1 FROM job INDEXED BY job_unfinished WHERE batch = ? AND {UNFINISHED_SQL} LIMIT 1"
    if store.db.execute(more, (batch,)).fetchone() is None:
        store.event(at, "batch_ended", batch=batch)
