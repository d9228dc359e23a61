"""A batch that is changed while it runs: another owner, other rules, other jobs. Works inside the caller's transaction.

Who owns a batch is the client that follows it. Rules replace all that the batch said before. Jobs that wait can be dropped, new
ones join, and all can be given other places and other queues of the batch; what runs or has ended stays as it is otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jostle.core.order import sort
from jostle.core.reasons import Reason, kept
from jostle.errors import NotFound
from jostle.store import jobs
from jostle.store.ends import Row, end_queued
from jostle.store.readiness import refresh_queue
from jostle.store.store import Store


def amend(store: Store, request: Row, *, at: float, now: float, rank: Callable[[], float]) -> dict[str, Any]:
    """The ids of the new jobs (first and last), and which jobs could not be dropped."""
    batch = request["batch"]
    row = store.db.execute("SELECT policy FROM batch WHERE id = ?", (batch,)).fetchone()
    if row is None:
        raise NotFound(f"there is no batch {batch}")
    policy = json.loads(row[0])
    if request.get("owner") is not None:
        store.db.execute("UPDATE batch SET owner = ? WHERE id = ?", (json.dumps(request["owner"]), batch))
    if request.get("policy") is not None:
        policy = request["policy"]
        store.db.execute("UPDATE batch SET policy = ? WHERE id = ?", (json.dumps(policy, sort_keys=True), batch))
        store.event(at, "rules_changed", batch=batch)
    order = policy.get("order", "file")
    refused = _drop(store, batch, request.get("drop") or (), at=at, now=now)
    answer: dict[str, Any] = {"ids": None, "refused": refused}
    if (earlier := jobs.taken(store, request.get("once"))) is not None:
        answer["ids"] = [earlier[1], earlier[1] + earlier[2] - 1]
    elif request.get("jobs"):
        own = request.get("queues") == "own"
        answer["ids"] = jobs.insert(store, batch, request, own=own, order=order, rank=rank, at=at, now=now)["ids"]
    if request.get("into"):
        _gather(store, batch, request["into"], now=now)
    if request.get("order"):
        first = answer["ids"][0] if answer["ids"] else 0
        order_of_ids = [first + n if kind == "index" else n for kind, n in request["order"]]
        _arrange(store, batch, order_of_ids, order=order, now=now)
    return answer


def _drop(store: Store, batch: int, ids: Iterable[int], *, at: float, now: float) -> list[tuple[int, dict[str, Any]]]:
    refused = []
    for id in sorted(ids, reverse=True):
        row = store.db.execute("SELECT batch, state FROM job WHERE id = ?", (id,)).fetchone()
        if row is None or row[0] != batch:
            refused.append((id, kept(Reason("of_another_batch", {"job": id, "batch": batch}))))
        elif row[1] != "queued":
            refused.append((id, kept(Reason("cannot_drop", {"job": id, "state": row[1]}))))
        else:
            end_queued(store, id, "cancelled", {"code": "dropped", "params": {}}, at=at, now=now)
    return refused


def _gather(store: Store, batch: int, into: Iterable[tuple[int, str]], *, now: float) -> None:
    """Jobs that are in another of the batch's own queues from now on, as they are: one that has begun heads it."""
    for id, queue in into:
        row = store.db.execute("SELECT queue FROM job WHERE id = ? AND batch = ?", (id, batch)).fetchone()
        if row is not None:
            store.db.execute("UPDATE job SET queue = ? WHERE id = ?", (f"{batch}/{queue}", id))
            if row[0] is not None:
                refresh_queue(store, row[0], now)
            refresh_queue(store, f"{batch}/{queue}", now)


def _arrange(store: Store, batch: int, ids: Sequence[int], *, order: str, now: float) -> None:
    """The jobs of the batch in this order, whatever has become of them: a place is where the file has a job, and behind all of
    it where it has not. Who is next in a queue is another question, see refresh_queue."""
    rows = store.db.execute("SELECT id, queue, place, sort FROM job WHERE batch = ? ORDER BY place, id", (batch,))
    places = {id: rest for id, *rest in rows}
    base = min(place for _, place, _ in places.values())
    for k, id in enumerate(dict.fromkeys(id for id in (*ids, *places) if id in places)):
        queue, place, rank = places[id]
        sorted_at = sort(order, queue, base + k, rank)
        if (place, rank) != (base + k, sorted_at):
            store.db.execute("UPDATE job SET place = ?, sort = ? WHERE id = ?", (base + k, sorted_at, id))
    for queue in {queue for queue, _, _ in places.values()} - {None}:
        refresh_queue(store, queue, now)
