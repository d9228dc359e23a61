"""C13: cores and memory of the host, and counters: never more than there is, and nobody is passed by for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jostle.core.decide import decide
from jostle.core.model import LOCAL, Job, Node, Policy, Run, Target, World
from jostle.core.plan import Plan, Start
from jostle.core.reasons import Reason
from jostle.wording.reasons import text
from tests.core.worlds import gpus, job, lane, run, running, starts, with_runs, world

GIB = 1024


def host(count: int = 0, cpus: int = 8, mib: int = 64 * GIB, name: str = LOCAL) -> Target:
    return Target(name=name, nodes=(Node(name=name, gpus=gpus(count), cpus=cpus, host_memory_mib=mib),))


def cpu_job(id: int, cpus: int | None = None, **more: Any) -> Job:
    return job(id, **{"gpus_min": 0, "gpus_max": 0, "cpus": cpus, **more})


def at(*lanes: Any, **more: Any) -> World:
    return world(*lanes, **{"targets": (host(),), **more})


def begun(plan: Plan) -> list[int]:
    return sorted(starts(plan))


def reason(plan: Plan, shape: int) -> tuple[str, dict[str, Any]]:
    return plan.waits[shape].code, dict(plan.waits[shape].params)


def test_c13_cores_are_handed_out_until_there_are_no_more_and_the_next_is_told_the_numbers() -> None:
    plan = decide(at(lane(*(cpu_job(i, 3, shape=1) for i in range(1, 5))), runs=(run(9, cpus=2),)))
    assert begun(plan) == [1, 2]
    assert reason(plan, 1) == ("cpus", {"needed": 3, "available": 0, "total": 8})
    assert text(plan.waits[1]) == "0 of 8 CPU cores are free, and it needs 3."


def test_c13_memory_of_the_host_is_handed_out_in_the_same_way() -> None:
    jobs = [cpu_job(i, host_memory_mib=40 * GIB) for i in (1, 2)]
    plan = decide(at(*jobs))
    assert begun(plan) == [1]
    assert reason(plan, 2) == ("host_memory", {"needed_mib": 40 * GIB, "available_mib": 24 * GIB, "total_mib": 64 * GIB})
    assert text(plan.waits[2]) == "24 GiB of 64 GiB of host memory is free, and it needs 40 GiB."


def test_c13_who_asks_for_nothing_is_counted_with_nothing() -> None:
    plan = decide(at(*(cpu_job(i) for i in range(1, 30)), cpu_job(50, 8), runs=tuple(run(100 + i) for i in range(30))))
    assert begun(plan) == [*range(1, 30), 50]


def test_c13_a_job_with_cards_waits_for_cores_though_its_cards_are_free() -> None:
    plan = decide(at(job(1, cpus=8), cpu_job(2, 8), targets=(host(2),)))
    assert starts(plan) == {1: (0,)} and reason(plan, 2)[0] == "cpus"
    full = decide(at(job(1, cpus=8, ready_at=999.0), job(3), targets=(host(2),), runs=(run(9, cpus=1),)))
    assert starts(full) == {3: (0,)} and reason(full, 1) == ("cpus", {"needed": 8, "available": 7, "total": 8})


def test_c13_a_run_that_has_ended_gives_back_what_it_had() -> None:
    over = replace(run(9, cpus=8), voided=True)
    assert begun(decide(at(cpu_job(1, 8), runs=(over,)))) == [1]


def test_c13_what_is_over_by_a_lowered_setting_is_waited_out() -> None:
    plan = decide(at(cpu_job(1, 1), cpu_job(2), targets=(host(cpus=4),), runs=(run(9, cpus=8),)))
    assert begun(plan) == [2] and reason(plan, 1) == ("cpus", {"needed": 1, "available": 0, "total": 4})


def test_c13_what_is_larger_than_the_host_is_told_as_impossible_and_keeps_nothing() -> None:
    huge = [cpu_job(1, 9), cpu_job(2, host_memory_mib=65 * GIB), cpu_job(3, counters=(("licence", 5),))]
    plan = decide(at(*huge, cpu_job(4, 8, host_memory_mib=64 * GIB, counters=(("licence", 4),)), counters={"licence": 4}))
    assert begun(plan) == [4] and plan.kept_for == ()
    assert reason(plan, 1) == ("impossible_cpus", {"needed": 9, "total": 8})
    assert reason(plan, 2) == ("impossible_host_memory", {"needed_mib": 65 * GIB, "total_mib": 64 * GIB})
    assert reason(plan, 3) == ("impossible_counter", {"name": "licence", "needed": 5, "total": 4})


def test_c13_counters_count_wherever_runs_go() -> None:
    there = Target(name="slurm", places=False)
    jobs = [cpu_job(i, counters=(("licence", 2),), on=on) for i, on in ((1, (LOCAL,)), (2, ("slurm",)), (3, ("slurm", LOCAL)))]
    counted = {"targets": (host(), there), "counters": {"licence": 5}}
    plan = decide(at(*jobs, **counted))
    assert begun(plan) == [1, 2]
    assert reason(plan, 3) == ("counter", {"name": "licence", "needed": 2, "available": 1, "total": 5})
    abroad = run(9, target="slurm", node="", counters=(("licence", 4),))
    assert begun(decide(at(jobs[0], **counted, runs=(abroad,)))) == []
    assert begun(decide(at(cpu_job(7, counters=(("tape", 1),)), **counted))) == []


def test_c13_cores_of_two_hosts_are_never_added_up() -> None:
    two = Target(name="lab", nodes=tuple(Node(name=name, cpus=4) for name in "ab"))
    jobs = [cpu_job(1, 6, on=("lab",)), cpu_job(2, 4, on=("lab",)), cpu_job(3, 3, on=("lab",)), cpu_job(4, 2, on=("lab",))]
    plan = decide(at(*jobs, targets=(host(), two), runs=(run(9, target="lab", node="a", cpus=1), run(8, cpus=8))))
    where = {d.job: d.node for d in plan.decisions if isinstance(d, Start)}
    assert where == {2: "b", 3: "a"}, "of a one core is taken, of b none; what runs on this host is no matter there"
    assert [p["code"] for p in plan.waits[1].params["places"]] == ["impossible_cpus"] * 2
    assert [p["params"]["available"] for p in plan.waits[4].params["places"]] == [0, 0]


# Nobody is passed by for ever.

LONG_AGO, LATELY = 0.0, 999.0  # now is 1000, and `reserve_after` 600


def test_c13_a_job_that_has_waited_long_keeps_cores_against_those_who_come_later() -> None:
    big, small = cpu_job(1, 8, ready_at=LONG_AGO), cpu_job(2, 2, ready_at=LATELY)
    busy = {"runs": (run(9, cpus=2, batch=5),), "last_start": {}}
    plan = decide(at(big, small, **busy))
    assert begun(plan) == [] and plan.kept_for == (1,)
    assert reason(plan, 2) == ("cpus", {"needed": 2, "available": 6, "total": 8, "kept": 6, "job": 1})
    assert text(plan.waits[2]) == "6 of 8 CPU cores are free (6 kept for job 1), and it needs 2."
    impatient = decide(at(replace(big, ready_at=LATELY), small, **busy))
    assert begun(impatient) == [2], "it has not waited long yet"


def test_c13_against_jobs_of_lower_priority_it_keeps_cores_at_once() -> None:
    big, small = cpu_job(1, 8, ready_at=LATELY, priority=5), cpu_job(2, 2, ready_at=LATELY)
    assert begun(decide(at(big, small, runs=(run(9, cpus=2),)))) == []


def test_c13_what_it_does_not_need_and_who_is_gone_in_time_may_start_beside_it() -> None:
    big = cpu_job(1, 6, ready_at=LONG_AGO)
    held = run(9, cpus=3, batch=5, started_at=900.0, time_limit=200.0)  # until 1100: then 8 are free
    small, quick, slow = (cpu_job(i, 2, time_limit=limit, ready_at=LATELY) for i, limit in ((2, None), (3, 90.0), (4, 110.0)))
    for other, starts_now in ((small, False), (quick, True), (slow, False)):
        assert (other.id in begun(decide(at(big, other, runs=(held,))))) is starts_now
    memory_only = cpu_job(5, host_memory_mib=GIB, ready_at=LATELY)
    assert begun(decide(at(big, memory_only, runs=(held,)))) == [5], "it wants nothing of what is kept"


def test_c13_a_job_that_wants_a_card_and_many_cores_keeps_both() -> None:
    big = job(1, cpus=8, ready_at=LONG_AGO)
    others = [job(2, cpus=1, ready_at=LATELY), cpu_job(3, 1, ready_at=LATELY), job(4, ready_at=LATELY)]
    there = {"targets": (host(1),), "runs": (run(9, cpus=1, batch=5),)}
    plan = decide(at(big, *others, **there))
    assert begun(plan) == [] and plan.kept_for == (1,)
    assert {shape: reason.code for shape, reason in plan.waits.items()} == {1: "cpus", 2: "cpus", 3: "cpus", 4: "gpus"}


def test_c13_a_job_whose_cards_others_have_keeps_no_cores() -> None:
    taken = gpus(1, used=20 * GIB)
    there = Target(name=LOCAL, nodes=(Node(name=LOCAL, gpus=taken, cpus=8),))
    plan = decide(at(job(1, cpus=8, ready_at=LONG_AGO), cpu_job(2, 4, ready_at=LATELY), targets=(there,)))
    assert begun(plan) == [2], "what a stranger has may stay theirs for days"


def test_c13_a_job_without_cards_need_not_wait_for_one_that_waits_for_cards() -> None:
    """Beside the one job that cards are kept for, one that wants none has cores kept for it."""
    held = running(9, 0, batch=5, cpus=2)
    wide, big = job(1, gpus_min=2, gpus_max=2, ready_at=LONG_AGO), cpu_job(2, 8, ready_at=LONG_AGO)
    plan = decide(at(wide, big, cpu_job(3, 1, ready_at=LATELY), targets=(host(2),), **with_runs(held)))
    assert begun(plan) == [] and plan.kept_for == (1, 2)


def test_c13_a_stream_of_small_jobs_does_not_starve_a_large_one() -> None:
    """Time goes by: each second another small job comes that takes two cores for ten seconds. They would never leave all free."""
    assert _started_at(reserve_after=30.0) is not None
    assert _started_at(reserve_after=1e9) is None, "so it is keeping that brings it about"


def _started_at(reserve_after: float) -> int | None:
    policy = Policy(reserve_after=reserve_after)
    waiting: dict[int, Job] = {}
    runs: dict[int, Run] = {}
    for now in range(200):
        if now == 5:
            waiting[1] = cpu_job(1, 8, batch=1, ready_at=5.0)
        runs = {id: r for id, r in runs.items() if now < r.started_at + 10}
        waiting[100 + now] = cpu_job(100 + now, 2, batch=2, ready_at=float(now))
        plan = decide(at(*waiting.values(), now=float(now), runs=tuple(runs.values()), policy=policy))
        for id in begun(plan):
            taken = waiting.pop(id)
            runs[id] = Run(id=(id, 1), batch=taken.batch, cpus=taken.cpus, started_at=float(now))
        assert sum(r.cpus or 0 for r in runs.values()) <= 8
        if 1 in runs:
            return now
    return None


def test_c13_reasons_are_told_in_both_languages() -> None:
    told = Reason(code="cpus", params={"needed": 2, "available": 6, "total": 8, "kept": 6, "job": 1})
    assert text(told, "zh") == "8 个 CPU 核中有 6 个空闲（其中 6 为任务 1 保留），而任务需要 2 个。"
