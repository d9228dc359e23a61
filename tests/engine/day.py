"""A day on a shared server in simulated time: how long do cards stand idle that are really free, while jobs wait?

Everything of the engine is real but the clock, the processes and the cards. Other people come when a card falls free, now and
then before us, and stay for seconds or hours. A card counts as free from the instant in which its last process ends.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.engine.fakes import FOREVER, FakeProbe, Host

STAYS = (5.0, 20.0, 120.0, 900.0, 3600.0, 3 * 3600.0)  # s; a look whether it starts, a test, an evening's work
MIB = 9000  # what a stranger takes
WAITING = 20  # so many jobs of ours wait at any time


class RatedProbe(FakeProbe):
    """One that also tells unasked, as often as it was told to."""

    period, next_at = 0.0, FOREVER

    def rate(self, period: float) -> None:
        if period != self.period:
            self.period, self.next_at = period, self.clock.at + period


@dataclass
class Tally:
    free: float = 0.0  # card-seconds without a stranger
    lost: float = 0.0  # … of which nobody had anything
    kept: float = 0.0  # … but which were kept for a big job
    jobs: int = 0
    strangers: int = 0


class Day:
    def __init__(self, home: str, seed: int, gpus: int = 8) -> None:
        self.host = Host(home, gpus=gpus)
        self.rng = random.Random(seed)
        self.probe = self.host.probe = self.host.engine.cards.probe = RatedProbe(self.host.disk, self.host.clock)
        self.probe.open(self.host.clock.at)
        self.leaves: dict[str, float] = {}  # card -> when its stranger goes
        self.tally = Tally()

    def live(self, seconds: float) -> Tally:
        host, until = self.host, self.host.clock.at + seconds
        self.turn()
        while host.clock.at < until:
            at = min(self.next(), until)
            self.count(at - host.clock.at)
            host.clock.at = at
            self.turn()
        return self.tally

    def next(self) -> float:
        """When something happens by itself, or the engine wants to be called."""
        engine, now = self.host.engine, self.host.clock.at
        times = [self.probe.next_at, *self.leaves.values()]
        times += [p.ends for p in self.host.disk.alive(now)]
        return max(now, min(*times, engine.next_at()))

    def count(self, seconds: float) -> None:
        used = {uuid for p in self.host.disk.alive(self.host.clock.at) for uuid in p.uuids}
        free = [uuid for uuid in self.host.disk.uuids() if uuid not in self.leaves]
        kept = {no.uuid for reason in self.host.engine.waits.values() for no in reason.gpus if no.code == "kept"}
        idle = [uuid for uuid in free if uuid not in used]
        self.tally.free += len(free) * seconds
        self.tally.kept += sum(uuid in kept for uuid in idle) * seconds
        self.tally.lost += sum(uuid not in kept for uuid in idle) * seconds

    def turn(self) -> None:
        host, now = self.host, self.host.clock.at
        for uuid in [uuid for uuid, at in self.leaves.items() if at <= now]:
            del self.leaves[uuid], host.disk.strangers[uuid]
        for run, p in list(host.disk.processes.items()):
            if p.ends <= now and run in host.backend.forgotten:
                del host.disk.processes[run]
            elif p.ends == now:
                self.comes(p.uuids)
        (waiting,) = host.store.db.execute("SELECT count(*) FROM job WHERE ready = 1").fetchone()
        for _ in range(WAITING - waiting):
            self.submit()
        if now >= self.probe.next_at:
            self.probe.next_at = now + self.probe.period
            self.probe.lines.append(self.probe.line())
        host.step()

    def comes(self, uuids: tuple[str, ...]) -> None:
        for uuid in uuids:
            if uuid not in self.leaves and self.rng.random() < 0.3:
                self.tally.strangers += 1
                self.leaves[uuid] = self.host.clock.at + self.rng.choice(STAYS) * self.rng.uniform(0.5, 1.5)
                self.host.disk.strangers[uuid] = MIB

    def submit(self) -> None:
        self.tally.jobs += 1
        cards = self.rng.choices((1, 2, 4), (80, 15, 5))[0]
        (id,) = self.host.submit({"gpus": [cards, cards]})
        self.host.disk.durations[id] = (self.rng.uniform(60, 3600), 0, "")
