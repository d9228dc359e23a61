"""The only loop: it waits for descriptors and for the next deadline, and calls back. No threads."""

from __future__ import annotations

import selectors
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostle.engine.engine import Engine
    from jostle.engine.service import Service

GATHER = 0.01  # s; how long a busy engine goes on before it waits for the disk

Callback = Callable[[], None]


class Loop:
    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()

    def watch(self, fd: int, callback: Callback) -> None:
        self.selector.register(fd, selectors.EVENT_READ, (callback, None))

    def unwatch(self, fd: int) -> None:
        try:
            self.selector.unregister(fd)
        except (KeyError, ValueError):
            pass  # it was not watched any more

    def watch_write(self, fd: int, callback: Callback, writable: Callback | None) -> None:
        """Also calls `writable` when the descriptor takes more; None: not any more."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writable else 0)
        self.selector.modify(fd, events, (callback, writable))

    def wait(self, timeout: float | None) -> bool:
        """One round: everything that is ready is called once; whether anything was."""
        ready = self.selector.select(timeout)
        for key, mask in ready:
            callback, writable = key.data
            if mask & selectors.EVENT_WRITE and writable:
                writable()
            if mask & selectors.EVENT_READ and key.fd in self.selector.get_map():
                callback()
        return bool(ready)

    def close(self) -> None:
        self.selector.close()


def turn(loop: Loop, engine: Engine, service: Service) -> None:
    """Until the engine ends: requests, ticks, housekeeping, and waiting for whichever comes first; the disk is waited for when
    there is nothing better to do, or after a while."""
    clock = engine.clock
    while True:
        now = clock.now()
        service.serve()
        engine.step(now)
        service.step(now)
        if service.finished(now):
            engine.settle()
            return
        due = min(engine.next_at(), service.next_at())
        happened = loop.wait(0.0 if service.pending else max(0.0, due - clock.now()))
        if engine.settle_at is not None and engine.settle_at <= now and not (happened and now < engine.settle_at + GATHER):
            engine.settle()
