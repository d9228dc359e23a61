"""What people want of jobs: hold, cancel, move, change, try again, forget. Every function works inside the caller's transaction.

Each answers None, or why it is not to be had: a code and its numbers (wording.declined has the sentences).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jostle.core.jobflaws import flaws
from jostle.core.reasons import Reason
from jostle.core.states import FINAL, SUCCEEDED
from jostle.store import allocations, jobrow
from jostle.store.ends import Row, cancel_queued
from jostle.store.jobs import reshape
from jostle.store.readiness import refresh, refresh_queue, state_of, states_of
from jostle.store.reads import UNFINISHED_SQL, UNUSED_CONTEXT
from jostle.store.store import Store

Declined = list[tuple[int, Reason]]


def hold(store: Store, id: int, on: bool, *, at: float, now: float) -> Reason | None:
    """None, or why not."""
    state = state_of(store, id)
    if state != "queued":
        return Reason("cannot_hold" if on else "cannot_release", {"job": id, "state": state})
    store.db.execute("UPDATE job SET intent = ? WHERE id = ?", ("hold" if on else "run", id))
    store.event(at, "held" if on else "unheld", job=id, batch=_batch_of(store, id))
    refresh(store, id, now)
    return None


def cancel(store: Store, ids: Sequence[int], kill: bool, *, at: float, now: float) -> tuple[list[int], Declined]:
    """Those that are cancelled, and why others are not. What their ends bring about is done once, not once for each of them."""
    ids = list(dict.fromkeys(ids))
    states = states_of(store, ids)
    refused = [(id, Reason("ended_already", {"job": id, "state": states[id]})) for id in ids if states[id] in FINAL]
    cancelled = [id for id in ids if states[id] not in FINAL]
    for id in cancelled:
        if states[id] != "queued":
            store.db.execute("UPDATE job SET intent = ? WHERE id = ? AND intent <> 'kill'", ("kill" if kill else "cancel", id))
            store.event(at, "cancel_wanted", job=id, batch=_batch_of(store, id))
    cancel_queued(store, [id for id in cancelled if states[id] == "queued"], at=at, now=now)
    return cancelled, refused


def keep(store: Store, id: int) -> Reason | None:
    """Who waited for an allocation has been told of its cards: it no longer ends with them."""
    if (state := state_of(store, id)) in FINAL:
        return Reason("ended_already", {"job": id, "state": state})
    store.db.execute("UPDATE job SET awaited_by = NULL WHERE id = ?", (id,))
    return None


def move(store: Store, id: int, to: Any, *, at: float, now: float) -> Reason | None:
    """To the first or last place of its queue (without one: of all that wait), or beside another job."""
    state = state_of(store, id)
    if state != "queued":
        return Reason("cannot_move", {"job": id, "state": state})
    queue = store.db.execute("SELECT queue FROM job WHERE id = ?", (id,)).fetchone()[0]
    for number in (id, to.get("before") if isinstance(to, dict) else None):
        if store.db.execute("SELECT 1 FROM job WHERE id = ? AND queue = ? AND attempt > 0", (number, queue)).fetchone():
            return Reason("has_begun", {"job": number})
    places = store.db.execute(
        "SELECT id, place FROM job WHERE queue IS ? AND state = 'queued' AND id <> ? ORDER BY place, id", (queue, id)
    ).fetchall()
    if not places:
        return None
    if to == "first":
        place = places[0][1] - 1
    elif to == "last":
        place = places[-1][1] + 1
    else:
        side, other = next(iter(to.items()))
        if other == id:
            return Reason("beside_itself", {"job": id, "side": side})
        at_index = next((k for k, (job, _) in enumerate(places) if job == other), None)
        if at_index is None:
            return Reason("in_another_queue", {"job": id, "other": other})
        k = at_index if side == "before" else at_index + 1
        below = places[k - 1][1] if k > 0 else places[0][1] - 2
        above = places[k][1] if k < len(places) else places[-1][1] + 2
        place = (below + above) / 2
    store.db.execute("UPDATE job SET place = ? WHERE id = ?", (place, id))
    if queue is None or _order_of(store, id) == "file":  # else the batch's own order is between queues, and stays
        store.db.execute("UPDATE job SET sort = ? WHERE id = ?", (place, id))
    store.event(at, "moved", job=id, batch=_batch_of(store, id), to=to)
    refresh(store, id, now)
    return None


def change(store: Store, id: int, values: Row, *, at: float, now: float) -> Reason | None:
    state = state_of(store, id)
    job = jobrow.together(store.db.execute(f"SELECT {jobrow.TOGETHER} FROM job WHERE id = ?", (id,)).fetchone())
    may_resize = job["resize"] is not None or not job["commands"]
    resizes = state in ("starting", "running") and may_resize and set(values) == {"gpus"}  # while it runs
    if state != "queued" and not resizes:
        return Reason("cannot_change", {"job": id, "state": state})
    before = flaws(job)  # that of one taken by older rules does not keep anything else of it from being changed
    for code, params in flaws({**job, **values}):
        if (code, params) not in before:
            return Reason(code, {"job": id, **params})
    if not job["commands"] and (why := allocations.no_new_name(store, id, values)) is not None:
        return why
    for key, value in values.items():
        new, stored = jobrow.changed(key, value)
        store.db.execute(f"UPDATE job SET {new} WHERE id = ?", (*stored, id))
    reshape(store, id)
    store.event(at, "changed", job=id, batch=_batch_of(store, id), **dict(values))
    if job["queue"] is not None:
        refresh_queue(store, job["queue"], now)
    refresh(store, id, now)
    return None


def prune_events(store: Store, before: float) -> int:
    """Removes old events, but the newest and those of jobs that are not finished, and the keys of old submits."""
    store.db.execute("DELETE FROM once WHERE at < ?", (before,))
    removed = store.db.execute(
        f"""DELETE FROM event WHERE at < ? AND seq < (SELECT max(seq) FROM event)
            AND (job IS NULL OR job NOT IN (SELECT id FROM job WHERE {UNFINISHED_SQL}))""",
        (before,),
    )
    return removed.rowcount


FORGOTTEN = 0
"""The context of a job whose environment is no longer kept; the number of none."""


def prune_contexts(store: Store, before: float) -> int:
    """Removes what submits captured of their surroundings, once the last job that had it ended before that; the bytes, too."""
    before_that = store.db.execute("PRAGMA secure_delete").fetchone()[0]
    store.db.execute("PRAGMA secure_delete = ON")
    try:
        removed = store.db.execute(f"DELETE FROM context WHERE {UNUSED_CONTEXT}", (before,)).rowcount
        if removed:  # a number may be given again, and must not be an old job's then
            store.db.execute("UPDATE job SET context = ? WHERE context NOT IN (SELECT id FROM context)", (FORGOTTEN,))
    finally:
        store.db.execute(f"PRAGMA secure_delete = {before_that}")
    return removed


PRUNED = {"events": prune_events, "contexts": prune_contexts}

COPIED = ", ".join(("batch", "context", "shape", "queue", "place", "sort", "gpus_min", "gpus_max",
                    *(column for column in jobrow.OWN if column != "retry_of")))  # fmt: skip


def retry(store: Store, ids: Sequence[int], *, at: float, now: float) -> tuple[dict[int, int], Declined]:
    """Finished jobs are copied as new ones, since final states are final; a copy comes after the newest of what it came after."""
    ids = list(dict.fromkeys(ids))
    together = frozenset(ids)
    refused = [(id, why) for id in ids if (why := _no_retry(store, id, together)) is not None]
    wrong = {id for id, _ in refused}
    new = {id: store.next_job + k for k, id in enumerate(id for id in ids if id not in wrong)}
    store.next_job += len(new)
    for old, copy in new.items():
        store.db.execute(
            f"""INSERT INTO job (id, retry_of, submitted_at, ready_at, {COPIED})
                SELECT ?, id, ?, ?, {COPIED} FROM job WHERE id = ?""",
            (copy, at, now, old),
        )
        store.event(at, "retried", job=old, batch=_batch_of(store, old), as_job=copy)
    for old, copy in new.items():
        needs = [(new.get(_newest(store, n), _newest(store, n)), any_end) for n, any_end in _deps(store, old)]
        live = [(copy, n, any_end) for n, any_end in needs if state_of(store, n) not in FINAL]
        store.db.executemany("INSERT INTO dep (job, needs, any) VALUES (?, ?, ?)", live)
        store.db.execute("UPDATE job SET blocked = ? WHERE id = ?", (len(live), copy))
        reshape(store, copy)
        refresh(store, copy, now)
    return new, refused


def _no_retry(store: Store, id: int, together: frozenset[int]) -> Reason | None:
    """Why a job is not to be tried again; None if it is."""
    state = state_of(store, id)
    if state not in FINAL:
        return Reason("not_ended", {"job": id, "state": state})
    if store.db.execute("SELECT context FROM job WHERE id = ?", (id,)).fetchone()[0] == FORGOTTEN:
        return Reason("environment_removed", {"job": id})
    if (why := allocations.no_retry(store, id)) is not None:
        return why
    newest = _newest(store, id)
    if newest != id:
        return Reason("tried_already", {"job": id, "new": newest})
    for needed, any_end in _deps(store, id):
        last = _newest(store, needed)
        how = state_of(store, last)
        if how in FINAL and how != SUCCEEDED and not any_end and last not in together:
            return Reason("needs_another", {"job": id, "other": last, "state": how})
    return None


def _deps(store: Store, id: int) -> list[tuple[int, int]]:
    return store.db.execute("SELECT needs, any FROM dep WHERE job = ?", (id,)).fetchall()


def _newest(store: Store, id: int) -> int:
    """The last of the copies that were made of a job, or itself."""
    row = store.db.execute("SELECT max(id) FROM job WHERE retry_of = ?", (id,)).fetchone()
    return id if row[0] is None else _newest(store, row[0])


def _order_of(store: Store, id: int) -> str:
    policy = store.db.execute("SELECT policy FROM batch WHERE id = ?", (_batch_of(store, id),)).fetchone()[0]
    return str(json.loads(policy).get("order", "file"))


def _batch_of(store: Store, id: int) -> int:
    return int(store.db.execute("SELECT batch FROM job WHERE id = ?", (id,)).fetchone()[0])
