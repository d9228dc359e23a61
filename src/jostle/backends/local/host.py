"""The allocation that a run is inside of, as the run's shim knows it: it needs no engine to learn that it was released.

Rules: it was released when its shim has ended and has left an exit record. Without that record it was lost (killed), which is no
reason to end the work inside: that has claims of its own on its cards.
"""

from __future__ import annotations

import os
import select
from typing import Any

from jostle import proc
from jostle.backends.local import process

LOOK = 0.5  # s


class EnclosingAllocation:
    def __init__(self, host: dict[str, Any]) -> None:
        self._dir: str = host["dir"]
        self.due: float | None = 0.0  # when to look next; None: there is nothing more to learn
        self._pidfd: int | None = None
        shim = host["shim"]
        self._shim: tuple[int, int] | None = (shim[0], shim[1]) if shim is not None else None
        if self._shim is not None:
            self._pidfd = process.open_pidfd(self._shim[0])
            if not proc.alive(*self._shim):
                self._close()
                self._shim = None

    def over(self) -> bool:
        """Whether nothing may begin inside it any more."""
        return not self._alive() or os.path.lexists(f"{self._dir}/exit")

    def released(self, now: float) -> bool:
        """Whether it has been released since it was last asked; said once."""
        if self.due is None or now < self.due:
            return False
        self.due = now + LOOK
        if self._alive():
            return False
        self.due = None
        self._close()
        return os.path.lexists(f"{self._dir}/exit")

    def _alive(self) -> bool:
        if self._pidfd is not None:
            return not select.select([self._pidfd], [], [], 0)[0]
        return self._shim is not None and proc.alive(*self._shim)

    def _close(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
