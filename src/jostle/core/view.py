"""What each card answers to one request, while cards are being given away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jostle.core.reasons import Reason, Refusal

Refusals = list[Refusal | None]
Answer = Callable[[int], Refusal | None]


class View:
    """One answer per card, worked out again only for cards that were given away meanwhile."""

    __slots__ = ("_answer", "_answers", "_below", "_changed", "_seen", "hopeless", "reasons")

    def __init__(self, cards: int, changed: list[int], answer: Answer, below: View | None = None) -> None:
        self._answer = answer
        self._answers = [answer(at) for at in range(cards)]
        self.hopeless = all(refusal is not None for refusal in self._answers)  # and stays so: a plan only gives cards away
        self._below = below  # what the answers build on
        self._changed = changed
        self._seen = len(changed)
        self.reasons: dict[tuple[Any, ...], Reason] = {}

    @property
    def refusals(self) -> Refusals:
        if self._seen < len(self._changed):
            self._refresh()
        return self._answers

    def _refresh(self) -> None:
        if self._below is not None:
            self._below._refresh()
        for at in set(self._changed[self._seen :]):
            self._answers[at] = self._answer(at)
        self._seen = len(self._changed)
        self.reasons.clear()
