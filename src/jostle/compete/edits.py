"""What an edited command file means to a batch that is not finished (SPEC A33): pure, rows and specs in, edits out.

Rules: a block that equals a task of the batch is that task, whatever has become of it; equal blocks take the finished ones first,
in the order of the file. Other blocks are new tasks. Tasks that wait and whose block is gone are dropped; what runs goes on.
What has begun or has succeeded is that task even if the block is in another queue now, and is in that queue then: nothing runs
twice because it was renumbered. A task that has begun heads its queue until it ends, the rest follow the file.
A task's memory may have been raised after it ran out of it, at last to the whole card (None), so of one that has run the block
may ask for less than the row says. Blocks are compared as the file has them: `{work_dir}` may have been another directory then.
A task that waits and was never tried takes the new directories; one that was tried keeps its own, and its count of tries.
Tasks that were not started because their queue failed are new ones as soon as the failed block is gone from the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.core.states import OPEN, UNSUCCESSFUL
from jostle.core.variables import filled

Row = Mapping[str, Any]
Spec = Mapping[str, Any]

DROPPED = "dropped"
"""The reason of a task that was cancelled because its block is gone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Edits:
    tasks: tuple[int | None, ...]  # per block: the job that it is, None if it is new
    drop: tuple[int, ...]  # jobs that wait and whose block is gone
    replaced: frozenset[int]  # jobs that have ended and whose block is gone: they are told no more, unless they succeeded
    order: tuple[tuple[str, int], ...]  # ("job", id) or ("index", k), the k-th of the new ones: what is told, as the file has it
    moved: tuple[tuple[int, int], ...] = ()  # block and job: dropped, and new with the directories of now
    unmoved: tuple[int, ...] = ()  # jobs that wait for another try, with the directories of then
    into: tuple[tuple[int, str], ...] = ()  # jobs whose block is in another queue now

    @property
    def new(self) -> tuple[int, ...]:
        """The blocks that are new, by their place in the file."""
        return tuple(k for k, task in enumerate(self.tasks) if task is None)


def queue_of(row: Row) -> str:
    """The queue as the file names it: the engine keeps queue 1 of batch 7 as 7/1."""
    return str(row["queue"] or "").rpartition("/")[2]


def current(rows: Iterable[Row]) -> list[Row]:
    """The tasks of a batch without those that were dropped or tried again, by hand, as another job."""
    all_rows = list(rows)
    copied = {row["retry_of"] for row in all_rows}
    return [row for row in all_rows if row["id"] not in copied and not _dropped(row)]


def edits(specs: Sequence[Spec], rows: Iterable[Row], texts: Sequence[Sequence[str]] | None = None) -> Edits:
    """`texts` are the commands of the blocks as the file has them, if they are not those of the specs."""
    present = sorted(current(rows), key=_turn)
    match = _Match(specs, texts or [spec["commands"] for spec in specs])
    match.take([row for row in present if row["state"] != "skipped"])
    match.take([row for row in present if _begun(row)], any_queue=True)
    tasks = match.tasks
    taken = {id for id in tasks if id is not None}
    stuck = {queue_of(row) for row in present if row["state"] == "failed" and row["id"] in taken}
    skipped = [row for row in present if row["state"] == "skipped" and queue_of(row) in stuck]
    match.take(skipped)
    moved, unmoved = _moved(specs, tasks, {row["id"]: row for row in present})
    for k, _ in moved:
        tasks[k] = None
    taken = {id for id in tasks if id is not None}
    removed = sorted((row for row in present if row["id"] not in taken), key=by_place)
    news = iter(range(len(tasks)))
    order = [("job", row["id"]) for row in removed if row["state"] in OPEN or row["state"] == "succeeded"]
    order += [("index", next(news)) if id is None else ("job", id) for id in tasks]
    queues = {row["id"]: queue_of(row) for row in present}
    return Edits(
        tasks=tuple(tasks),
        drop=tuple(sorted(row["id"] for row in removed if row["state"] == "queued")),
        replaced=frozenset(row["id"] for row in removed if row["state"] in UNSUCCESSFUL),
        order=tuple(order),
        moved=tuple(moved),
        unmoved=tuple(unmoved),
        into=tuple((id, str(s["queue"])) for s, id in zip(specs, tasks, strict=True) if id and queues[id] != str(s["queue"])),
    )


class _Match:
    """Per block its job; first where the memory is the same, then where it may have been raised."""

    def __init__(self, specs: Sequence[Spec], texts: Sequence[Sequence[str]]) -> None:
        self.specs, self.texts = specs, texts
        self.tasks: list[int | None] = [None] * len(specs)

    def take(self, rows: Sequence[Row], *, any_queue: bool = False) -> None:
        taken = {id for id in self.tasks if id is not None}
        free: dict[tuple[Any, ...], list[tuple[int, Row]]] = {}
        for turn, row in enumerate(row for row in rows if row["id"] not in taken):
            queue = "" if any_queue else queue_of(row)
            key = (queue, row.get("workdir"), tuple(row["commands"]), row["gpu_request"][0])
            free.setdefault(key, []).append((turn, row))
        places = {key[1] for key in free}
        for fits in (_same_memory, _may_be_raised):
            for k in range(len(self.specs)) if free else ():
                if self.tasks[k] is None:
                    self.tasks[k] = self._first(k, free, places, fits, any_queue)

    def _first(
        self, k: int, free: Mapping[tuple[Any, ...], list[tuple[int, Row]]], places: Iterable[str | None],
        fits: Callable[[Spec, Row], bool], any_queue: bool,
    ) -> int | None:  # fmt: skip
        """The first task, by its turn, that is this block in the directory where it was submitted."""
        spec = self.specs[k]
        best: tuple[int, Row] | None = None
        whose: list[tuple[int, Row]] = []
        for place in places:
            commands = tuple(self.texts[k] if place is None else (filled(c, {"work_dir": place}) for c in self.texts[k]))
            alike = free.get(("" if any_queue else str(spec["queue"]), place, commands, spec["gpus"][0]), [])
            candidate = next((candidate for candidate in alike if fits(spec, candidate[1])), None)
            if candidate is not None and (best is None or candidate[0] < best[0]):
                best, whose = candidate, alike
        if best is None:
            return None
        whose.remove(best)
        return int(best[1]["id"])


def _moved(
    specs: Sequence[Spec], tasks: Sequence[int | None], rows: Mapping[int, Row]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Which tasks that wait are to begin anew with the directories of now, and which keep theirs."""
    moved, unmoved = [], []
    for k, id in enumerate(tasks):
        if id is None or rows[id]["state"] != "queued" or not _elsewhere(specs[k], rows[id]):
            continue
        if rows[id]["attempt"]:
            unmoved.append(id)
        else:
            moved.append((k, id))
    return moved, unmoved


def _elsewhere(spec: Spec, row: Row) -> bool:
    """Whether it would run or write in another place than the block says now. A log's own name counts the tasks of the file, so
    that a block more would move all behind it: only its directory matters."""
    log, before = spec.get("log"), row.get("log")
    return bool(
        spec.get("workdir") != row.get("workdir")
        or (log and before and os.path.dirname(log) != os.path.dirname(before))
        or ("env" in row and dict(spec.get("env") or {}) != dict(row["env"] or {}))
    )


def _done(row: Row) -> bool:
    """What must not run again because its block asks for other memory now."""
    return row["state"] in OPEN or row["state"] == "succeeded"


def _begun(row: Row) -> bool:
    """What goes with its block into another queue."""
    return _done(row) or bool(row["state"] == "queued" and row["attempt"])


def _same_memory(spec: Spec, row: Row) -> bool:
    return bool(spec["memory_mib"] == row["memory_mib"])


def _may_be_raised(spec: Spec, row: Row) -> bool:
    """What has started is taken as it is; what failed, or waits after a failure, unless more is asked for than it has now."""
    if _done(row):
        return True
    return bool(row["attempt"] and (row["memory_mib"] is None or spec["memory_mib"] <= row["memory_mib"]))


def _turn(row: Row) -> tuple[int, float, int]:
    """Finished ones first, then what runs, then what waits; each in the order of the queue."""
    first = 2 if row["state"] == "queued" else 1 if row["state"] in OPEN else 0
    return first, *by_place(row)


def by_place(row: Row) -> tuple[float, int]:
    return row.get("place") or 0.0, row["id"]


def _dropped(row: Row) -> bool:
    return bool(row["state"] == "cancelled" and row["reason"] and row["reason"]["code"] == DROPPED)
