"""How one list differs from another, in bounded time: of lines or of whatever can be compared and hashed.

difflib needs the square of what differs, and more: minutes for two long texts that somebody has made for it. What is alike at
both ends is left out first; where more than a screen or two is left in the middle, one stands for the other as a whole. That is
true, too, and only longer.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

Step = tuple[str, int, int, int, int]  # equal | replace | delete | insert, from … to of the old one, from … to of the new one
COMPARED = 500  # of each that are compared one by one
AROUND = 2  # lines that are shown before and after what differs


def steps(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Step]:
    shorter = min(len(old), len(new))
    head = next((k for k in range(shorter) if old[k] != new[k]), shorter)
    tail = next((k for k in range(shorter - head) if old[-1 - k] != new[-1 - k]), shorter - head)
    old_end, new_end = len(old) - tail, len(new) - tail
    middle = [
        (kind, i1 + head, i2 + head, j1 + head, j2 + head)
        for kind, i1, i2, j1, j2 in _compared(old[head:old_end], new[head:new_end])
    ]
    return [
        *([("equal", 0, head, 0, head)] if head else []), *middle,
        *([("equal", old_end, len(old), new_end, len(new))] if tail else []),
    ]  # fmt: skip


def _compared(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Step]:
    if max(len(old), len(new)) <= COMPARED:
        return [*SequenceMatcher(None, old, new).get_opcodes()]
    kind = "replace" if old and new else "delete" if old else "insert"
    return [(kind, 0, len(old), 0, len(new))]


class _Known(SequenceMatcher[str]):
    """Steps that are known, to be grouped."""

    def __init__(self, known: list[Step]) -> None:
        super().__init__()
        self.known = known

    def get_opcodes(self) -> list[Step]:  # type: ignore[override]
        return self.known


def unified(saved: str, text: str) -> list[str]:
    """As `diff -u` tells it; nothing if they are alike."""
    old, new = saved.splitlines(), text.splitlines()
    lines: list[str] = []
    for group in _Known(steps(old, new)).get_grouped_opcodes(AROUND) if old != new else ():
        lines.append(f"@@ -{_place(group[0][1], group[-1][2])} +{_place(group[0][3], group[-1][4])} @@")
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                lines += [f" {line}" for line in old[i1:i2]]
            else:
                lines += [*(f"-{line}" for line in old[i1:i2]), *(f"+{line}" for line in new[j1:j2])]
    return ["--- saved", "+++ new", *lines] if lines else []


def _place(start: int, end: int) -> str:
    count = end - start
    return str(start + 1) if count == 1 else f"{start + 1 if count else start},{count}"
