"""Runs in the store: begun, running, ended, queued again. Every function works inside the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.core.commandkey import command_key
from jostle.core.model import Exit, Lease, RunId
from jostle.store import allocations
from jostle.store.ends import close_queue, end_queued, settle_dependants, tell_end
from jostle.store.jobs import reshape
from jostle.store.readiness import refresh
from jostle.store.rows import texts
from jostle.store.store import Store

Row = Mapping[str, Any]

AVOIDED = 2
"""Cards that a job avoids, the last ones: each set of them is a shape of its own, and a decision looks at every shape."""

JOB_FOR_START = """SELECT j.id, j.batch, j.name, j.queue, j.attempt, j.retries, j.excused, j.commands, j.env, j.workdir, j.log,
    j.time_limit, j.retry, j.leftovers, j.context, j.inputs, j.gpus_min, j.gpus_max, j.memory_mib, j.targets,
    j.cpus, j.host_memory_mib, j.counters, j.nice, j.grace, j.inside, j.tied_to, j.idle_release,
    j.priority, j.resize, j.when_stranger, j.yielded, j.yielded_lately FROM job j WHERE j.id = ?"""


def job_to_start(store: Store, id: int) -> dict[str, Any]:
    cursor = store.db.execute(JOB_FOR_START, (id,))
    names = [d[0] for d in cursor.description]
    return dict(zip(names, cursor.fetchone(), strict=True))


def context(store: Store, id: int) -> dict[str, Any]:
    """What the submit captured: environment, umask, limits."""
    data: dict[str, Any] = json.loads(store.db.execute("SELECT data FROM context WHERE id = ?", (id,)).fetchone()[0])
    return data


def begin(
    store: Store,
    run: RunId,
    *,
    batch: int,
    uni_id: str,
    backend: str = "local",
    node: str = "",
    handle: str = "",
    memory_mib: int | None,
    share: bool,
    log: str,
    leases: Sequence[Lease],
    at: float,
    now: float,
) -> None:
    """The run is recorded before anything is started."""
    job, n = run
    store.db.execute(
        "UPDATE job SET state = 'starting', ready = 0, attempt = ?, started_at = ?, reason = NULL WHERE id = ?", (n, at, job)
    )
    store.db.execute(
        """INSERT INTO run (job, n, uni_id, state, backend, node, handle, memory_mib, share, log, clock_at, started_at)
           VALUES (?, ?, ?, 'starting', ?, ?, ?, ?, ?, ?, ?, ?)""",
        (job, n, uni_id, backend, node, handle, memory_mib, int(share), log, now, at),
    )
    store.db.executemany(
        "INSERT INTO lease (job, n, uuid, idx, mib, used_at_start) VALUES (?, ?, ?, ?, ?, ?)",
        [(job, n, lease.uuid, lease.index, lease.mib, lease.used_at_start_mib) for lease in leases],
    )
    uuids = [lease.uuid for lease in leases]
    store.event(at, "starting", batch=batch, job=job, run=n, gpus=[lease.index for lease in leases], uuids=uuids)


def handle(store: Store, run: RunId, handle: str) -> None:
    """Its backend knows it by another handle now."""
    store.db.execute("UPDATE run SET handle = ? WHERE job = ? AND n = ?", (handle, *run))


def running(store: Store, run: RunId, batch: int, at: float) -> None:
    job, n = run
    store.db.execute("UPDATE run SET state = 'running' WHERE job = ? AND n = ? AND state = 'starting'", (job, n))
    store.db.execute("UPDATE job SET state = 'running' WHERE id = ? AND state = 'starting'", (job,))
    store.event(at, "running", batch=batch, job=job, run=n)


def background(store: Store, run: RunId, batch: int, pids: Sequence[int], at: float) -> None:
    """Its commands have ended, and it waits for what they left running; an engine before this one may have recorded it."""
    reason = {"code": "background", "params": {"pids": list(pids)}}
    where = "WHERE id = ? AND state IN ('starting', 'running') AND reason IS NULL"
    if store.db.execute(f"UPDATE job SET reason = ? {where}", (json.dumps(reason), run[0])).rowcount:
        store.event(at, "background", batch=batch, job=run[0], run=run[1], pids=list(pids), reason=reason)


def stopping(store: Store, run: RunId, batch: int, at: float) -> None:
    job, n = run
    store.db.execute("UPDATE run SET state = 'stopping' WHERE job = ? AND n = ? AND state <> 'ended'", (job, n))
    store.db.execute("UPDATE job SET state = 'stopping' WHERE id = ? AND state IN ('starting', 'running')", (job,))
    store.event(at, "stopping", batch=batch, job=job, run=n)


def _end(store: Store, run: RunId, outcome: str, exit: Exit, error_type: str | None, peak_mib: int, at: float) -> None:
    store.db.execute(
        """UPDATE run SET state = 'ended', outcome = ?, exit_code = ?, signal = ?, error_type = ?, ended_at = ?, peak_mib = ?,
           rss_mib = ?, leftovers = ?, inputs = ?, leg = max(leg, ?) WHERE job = ? AND n = ?""",
        (
            outcome,
            exit.code,
            exit.signal,
            error_type,
            exit.ended_at or at,
            peak_mib or None,
            exit.rss_mib,
            json.dumps(exit.leftovers) if exit.leftovers else None,
            exit.inputs or None,
            len(exit.legs) + 1,  # those that nobody saw begin, too
            *run,
        ),
    )


def finish(
    store: Store,
    run: RunId,
    *,
    batch: int,
    state: str,
    exit: Exit,
    error_type: str | None,
    reason: Row | None,
    closes_queue: bool = False,
    peak_mib: int,
    at: float,
    now: float,
) -> str:
    """The run has ended, and its job with it; its outcome."""
    outcome = "lost" if exit.lost else state
    _end(store, run, outcome, exit, error_type, peak_mib, at)
    store.db.execute(
        """UPDATE job SET state = ?, exit_code = ?, error_type = ?, reason = ?, ended_at = ?, ready = 0 WHERE id = ?""",
        (state, exit.code, error_type, json.dumps(reason) if reason else None, exit.ended_at or at, run[0]),
    )
    queue = store.db.execute("SELECT queue FROM job WHERE id = ?", (run[0],)).fetchone()[0]  # it may be another than at the start
    ran = None if exit.ran_for is None else round(exit.ran_for, 3)
    tell_end(
        store, run[0], batch, queue, state, at=at, now=now, run=run[1], exit_code=exit.code, error_type=error_type, reason=reason,
        ran_s=ran,
    )  # fmt: skip
    settle_dependants(store, run[0], state, at=at, now=now)
    if closes_queue:
        close_queue(store, run[0], at=at, now=now)
    return outcome


def requeue(
    store: Store,
    run: RunId,
    *,
    outcome: str,
    exit: Exit,
    counts: bool,
    excused: bool,
    yielded: bool = False,
    not_before: float,
    error_type: str | None,
    memory_mib: int | None,
    avoid: Sequence[str],
    reason: Row | None,
    peak_mib: int,
    at: float,
    now: float,
) -> None:
    """The run has ended or never began; its job waits again, at the same place."""
    job, n = run
    _end(store, run, outcome, exit, error_type, peak_mib, at)
    row = store.db.execute("SELECT batch, avoid, inside FROM job WHERE id = ?", (job,)).fetchone()
    avoided = json.loads(row[1])
    avoided = [*(uuid for uuid in avoided if uuid not in avoid), *avoid][-max(AVOIDED, len(avoid)) :]
    store.db.execute(
        """UPDATE job SET state = 'queued', not_before = ?, retries = retries + ?, excused = excused + ?, yielded = yielded + ?,
           yielded_lately = coalesce(?, yielded_lately), exit_code = ?, error_type = ?, reason = ?, memory_mib = ?, avoid = ?
           WHERE id = ?""",
        (
            not_before,
            int(counts),
            int(excused),
            int(yielded),
            reason["params"]["times"] if yielded and reason else None,
            exit.code,
            error_type,
            json.dumps(reason) if reason else None,
            memory_mib,
            json.dumps(avoided),
            job,
        ),
    )
    reshape(store, job)
    store.event(
        at, "requeued", batch=row[0], job=job, run=n, outcome=outcome, error_type=error_type, exit_code=exit.code, reason=reason
    )
    refresh(store, job, now)
    if row[2] is not None and allocations.ended(store, row[2]):
        end_queued(store, job, "skipped", {"code": "allocation_over", "params": {"job": row[2]}}, at=at, now=now)


def profile(store: Store, run: RunId, gpu_name: str, profile: Row) -> None:
    """How it used its cards, and what it was; known when it has ended."""
    (text,) = store.db.execute("SELECT commands FROM job WHERE id = ?", (run[0],)).fetchone()
    commands = texts(json.loads(text))
    store.db.execute(
        "UPDATE run SET command_key = ?, gpu_name = ?, profile = ? WHERE job = ? AND n = ?",
        (command_key(commands) if commands else None, gpu_name, json.dumps(profile), *run),
    )


TOLD_IDLE = """SELECT kind, at, data FROM event WHERE job = ? AND run = ? AND kind IN ('idle', 'busy_again')
    ORDER BY seq DESC LIMIT 1"""


def told_idle(store: Store, run: RunId) -> tuple[float, list[str], float] | None:
    """When it was told that its cards stand idle, which, and how long they had by then; None: it was not, or they are busy."""
    row = store.db.execute(TOLD_IDLE, run).fetchone()
    if row is None or row[0] != "idle":
        return None
    data = json.loads(row[2])
    return row[1], data["uuids"], data["idle_s"]


OPEN = """SELECT r.job, r.n, r.uni_id, r.state, r.backend, r.node, r.handle, r.memory_mib, r.share, r.clock_at,
    j.batch, j.intent, j.time_limit, j.retries, j.excused, j.retry, j.targets, j.cpus, j.host_memory_mib, j.counters,
    j.grace, j.commands, j.inside, j.idle_release,
    (SELECT a.ended_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM run WHERE job = a.id AND n = a.attempt AND outcome = 'lost')
     FROM job a WHERE a.id = j.inside) AS evicted,
    r.leg, r.yielding, r.paused, r.paused_s,
    j.gpus_min, j.gpus_max, j.priority, j.resize, j.when_stranger, j.yielded, j.yielded_lately
    FROM run r JOIN job j ON j.id = r.job WHERE r.ended_at IS NULL"""


def last_start(store: Store) -> float:
    """On the engine's clock; 0 if nothing ever started."""
    return float(store.db.execute("SELECT coalesce(max(clock_at), 0) FROM run").fetchone()[0])


TRIED = """SELECT l.uuid, r.ended_at - r.started_at, coalesce(r.error_type, ''), r.ended_at, j.avoid
    FROM run r JOIN lease l USING (job, n) JOIN job j ON j.id = r.job
    WHERE r.job = ? AND r.outcome = 'failed' GROUP BY r.n HAVING count(*) = 1 ORDER BY r.n DESC LIMIT 8"""

WELL = """SELECT EXISTS (SELECT 1 FROM job j CROSS JOIN run r ON r.job = j.id CROSS JOIN lease l USING (job, n)
    WHERE j.state = 'succeeded' AND j.ended_at > ? AND r.outcome = 'succeeded' AND l.uuid = ?)"""
"""In this very order: of all jobs few have ended since."""


def tried(store: Store, job: int) -> list[tuple[str, float, str, float]]:
    """The last failed runs of a job on one card that it avoids, and on which no run has gone well since: the card, how long, what
    kind of failure, and when it ended."""
    cards = [row[:4] for row in store.db.execute(TRIED, (job,)).fetchall() if row[0] in json.loads(row[4])]
    return [row for row in cards if not store.db.execute(WELL, (row[3], row[0])).fetchone()[0]]


def open_runs(store: Store) -> list[dict[str, Any]]:
    """Every run that may be alive, with its leases."""
    cursor = store.db.execute(OPEN)
    names = [d[0] for d in cursor.description]
    rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    for row in rows:
        held = "SELECT uuid, idx, mib, used_at_start FROM lease WHERE job = ? AND n = ? ORDER BY idx"
        row["leases"] = [
            Lease(uuid=uuid, index=index, mib=mib, used_at_start_mib=used)
            for uuid, index, mib, used in store.db.execute(held, (row["job"], row["n"]))
        ]
    return rows
