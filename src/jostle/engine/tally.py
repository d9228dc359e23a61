"""What the engine has done since its start, in numbers, for whoever draws curves of it. Nothing is decided by them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Any

LIMITS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)  # s: the classes of how long a tick took; the last has no end


class Tally:
    def __init__(self) -> None:
        self._started = 0
        self._ended: Counter[str] = Counter()
        self._ticks = [0] * (len(LIMITS) + 1)
        self._tick_s = 0.0

    def ticked(self, took: float) -> None:
        self._ticks[bisect_left(LIMITS, took)] += 1
        self._tick_s += took

    def recorded(self, started: int, outcomes: Iterable[str]) -> None:
        """What one commit has begun and ended."""
        self._started += started
        self._ended.update(outcomes)

    def plain(self) -> dict[str, Any]:
        ticks = {"limits_s": LIMITS, "counts": self._ticks, "sum_s": round(self._tick_s, 6)}
        return {"started": self._started, "ended": dict(self._ended), "ticks": ticks}
