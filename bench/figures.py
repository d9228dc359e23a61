"""Figures of a measurement, and the rows of the table.

Ratios are taken inside a repetition, between neighbours in time, and the median over the repetitions is shown: absolute
values move with the load of the machine, ratios hold.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from statistics import median


@dataclass(kw_only=True)
class Row:
    group: str
    what: str
    unit: str
    ours: float | None = None
    floor: float | None = None
    floor_name: str = ""
    ratio: float | None = None  # ours to the floor
    peers: dict[str, float] = field(default_factory=dict)
    goal: str = ""
    met: bool | None = None  # None: no goal, or nothing of ours to hold against it

    def as_json(self) -> dict[str, object]:
        return asdict(self)


class Series:
    """Values by participant and repetition, of one figure."""

    def __init__(self) -> None:
        self.values: dict[str, dict[int, float]] = defaultdict(dict)

    def add(self, who: str, rep: int, value: float) -> None:
        self.values[who][rep] = value

    def mid(self, who: str) -> float | None:
        found = self.values.get(who)
        return median(found.values()) if found else None

    def ratio(self, who: str, base: str) -> float | None:
        ours, theirs = self.values.get(who, {}), self.values.get(base, {})
        both = [ours[rep] / theirs[rep] for rep in ours if theirs.get(rep)]
        return median(both) if both else None

    def others(self, *leave: str) -> dict[str, float]:
        return {who: median(found.values()) for who, found in self.values.items() if who not in leave and found}

    def row(self, group: str, what: str, unit: str, *, ours: str = "jostle", floor: str = "") -> Row:
        return Row(
            group=group,
            what=what,
            unit=unit,
            ours=self.mid(ours),
            floor=self.mid(floor),
            floor_name=floor if floor in self.values else "",
            ratio=self.ratio(ours, floor),
            peers=self.others(ours, floor),
        )


def hold_against(row: Row, goal: str, *conditions: bool | None) -> Row:
    """Sets the verdict: all conditions that could be judged hold; None where nothing could."""
    row.goal = goal
    judged = [c for c in conditions if c is not None]
    row.met = all(judged) if judged and row.ours is not None else None
    return row


def below(value: float | None, limit: float | None) -> bool | None:
    return None if value is None or limit is None else value <= limit


def above(value: float | None, limit: float | None) -> bool | None:
    return None if value is None or limit is None else value >= limit


def number(value: float | None) -> str:
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


HEADER = ("what", "unit", "jostle", "floor", "ratio", "peers", "goal", "")


def cells(row: Row) -> tuple[str, ...]:
    floor = f"{number(row.floor)} {row.floor_name}".strip() if row.floor is not None else "–"
    peers = ", ".join(f"{name} {number(value)}" for name, value in row.peers.items()) or "–"
    verdict = {True: "ok", False: "MISSED", None: ""}[row.met]
    ratio = f"{number(row.ratio)}x" if row.ratio is not None else "–"
    return (row.what, row.unit, number(row.ours), floor, ratio, peers, row.goal, verdict)


def table(rows: list[Row]) -> str:
    """All rows, aligned, with a line above each group."""
    lines = [HEADER, *(cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    drawn = [_aligned(HEADER, widths), "-" * (sum(widths) + 2 * len(widths))]
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            drawn += ["", group]
        drawn.append(_aligned(cells(row), widths))
    return "\n".join(line.rstrip() for line in drawn)


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    right = {2, 4}
    pairs = enumerate(zip(line, widths, strict=True))
    return "  ".join(cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in pairs)
