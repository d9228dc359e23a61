"""Messages by their code, and small pieces of sentences. Names come from anybody: what is shown of them goes through `plain`."""

from __future__ import annotations

from jostle.units import ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


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


def message(code: str, language: str, /, **values: Any) -> str:
    """`state` is shown as it is called in the language."""
    from jostle.wording.messages import MESSAGES  # most tables need none of them

    if language == "zh" and "state" in values:
        from jostle.wording.words import STATES

        values["state"] = STATES.get(values["state"], values["state"])
    shown = {key: _shown(value, language) for key, value in values.items()}
    return MESSAGES[code][language == "zh"].format(**shown)


def _shown(value: Any, language: str) -> Any:
    if isinstance(value, tuple):  # a message in a message
        return message(value[0], language, **value[1])
    if isinstance(value, int) and not isinstance(value, bool):
        return _Number(value)
    return plain(value) if isinstance(value, str) else value


class _Number(int):
    """Its format may say the noun or verb for one and for many: {n:job|jobs}."""

    def __format__(self, spec: str) -> str:
        if "|" not in spec:
            return format(int(self), spec)
        one, _, many = spec.partition("|")
        return f"{int(self):,} {one if self == 1 else many}"


def listed(parts: list[str], language: str) -> str:
    return ("，" if language == "zh" else ", ").join(parts)
