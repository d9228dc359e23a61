"""Text for people: tables that fit the screen, widths as terminals count them, colours, humane numbers.

Rules: names come from anybody, so nothing that could move a cursor is printed (`plain`). Widths count East Asian characters
twice and combining ones not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from jostle.wording.text import count as count
from jostle.wording.text import first as first
from jostle.wording.text import gpus as gpus
from jostle.wording.text import plain as plain
from jostle.wording.text import span as span

COLOURS = {"magenta": "35", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2", "bold": "1"}
OF_STATE = {
    "queued": "dim", "starting": "cyan", "running": "blue", "stopping": "yellow", "succeeded": "green", "failed": "red",
    "cancelled": "yellow", "skipped": "yellow", "ok": "green", "warn": "yellow", "bad": "red", "held": "dim",
}  # fmt: skip


FIRST_ODD = "\u0300"  # below it every printable character is one column wide


def width(text: str) -> int:
    if text.isascii() or max(text) < FIRST_ODD:
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) or c in "\u200d\ufe0f" else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, columns: int) -> str:
    """At most so many columns, with an ellipsis when something is missing."""
    if columns <= 0:
        return ""
    if len(text) * 2 <= columns or width(text) <= columns:
        return text
    kept, used = "", 0
    for c in text:
        used += width(c)
        if used > columns - 1:
            break
        kept += c
    return kept + "…"


def pad(text: str, columns: int, right: bool = False) -> str:
    blank = " " * (columns - width(text))
    return blank + text if right else text + blank


def paint(text: str, colour: str, on: bool) -> str:
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if on and colour else text


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, columns: int = 10_000, right: Sequence[int] = (),
    paint_column: int | None = None, colours: bool = False,
) -> str:  # fmt: skip
    """Aligned columns; the last takes what is left of the line, and wide middle ones give way."""
    cells = [list(map(plain, row)) for row in rows]
    widths = [max(map(width, column)) for column in zip(head, *cells, strict=True)]
    _fit(widths, columns)
    lines = [paint(_line(head, widths, right), "bold", colours)]
    for row in cells:
        lines.append(_line(row, widths, right, paint_column if colours else None))
    return "\n".join(lines)


def _fit(widths: list[int], columns: int) -> None:
    """Shrinks the widest columns, down to 12 each, until the last one has at least 20 (or all it wants)."""
    spare = columns - 2 * (len(widths) - 1)
    wanted_last = min(widths[-1], 20)
    while sum(widths[:-1]) + wanted_last > spare:
        widest = max(range(len(widths) - 1), key=lambda k: widths[k], default=None)
        if widest is None or widths[widest] <= 12:
            break
        widths[widest] -= 1
    widths[-1] = max(1, min(widths[-1], spare - sum(widths[:-1])))


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[int], painted: int | None = None) -> str:
    parts = []
    last = len(row) - 1
    for k, cell in enumerate(row):
        if k == last and k not in right:
            text = cut(cell, widths[k])
        elif cell.isascii() and len(cell) <= widths[k]:
            text = cell.rjust(widths[k]) if k in right else cell.ljust(widths[k])
        else:
            text = pad(cut(cell, widths[k]), widths[k], k in right)
        if k == painted:
            text = paint(text, OF_STATE.get(cell, ""), True)
        parts.append(text)
    return "  ".join(parts).rstrip(" ")
