"""Spare shims: made ahead by the nursery, used again after a run, each connected to the engine from its birth on."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial

from jostle import proc
from jostle.backends.local import process
from jostle.backends.local.contact import Spare, hung_up
from jostle.backends.local.nursery import Nursery
from jostle.port import Watcher

MOST = 32  # those that come back are kept up to so many, until want() sends them home: a fork costs more than all else
RUNS_PER_SHIM = 1000  # so that nothing can grow in one for ever
SPARES, SPARES_BUSY = 2, 6  # shims kept waiting for a run: at rest, and while runs follow fast on each other


class Pool:
    def __init__(
        self, *, watcher: Watcher, python: str, runs: str, heard: Callable[[Spare], None], returning: Callable[[], int]
    ) -> None:
        self._watcher, self._heard, self._returning = watcher, heard, returning
        self.nursery = Nursery(watcher=watcher, python=python, runs=runs, arrived=self._born)
        self.spares: list[Spare] = []
        self.enough = SPARES
        self.arrived: Callable[[], None] | None = None

    def open(self) -> None:
        self.nursery.start()
        self.replenish()

    def close(self) -> None:
        for spare in self.spares:
            self.hang_up(spare)
        self.spares.clear()
        self.nursery.close()

    def want(self, n: int) -> None:
        self.enough = n
        while len(self.spares) > n:
            self.hang_up(self.spares.pop())
        self.replenish()

    def replenish(self) -> None:
        """Asks for more, less those that are on their way or about to come back; for one at least if there is none."""
        nursery = self.nursery
        if nursery.ready:
            missing = self.enough - len(self.spares) - nursery.owed - self._returning()
            nursery.ask(max(missing, not self.spares and not nursery.owed))

    def _born(self, pid: int, sock: socket.socket) -> None:
        sock.setblocking(False)
        pidfd = process.open_pidfd(pid)
        stat = proc.stat(pid)
        # only the spare holds the other end: while that is open, the pid is still its own
        if stat is None or hung_up(sock):
            sock.close()
            if pidfd is not None:
                os.close(pidfd)
            return
        spare = Spare(pid, stat.ticks, sock, pidfd)
        self._watcher.watch(sock.fileno(), partial(self._stirred, spare))
        self.spares.append(spare)
        if self.arrived is not None:
            self.arrived()

    def _stirred(self, spare: Spare) -> None:
        if spare.run is not None:
            self._heard(spare)
        elif spare in self.spares:  # it says nothing before it has a run, so this is its end
            self.spares.remove(spare)
            self.hang_up(spare)
            self.replenish()

    def hang_up(self, spare: Spare) -> None:
        self._watcher.unwatch(spare.sock.fileno())
        spare.sock.close()
        if spare.pidfd is not None:
            os.close(spare.pidfd)

    def takes_back(self, spare: Spare | None) -> bool:
        return spare is not None and spare.runs < RUNS_PER_SHIM and len(self.spares) < MOST

    def wear_out(self, spare: Spare) -> None:
        """It carries no run after the one it has."""
        spare.runs = RUNS_PER_SHIM

    def take_back(self, spare: Spare) -> None:
        """The shim of a run that is over and of which nobody is left is a spare again, and a warm one."""
        spare.run = None
        spare.runs += 1
        self.spares.append(spare)
        if len(self.spares) == 1 and self.arrived is not None:
            self.arrived()
