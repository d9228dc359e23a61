"""How much memory a run used over its time: a few points, however long it runs."""

from __future__ import annotations

from typing import Any

from jostle.core.kinds import is_integer, number

POINTS = 48
FIRST_STEP = 1.0  # s
LONGEST = 1e9  # s


class Curve:
    """Of each stretch of its time the most that was seen; when there are too many stretches, two become one."""

    __slots__ = ("points", "step")

    def __init__(self, step: float = FIRST_STEP, points: list[int | None] | None = None) -> None:
        self.step, self.points = step, points if points is not None else []

    def see(self, at: float, mib: int) -> None:
        """`at`: seconds after its start."""
        while at >= self.step * POINTS:
            self._halve()
        k = max(0, int(at / self.step))
        self.points += [None] * (k + 1 - len(self.points))
        self.points[k] = max(mib, self.points[k] or 0)

    def _halve(self) -> None:
        pairs = [self.points[k : k + 2] for k in range(0, len(self.points), 2)]
        self.points = [max((mib for mib in pair if mib is not None), default=None) for pair in pairs]
        self.step *= 2

    def plain(self) -> dict[str, Any]:
        return {"step_s": self.step, "mib": self.points}


def restored(data: Any) -> Curve:
    """As `plain` gave it, perhaps to another engine; ValueError if it is nothing of the kind."""
    step, points = data["step_s"], data["mib"]
    good = number(step) and FIRST_STEP <= step < LONGEST and isinstance(points, list) and len(points) <= POINTS
    if not good or not all(mib is None or is_integer(mib, 0, 1 << 40) for mib in points):
        raise ValueError(data)
    return Curve(float(step), list(points))
