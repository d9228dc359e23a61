"""Small pieces of sentences, in English. Names come from anybody: what is shown of them goes through `plain`."""

from __future__ import annotations

from jostle.units import ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def plain(text: str) -> str:
    """One line without anything that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c in "\n\t\r" else "�" for c in text)


def gpus(indices: Sequence[int]) -> str:
    return ranges(indices) if indices else "-"


def span(first: int, last: int) -> str:
    """Numbers in a row: `7`, `7-12`."""
    return str(first) if first == last else f"{first}-{last}"


def first(ids: Sequence[int], most: int, language: str) -> str:
    """The first few of many: `1, 2, 3 and 9 more`."""
    more = len(ids) - most
    shown = ", ".join(map(str, ids[:most]))
    return shown + (f" 等另外 {more:,} 个" if language == "zh" else f" and {more:,} more") if more > 0 else shown


def count(n: int, one: str, many: str = "") -> str:
    """`1 job`, `2 jobs`, `10,000 jobs`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
