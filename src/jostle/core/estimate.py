"""When a run will have ended, by how long runs took that were like it; and when jobs that wait for its cards may start.

Rules: two runs are the least that tells anything, and if they differ too much they tell nothing. A run that has taken longer than
all before it is like none of them. A time limit is a bound, not a guess. No answer is better than one that is made up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

LEAST = 2  # runs
APART = 1.0  # the slowest and the quickest may differ by so many times the median
ALWAYS = 60.0  # s by which they may differ in any case


class Took(NamedTuple):
    """How long a run takes, in seconds; a tenth of those like it were quicker, and a tenth slower."""

    low: float
    median: float
    high: float
    runs: int


def expected(durations: Sequence[float], elapsed: float = 0.0) -> Took | None:
    """Of runs that ended well; of one that has run for `elapsed` already, by those that took longer. None: no telling."""
    longer = sorted(seconds for seconds in durations if seconds > elapsed)
    if len(longer) < LEAST or len(longer) * 2 < len(durations):
        return None
    cut = math.floor(len(longer) / 10)
    low, high = longer[cut], longer[-1 - cut]
    half = len(longer) // 2
    median = longer[half] if len(longer) % 2 else (longer[half - 1] + longer[half]) / 2
    if high - low > max(ALWAYS, APART * median):
        return None
    return Took(low, median, high, len(longer))


def starts(waiting: Sequence[int], needed: int, fit: int, free_at: Mapping[int, float]) -> dict[int, tuple[float, list[int]]]:
    """When each of these jobs may start that wait for `needed` cards each, in their order, and on which: as far as the cards tell
    that will be given back, by index, while `fit` are there already. Nothing is said of cards that are given back twice."""
    coming = sorted((at, index) for index, at in free_at.items())
    answers: dict[int, tuple[float, list[int]]] = {}
    first = 0
    for job in waiting:
        last = first + needed - (fit if not first else 0)
        if needed < 1 or last < 1 or last > len(coming):
            break
        answers[job] = coming[last - 1][0], sorted(index for _, index in coming[first:last])
        first = last
    return answers
