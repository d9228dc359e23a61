"""A day of one long program on a shared server, in simulated time: how much of what strangers leave free does it use?

Everything of the engine is real but the clock, the processes and the cards. Strangers come one after the other, mostly onto a
card that nobody uses, now and then onto ours, and stay for minutes or hours. What a program uses is its cards without a stranger;
each change of its cards costs it so many seconds on all of them, as it must begin again from its last checkpoint.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.engine.day import MIB, RatedProbe
from tests.engine.fakes import FOREVER, Host

STAYS = (60.0, 300.0, 1800.0, 3600.0, 3 * 3600.0)
EVERY = 600.0  # s between two strangers, on average
RUDE = 0.25  # of them come onto any card, whoever has it
BEGIN_AGAIN = 30.0  # s that a change of cards costs


@dataclass
class Used:
    best: float = 0.0  # card-seconds without a stranger
    ours: float = 0.0  # … of which the program had so many
    changes: int = 0
    strangers: int = 0

    @property
    def share(self) -> float:
        return max(0.0, self.ours) / self.best


class ElasticDay:
    def __init__(self, home: str, seed: int, cards: int = 8, **job: Any) -> None:
        self.host = Host(home, gpus=cards)
        self.rng = random.Random(seed)
        self.probe = self.host.probe = self.host.engine.cards.probe = RatedProbe(self.host.disk, self.host.clock)
        self.probe.open(self.host.clock.at)
        self.leaves: dict[str, float] = {}  # card -> when its stranger goes
        self.comes_at = self.host.clock.at + self.rng.expovariate(1 / EVERY)
        self.used = Used()
        (self.id,) = self.host.submit(job)
        self.host.disk.durations[self.id] = (FOREVER, 0, "")

    def live(self, seconds: float) -> Used:
        host, until = self.host, self.host.clock.at + seconds
        host.step()
        while host.clock.at < until:
            at = min(self._next(), until)
            self._count(at - host.clock.at)
            host.clock.at = at
            self._turn()
        self.used.changes = len(host.disk.resizes)
        lost = sum(len(cards) * BEGIN_AGAIN for _, _, _, cards in host.disk.resizes)
        self.used.ours -= lost
        return self.used

    def _next(self) -> float:
        engine, now = self.host.engine, self.host.clock.at
        return max(now, min(self.probe.next_at, self.comes_at, *self.leaves.values(), engine.next_at()))

    def _mine(self) -> set[str]:
        return {uuid for p in self.host.disk.alive(self.host.clock.at) for uuid in p.listed}

    def _count(self, seconds: float) -> None:
        free = [uuid for uuid in self.host.disk.uuids() if uuid not in self.leaves]
        self.used.best += len(free) * seconds
        self.used.ours += len(self._mine() & set(free)) * seconds

    def _turn(self) -> None:
        host, now = self.host, self.host.clock.at
        for uuid in [uuid for uuid, at in self.leaves.items() if at <= now]:
            del self.leaves[uuid], host.disk.strangers[uuid]
        if now >= self.comes_at:
            self.comes_at = now + self.rng.expovariate(1 / EVERY)
            self._stranger()
        if now >= self.probe.next_at:
            self.probe.next_at = now + self.probe.period
            self.probe.lines.append(self.probe.line())
        host.step()

    def _stranger(self) -> None:
        open_ = [uuid for uuid in self.host.disk.uuids() if uuid not in self.leaves]
        unused = [uuid for uuid in open_ if uuid not in self._mine()]
        choice = open_ if self.rng.random() < RUDE or not unused else unused
        if len(open_) > 2 and choice:
            uuid = self.rng.choice(choice)
            self.used.strangers += 1
            self.leaves[uuid] = self.host.clock.at + self.rng.choice(STAYS) * self.rng.uniform(0.5, 1.5)
            self.host.disk.strangers[uuid] = MIB
