"""Worlds, however odd, made by chance: with one host, or with several whose cards have the same indices.

Hypothesis gives the seeds. Drawing each of a World's thousand values by it would cost a hundred times as much, and what is tried
counts for more here than how short the first failure is.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from jostle.core.fields import LIMITS
from jostle.core.fit import CHOICES
from jostle.core.limits import SOURCES
from jostle.core.model import (
    LOCAL,
    Cap,
    Elastic,
    Exit,
    Gpu,
    Holder,
    Job,
    Lane,
    Limits,
    Node,
    Pausing,
    Policy,
    Promise,
    Retry,
    Run,
    Target,
    World,
)
from jostle.core.reasons import Hold, Reason
from tests.core.worlds import ALICE, BOB, DISK_FULL, ME, NO_DRIVER, ROOT, u

CHANCE = st.randoms(use_true_random=True)
MIB = [0, 100, 511, 512, 1000, 4000, 8000, 12000, 20000, 24576]
ASKED = [None, 1, 1000, 4000, 8000, 12000, 12600, 24576, 25000, 30000]
PATIENCE = [0.0, 100.0, 600.0]
CPUS, HOST_MIB = [None, None, None, 1, 3, 8], [None, None, None, 500, 4000]
COUNTED = [(), (), (("licence", 1),), (("licence", 3), ("tape", 1))]
ANYWHERE = [(LOCAL,), ("lab",), ("slurm",), (LOCAL, "lab"), ("lab", LOCAL, "slurm"), ("ray",), ("ray", LOCAL)]


def seldom(r: Random, what: Any) -> Any:
    return what if r.random() < 0.1 else None


def holder(r: Random) -> Holder:
    return Holder(
        pid=r.randint(2, 99),
        used_mib=r.choice([None, *MIB]),
        uid=r.choice([None, ROOT, ME, ALICE, BOB]),
        sid=r.choice([None, 1, 2, 3]),
        name=r.choice(["", "python", "Xorg"]),
        run=r.choice([None, None, (1, 1), (2, 1), (77, 1)]),
        small_for=r.choice(PATIENCE),
    )


def card(r: Random, index: int, host: str = "") -> Gpu:
    total = r.choice([12288, 24576, 24576, 81920])
    used, load = min(total, r.choice([0, 0, 0, *MIB])), r.choice([None, 0, 0, 3, 50, 100])
    return Gpu(
        uuid=f"{host}{u(index)}", index=index, total_mib=total, used_mib=used, free_mib=total - used, utilization=load,
        state=r.choice(["ok"] * 12 + ["lost", "unreadable", "unknown", "mig"]),
        holders=tuple(holder(r) for _ in range(r.choice([0, 0, 1, 2]))), mean_used_mib=used, mean_free_mib=total - used,
        mean_utilization=load, reserved_mib=r.choice([0, 300]), idle_for=r.choice(PATIENCE), excluded=r.random() < 0.07,
        quarantine=((7, 1, 1),) if seldom(r, "held") else (),
        faulty=r.choice([None] * 10 + [Reason("faulty_row"), Reason("faulty_jobs")]),
        new_errors=int(r.random() < 0.07), remap_failed=r.random() < 0.04, mig_slice=r.random() < 0.07,
        compute_mode=r.choice(["default"] * 10 + ["prohibited", "exclusive_process"]),
    )  # fmt: skip


def policy(r: Random) -> Policy:
    return Policy(
        gpus=r.choice([None, None, tuple(r.sample(range(8), r.randint(0, 6)))]),
        gpu_left=r.choice([0, 0, 1, 2]),
        min_gpu=r.choice([None, None, 0, 1, 3]),
        max_gpu=r.choice([None, None, 0, 2, 5]),
        share=r.random() < 0.3,
        min_free_mib=r.choice([0, 0, 8000]),
        max_utilization=r.choice([None, None, 30]),
        idle_for=r.choice([0.0, 0.0, 300.0]),
        strangers=r.choice(["avoid", "share"]),
        own_processes=r.choice(["avoid", "ignore"]),
        choice=r.choice(sorted(CHOICES)),
        order=r.choice(["file", "random", "gpus-desc"]),
        max_concurrent=r.choice([None, None, 0, 1, 3]),
        start_interval=r.choice([0.0, 0.0, 60.0]),
        max_wait=r.choice([None, None, 500.0]),
        reserve_after=r.choice(PATIENCE),
        margin_mib=r.choice([0, 300]),
        automatic=r.random() < 0.2,
    )


def limits(r: Random) -> Limits:
    """Mostly none."""
    if r.random() < 0.6:
        return Limits()
    return Limits(**{name: Cap(r.randint(0, 5), r.choice(SOURCES)) for name in LIMITS if r.random() < 0.5})


def end(r: Random) -> Exit:
    tail = r.choice(["", "CUDA out of memory", "RuntimeError", "uncorrectable ECC error"])
    return Exit(code=r.choice([None, 0, 1]), tail=tail, ran_for=r.choice([None, 1.0, 99.0]))


def run(r: Random, id: int, host: str = "") -> Run:
    cancel = r.random() < 0.3
    return Run(
        id=(id, 1), batch=r.randint(0, 2), target="lab" if host else LOCAL,
        uuids=tuple(f"{host}{u(i)}" for i in sorted(r.sample(range(5), r.choice([0, 1, 1, 2])))),
        state=r.choice(["starting", "running", "stopping"]), cancel=cancel, kill=cancel and r.random() < 0.5,
        memory_mib=r.choice(ASKED), share=r.random() < 0.5, started_at=r.choice([0.0, 900.0]),
        time_limit=r.choice([None, 200.0, 5000.0]), retry=r.choice([Retry(), Retry(max=None)]), peak_mib=r.choice(MIB),
        failures=r.randint(0, 4), ended=end(r) if r.random() < 0.3 else None, voided=r.random() < 0.1,
        node=host or LOCAL, cpus=r.choice(CPUS), host_memory_mib=r.choice(HOST_MIB), counters=r.choice(COUNTED),
    )  # fmt: skip


def lane(r: Random, shape: int, on: tuple[str, ...] = (LOCAL,), batch: int = 0) -> Lane:
    low = r.choice([0, 1, 1, 2, 3])
    alike = Job(
        id=0, shape=shape, batch=batch + r.randint(0, 2), on=on, priority=r.choice([0, 0, 5]), gpus_min=low,
        gpus_max=low + r.choice([0, 0, 1, 2]), memory_mib=r.choice(ASKED), share=r.random() < 0.5,
        avoid=frozenset(r.choice([(), (), (u(0),)])), time_limit=r.choice([None, 50.0, 5000.0]), queue=r.choice([None, "1", "q"]),
        cpus=r.choice(CPUS), host_memory_mib=r.choice(HOST_MIB), counters=r.choice(COUNTED),
    )  # fmt: skip
    places = sorted(r.randint(0, 50) for _ in range(r.randint(1, 3)))
    return tuple(
        replace(alike, id=100 * shape + n, place=p, rank=p / 100, ready_at=r.choice([0.0, 450.0, 999.0]))
        for n, p in enumerate(places)
    )


def stretched(r: Random, made: World) -> World:
    """The same with runs and jobs whose cards may change."""
    runs = tuple(resizable(r, its) if its.uuids and r.random() < 0.8 else its for its in made.runs)
    some = [bool(lane[0].gpus_min) and r.random() < 0.4 for lane in made.lanes]
    lanes = tuple(
        tuple(replace(job, elastic=True) for job in lane) if chosen else lane
        for lane, chosen in zip(made.lanes, some, strict=True)
    )
    return replace(made, runs=runs, lanes=lanes)


def resizable(r: Random, its: Run) -> Run:
    """Mostly at work."""
    if r.random() < 0.85:
        its = replace(its, state="running", cancel=False, kill=False, ended=None, voided=False)
    said = elastic(r, its) if r.random() < 0.8 else None
    return replace(its, elastic=said, intruded=intruded(r, its), yields=r.random() < 0.3, pausing=pausing(r))


def pausing(r: Random) -> Pausing | None:
    if r.random() < 0.6:
        return None
    return Pausing(
        now=r.random() < 0.5, since=r.choice([0.0, 900.0, 999.0]), times=r.choice([0, 1, 5]),
        quiet_s=r.choice([None, 0.0, 30.0, 5000.0]), supervised=r.random() < 0.8,
    )  # fmt: skip


def elastic(r: Random, its: Run) -> Elastic:
    low = r.choice([1, 1, 2, 3])
    return Elastic(
        how=r.choice(["restart", "signal", "hold"]), least=low, most=low + r.choice([0, 1, 3]), priority=r.choice([0, 0, 5]),
        listed=its.uuids if r.random() < 0.8 else its.uuids[:1],
        busy=r.choice([None, None, None, Reason("resizing", {"leg": 2})]),
        resized_at=r.choice([0.0, 0.0, 990.0]), lost_to_others=r.choice([0, 0, 3]), not_before=r.choice([0.0, 0.0, 1050.0]),
        load=r.choice([None, 10.0, 95.0]),
    )  # fmt: skip


def intruded(r: Random, its: Run) -> tuple[str, ...]:
    return its.uuids[:1] if r.random() < 0.3 else ()


def node(r: Random, host: str = "") -> Node:
    some = tuple(card(r, i, host) for i in range(r.randint(0, 5)))
    more = {"cpus": r.choice([1, 4, 16]), "host_memory_mib": r.choice([100, 6000, 20000])}
    return Node(name=host or LOCAL, gpus=some, hold=seldom(r, NO_DRIVER), **more)


def promises(r: Random, made: tuple[Run, ...], hosts: tuple[str, ...]) -> tuple[Promise, ...]:
    """Of our runs, and of others."""
    ours = [
        Promise(uuid=x, mib=its.memory_mib, uid=ME, run=its.id, sid=its.id[0], used_mib=r.choice(MIB),
                used_at_start_mib=r.choice(MIB))
        for its in made
        for x in its.uuids
    ]  # fmt: skip
    uuids = [f"{r.choice(hosts)}{u(r.randint(0, 5))}" for _ in range(r.choice([0, 0, 1, 2]))]
    others = [
        Promise(uuid=x, mib=r.choice(ASKED), uid=r.choice([ME, ALICE]), used_mib=r.choice(MIB), automatic=r.random() < 0.5)
        for x in uuids
    ]
    return (*ours, *others)


def world(r: Random, several: bool = False) -> World:
    """With this host alone, or also with a second target of two nodes and a cluster that jobs are handed over to."""
    hosts = ("", "A-", "B-") if several else ("",)
    made = tuple(run(r, id, r.choice(hosts)) for id in range(1, 1 + r.randint(0, 4)))
    here, *there = (node(r, host) for host in hosts)
    targets = [Target(name=LOCAL, nodes=(here,))]
    if several:
        targets += [
            Target(name="lab", nodes=tuple(there), hold=seldom(r, Hold("gpu_quota"))),
            Target(name="slurm", places=False, room=r.choice([None, 0, 1, 2]), hold=seldom(r, Hold("quota", gpus_only=True))),
        ]
    return World(
        now=1000.0, uid=ME, targets=tuple(targets), runs=made, promises=promises(r, made, hosts),
        lanes=tuple(lane(r, s, r.choice(ANYWHERE) if several else (LOCAL,)) for s in range(1, 1 + r.randint(0, 5))),
        policies={batch: policy(r) for batch in range(3) if r.random() < 0.3}, policy=policy(r),
        last_start={batch: r.choice([500.0, 970.0]) for batch in range(3) if r.random() < 0.4}, turn=r.randint(0, 3),
        hold=seldom(r, DISK_FULL), limits=limits(r), counters=r.choice([{}, {"licence": 2}, {"licence": 4, "tape": 1}]),
    )  # fmt: skip


def beside(r: Random, world: World) -> World:
    """The same World with a second host, and with what runs and waits there only: nothing that concerns the first. It comes last,
    for batches take turns wherever their jobs go."""
    alive = {"batch": 7, "ended": None, "voided": False, "cancel": False, "counters": ()}  # these are counted wherever runs go
    made = tuple(replace(run(r, 50 + k, "A-"), **alive) for k in range(r.randint(0, 2)))
    waiting = [lane(r, 20 + k, ("lab",), batch=7) for k in range(r.randint(1, 3))]
    return replace(
        world,
        targets=(*world.targets, Target(name="lab", nodes=(node(r, "A-"),))),
        runs=(*world.runs, *made),
        promises=(*world.promises, *promises(r, made, ("A-",))),
        lanes=(*world.lanes, *(tuple(replace(job, priority=-1, counters=()) for job in jobs) for jobs in waiting)),
        policies={**world.policies, 7: policy(r), 8: policy(r)},
    )
