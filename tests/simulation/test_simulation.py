"""A host over thousands of ticks: jobs and strangers come and go, memory ramps up and shows late. No over-promise, no starvation.

What a card really holds and what is shown differ by a lag of up to two minutes; decisions see only what is shown, and the ledger
must make up for the rest. Time is a number, chance is seeded.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from jostle.core.decide import decide
from jostle.core.model import Exit, Gpu, Holder, Job, Policy, Promise, Retry, Run, World
from jostle.core.plan import Fail, Finish, Plan, Requeue, Start
from jostle.wording.reasons import text
from tests.core.worlds import ALICE, GIB, ME, local, u

TOTAL = 24 * GIB
SHAPES = [  # cards, memory, share, seconds
    (1, 4 * GIB, True, 60),
    (1, 8 * GIB, True, 120),
    (1, 16 * GIB, False, 90),
    (1, None, False, 60),
    (2, 6 * GIB, True, 90),
    (4, None, False, 60),
]


@dataclass
class Living:
    start: Start
    job: Job
    began: float
    ends: float
    ramp: float  # seconds until it uses all it promised
    used_at_start: dict[str, int]

    def used(self, now: float) -> int:
        """On each of its cards."""
        part = min(1.0, (now - self.began) / self.ramp)
        return int(part * (20 * GIB if self.start.memory_mib is None else self.start.memory_mib))


@dataclass
class Host:
    seed: int
    lag: float
    named: bool  # whether the driver's pids can be told apart (not so in containers)
    arrivals: float = 0.02  # jobs a second; about half of what four cards can carry, with the strangers
    visits: float = 0.004  # strangers a second
    priorities: tuple[int, ...] = (0,)
    cards: int = 4
    now: float = 0.0
    living: dict[int, Living] = field(default_factory=dict)
    waiting: dict[int, Job] = field(default_factory=dict)
    strangers: dict[str, tuple[float, float, int]] = field(default_factory=dict)  # uuid -> from, until, MiB
    waited: dict[int, float] = field(default_factory=dict)
    ended: list[Run] = field(default_factory=list)
    shapes: dict[int, int] = field(default_factory=dict)
    last: int = 0
    turn: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.policy = Policy(reserve_after=120.0, small_mib=64, strangers="avoid")

    def tick(self) -> Plan:
        self.now += 1.0
        self._arrive()
        self._end()
        plan = decide(self._world())
        for decision in plan.decisions:
            assert isinstance(decision, Start | Finish) and not isinstance(decision, Fail | Requeue)
            if isinstance(decision, Start):
                self._begin(decision)
        self.ended.clear()
        self._check(plan)
        return plan

    def _arrive(self) -> None:
        if self.chance.random() < self.arrivals and len(self.waiting) < 30:
            cards, mib, share, _ = shape = self.chance.choice(SHAPES)
            self.last += 1
            self.waiting[self.last] = Job(
                id=self.last, shape=SHAPES.index(shape), place=self.last, batch=cards % 2, gpus_min=cards, gpus_max=cards,
                memory_mib=mib, share=share, ready_at=self.now, priority=self.chance.choice(self.priorities),
            )  # fmt: skip
        uuid = u(self.chance.randrange(self.cards))
        if self.chance.random() < self.visits and uuid not in self.strangers and self._used(uuid, self.now) == 0:
            self.strangers[uuid] = (self.now, self.now + self.chance.uniform(20, 200), 10 * GIB)

    def _end(self) -> None:
        for id, it in list(self.living.items()):
            if self.now >= it.ends:
                del self.living[id]
                self.ended.append(Run(id=(id, 1), uuids=it.start.uuids, ended=Exit(code=0, ran_for=99.0)))
        self.strangers = {x: s for x, s in self.strangers.items() if self.now < s[1]}

    def _used(self, uuid: str, at: float) -> int:
        stranger = self.strangers.get(uuid)
        ours = sum(it.used(at) for it in self.living.values() if uuid in it.start.uuids and at > it.began)
        return ours + (stranger[2] if stranger is not None and at >= stranger[0] else 0)

    def _gpu(self, index: int) -> Gpu:
        """As shown: what runs allocated before the lag; strangers at once, for who cannot be seen cannot be avoided."""
        uuid, then = u(index), self.now - self.lag
        shown = {i: it.used(then) for i, it in self.living.items() if uuid in it.start.uuids and then > it.began}
        stranger = self.strangers.get(uuid)
        foreign = stranger[2] if stranger is not None else 0
        used = sum(shown.values()) + foreign
        holders = [
            Holder(pid=i, uid=ME if self.named else None, used_mib=m, run=(i, 1) if self.named else None)
            for i, m in shown.items()
        ]
        if foreign:
            holders.append(Holder(pid=9999, uid=ALICE, used_mib=foreign, user="alice"))
        return Gpu(
            uuid=uuid, index=index, total_mib=TOTAL, used_mib=used, free_mib=TOTAL - used, utilization=50 if used else 0,
            holders=tuple(holders), mean_used_mib=used, mean_free_mib=TOTAL - used, mean_utilization=50 if used else 0,
        )  # fmt: skip

    def _world(self) -> World:
        gpus = tuple(self._gpu(i) for i in range(self.cards))
        then = self.now - self.lag
        runs = [
            Run(id=(i, 1), batch=it.job.batch, uuids=it.start.uuids, memory_mib=it.start.memory_mib, share=it.start.share,
                started_at=it.began, retry=Retry())
            for i, it in self.living.items()
        ]  # fmt: skip
        promises = tuple(
            Promise(uuid=x, mib=it.start.memory_mib, uid=ME, run=(i, 1), used_at_start_mib=it.used_at_start[x],
                    used_mib=it.used(then) if self.named and then > it.began else 0)
            for i, it in self.living.items() for x in it.start.uuids
        )  # fmt: skip
        lanes: dict[int, list[Job]] = {}
        for job in self.waiting.values():
            lanes.setdefault(job.shape + 100 * job.priority, []).append(job)
        return World(
            now=self.now, uid=ME, targets=(local(gpus),), promises=promises, runs=(*runs, *self.ended), policy=self.policy,
            turn=self.turn, lanes=tuple(map(tuple, lanes.values())),
        )  # fmt: skip

    def _begin(self, start: Start) -> None:
        job = self.waiting.pop(start.job)
        seconds = SHAPES[job.shape][3] * self.chance.uniform(0.5, 1.5)
        shown = {x: self._gpu(int(x.split("-")[1])).used_mib for x in start.uuids}
        self.living[start.job] = Living(start, job, self.now, self.now + seconds, self.chance.uniform(1, 60), shown)
        self.waited[start.job] = self.now - job.ready_at
        self.shapes[start.job], self.turn = job.shape, job.batch

    def _check(self, plan: Plan) -> None:
        for index in range(self.cards):
            here = [it.start for it in self.living.values() if u(index) in it.start.uuids]
            whole = [s for s in here if s.memory_mib is None or not s.share]
            assert len(here) <= 1 or not whole, f"{self.now}: card {index} is doubled"
            assert sum(s.memory_mib or 0 for s in here) <= TOTAL, f"{self.now}: card {index} is over-promised"
        for job in self.waiting.values():
            assert job.shape in plan.waits and text(plan.waits[job.shape])


@pytest.mark.parametrize(("lag", "named"), [(0.0, True), (5.0, False), (30.0, True), (120.0, False), (120.0, True)])
def test_a19_nothing_is_over_promised_and_nobody_starves(lag: float, named: bool) -> None:
    host = Host(seed=int(lag), lag=lag, named=named)
    for _ in range(2000):
        host.tick()
    waits = [*host.waited.values(), *(host.now - job.ready_at for job in host.waiting.values())]
    assert len(host.waited) > 20 and max(waits) < 600.0


@pytest.mark.parametrize(("lag", "named"), [(0.0, True), (60.0, False), (120.0, True)])
def test_on_an_overloaded_host_cards_are_kept_strictly_by_age(lag: float, named: bool) -> None:
    host = Host(seed=1, lag=lag, named=named, arrivals=0.05, visits=0.0)  # who waits for a stranger keeps nothing
    kept: list[int] = []
    for _ in range(1000):
        plan = host.tick()
        kept += [id for id in plan.kept_for if id not in kept]
    assert len(kept) > 5 and kept == sorted(kept)
    assert {host.shapes[id] for id in host.waited} == set(range(len(SHAPES)))


@pytest.mark.parametrize(("visits", "lag"), [(0.0, 0.0), (0.0, 60.0), (0.004, 30.0)])
def test_with_priorities_nobody_starves_and_whoever_cards_are_kept_for_gets_them(visits: float, lag: float) -> None:
    host = Host(seed=3, lag=lag, named=True, visits=visits, priorities=(0, 0, 0, 5))
    kept: dict[int, float] = {}  # job -> since when without a break
    longest, by_priority = 0.0, 0
    for _ in range(3000):
        plan = host.tick()
        kept = {id: at for id, at in kept.items() if id in plan.kept_for}
        for id in plan.kept_for:
            longest = max(longest, host.now - kept.setdefault(id, host.now))
            by_priority += host.now - host.waiting[id].ready_at < host.policy.reserve_after
    waits = [*host.waited.values(), *(host.now - job.ready_at for job in host.waiting.values())]
    assert len(host.waited) > 30 and max(waits) < 900.0
    assert by_priority > 0 and longest <= 180.0, "no run of ours is longer, so nobody keeps cards for longer"


def test_a_run_is_never_placed_beside_a_stranger_that_is_seen() -> None:
    host = Host(seed=7, lag=30.0, named=True)
    for _ in range(1000):
        before = {x for x, s in host.strangers.items() if s[0] < host.now and s[1] > host.now + 1.0}
        begun = set(host.living)
        host.tick()
        for id in set(host.living) - begun:
            assert not before & set(host.living[id].start.uuids)
