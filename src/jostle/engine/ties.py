"""The processes that allocations hang on before they have their cards: one that waits for them, or that they are tied to.

What holds its cards and is tied to a process is watched by its shim, which needs no engine. A process that cannot be looked at is
not taken for dead; one of an earlier boot is.
"""

from __future__ import annotations

import json

from jostle import proc
from jostle.core.model import Orphan
from jostle.store import allocations
from jostle.store.store import Store

LOOK = 1.0  # s between looks, while there is anything to look at


class Ties:
    def __init__(self, store: Store) -> None:
        self._store, self._boot = store, proc.boot_id()
        self._at = -1  # the store's generation that the following is of
        self._rows: list[tuple[int, int, bool, str | None, str | None]] = []

    def orphans(self) -> dict[int, Orphan]:
        """By job, allocations whose process has ended."""
        return {
            id: Orphan(batch, queued, awaited=self._gone(awaited))
            for id, batch, queued, tied, awaited in self._known()
            if self._gone(awaited) or (queued and self._gone(tied))
        }

    def look_at(self, now: float) -> float | None:
        """When to look again."""
        return now + LOOK if self._known() else None

    def _known(self) -> list[tuple[int, int, bool, str | None, str | None]]:
        inside = self._store.db.in_transaction  # what is seen there may be undone
        if inside or self._at != self._store.generation:
            self._rows = allocations.with_processes(self._store)
            self._at = -1 if inside else self._store.generation
        return self._rows

    def _gone(self, process: str | None) -> bool:
        if process is None:
            return False
        pid, ticks, *boot = json.loads(process)
        return boot not in ([], [self._boot]) or proc.gone(pid, ticks)
