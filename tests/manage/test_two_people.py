"""A day of two people on one host, in simulated time: ours with jobs now and then and a floor, and a colleague with another uid.

The colleague takes a card that nobody has, and waits where there is none; our claims he respects, as his jostle would. Everything
of the engine is real but the clock, the processes and the cards. The floor is asked as the monitor asks it, each LOOK seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from jostle.core.states import UNFINISHED
from jostle.core.survey import courtesy_of
from jostle.engine import checks
from jostle.engine.answers import Answers
from jostle.manage.floor import Aim, FloorCard, Situation, Step, rules, step
from jostle.store.reads import Reader
from tests.engine.day import MIB, Day, RatedProbe
from tests.engine.fakes import FOREVER

LOOK = 20.0
HOURS = 6
STAYS = (60.0, 600.0, 1800.0, 3600.0)
VISITS, JOBS = 30, 10


class CalmProbe(RatedProbe):
    """What changes is told at once in this world, so that nobody need look each second."""

    def rate(self, period: float) -> None:
        super().rate(max(period, LOOK))


@dataclass
class Colleague:
    waits: float = 0.0  # s that he waited, over all that he wanted
    came: int = 0
    wants: list[tuple[float, float]] = field(default_factory=list)  # since when, for how long
    faults: list[str] = field(default_factory=list)


class TwoPeople(Day):
    def __init__(self, home: str, seed: int, aim: Aim | None, own: dict[str, Any]) -> None:
        super().__init__(home, seed, gpus=6)
        self.probe = self.host.probe = self.host.engine.cards.probe = CalmProbe(self.host.disk, self.host.clock)
        self.probe.open(self.host.clock.at)
        self.host.engine.reload({"policy": own}, checks.policy(own))
        self.aim, self.own, self.bob = aim, own, Colleague()
        self.answers = Answers(self.host.engine, self.host.engine.cards, Reader(home), {})
        plans = Random(seed)  # the same for him and for our jobs, whatever the floor does
        at = self.host.clock.at
        self.his = sorted((at + plans.uniform(0, HOURS * 3600), plans.choice(STAYS)) for _ in range(VISITS))
        self.ours = sorted((at + plans.uniform(0, HOURS * 3600), plans.uniform(60, 3600)) for _ in range(JOBS))
        self.look_at = at
        self.floor: list[int] = []
        self.active_at = at
        self.crowded_since = 0.0  # since when he waits though the floor holds more than it may
        self.most = 0
        self.again_at = 0.0

    def next(self) -> float:
        plans = [each[0][0] for each in (self.his, self.ours) if each]
        return max(self.host.clock.at, min(super().next(), self.look_at, *plans))

    def turn(self) -> None:
        host, now = self.host, self.host.clock.at
        for uuid in [uuid for uuid, at in self.leaves.items() if at <= now]:
            del self.leaves[uuid], host.disk.strangers[uuid]
        for run, p in list(host.disk.processes.items()):
            if p.ends <= now and run in host.backend.forgotten:
                del host.disk.processes[run]
        while self.his and self.his[0][0] <= now:
            self.bob.wants.append(self.his.pop(0))
            self.bob.came += 1
        while self.ours and self.ours[0][0] <= now:
            (id,) = host.submit({})
            host.disk.durations[id] = (self.ours.pop(0)[1], 0, "")
        self.colleague()
        if now >= self.probe.next_at:
            self.probe.next_at = now + self.probe.period
            self.probe.lines.append(self.probe.line())
        host.step()
        self.colleague()
        if now >= self.look_at:
            self.look_at = now + LOOK
            self.keep_floor()
            host.step()

    def held(self) -> set[str]:
        return {uuid for p in self.host.disk.alive(self.host.clock.at) for uuid in p.uuids}

    def colleague(self) -> None:
        """Takes what is free."""
        for uuid in self.host.disk.uuids():
            if self.bob.wants and uuid not in self.leaves and uuid not in self.held():
                since, stay = self.bob.wants.pop(0)
                self.bob.waits += self.host.clock.at - since
                self.leaves[uuid] = self.host.clock.at + stay
                self.host.disk.strangers[uuid] = MIB
                self.probe.lines.append(self.probe.line())

    def keep_floor(self) -> None:
        if self.aim is None:
            return
        now, (probe, host) = self.host.clock.at, (self.probe, self.host)
        probe.lines.append(probe.line())
        host.step()
        states = dict(host.store.db.execute("SELECT id, state FROM job").fetchall())
        self.floor = [id for id in self.floor if states[id] in UNFINISHED]
        if any(state in ("running", "queued") for id, state in states.items() if id not in self.floor):
            self.active_at = now
        policy = rules(self.own, self.aim)
        room = self.answers.room({"policy": policy})
        kept = tuple(FloorCard(id=id, holds=states[id] != "queued") for id in self.floor)
        seen = Situation(
            now=now, kept=kept, held=room["held"], may=room["may"], may_keep=room["may_keep"], free=room["free"],
            waiting=bool(room["waiting"]), active_at=self.active_at, again_at=self.again_at,
        )  # fmt: skip
        self.judge(now, room)
        self.act(step(seen, self.aim), policy)
        self.most = max(self.most, len(self.floor))

    def act(self, done: Step, policy: dict[str, Any]) -> None:
        for id in done.give:
            self.host.cancel(id)
        for _ in range(done.take):
            (id,) = self.host.submit({"priority": -1000}, policy=policy)
            self.host.disk.durations[id] = (FOREVER, 0, "")
            self.floor.append(id)

    def judge(self, now: float, room: dict[str, Any]) -> None:
        """He waits, and has waited since the look before last, while the floor holds a card beyond what courtesy allows."""
        beyond = bool(self.floor) and bool(self.bob.wants) and room["held"] > room["may"]
        self.crowded_since = (self.crowded_since or now) if beyond else 0.0
        if beyond and now - self.crowded_since > 2 * LOOK:
            self.bob.faults.append(f"at {now - 1000:.0f} he waits, and we hold {room['held']} of {room['may']}")


def day(tmp_path: Path, name: str, seed: int, aim: Aim | None, own: dict[str, Any]) -> TwoPeople:
    home = tmp_path / name
    home.mkdir(mode=0o700)
    made = TwoPeople(str(home), seed, aim, own)
    made.live(HOURS * 3600.0)
    return made


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("own", [{}, {"gpu_left": 2, "min_gpu": 0, "max_gpu": 4}], ids=["nothing is set", "two are left"])
def test_c6_a_colleague_is_never_worse_off_for_the_floor_than_courtesy_allows(
    tmp_path: Path, seed: int, own: dict[str, Any]
) -> None:
    """Of a floor whose minimum is none he notices no more than a look for each time that he comes."""
    with_floor = day(tmp_path, "with", seed, Aim(least=0, most=3), own)
    without = day(tmp_path, "without", seed, None, own)
    assert with_floor.most > 0 and with_floor.bob.came == without.bob.came
    assert with_floor.bob.faults == []
    allowed = without.bob.waits + 2 * LOOK * without.bob.came
    assert with_floor.bob.waits <= allowed
    assert with_floor.host.disk.overlaps == []


def test_c6_the_minimum_is_all_that_a_waiting_colleague_ever_sees_held(tmp_path: Path) -> None:
    made = day(tmp_path, "with", 4, Aim(least=1, most=3), {})
    assert made.most >= 2 and made.bob.waits > 0, "he had to wait, and the floor had more than its minimum at times"
    assert made.bob.faults == []


RULES = {"gpu_left": 1, "min_gpu": 1, "max_gpu": 6, "resize_interval": 60.0}
FULL = 24_000  # MiB of a card


class Growing(TwoPeople):
    """Ours has no floor, but a job that grows onto what is free, by courtesy. What the colleague uses fills its card."""

    def __init__(self, home: str, seed: int) -> None:
        super().__init__(home, seed, None, dict(RULES))
        (self.job,) = self.host.submit({"gpus": [1, 6], "resize": "signal"}, policy=dict(RULES))
        self.host.disk.durations[self.job] = (FOREVER, 0, "")
        self.ours = []
        self.since: float | None = None  # since when he waits though we hold more than we may

    def colleague(self) -> None:
        super().colleague()
        for uuid in self.host.disk.strangers:
            self.host.disk.strangers[uuid] = FULL

    def keep_floor(self) -> None:
        now, engine = self.host.clock.at, self.host.engine
        self.probe.lines.append(self.probe.line())
        self.host.step()
        gpus = engine.cards.gpus(now)
        room = courtesy_of(engine.world(now, gpus, engine.carried.claims({g.uuid for g in gpus})), checks.policy(self.own))
        held = len(room.held)
        self.most = max(self.most, held)
        beyond = bool(self.bob.wants) and held > room.limit
        self.since = (self.since or now) if beyond else None
        if self.since is not None and now - self.since > 2 * LOOK:
            self.bob.faults.append(f"at {now - 1000:.0f} he waits, and we hold {held} of {room.limit}")


@pytest.mark.parametrize("seed", [1, 3])
def test_c7_a_colleague_is_never_worse_off_for_our_growth_than_courtesy_allows(tmp_path: Path, seed: int) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    day = Growing(str(home), seed)
    day.live(HOURS * 3600.0)
    assert day.most >= 4 and day.bob.came == VISITS and len(day.host.disk.resizes) > 5, "it grew, and gave back"
    assert day.bob.faults == [] and day.host.disk.overlaps == []
    assert day.bob.waits <= 2 * LOOK * VISITS, "one card is left to him at any time, and the next within a look"
