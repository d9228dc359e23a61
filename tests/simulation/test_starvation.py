"""Hours of a host on which more is wanted than it can carry: nobody starves, whoever comes without end."""

from __future__ import annotations

from typing import Any

from jostle.core.decide import decide
from jostle.core.model import Job, Policy, Promise, Run
from jostle.core.plan import Start
from tests.core.worlds import GIB, ME, gpu, job, lane, with_runs, world


class Host:
    """Four cards on which runs of known length come and go, one decision a second."""

    def __init__(self, cards: int = 4, **world_fields: Any) -> None:
        self.now, self.cards, self.fields = 0.0, cards, world_fields
        self.waiting: dict[int, Job] = {}
        self.length: dict[int, float] = {}
        self.alive: dict[int, tuple[Run, tuple[Promise, ...]]] = {}
        self.started: dict[int, float] = {}
        self.turn = 0

    def submit(self, new: Job, length: float) -> None:
        self.waiting[new.id], self.length[new.id] = new, length

    def tick(self) -> None:
        self.now += 1.0
        for id, (r, _) in list(self.alive.items()):
            if self.now >= r.started_at + self.length[id]:
                del self.alive[id]
        plan = decide(
            world(*map(lane, self.waiting.values()), now=self.now, gpus=tuple(gpu(i) for i in range(self.cards)), turn=self.turn,
                  **with_runs(*self.alive.values()), **self.fields)
        )  # fmt: skip
        for d in plan.decisions:
            if isinstance(d, Start):
                self._start(d)

    def _start(self, d: Start) -> None:
        j = self.waiting.pop(d.job)
        r = Run(id=(d.job, 1), batch=j.batch, uuids=d.uuids, started_at=self.now, memory_mib=d.memory_mib, share=d.share)
        leases = tuple(Promise(uuid=x, mib=d.memory_mib, uid=ME, run=r.id) for x in d.uuids)
        self.alive[d.job], self.started[d.job], self.turn = (r, leases), self.now, j.batch


def flood(host: Host, big: Job, *, ticks: int, length: float = 40.0, **each: Any) -> None:
    """Small jobs without end, more than the cards can carry, and one big one among them."""
    for tick in range(ticks):
        if tick == 100:
            host.submit(big, 50.0)
        if tick % 5 == 0:
            host.submit(job(1000 + tick, **{"batch": 2, "ready_at": host.now, **each}), length + tick % 7)
        host.tick()


def test_a_stream_of_small_jobs_does_not_starve_a_wide_one() -> None:
    host = Host(policy=Policy(reserve_after=60.0))
    flood(host, job(1, batch=1, gpus_min=4, gpus_max=4, ready_at=100.0), ticks=600)
    assert 160.0 <= host.started[1] <= 160.0 + 100.0


def test_a_wide_job_of_high_priority_is_not_overtaken_by_any_of_lower_priority() -> None:
    host = Host(policy=Policy(reserve_after=1e9))
    flood(host, job(1, batch=1, gpus_min=4, gpus_max=4, priority=10, ready_at=100.0), ticks=300)
    assert host.started[1] <= 100.0 + 50.0
    assert not [id for id, at in host.started.items() if 100.0 < at < host.started[1]]


def test_without_the_reservation_it_would_starve() -> None:
    host = Host(policy=Policy(reserve_after=1e9))
    flood(host, job(1, batch=1, gpus_min=4, gpus_max=4, ready_at=100.0), ticks=600)
    assert 1 not in host.started


def test_a_stream_of_sharing_jobs_does_not_starve_one_that_wants_a_whole_card() -> None:
    host = Host(policy=Policy(reserve_after=60.0), cards=2)
    flood(host, job(1, batch=1, ready_at=100.0), ticks=600, memory_mib=4 * GIB, share=True, length=60.0)
    assert 160.0 <= host.started[1] <= 160.0 + 70.0


def test_many_wide_jobs_and_many_small_ones_both_get_on() -> None:
    host = Host(policy=Policy(reserve_after=30.0))
    for n in range(30):
        host.submit(job(100 + n, batch=1, gpus_min=2, gpus_max=2), 40.0)
        host.submit(job(200 + n, batch=2), 40.0)
    for _ in range(400):
        host.tick()
    wide = sum(100 <= id < 130 for id in host.started)
    narrow = sum(id >= 200 for id in host.started)
    assert wide >= 5 and narrow >= 10


def test_an_endless_row_of_wide_jobs_does_not_starve_a_small_one() -> None:
    host = Host(policy=Policy(reserve_after=30.0))
    for tick in range(800):
        if tick % 20 == 0:  # twice as many as the host can carry
            host.submit(job(1000 + tick, batch=1, gpus_min=4, gpus_max=4, ready_at=host.now), 40.0)
        if tick == 100:
            host.submit(job(1, batch=2, memory_mib=GIB, ready_at=host.now), 40.0)
        host.tick()
    assert host.started[1] <= 100.0 + 300.0
