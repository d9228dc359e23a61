"""For programs that get other cards while they run: which they have now, whether that changed, and when to save.

    from jostle import elastic

    with elastic.watch() as cards:
        while step < steps:
            if cards.changed():       # resize: signal
                use(cards.now())      # as CUDA_VISIBLE_DEVICES would have it
            train()
            cards.save_if_told(save)  # resize: restart, a cancel, somebody else on the card: saves and leaves

Standard library only. Without jostle it shows CUDA_VISIBLE_DEVICES, and nothing ever changes. docs/resources.md has the protocol.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NamedTuple

FILE, LEG, VISIBLE = "JOSTLE_GPUS_FILE", "JOSTLE_LEG", "CUDA_VISIBLE_DEVICES"
TOLD_TO_END = 128 + signal.SIGTERM


class CardList(NamedTuple):
    """The cards of a program, and the number of the list: a higher one is newer."""

    cards: tuple[str, ...]
    number: int


def current() -> CardList:
    """As it is now. The file is replaced as a whole, so there is always one that is complete."""
    try:
        with open(os.environ[FILE], encoding="utf-8") as f:
            cards, number = f.read().split("\n")[:2]
        return CardList(_split(cards), int(number))
    except (KeyError, OSError, ValueError):
        leg = os.environ.get(LEG, "")
        return CardList(_split(os.environ.get(VISIBLE, "")), int(leg) if leg.isdecimal() else 1)


def changed(since: CardList) -> bool:
    """Whether there is another list than this one."""
    return current().number != since.number


def _split(cards: str) -> tuple[str, ...]:
    return tuple(card for card in cards.strip().split(",") if card)


class watch:
    """While it lasts, the program hears of a new list (SIGUSR1) and of its end (SIGTERM); in the main thread only."""

    def __init__(self) -> None:
        self._seen = current()
        self._news = False  # that there may be a new list
        self.ending = False  # it is to end: there is time to save, the grace of config.yaml
        self._before: dict[int, Any] = {}

    def __enter__(self) -> watch:
        for number, handler in ((signal.SIGUSR1, self._hear), (signal.SIGTERM, self._end)):
            self._before[number] = signal.signal(number, handler)
        self._seen = current()  # nothing told before this is missed
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._news = True

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ending = True

    def now(self) -> tuple[str, ...]:
        """The cards of the list that `changed` has told of, or of the first one."""
        return self._seen.cards

    def changed(self) -> bool:
        """Whether there is a new list since this was last asked; costs nothing while none was told."""
        if not self._news:
            return False
        self._news = False
        seen, self._seen = self._seen, current()
        return self._seen.number != seen.number

    def save_if_told(self, save: Callable[[], object]) -> None:
        """If the program is to end: saves, and leaves as one that a signal ended."""
        if self.ending:
            save()
            raise SystemExit(TOLD_TO_END)
