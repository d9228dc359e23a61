"""What an edited command file means to a batch that is not finished (SPEC A33): pure, rows and specs in, a plan out.

Rules: a block that equals a task of the batch is that task, whatever has become of it; equal blocks take the finished ones first,
in the order of the file. Other blocks are new tasks. Tasks that wait and whose block is gone are dropped; what runs goes on.
A task's memory may have been raised after it ran out of it, so of one that has run the block may ask for less than the row says.
Tasks that were not started because their queue failed are new ones as soon as the failed block is gone from the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.core.states import OPEN

Row = Mapping[str, Any]

DROPPED = "dropped"
"""The reason of a task that was cancelled because its block is gone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    tasks: tuple[int | None, ...]  # per block: the job that it is, None if it is new
    drop: tuple[int, ...]  # jobs that wait and whose block is gone
    replaced: frozenset[int]  # jobs that have ended and whose block is gone: they are told no more, unless they succeeded
    order: tuple[tuple[str, int], ...]  # all that wait: ("job", id) or ("index", k), the k-th of the new ones

    @property
    def new(self) -> tuple[int, ...]:
        """The blocks that are new, by their place in the file."""
        return tuple(k for k, task in enumerate(self.tasks) if task is None)


def queue_of(row: Row) -> str:
    """The queue as the file names it: the engine keeps queue 1 of batch 7 as 7/1."""
    return str(row["queue"] or "").rpartition("/")[2]


def current(rows: Iterable[Row]) -> list[Row]:
    """The tasks of a batch without those that were dropped or tried again, by hand, as another job."""
    found = list(rows)
    copied = {row["retry_of"] for row in found}
    return [row for row in found if row["id"] not in copied and not _dropped(row)]


def plan(specs: Sequence[Mapping[str, Any]], rows: Iterable[Row]) -> Plan:
    present = sorted(current(rows), key=_turn)
    tasks = _matched(specs, [row for row in present if row["state"] != "skipped"])
    taken = {id for id in tasks if id is not None}
    stuck = {queue_of(row) for row in present if row["state"] == "failed" and row["id"] in taken}
    skipped = [row for row in present if row["state"] == "skipped" and queue_of(row) in stuck]
    tasks = _matched(specs, skipped, tasks)
    taken = {id for id in tasks if id is not None}
    state = {row["id"]: row["state"] for row in present}
    news = iter(range(len(tasks)))
    order = [("index", next(news)) if id is None else ("job", id) for id in tasks if id is None or state[id] == "queued"]
    gone = [row for row in present if row["id"] not in taken]
    return Plan(
        tasks=tuple(tasks),
        drop=tuple(sorted(row["id"] for row in gone if row["state"] == "queued")),
        replaced=frozenset(row["id"] for row in gone if row["state"] in ("failed", "cancelled", "skipped")),
        order=tuple(order),
    )


def _matched(
    specs: Sequence[Mapping[str, Any]], rows: Sequence[Row], before: Sequence[int | None] | None = None
) -> list[int | None]:
    """Per block its job; first where the memory is the same, then where it may have been raised."""
    tasks: list[int | None] = list(before) if before is not None else [None] * len(specs)
    free: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        free.setdefault((queue_of(row), tuple(row["commands"]), row["gpu_request"][0]), []).append(row)
    for exact in (True, False):
        for k, spec in enumerate(specs):
            if tasks[k] is not None:
                continue
            alike = free.get((str(spec["queue"]), tuple(spec["commands"]), spec["gpus"][0]), [])
            fits = _same_memory if exact else _may_be_raised
            at = next((n for n, row in enumerate(alike) if fits(spec, row)), None)
            if at is not None:
                tasks[k] = alike.pop(at)["id"]
    return tasks


def _same_memory(spec: Mapping[str, Any], row: Row) -> bool:
    return bool(spec["memory_mib"] == row["memory_mib"])


def _may_be_raised(spec: Mapping[str, Any], row: Row) -> bool:
    """What has started is taken as it is; what failed, or waits after a failure, unless more is asked for than it has now."""
    if row["state"] in OPEN or row["state"] == "succeeded":
        return True
    return bool(row["attempt"] and row["memory_mib"] is not None and spec["memory_mib"] <= row["memory_mib"])


def _turn(row: Row) -> tuple[int, float, int]:
    """Finished ones first, then what runs, then what waits; each in the order of the queue."""
    first = 2 if row["state"] == "queued" else 1 if row["state"] in OPEN else 0
    return first, row.get("place") or 0.0, row["id"]


def _dropped(row: Row) -> bool:
    return bool(row["state"] == "cancelled" and row["reason"] and row["reason"]["code"] == DROPPED)
