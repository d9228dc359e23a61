"""What each process does on the cards, read by a thread of its own while somebody looks.

For showing only. A look at the cards takes what is there: it neither waits for this nor hangs with it. A driver that hangs here
costs one thread, and then nothing is told of processes.
"""

from __future__ import annotations

import time
from _thread import start_new_thread
from collections.abc import Callable, Mapping

EVERY = 2.0  # s
GOOD_FOR = 10.0  # s; what is older says nothing of now

ByCard = Mapping[str, Mapping[int, int]]
"""By UUID and pid, % of the card's processors."""


class Loads:
    def __init__(self, read: Callable[[], ByCard]) -> None:
        self._read = read
        self._read_at = 0.0
        self._seen: ByCard = {}
        self._until = 0.0
        self._reading = False

    def watch(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        if not self._reading:
            self._reading = True
            start_new_thread(self._keep_reading, ())

    def of(self, uuid: str) -> Mapping[int, int]:
        now = time.monotonic()
        return self._seen.get(uuid, {}) if now < self._until and now - self._read_at < GOOD_FOR else {}

    def _keep_reading(self) -> None:
        try:
            while time.monotonic() < self._until:
                self._seen = self._read()
                self._read_at = time.monotonic()
                time.sleep(EVERY)
        finally:
            self._reading = False
