"""Jobs in the store: submit, readiness, and what people want of them. Every function works inside the caller's transaction.

Readiness is a column kept at transitions, so that a decision reads the heads of queues and never the whole list:
ready = queued, wanted, nothing it comes after is unfinished, and first of its queue.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jostle.core.model import Job, Lane
from jostle.core.states import FINAL, SUCCEEDED
from jostle.errors import Invalid, NotFound
from jostle.store.store import Store

UNFINISHED = "state IN ('queued', 'starting', 'running', 'stopping')"

Row = Mapping[str, Any]

dumped = json.JSONEncoder(check_circular=False).encode

INSERT = """INSERT INTO job (id, batch, context, shape, name, queue, place, sort, priority, gpus_min, gpus_max, memory_mib, share,
    commands, env, workdir, log, time_limit, retry, leftovers, tags, retry_of, begin_at, submitted_at,
    intent, ready, blocked, not_before, ready_at)
    VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"""


def submit(store: Store, request: Row, *, at: float, now: float, rank: Callable[[], float]) -> dict[str, Any]:
    """Records a batch of checked jobs; answers with its ids. A known `once` key answers as it did the first time."""
    head = request["batch"]
    once = request.get("once")
    if once is not None:
        done = store.db.execute("SELECT batch, first, count FROM once WHERE key = ?", (once,)).fetchone()
        if done:
            return _answer(*done)
    batch = _batch(store, head, at)
    context = _context(store, request["context"])
    first = store.next_job
    random_order = (head.get("policy") or {}).get("order") == "random"
    rows = []
    deps: list[tuple[int, int, int]] = []
    queues = set()
    for k, job in enumerate(request["jobs"]):
        id = first + k
        blocked = _needs(store, id, first, job.get("needs") or (), deps)
        begin = job.get("begin")
        not_before = now + max(0.0, begin - at) if begin is not None else 0.0
        queue = job.get("queue")
        intent = job.get("intent", "run")
        low, high = job["gpus"]
        if queue is not None:
            queues.add(queue)
        ready = int(queue is None and not blocked and intent == "run") * (2 if not_before else 1)
        shape = _shape(store, (batch, job["priority"], low, high, job["memory_mib"], bool(job["share"]), job["time_limit"]))
        place = job.get("place", id)
        rows.append(
            (id, batch, context, shape, job["name"], queue, place, rank() if random_order else place, job["priority"],
             low, high, job["memory_mib"], int(job["share"]), dumped(job["commands"]), dumped(job["env"]),
             job["workdir"], job["log"], job["time_limit"], dumped(job["retry"]) if job["retry"] else None,
             job["leftovers"], dumped(job["tags"]), job.get("retry_of"), begin, at,
             intent, ready, blocked, not_before, max(now, not_before))
        )  # fmt: skip
    store.db.executemany(INSERT, rows)
    store.db.executemany("INSERT INTO dep (job, needs, any) VALUES (?, ?, ?)", deps)
    store.next_job = first + len(rows)
    store.event(at, "submitted", batch=batch, first=first, count=len(rows), name=head.get("name"))
    for needed in sorted({d[1] for d in deps if d[1] < first}):
        state = store.db.execute("SELECT state FROM job WHERE id = ?", (needed,)).fetchone()[0]
        if state in FINAL:
            settle_dependants(store, needed, state, at=at, now=now, since=first)
    for queue in queues:
        refresh_queue(store, queue, now)
    if once is not None:
        store.db.execute("INSERT INTO once VALUES (?, ?, ?, ?, ?)", (once, at, batch, first, len(rows)))
    return _answer(batch, first, len(rows))


def _answer(batch: int, first: int, count: int) -> dict[str, Any]:
    return {"batch": batch, "ids": [first, first + count - 1], "count": count}


def _batch(store: Store, head: Row, at: float) -> int:
    policy = json.dumps(head.get("policy") or {}, sort_keys=True)
    if head.get("join"):  # `add` puts its jobs into one standing batch
        row = store.db.execute("SELECT id FROM batch WHERE key = ? AND policy = ?", (head["key"], policy)).fetchone()
        if row:
            return int(row[0])
    id = store.next_batch
    store.next_batch += 1
    store.db.execute(
        "INSERT INTO batch (id, key, name, owner, policy, submitted_at) VALUES (?, ?, ?, ?, ?, ?)",
        (id, head.get("key"), head.get("name"), json.dumps(head.get("owner")), policy, at),
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
    known = (*parts, *avoid)
    if known not in store.shapes:
        key = dumped([*parts, list(avoid)])
        row = store.db.execute("SELECT id FROM shape WHERE key = ?", (key,)).fetchone()
        id = row[0] if row else store.db.execute("INSERT INTO shape (key) VALUES (?)", (key,)).lastrowid
        store.shapes[known] = int(id or 0)
    return store.shapes[known]


def _needs(store: Store, id: int, first: int, needs: Iterable[Sequence[Any]], deps: list[tuple[int, int, int]]) -> int:
    seen = {}
    for kind, n, any_end in needs:
        needed = first + n if kind == "index" else n
        if kind == "job" and store.db.execute("SELECT 1 FROM job WHERE id = ?", (needed,)).fetchone() is None:
            raise Invalid(f"there is no job {needed} to come after")
        seen[needed] = int(any_end)
    deps += [(id, needed, any_end) for needed, any_end in seen.items()]
    return len(seen)


# --- readiness


def refresh(store: Store, id: int, now: float) -> None:
    """Brings the readiness of one job (and of its queue) up to date."""
    queue = store.db.execute("SELECT queue FROM job WHERE id = ?", (id,)).fetchone()[0]
    if queue is None:
        _mark_ready(store, id, now)
    else:
        refresh_queue(store, queue, now)


def refresh_queue(store: Store, queue: str, now: float) -> None:
    head = (  # whoever runs is the head, wherever others were moved
        store.db.execute(
            "SELECT id FROM job INDEXED BY job_open WHERE state IN ('starting', 'running', 'stopping') AND queue = ? LIMIT 1",
            (queue,),
        ).fetchone()
        or store.db.execute(
            f"SELECT id FROM job INDEXED BY job_queue WHERE queue = ? AND {UNFINISHED} ORDER BY place LIMIT 1", (queue,)
        ).fetchone()
    )
    if head is None:
        return
    store.db.execute("UPDATE job SET ready = 0 WHERE queue = ? AND ready > 0 AND id <> ?", (queue, head[0]))
    _mark_ready(store, head[0], now)


def _mark_ready(store: Store, id: int, now: float) -> None:
    store.db.execute(
        """UPDATE job SET ready = CASE WHEN NOT (state = 'queued' AND intent = 'run' AND blocked = 0) THEN 0
                                       WHEN not_before > ?1 THEN 2 ELSE 1 END,
                          ready_at = CASE WHEN ready = 0 THEN max(?1, not_before) ELSE ready_at END
           WHERE id = ?2""",
        (now, id),
    )


def promote(store: Store, now: float) -> None:
    """Those whose time has come are ready."""
    store.db.execute("UPDATE job SET ready = 1 WHERE ready = 2 AND not_before <= ?", (now,))


def next_wake(store: Store) -> float | None:
    row = store.db.execute("SELECT min(not_before) FROM job WHERE ready = 2").fetchone()
    return None if row[0] is None else float(row[0])


def settle_dependants(store: Store, id: int, state: str, *, at: float, now: float, since: int = 0) -> None:
    """A job has ended: those that come after it are a step nearer, or will never run. A list, not calls: chains may be long."""
    ended = [(id, state)]
    while ended:
        _settle(store, *ended.pop(), ended, at=at, now=now, since=since)
        since = 0


def _settle(store: Store, id: int, state: str, ended: list[tuple[int, str]], *, at: float, now: float, since: int) -> None:
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
    _tell_end(store, id, batch, queue, state, at=at, now=now, reason=reason)


def after_end(
    store: Store,
    id: int,
    batch: int,
    queue: str | None,
    state: str,
    *,
    at: float,
    now: float,
    **data: Any,
) -> None:
    """What every end brings about: the event, the next of the queue, the end of the batch, the dependants."""
    _tell_end(store, id, batch, queue, state, at=at, now=now, **data)
    settle_dependants(store, id, state, at=at, now=now)


def _tell_end(
    store: Store,
    id: int,
    batch: int,
    queue: str | None,
    state: str,
    *,
    at: float,
    now: float,
    run: int | None = None,
    **data: Any,
) -> None:
    store.event(at, state, batch=batch, job=id, run=run, **{k: v for k, v in data.items() if v is not None})
    if queue is not None:
        refresh_queue(store, queue, now)
    more = f"SELECT 1 FROM job INDEXED BY job_unfinished WHERE batch = ? AND {UNFINISHED} LIMIT 1"
    if store.db.execute(more, (batch,)).fetchone() is None:
        store.event(at, "batch_ended", batch=batch)


# --- what decide() sees

SHAPES = """WITH RECURSIVE s(x) AS (
    SELECT min(shape) FROM job WHERE ready = 1
    UNION ALL SELECT (SELECT min(shape) FROM job WHERE ready = 1 AND shape > s.x) FROM s WHERE s.x IS NOT NULL)
    SELECT s.x, shape.key FROM s JOIN shape ON shape.id = s.x"""


def lanes(store: Store, depth: int) -> tuple[Lane, ...]:
    """The first ready jobs of each shape; costs the number of shapes, not of jobs."""
    found = []
    for shape, key in store.db.execute(SHAPES).fetchall():
        batch, priority, low, high, memory, share, limit, avoid = json.loads(key)
        rows = store.db.execute(
            "SELECT id, queue, place, sort, ready_at FROM job WHERE ready = 1 AND shape = ? ORDER BY sort LIMIT ?", (shape, depth)
        ).fetchall()
        jobs = tuple(
            Job(id=id, batch=batch, shape=shape, queue=queue, priority=priority, rank=sort, place=place, gpus_min=low,
                gpus_max=high, memory_mib=memory, share=share, time_limit=limit, ready_at=ready_at, avoid=frozenset(avoid))
            for id, queue, place, sort, ready_at in rows
        )  # fmt: skip
        found.append(Lane(jobs=jobs, count=len(jobs)))
    return tuple(found)


def policies(store: Store, batches: Iterable[int]) -> dict[int, dict[str, Any]]:
    policy_of = "SELECT policy FROM batch WHERE id = ?"
    return {id: json.loads(store.db.execute(policy_of, (id,)).fetchone()[0]) for id in batches}


# --- what people want


def unfinished(store: Store, batch: int | None = None) -> list[int]:
    where, args = ("batch = ? AND ", (batch,)) if batch is not None else ("", ())
    sql = f"SELECT id FROM job INDEXED BY job_unfinished WHERE {where}{UNFINISHED} ORDER BY id"
    return [r[0] for r in store.db.execute(sql, args)]


def state_of(store: Store, id: int) -> str:
    row = store.db.execute("SELECT state FROM job WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NotFound(f"there is no job {id}")
    return str(row[0])


def hold(store: Store, id: int, on: bool, *, at: float, now: float) -> str | None:
    """None, or why not."""
    state = state_of(store, id)
    if state != "queued":
        return f"job {id} is {state}: only a queued job can be {'held' if on else 'released'}"
    store.db.execute("UPDATE job SET intent = ? WHERE id = ?", ("hold" if on else "run", id))
    store.event(at, "held" if on else "unheld", job=id, batch=_batch_of(store, id))
    refresh(store, id, now)
    return None


def cancel(store: Store, id: int, kill: bool, *, at: float, now: float) -> str | None:
    state = state_of(store, id)
    if state in FINAL:
        return f"job {id} is {state} already"
    intent = "kill" if kill else "cancel"
    store.db.execute("UPDATE job SET intent = ? WHERE id = ? AND intent <> 'kill'", (intent, id))
    if state == "queued":
        end_queued(store, id, "cancelled", {"code": "cancelled", "params": {}}, at=at, now=now)
    else:
        store.event(at, "cancel_wanted", job=id, batch=_batch_of(store, id))
    return None


def _batch_of(store: Store, id: int) -> int:
    return int(store.db.execute("SELECT batch FROM job WHERE id = ?", (id,)).fetchone()[0])


def move(store: Store, id: int, to: Any, *, at: float, now: float) -> str | None:
    """To the first or last place of its queue (without one: of all that wait), or beside another job."""
    state = state_of(store, id)
    if state != "queued":
        return f"job {id} is {state}: only a queued job can be moved"
    queue = store.db.execute("SELECT queue FROM job WHERE id = ?", (id,)).fetchone()[0]
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
        at_index = next((k for k, (job, _) in enumerate(places) if job == other), None)
        if at_index is None:
            return f"job {other} does not wait in the same queue as job {id}"
        k = at_index if side == "before" else at_index + 1
        below = places[k - 1][1] if k > 0 else places[0][1] - 2
        above = places[k][1] if k < len(places) else places[-1][1] + 2
        place = (below + above) / 2
    store.db.execute("UPDATE job SET place = ?, sort = ? WHERE id = ?", (place, place, id))
    store.event(at, "moved", job=id, batch=_batch_of(store, id), to=to)
    refresh(store, id, now)
    return None


SETTABLE = ("name", "priority", "time_limit", "memory_mib", "gpus", "queue", "tags", "share")


def change(store: Store, id: int, values: Row, *, at: float, now: float) -> str | None:
    state = state_of(store, id)
    if state != "queued":
        return f"job {id} is {state}: only a queued job can be changed"
    old_queue, memory, share = store.db.execute("SELECT queue, memory_mib, share FROM job WHERE id = ?", (id,)).fetchone()
    if values.get("share", share) and values.get("memory_mib", memory) is None:
        return f"job {id} cannot share a card without a memory: set memory=… too, or share=false"
    for key, value in values.items():
        if key == "gpus":
            store.db.execute("UPDATE job SET gpus_min = ?, gpus_max = ? WHERE id = ?", (*value, id))
        else:
            stored = json.dumps(value) if key == "tags" else int(value) if key == "share" else value
            store.db.execute(f"UPDATE job SET {SETTABLE[SETTABLE.index(key)]} = ? WHERE id = ?", (stored, id))
    reshape(store, id)
    store.event(at, "changed", job=id, batch=_batch_of(store, id), **dict(values))
    if old_queue is not None:
        refresh_queue(store, old_queue, now)
    refresh(store, id, now)
    return None


def reshape(store: Store, id: int) -> None:
    """What decides where it fits has changed."""
    row = store.db.execute(
        "SELECT batch, priority, gpus_min, gpus_max, memory_mib, share, time_limit, avoid FROM job WHERE id = ?", (id,)
    ).fetchone()
    shape = _shape(store, (*row[:5], bool(row[5]), row[6]), json.loads(row[7]))
    store.db.execute("UPDATE job SET shape = ? WHERE id = ?", (shape, id))


def prune_events(store: Store, before: float) -> int:
    """Removes old events, except those of jobs that are not finished, and the keys of old submits."""
    store.db.execute("DELETE FROM once WHERE at < ?", (before,))
    gone = store.db.execute(
        f"DELETE FROM event WHERE at < ? AND (job IS NULL OR job NOT IN (SELECT id FROM job WHERE {UNFINISHED}))", (before,)
    )
    return gone.rowcount


COPIED = """batch, context, shape, name, queue, place, sort, priority, gpus_min, gpus_max, memory_mib, share,
    commands, env, workdir, log, time_limit, retry, leftovers, tags"""


def retry(store: Store, ids: Sequence[int], *, at: float, now: float) -> tuple[dict[int, int], list[tuple[int, str]]]:
    """Finished jobs are copied as new ones, since final states are final; a copy comes after the newest of what it came after."""
    ids = list(dict.fromkeys(ids))
    refused = [(id, why) for id in ids if (why := _no_retry(store, id, frozenset(ids))) is not None]
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


def _no_retry(store: Store, id: int, together: frozenset[int]) -> str | None:
    """Why a job is not to be tried again; None if it is."""
    state = state_of(store, id)
    if state not in FINAL:
        return f"job {id} is {state}: it has not ended"
    newest = _newest(store, id)
    if newest != id:
        return f"job {id} was tried again as job {newest} already"
    for needed, any_end in _deps(store, id):
        last = _newest(store, needed)
        how = state_of(store, last)
        if how in FINAL and how != SUCCEEDED and not any_end and last not in together:
            return f"job {id} comes after job {last}, which ended as {how}: try that again too, as in `jostle retry {last} {id}`"
    return None


def _deps(store: Store, id: int) -> list[tuple[int, int]]:
    return store.db.execute("SELECT needs, any FROM dep WHERE job = ?", (id,)).fetchall()


def _newest(store: Store, id: int) -> int:
    """The last of the copies that were made of a job, or itself."""
    row = store.db.execute("SELECT max(id) FROM job WHERE retry_of = ?", (id,)).fetchone()
    return id if row[0] is None else _newest(store, row[0])
