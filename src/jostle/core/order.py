"""Who comes first: priority, then batches in turn, then the batch's own rule.

Rules: a batch's turn ends when a job of it starts, so the next batch (by id, cyclic) is served before it again. The jobs of a
lane are interchangeable: when the first does not fit, none does, and the lane is left out of the rest of the plan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heapreplace
from typing import Any

from jostle.core.model import Job, Lane, World

Key = tuple[Any, ...]


def by_file(job: Job) -> Key:
    return (job.place, job.id)


def by_chance(job: Job) -> Key:
    return (job.rank, job.id)


def by_gpus(job: Job) -> Key:
    return (-job.gpus_max, _number(job.queue), job.place, job.id)


def _number(queue: str | None) -> tuple[int, int, str]:
    """Queue 9 before queue 10, and both before queues with names."""
    if queue is None:
        return (2, 0, "")
    own = queue.rpartition("/")[2]  # queue 3 of batch 7 is called 7/3
    return (0, int(own), "") if own.isdecimal() else (1, 0, queue)


def sort(order: str, queue: str | None, place: float, drawn: float) -> float:
    """The order of jobs of one shape, as one number: what the rule compares beyond the shape itself."""
    if order == "random":
        return drawn
    if order == "gpus-desc":
        kind, number, _ = _number(queue)
        return float(number) if kind == 0 else 1e15 * kind + place
    return place


ORDERS: dict[str, Callable[[Job], Key]] = {"file": by_file, "random": by_chance, "gpus-desc": by_gpus}

Entry = tuple[Key, int, int, Lane]  # rank, number of the lane, position in it, lane


class Turns:
    """The lanes of a World, whose next job is always the one to try next."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._turn = world.turn
        self._levels: list[dict[int, list[Entry]]] = []  # by priority, the highest last
        self._batches: deque[int] = deque()  # of the level in hand, next in turn first
        levels: dict[int, dict[int, list[Entry]]] = {}
        for number, lane in enumerate(world.lanes):
            job = lane[0]
            heaps = levels.setdefault(job.priority, {})
            heaps.setdefault(job.batch, []).append((self._key(job), number, 0, lane))
        self._levels = [levels[p] for p in sorted(levels)]
        self._open()

    def _key(self, job: Job) -> Key:
        return ORDERS[self._world.policy_of(job.batch).order](job)

    def _open(self) -> None:
        """Begin the next level: its batches, the one after the last served first."""
        if self._levels:
            heaps = self._levels[-1]
            for heap in heaps.values():
                heapify(heap)
            self._batches = deque(sorted(heaps, key=lambda b: (b <= self._turn, b)))

    def head(self) -> tuple[Job, int, Lane] | None:
        """The job to try next, its position in its lane, and the lane."""
        if not self._batches:
            return None
        _, _, at, lane = self._levels[-1][self._batches[0]][0]
        return lane[at], at, lane

    def started(self) -> None:
        batch = self._batches[0]
        heap = self._levels[-1][batch]
        _, number, at, lane = heap[0]
        self._turn = batch
        if at + 1 < len(lane):
            heapreplace(heap, (self._key(lane[at + 1]), number, at + 1, lane))
            self._batches.rotate(-1)
        else:
            self._leave(heap, served=True)

    def blocked(self) -> None:
        self._leave(self._levels[-1][self._batches[0]], served=False)

    def _leave(self, heap: list[Entry], served: bool) -> None:
        heappop(heap)
        if heap:
            self._batches.rotate(-1 if served else 0)
            return
        self._batches.popleft()
        if not self._batches:
            self._levels.pop()
            self._open()
