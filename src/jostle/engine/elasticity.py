"""What the engine knows of a run that may get other cards while it lives: what was ordered, what came of it, how busy it is."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Any

from jostle.core.model import Elastic, Lease
from jostle.core.reasons import Reason
from jostle.core.resize import HOLD, TOO_DEAR
from jostle.engine.observe import SAMPLES_APART
from jostle.port import Footing
from jostle.store.allocations import NO_COMMANDS

"""What an allocation has, as the store keeps it."""
LATELY = 3600.0  # s in which losses to others count …
SOON = 180.0  # … that came so soon after the change before: who could work for longer has not come and gone
TO_OTHERS = frozenset({"stranger_came", "for_job", "courtesy"})  # why cards are lost, beyond what a person or its own load says
LOAD_OVER, LOAD_KNOWN = 60.0, 30.0  # s: a mean is over so long, and known after so long
FIRST_PAUSE, MOST_PAUSE = 2.0, 3600.0  # s after a try in vain: first, and at the most
TOLD_OF = 3  # tries in vain, one after the other, of which there are events: a program may be deaf for weeks


@dataclass(slots=True)
class Elasticity:
    how: str  # restart | signal | hold
    least: int
    most: int
    priority: int
    resized_at: float  # when its cards last changed, or it began
    listed: tuple[str, ...] = ()  # the cards that it is to use, by the last order
    order: int = 1  # its number
    leg: int = 1  # how many lists were in effect, with this one
    before: tuple[str, ...] = ()  # what it was to use until then
    why: str = ""  # the reason of the last order
    settled: bool = True  # it is recorded what became of that
    footing: Footing | None = None  # as its backend tells
    news: bool = False  # … which is not recorded yet
    lost_at: list[float] = field(default_factory=list)  # when it lost cards to others, soon after a change
    tempted_at: float | None = None  # since when it could have had more cards, had the change not been too dear
    vain: int = 0  # tries one after the other
    failure: str = ""  # why the last was
    not_before: float = 0.0
    loads: deque[tuple[float, float]] = field(default_factory=deque)
    load_says: tuple[bool, bool] | None = None  # whether that is enough for more cards, or too little for these
    asked_at: float = 0.0  # when it was last told to let cards go that it has left
    effective_at: float = 0.0  # when the last order was seen to be in effect

    def value(self, leases: Sequence[Lease], *, supervised: bool, now: float) -> Elastic:
        return Elastic(
            how=self.how, least=self.least, most=self.most, priority=self.priority, listed=self.listed,
            busy=self._busy(leases, supervised), resized_at=self.resized_at, not_before=self.not_before,
            failed=self.failure, tempted_for=0.0 if self.tempted_at is None else now - self.tempted_at,
            lost_to_others=sum(now - at < LATELY for at in self.lost_at), load=self.load,
        )  # fmt: skip

    def _busy(self, leases: Sequence[Lease], supervised: bool) -> Reason | None:
        if not supervised or self.footing is None:
            return Reason("unreachable")
        if not self.settled and not self.in_effect:
            coming = [lease.index for lease in leases if lease.uuid in self.listed]
            return Reason("resizing", {"leg": self.leg + 1, "gpus": coming})
        leaving = [lease.index for lease in leases if lease.uuid not in self.listed]
        return Reason("not_left", {"leg": self.leg, "gpus": leaving}) if leaving or not self.settled else None

    @property
    def quiet(self) -> bool:
        """Whether another try is no news; `why` tells how it stands."""
        return self.vain >= TOLD_OF

    @property
    def in_effect(self) -> bool:
        return self.footing is not None and self.footing.effective == self.order

    @property
    def decided(self) -> bool:
        """Whether its backend knows what became of the last order."""
        known = self.footing is not None and self.footing.order == self.order
        return known and self.footing is not None and (not self.footing.taken or self.footing.effective == self.order)

    def hear(self, footing: Footing) -> bool:
        """Whether that is news."""
        if footing == self.footing:
            return False
        self.footing, self.news = footing, True
        return True

    # --- what is recorded

    def ordered(self, cards: Sequence[str], why: str) -> None:
        self.order += 1
        self.before, self.listed, self.why, self.settled = self.listed, tuple(cards), why, False
        self.effective_at = 0.0
        self.loads.clear()

    def done(self, now: float) -> None:
        self.settled, self.vain, self.not_before, self.tempted_at = True, 0, 0.0, None
        if self.why in TO_OTHERS and now - self.resized_at < SOON:
            self.lost_at = [*(at for at in self.lost_at if now - at < LATELY), now]
        self.resized_at = now

    def keeps(self, why: str, now: float) -> None:
        """It keeps its cards, by this code."""
        if why == TOO_DEAR:
            self.tempted_at = self.tempted_at or now
        elif why != "resize_failed":  # then they may be there as before
            self.tempted_at = None

    def failed(self, why: str, now: float) -> None:
        """Nothing of it came about; it is tried again after a pause that grows."""
        self.listed, self.settled = self.before, True
        self.in_vain(why, now)

    def in_vain(self, why: str, now: float) -> None:
        self.vain, self.failure = self.vain + 1, why
        self.not_before = now + min(FIRST_PAUSE * 2.0 ** min(self.vain - 1, 20), MOST_PAUSE)

    def asked(self, least: int, most: int) -> None:
        """A person wants so many: that is tried at once, whatever was in vain before."""
        self.least, self.most, self.vain, self.not_before = least, most, 0, 0.0
        self.tempted_at = -math.inf  # nor is it too dear

    # --- how busy it is

    def see_load(self, cards: Mapping[str, Mapping[str, Any]], now: float) -> None:
        """These cards have been read."""
        if self.loads and now - self.loads[-1][0] < SAMPLES_APART:
            return
        loads = [cards[uuid]["utilization"] for uuid in self.listed if uuid in cards]
        known = [load for load in loads if load is not None]
        if not known or len(known) < len(self.listed):
            return
        if self.loads and now - self.loads[-1][0] > LOAD_KNOWN:
            self.loads.clear()  # nobody looked for long
        self.loads.append((now, sum(known) / len(known)))
        while self.loads[0][0] < now - LOAD_OVER:
            self.loads.popleft()

    @property
    def load(self) -> float | None:
        if not self.loads or self.loads[-1][0] - self.loads[0][0] < LOAD_KNOWN:
            return None
        return sum(load for _, load in self.loads) / len(self.loads)


def of_job(job: Mapping[str, Any], cards: Collection[str], now: float) -> Elasticity | None:
    """Of a run that begins; None: it keeps the cards it has."""
    how = HOLD if job["commands"] == NO_COMMANDS else job["resize"]
    if how is None:
        return None
    return Elasticity(how, job["gpus_min"], job["gpus_max"], job["priority"], now, listed=tuple(cards))


def of_row(row: Mapping[str, Any], orders: Sequence[Mapping[str, Any]]) -> Elasticity | None:
    """Of a run that an earlier engine began, with the orders to it, the newest first."""
    kept = of_job(row, [lease.uuid for lease in row["leases"]], row["clock_at"])
    if kept is None or not orders:
        return kept
    last = orders[0]
    kept.order, kept.why, kept.settled = last["leg"], last["reason"]["code"], last["outcome"] is not None
    kept.leg = row["leg"]
    kept.vain = sum(1 for _ in takewhile(lambda order: order["outcome"] not in (None, "done"), orders))
    kept.before = tuple(last["before"])
    kept.listed = tuple(last["uuids"]) if last["outcome"] in (None, "done") else kept.before
    done = [order for order in orders if order["outcome"] == "done"]
    kept.resized_at = max([row["clock_at"], *(order["clock_at"] for order in done)])
    times = [row["clock_at"], *(order["clock_at"] for order in reversed(done))]
    kept.lost_at = [
        at for (before, at), order in zip(pairwise(times), reversed(done), strict=True)
        if order["reason"]["code"] in TO_OTHERS and at - before < SOON
    ]  # fmt: skip
    return kept
