"""The engine's clock: seconds that never jump.

Within a boot it is BOOTTIME (it runs on through suspend and knows no wall-clock changes) on an anchor kept in the store; after
a reboot it goes on from wall time, but never before the last start of a run. Wall time itself is only shown to people.
"""

from __future__ import annotations

import time

from jostle import proc
from jostle.store import runs
from jostle.store.store import Store


class Clock:
    def __init__(self, store: Store) -> None:
        self.boot = proc.boot_id()
        anchor = store.get("clock")
        if anchor is None or anchor["boot"] != self.boot:
            anchor = {"boot": self.boot, "boottime": self.boottime(), "now": max(self.wall(), runs.last_start(store))}
            with store.transaction():
                store.put("clock", anchor)
        self.offset: float = anchor["now"] - anchor["boottime"]

    def now(self) -> float:
        return self.boottime() + self.offset

    def wall(self) -> float:
        return time.time()

    def boottime(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
