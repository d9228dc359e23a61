"""The shim of an allocation: it keeps the leases and starts nothing, until it is released.

Rules: it is released by a stop (a person, or the engine in their name), at its time limit, or by the end of the process that it
is tied to; each of them is its success. The process is known by its pid and the tick of its start, and watched by a descriptor,
so another that gets its number is not taken for it. None of this needs an engine. One whose directory was removed with its home
nobody could ever release: it goes by itself.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any

from jostle import proc
from jostle.backends.local import joblog, process
from jostle.backends.local.claims import HOLDER
from jostle.backends.local.commands import STOPS, WAITED_FOR, CommandTree
from jostle.failpoint import failpoint

HOME_LOOK = 5.0  # s between looks whether its directory is there; it goes when it is missing twice
LOOK = 0.25  # s between looks at the process it is tied to: signals are waited for meanwhile, and nothing waits for both


class Holding(CommandTree):
    """A run without commands."""

    def __init__(self, spec: dict[str, Any], log: int | None = None) -> None:
        super().__init__(spec, log)
        self._released = ""
        tied_to = spec.get("tied_to")
        self._tied: tuple[int, int] | None = (tied_to[0], tied_to[1]) if tied_to is not None else None
        self._pidfd: int | None = None
        self._home_look = time.monotonic() + HOME_LOOK
        self._missing = 0

    def execute(self, started: Callable[[], None]) -> None:
        if self.log is None:
            try:
                self.log = joblog.open_log(self.spec["log"])
            except OSError as e:
                self._refuse(f"log {self.spec['log']}", e)
                return
        if self._tied is not None:
            self._pidfd = process.open_pidfd(self._tied[0])  # first the handle, then the proof whose it is
            if not proc.alive(*self._tied):
                self._released = "process"
        _call_oneself(HOLDER)
        self._clocks()
        self._limit()
        started()
        failpoint("shim.holding")
        while not self._released:
            self._wait()
        failpoint("shim.releasing")
        self.note(f"released ({self._released})")
        self._code, self._ended, self._ended_at = 0, time.monotonic(), time.time()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def _limit(self) -> None:
        """Its own; the limit that its rules set is one of commands."""
        limit = self.spec.get("time_limit")
        self._deadline = None if limit is None else self._began + limit

    def _wait(self) -> None:
        now = time.monotonic()
        ordered, tied = None if self.legs is None else self.legs.due, None if self._tied is None else now + LOOK
        dues = (self._deadline, self._home_look, ordered, tied)
        wait = min((due - now for due in dues if due is not None), default=3600.0)
        heard = signal.sigtimedwait(WAITED_FOR, max(0.0, min(wait, 3600.0)))
        if self.legs is not None:
            self.legs.step(lambda: False)  # there is nothing that would begin again
        if heard is not None and heard.si_signo in STOPS:
            self._released = "asked"
        elif self._deadline is not None and time.monotonic() >= self._deadline:
            self._released = "time"
        elif self._tied is not None and not self._lives():
            self._released = "process"
        elif time.monotonic() >= self._home_look and self._homeless():
            self._released = "asked"

    def _homeless(self) -> bool:
        """Whether its directory is not there, and was not when it was looked for before. A silent disk says nothing."""
        self._home_look = time.monotonic() + HOME_LOOK
        try:
            os.lstat(self.spec["dir"])
            self._missing = 0
        except FileNotFoundError:
            self._missing += 1
        except OSError:
            pass
        return self._missing > 1

    def _lives(self) -> bool:
        """Whether the process that it is tied to does."""
        if self._pidfd is not None:
            return not select.select([self._pidfd], [], [], 0)[0]
        return self._tied is not None and proc.alive(*self._tied)

    def record(self) -> dict[str, Any]:
        return {**super().record(), "released": self._released}

    def last_word(self) -> None:
        """A stop that comes now changes nothing: it is being released."""


def _call_oneself(name: str) -> None:
    """For people who look at processes, and for simulated cards."""
    try:
        with open("/proc/self/comm", "w") as f:
            f.write(name)
    except OSError:
        pass
