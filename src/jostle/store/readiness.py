"""Which jobs are ready. Every function works inside the caller's transaction.

Readiness is a column kept at transitions, so that a decision reads the heads of queues and never the whole list:
ready = queued, wanted, nothing it comes after is unfinished, and first of its queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jostle.errors import NotFound
from jostle.store.reads import UNFINISHED_SQL
from jostle.store.store import Store


def refresh(store: Store, id: int, now: float) -> None:
    """Brings the readiness of one job (and of its queue) up to date."""
    queue = store.db.execute("SELECT queue FROM job WHERE id = ?", (id,)).fetchone()[0]
    if queue is None:
        _mark_ready(store, id, now)
    else:
        refresh_queue(store, queue, now)


def refresh_queue(store: Store, queue: str, now: float) -> None:
    head = (  # whoever has begun is the head until it ends, wherever it or others were put meanwhile
        store.db.execute(
            f"""SELECT id FROM job INDEXED BY job_begun WHERE queue = ? AND {UNFINISHED_SQL} AND attempt > 0
                ORDER BY state = 'queued', place, id LIMIT 1""",
            (queue,),
        ).fetchone()
        or store.db.execute(
            f"SELECT id FROM job INDEXED BY job_queue WHERE queue = ? AND {UNFINISHED_SQL} ORDER BY place, id LIMIT 1", (queue,)
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


CHOSEN = "chosen c CROSS JOIN job ON job.id = c.id"


def choose(store: Store, ids: Iterable[int]) -> None:
    """These jobs are the table `chosen` now, in this order: one statement for all of them takes a fraction of one for each."""
    store.db.execute("DELETE FROM chosen")
    store.db.executemany("INSERT INTO chosen VALUES (?)", ((id,) for id in ids))


def states_of(store: Store, ids: Sequence[int]) -> dict[int, str]:
    choose(store, ids)
    states = dict(store.db.execute(f"SELECT c.id, state FROM {CHOSEN}").fetchall())
    if len(states) < len(ids):
        missing = next((id for id in ids if id not in states), None)
        if missing is not None:
            raise NotFound(f"there is no job {missing}")
    return states


def state_of(store: Store, id: int) -> str:
    row = store.db.execute("SELECT state FROM job WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NotFound(f"there is no job {id}")
    return str(row[0])
