"""What the store says of whole batches: how many of their jobs are in which state, and how long those take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from jostle.core.states import RAN as RAN_STATES
from jostle.store.reads import DONE_BEFORE_SQL, RAN, UNFINISHED_SQL, Reader
from jostle.store.rows import loaded

if TYPE_CHECKING:
    from collections.abc import Mapping

SUMS = f"""SELECT b.id, b.key, b.name, b.submitted_at, b.about, j.state, count(j.id) AS n, min(j.started_at) AS started_at,
    max(j.ended_at) AS ended_at, max(j.params IS NOT NULL AND j.params <> '{{}}') AS sweep,
    sum({DONE_BEFORE_SQL}) AS done_before
    FROM (SELECT * FROM batch WHERE ? IS NULL OR id = ? ORDER BY id DESC LIMIT ?) b LEFT JOIN job j ON j.batch = b.id
    GROUP BY b.id, j.state ORDER BY b.id DESC"""

TOOK = f"""SELECT avg(took) FROM (SELECT {RAN} AS took FROM job j JOIN run r ON r.job = j.id AND r.n = j.attempt
    WHERE j.batch = ? AND j.state IN ({','.join('?' * len(RAN_STATES))}) ORDER BY j.ended_at DESC LIMIT ?)"""


class Sum(NamedTuple):
    """One batch."""

    id: int
    key: str | None
    name: str | None
    submitted_at: float
    about: Mapping[str, Any]
    counts: dict[str, int]
    done_before: int  # of those that were skipped
    sweep: bool  # its jobs have parameters
    started_at: float | None
    ended_at: float | None  # of the job that ended last


def sums(reader: Reader, *, batch: int | None = None, newest: int | None = None) -> list[Sum]:
    """The newest first; `batch`: this one only."""
    by_batch: dict[int, Sum] = {}
    for row in reader._all(SUMS, (batch, batch, -1 if newest is None else newest)):
        head = (row["id"], row["key"], row["name"], row["submitted_at"], loaded(row["about"] or "{}") or {})
        known = by_batch.get(row["id"]) or Sum(*head, {}, 0, False, None, None)
        if row["n"]:
            known.counts[row["state"]] = row["n"]
        by_batch[row["id"]] = known._replace(
            done_before=known.done_before + int(row["done_before"] or 0), sweep=known.sweep or bool(row["sweep"]),
            started_at=min(_known(known.started_at, row["started_at"]), default=None),
            ended_at=max(_known(known.ended_at, row["ended_at"]), default=None),
        )  # fmt: skip
    return list(by_batch.values())


def files(reader: Reader) -> dict[str, int]:
    """The files that batches were made of, each with the newest of them; the newest first."""
    sql = "SELECT json_extract(about, '$.file') AS file, max(id) FROM batch WHERE about IS NOT NULL GROUP BY 1 ORDER BY 2 DESC"
    return {row[0]: row[1] for row in reader._all(sql) if row[0]}


def _known(*instants: float | None) -> list[float]:
    return [one for one in instants if one is not None]


def pace(reader: Reader, batch: int, last: int) -> tuple[float | None, list[float]]:
    """How long a job of this batch took, on average over the last so many, and when those began that are under way."""
    rows = reader._all(TOOK, (batch, *RAN_STATES, last))
    under_way = f"{UNFINISHED_SQL} AND state <> 'queued' AND started_at IS NOT NULL"
    begun = reader._all(f"SELECT started_at FROM job WHERE batch = ? AND {under_way}", (batch,))
    return (rows[0][0] if rows else None), [row[0] for row in begun]
