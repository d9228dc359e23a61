"""What the engine knows of a run that stands still while somebody else is on its cards: what is recorded, and what cards show."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from jostle.core.model import Pausing

HOW = "pause"
"""As a job says it (`when_stranger`)."""
BLIND = 5.0  # s without a reading of its cards, of which nobody knows whether they were quiet


@dataclass(slots=True)
class Stillness:
    now: bool = False  # it is to stand still: that is recorded
    since: float = -math.inf  # when that last changed
    times: int = 0  # see core.model.Pausing
    paused_s: float = 0.0
    reason: Mapping[str, Any] | None = None  # why it last changed
    still: bool = False  # all its processes are seen to be stopped
    quiet_since: float | None = None  # from which on all readings have shown nobody else
    seen: dict[str, float] = field(default_factory=dict)  # by card: when it was last read

    def value(self, *, supervised: bool) -> Pausing:
        quiet_s = None if self.quiet_since is None else max(0.0, min(self.seen.values(), default=0.0) - self.quiet_since)
        return Pausing(
            now=self.now, since=self.since, times=self.times, paused_s=self.paused_s, quiet_s=quiet_s, supervised=supervised
        )

    def see(self, cards: Collection[str], just_now: Collection[str], *, alone: bool, now: float) -> None:
        """Of its cards these were read just now; whether nobody else was seen there. A slow one may be read a moment later."""
        before = min((self.seen.get(uuid, -math.inf) for uuid in cards), default=now)
        self.seen = {uuid: now if uuid in just_now else self.seen.get(uuid, -math.inf) for uuid in cards}
        if not alone or now - before > BLIND:
            self.quiet_since = None
        if alone and self.quiet_since is None and now - min(self.seen.values(), default=now) <= BLIND:
            self.quiet_since = now

    def paused(self, times: int, reason: Mapping[str, Any], now: float) -> None:
        self.now, self.since, self.times, self.reason, self.still = True, now, times, reason, False

    def continued(self, reason: Mapping[str, Any], now: float) -> None:
        self.paused_s += now - self.since
        self.now, self.since, self.reason, self.still = False, now, reason, False


def of_job(job: Mapping[str, Any]) -> Stillness | None:
    return Stillness() if job["when_stranger"] == HOW else None


def of_row(row: Mapping[str, Any]) -> Stillness | None:
    """Of a run that an earlier engine began."""
    its = of_job(row)
    if its is not None and row["paused"] is not None:
        state = json.loads(row["paused"])
        its.now, its.since, its.times, its.reason = state["now"], state["since"], state["times"], state["reason"]
        its.paused_s = row["paused_s"]
    return its
