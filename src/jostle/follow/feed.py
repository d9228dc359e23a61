"""Events of the engine as a queue that can be waited on together with signals and time.

A thread reads the stream; when the engine goes away it connects again (which starts one, unless a person has stopped it) and goes
on after the last event seen, so that nothing is missed and nothing told twice. Signals arrive in the same queue.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from jostle.errors import JostleError, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostle.client import Client

GIVE_UP = 60.0  # s without an engine
WOKEN: tuple[str, Any] = ("woken", None)


def loss(e: Exception) -> str:
    """How the loss of the engine is told of: the code of a message, which takes why."""
    return "engine_stopped" if isinstance(e, Stopped) else "engine_lost"


class Feed:
    def __init__(
        self, connect: Callable[[], Client], *, after: int, batch: int | None, again: Callable[[], Client] | None = None
    ) -> None:  # fmt: skip
        """`again`: connects when the engine was lost."""
        self.connect, self.after, self.batch = connect, after, batch
        self.again = again or connect
        self.items: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._before: dict[int, Any] = {}  # what signals meant to whoever was here before
        self._wakeup: tuple[int, int] | None = None  # the pipe that each signal is written to, and what was in its place
        self._client: Client | None = None
        self._closed = False

    def start(self) -> threading.Thread:
        pump = threading.Thread(target=self._pump, daemon=True)
        pump.start()
        return pump

    def catch(self, *signals: int) -> None:
        """Signals become items ("signal", number); SimpleQueue.put may be called from a handler. Python runs that when the main
        thread comes to it; one that waits in `next`, and was not interrupted, is woken by the pipe."""
        if signals:
            heard, waking = os.pipe()
            os.set_blocking(waking, False)
            self._wakeup = waking, signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
            threading.Thread(target=self._wake, args=(heard,), daemon=True).start()
        for number in signals:
            self._before[number] = signal.signal(number, lambda n, _: self.items.put(("signal", n)))

    def _wake(self, heard: int) -> None:
        with open(heard, "rb", buffering=0) as pipe:
            while pipe.read(64):
                self.items.put(WOKEN)

    def close(self) -> None:
        """For a program that goes on: nothing is heard any more, and signals mean what they meant before."""
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)
        if self._wakeup is not None:
            signal.set_wakeup_fd(self._wakeup[1])
            os.close(self._wakeup[0])
            self._wakeup = None
        self._closed = True
        if self._client is not None:
            self._client.hang_up()

    def next(self, timeout: float | None) -> tuple[str, Any] | None:
        """("event", row), ("lost", exception), ("back", None), ("signal", number), ("error", exception); None when time is up."""
        end = None if timeout is None else time.monotonic() + timeout
        item = WOKEN
        while item is WOKEN:
            left = None if end is None else end - time.monotonic()
            try:
                item = self.items.get(timeout=left) if left is None or left > 0 else self.items.get_nowait()
            except queue.Empty:
                return None
        return item

    def interrupted(self) -> bool:
        """Whether a signal has come; what came before it is for nobody any more."""
        while (item := self.next(0)) is not None:
            if item[0] == "signal":
                return True
        return False

    def _pump(self) -> None:
        lost_at: float | None = None
        pause, stopped = 0.05, False
        while True:
            try:
                client = self._client = self.connect() if lost_at is None else self.again()
                if self._closed:
                    client.hang_up()
                stream = client.stream(self.after, self.batch)
                if lost_at is not None:
                    self.items.put(("back", None))
                    lost_at, pause, stopped = None, 0.05, False
                for event in stream:
                    self.after = event["seq"]
                    self.items.put(("event", event))
            except (JostleError, OSError, ValueError) as e:
                if self._client is not None:
                    self._client.close()
                if self._closed:
                    return
                now = time.monotonic()
                if lost_at is None or (isinstance(e, Stopped) and not stopped):
                    self.items.put(("lost", e))
                stopped = isinstance(e, Stopped)
                if lost_at is None or stopped:
                    lost_at = now
                elif now - lost_at > GIVE_UP:
                    self.items.put(("error", e))
                    return
                time.sleep(pause)
                pause = min(2.0, pause * 2)
