"""Jobs in the store: how they come in, and what a decision sees of them. Every function works inside the caller's transaction."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, repeat
from typing import Any

from jostle.core.order import sort
from jostle.core.reasons import done_before
from jostle.core.states import FINAL
from jostle.errors import Invalid, NotFound
from jostle.store import allocations, jobrow
from jostle.store.ends import Row, settle_dependants, tell_if_over
from jostle.store.readiness import refresh_queue
from jostle.store.reads import UNFINISHED_SQL
from jostle.store.store import Store

OURS = ("id", "batch", "context", "shape", "queue", "place", "sort", "gpus_min", "gpus_max", "begin_at", "submitted_at",
        "intent", "ready", "blocked", "not_before", "ready_at")  # fmt: skip
"""Columns whose values are worked out here."""


def submit(store: Store, request: Row, *, at: float, now: float, rank: Callable[[], float]) -> dict[str, Any]:
    """Records a batch of checked jobs; answers with its ids. A known `once` key answers as it did the first time."""
    head = request["batch"]
    once = request.get("once")
    if (earlier := taken(store, once)) is not None:
        return _answer(*earlier)
    batch = _batch(store, head, at)
    own, order = head.get("queues") == "own", (head.get("policy") or {}).get("order", "file")
    return insert(store, batch, request, own=own, order=order, rank=rank, name=head.get("name"), at=at, now=now)


def taken(store: Store, once: str | None) -> tuple[int, int, int] | None:
    """(batch, first, count) of a submit that was taken before under this key."""
    if once is None:
        return None
    row: tuple[int, int, int] | None = store.db.execute("SELECT batch, first, count FROM once WHERE key = ?", (once,)).fetchone()
    return row


def insert(
    store: Store, batch: int, request: Row, *, own: bool, order: str, rank: Callable[[], float],
    name: str | None = None, at: float, now: float,
) -> dict[str, Any]:  # fmt: skip
    """Jobs join a batch. `own`: its queues are not shared with other batches, and are called BATCH/QUEUE."""
    once = request.get("once")
    context = _context(store, request["context"])
    first = store.next_job
    rows = []
    deps: list[tuple[int, int, int]] = []
    queues = set()
    for job in request["jobs"]:
        if not job["commands"] or job.get("inside") is not None:
            allocations.admit(store, job, beside=request.get("beside", True))
    done_by = {first + k: job["done_by"] for k, job in enumerate(request["jobs"]) if job.get("done_by")}
    for id, job, shape in zip(count(first), request["jobs"], jobrow.shapes(request["jobs"]), strict=False):
        blocked = _needs(store, id, first, job["needs"], deps, done_by) if job.get("needs") else 0
        begin = job.get("begin")
        not_before = now + max(0.0, begin - at) if begin is not None else 0.0
        queue = job.get("queue")
        if own and queue is not None:
            queue = f"{batch}/{queue}"
        elif queue is not None and "/" in queue:
            _may_name(store, queue)
        intent = job.get("intent", "run")
        if queue is not None:
            queues.add(queue)
        ready = int(queue is None and not blocked and intent == "run" and id not in done_by) * (2 if not_before else 1)
        place = job.get("place", id)
        sorted_at = place if order == "file" else sort(order, queue, place, rank())
        rows.append(
            (id, batch, context, _shape(store, (batch, *shape)), queue, place, sorted_at, *job["gpus"], begin, at, intent, ready,
             blocked, not_before, max(now, not_before))
        )  # fmt: skip
    differing, same = jobrow.own(request["jobs"])
    columns = (*OURS, *differing, *same)
    values = (*"?" * (len(OURS) + len(differing)), *same.values())
    own_values = zip(*differing.values(), strict=True) if differing else repeat((), len(rows))
    store.db.executemany(
        f"INSERT INTO job ({', '.join(columns)}) VALUES ({', '.join(values)})",
        map(operator.add, rows, own_values),
    )
    store.db.executemany("INSERT INTO dep (job, needs, any) VALUES (?, ?, ?)", deps)
    store.next_job = first + len(rows)
    store.event(at, "submitted", batch=batch, first=first, count=len(rows), name=name)
    if done_by:
        _done_before(store, batch, done_by, at)
    for needed in sorted({d[1] for d in deps if d[1] < first}):
        state = store.db.execute("SELECT state FROM job WHERE id = ?", (needed,)).fetchone()[0]
        if state in FINAL:
            settle_dependants(store, needed, state, at=at, now=now, since=first)
    for queue in queues:
        refresh_queue(store, queue, now)
    if once is not None:
        store.db.execute("INSERT INTO once VALUES (?, ?, ?, ?, ?)", (once, at, batch, first, len(rows)))
    return _answer(batch, first, len(rows))


def _may_name(store: Store, queue: str) -> None:
    """Queue 7/1 is that of batch 7: a batch that is yet to come must find its queues empty."""
    number = queue.partition("/")[0]
    if number.isdecimal() and int(number) >= store.next_batch:
        raise Invalid(f"queue {queue} would be a queue of batch {number}, which does not exist: choose another name")


def _done_before(store: Store, batch: int, done_by: Mapping[int, Sequence[int]], at: float) -> None:
    """Jobs whose work was done by another (SPEC B7): they are skipped, and name the run that did it."""
    reasons = {id: done_before(by) for id, by in done_by.items()}
    store.db.executemany(
        "UPDATE job SET state = 'skipped', ready = 0, reason = ?, ended_at = ? WHERE id = ?",
        [(json.dumps(reason), at, id) for id, reason in reasons.items()],
    )
    store.db.executemany(
        "INSERT INTO event (at, kind, batch, job, data) VALUES (?, 'skipped', ?, ?, ?)",
        [(at, batch, id, json.dumps({"reason": reason})) for id, reason in reasons.items()],
    )
    tell_if_over(store, batch, at)


def _answer(batch: int, first: int, count: int) -> dict[str, Any]:
    return {"batch": batch, "ids": [first, first + count - 1], "count": count}


def _batch(store: Store, head: Row, at: float) -> int:
    policy = json.dumps(head.get("policy") or {}, sort_keys=True)
    if head.get("join"):  # `add` puts its jobs into one standing batch
        row = store.db.execute("SELECT id FROM batch WHERE key = ? AND policy = ?", (head["key"], policy)).fetchone()
        if row:
            return int(row[0])
    id, about = store.next_batch, json.dumps(head.get("about"), allow_nan=False)  # SQLite looks for files in it
    store.next_batch += 1
    store.db.execute(
        "INSERT INTO batch (id, key, name, owner, policy, submitted_at, about) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (id, head.get("key"), head.get("name"), json.dumps(head.get("owner")), policy, at, about),
    )
    return id


def _context(store: Store, context: Row) -> int:
    data = json.dumps(context, sort_keys=True)
    digest = hashlib.sha256(data.encode("utf-8", "surrogateescape")).hexdigest()
    row = store.db.execute("SELECT id FROM context WHERE digest = ?", (digest,)).fetchone()
    if row:
        return int(row[0])
    cursor = store.db.execute("INSERT INTO context (digest, data) VALUES (?, ?)", (digest, data))
    return int(cursor.lastrowid or 0)


def _shape(store: Store, parts: tuple[Any, ...], avoid: Sequence[str] = ()) -> int:
    shape = (*parts, *avoid)
    if shape not in store.shapes:
        key = jobrow.dumped([*parts, list(avoid)])
        row = store.db.execute("SELECT id FROM shape WHERE key = ?", (key,)).fetchone()
        id = row[0] if row else store.db.execute("INSERT INTO shape (key) VALUES (?)", (key,)).lastrowid
        store.shapes[shape] = int(id or 0)
    return store.shapes[shape]


def _needs(
    store: Store, id: int, first: int, needs: Iterable[Sequence[Any]], deps: list[tuple[int, int, int]],
    done_by: Mapping[int, Any],
) -> int:  # fmt: skip
    states = {}
    for kind, n, any_end in needs:
        needed = first + n if kind == "index" else n
        if needed in done_by:
            continue
        if kind == "job" and store.db.execute("SELECT 1 FROM job WHERE id = ?", (needed,)).fetchone() is None:
            raise NotFound(f"there is no job {needed} to come after")
        states[needed] = int(any_end)
    deps += [(id, needed, any_end) for needed, any_end in states.items()]
    return len(states)


def policies(store: Store, batches: Iterable[int]) -> dict[int, dict[str, Any]]:
    policy_of = "SELECT policy FROM batch WHERE id = ?"
    return {id: json.loads(store.db.execute(policy_of, (id,)).fetchone()[0]) for id in batches}


def unfinished(store: Store, batch: int | None = None) -> list[int]:
    where, args = ("batch = ? AND ", (batch,)) if batch is not None else ("", ())
    sql = f"SELECT id FROM job INDEXED BY job_unfinished WHERE {where}{UNFINISHED_SQL} ORDER BY id"
    return [r[0] for r in store.db.execute(sql, args)]


def reshape(store: Store, id: int) -> None:
    """What decides where it fits has changed."""
    asked = f"SELECT batch, avoid, {', '.join(jobrow.SHAPE)} FROM job WHERE id = ?"
    batch, avoid, *row = store.db.execute(asked, (id,)).fetchone()
    shape = _shape(store, (batch, *jobrow.shape_of_row(row)), sorted(json.loads(avoid)))
    store.db.execute("UPDATE job SET shape = ? WHERE id = ?", (shape, id))
