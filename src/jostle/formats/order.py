"""Whether jobs of a file can ever run: `after` and the order within queues must not go in a circle. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def circle(after: Mapping[int, Sequence[int]], queues: Sequence[str | None]) -> list[int]:
    """Jobs (by place) of which each waits for the next and the last for the first; empty if all can run."""
    before = _in_queue(queues)
    visited: set[int] = set()
    for start in after:
        places = _from(start, after, before, visited)
        if places:
            return places
    return []


def _in_queue(queues: Sequence[str | None]) -> list[int | None]:
    """For each job the one that comes right before it in its queue."""
    last: dict[str, int] = {}
    before: list[int | None] = []
    for place, queue in enumerate(queues):
        before.append(last.get(queue) if queue is not None else None)
        if queue is not None:
            last[queue] = place
    return before


def _from(start: int, after: Mapping[int, Sequence[int]], before: Sequence[int | None], visited: set[int]) -> list[int]:
    """A walk without recursion: a chain of 100,000 jobs is allowed."""
    if start in visited:
        return []
    path = [start]
    on_path = {start}
    todo = [iter(_waits_for(start, after, before))]
    while path:
        step = next(todo[-1], None)
        if step is None:
            finished = path.pop()
            on_path.discard(finished)
            visited.add(finished)
            todo.pop()
        elif step in on_path:
            return path[path.index(step) :]
        elif step not in visited:
            path.append(step)
            on_path.add(step)
            todo.append(iter(_waits_for(step, after, before)))
    return []


def _waits_for(place: int, after: Mapping[int, Sequence[int]], before: Sequence[int | None]) -> list[int]:
    earlier = before[place]
    return [*after.get(place, ()), *([earlier] if earlier is not None else [])]
