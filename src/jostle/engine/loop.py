"""The only loop: it waits for descriptors and for the next deadline, and calls back. No threads."""

from __future__ import annotations

import selectors
from collections.abc import Callable

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
