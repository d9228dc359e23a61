"""Events that are recorded by themselves, where nothing else is committed; and who wants to hear of each commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jostle.core.model import RunId
from jostle.engine.open import Open
from jostle.engine.ports import Timer
from jostle.errors import Unwritten
from jostle.store.store import Store


class Journal:
    def __init__(self, store: Store, clock: Timer) -> None:
        self._store, self._clock = store, clock
        self._noted: dict[RunId, set[tuple[str, ...]]] = {}
        self.after_commit: list[Callable[[], None]] = []

    def event(self, kind: str, **data: Any) -> None:
        try:
            with self._store.transaction():
                self._store.event(self._clock.wall(), kind, **data)
        except Unwritten:
            pass  # that the disk takes nothing is said by whoever must be recorded
        self.committed()

    def of_run(self, kind: str, run: Open, **data: Any) -> None:
        self.event(kind, batch=run.batch, job=run.id[0], run=run.id[1], **data)

    def once(self, kind: str, run: Open, about: tuple[str, ...] | None = None, **data: Any) -> None:
        """An event of a run, unless it was given before: with the same data, or the same that it is `about`."""
        if self.is_new(run.id, kind, *(map(str, data.values()) if about is None else about)):
            self.of_run(kind, run, **data)

    def is_new(self, run: RunId, *what: str) -> bool:
        """Whether this was not asked before of a run that is open."""
        events = self._noted.setdefault(run, set())
        if what in events:
            return False
        events.add(what)
        return True

    def forget(self, run: RunId) -> None:
        self._noted.pop(run, None)

    def committed(self) -> None:
        for callback in self.after_commit:
            callback()
