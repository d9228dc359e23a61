"""Runs that get other cards while they live, in the store: orders, what became of them, and cards that come and go.

The table of orders is called `leg` on the disk, and so is their number in it; `run.leg` counts those that came into effect.
Every function works inside the caller's transaction. A card that is given back leaves the leases, and is remembered as one that
was held from then to then.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jostle.core.model import Lease, LegEnd, RunId
from jostle.store.store import Store


def ordered(
    store: Store, run: RunId, batch: int, number: int, *, cards: Sequence[str], before: Sequence[str], more: Sequence[Lease],
    indices: Sequence[int], reason: Mapping[str, Any], at: float, now: float, quiet: bool = False,
) -> None:  # fmt: skip
    """The order is recorded before anybody is told; what it brings is the run's from now on. `quiet`: such orders were in vain
    before, so there is no event."""
    store.db.execute(
        "INSERT INTO leg (job, n, leg, uuids, before, reason, clock_at, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*run, number, json.dumps(cards), json.dumps(before), json.dumps(reason), now, at),
    )
    store.db.executemany(
        "INSERT INTO lease (job, n, uuid, idx, mib, used_at_start, since) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(*run, lease.uuid, lease.index, lease.mib, lease.used_at_start_mib, at) for lease in more],
    )
    if not quiet:
        gpus = {"gpus": list(indices), "uuids": list(cards)}
        store.event(at, "resizing", batch=batch, job=run[0], run=run[1], **gpus, reason=reason)


def given_back(store: Store, run: RunId, uuids: Collection[str], at: float, *, held: bool = True) -> None:
    """Cards that are the run's no more; `held` False: they never were."""
    for uuid in uuids:
        if held:
            store.db.execute(
                """INSERT INTO lease_past (job, n, uuid, idx, began_at, ended_at)
                   SELECT l.job, l.n, l.uuid, l.idx, coalesce(l.since, r.started_at), ? FROM lease l JOIN run r USING (job, n)
                   WHERE l.job = ? AND l.n = ? AND l.uuid = ?""",
                (at, *run, uuid),
            )
        store.db.execute("DELETE FROM lease WHERE job = ? AND n = ? AND uuid = ?", (*run, uuid))


def settled(
    store: Store, run: RunId, batch: int, number: int, *, kind: str, outcome: str, indices: Sequence[int], uuids: Sequence[str],
    ended: Sequence[LegEnd], at: float, quiet: bool = False,
) -> None:  # fmt: skip
    """An order has come to its end: the run has the cards that it asked for, or will not get them. `quiet`: as it was ordered."""
    before = max((end for end in ended if end.order < number), default=None) if outcome == "done" else None
    store.db.execute(
        "UPDATE leg SET done_at = ?, outcome = ?, exit_code = ?, signal = ? WHERE job = ? AND n = ? AND leg = ?",
        (at, outcome, before and before.code, before and before.signal, *run, number),
    )
    if quiet and outcome != "done":
        return
    why: dict[str, Any] = {} if outcome == "done" else {"why": outcome}
    if quiet:  # nothing was told of the order
        its = "SELECT reason FROM leg WHERE job = ? AND n = ? AND leg = ?"
        why["reason"] = json.loads(store.db.execute(its, (*run, number)).fetchone()[0])
    store.event(at, kind, batch=batch, job=run[0], run=run[1], gpus=list(indices), uuids=list(uuids), **why)


def counted(store: Store, run: RunId, *, one_more: bool) -> int:
    """How many lists of cards were in effect; `one_more`: so is that of an order which has not come to its end."""
    its = "SELECT count(*) FROM leg WHERE job = ? AND n = ? AND outcome = 'done'"
    number = 1 + int(store.db.execute(its, run).fetchone()[0]) + one_more
    store.db.execute("UPDATE run SET leg = ? WHERE job = ? AND n = ? AND leg <> ?", (number, *run, number))
    return number


def newest(store: Store, run: RunId) -> list[dict[str, Any]]:
    """The orders to a run, the newest first."""
    cursor = store.db.execute(
        "SELECT leg, uuids, before, reason, clock_at, done_at, outcome FROM leg WHERE job = ? AND n = ? ORDER BY leg DESC", run
    )
    names = [d[0] for d in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return [{**row, **{key: json.loads(row[key]) for key in ("uuids", "before", "reason")}} for row in rows]


def yielding(store: Store, run: RunId, batch: int, reason: Mapping[str, Any], at: float) -> None:
    """It is told to give way: recorded first, so that its end is not taken for a failure."""
    store.db.execute("UPDATE run SET yielding = ? WHERE job = ? AND n = ?", (json.dumps(reason), *run))
    store.event(at, "yielding", batch=batch, job=run[0], run=run[1], reason=reason)


def paused(store: Store, run: RunId, batch: int, times: int, reason: Mapping[str, Any], at: float, now: float) -> None:
    """It is to stand still: recorded before anybody is told, so that the next engine knows to let it go on."""
    _record_pause(store, run, {"now": True, "since": now, "times": times, "reason": reason})
    store.event(at, "paused", batch=batch, job=run[0], run=run[1], times=times, reason=reason)


def continued(
    store: Store, run: RunId, batch: int, times: int, paused_s: float, reason: Mapping[str, Any], at: float, now: float
) -> None:
    """It goes on, having stood still for so long."""
    _record_pause(store, run, {"now": False, "since": now, "times": times, "reason": reason})
    store.db.execute("UPDATE run SET paused_s = paused_s + ? WHERE job = ? AND n = ?", (paused_s, *run))
    store.event(at, "continued", batch=batch, job=run[0], run=run[1], paused_s=round(paused_s, 1), reason=reason)


def _record_pause(store: Store, run: RunId, state: Mapping[str, Any]) -> None:
    store.db.execute("UPDATE run SET paused = ? WHERE job = ? AND n = ?", (json.dumps(state), *run))
