"""This in == that out: whole plans, compared as values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from jostle.core.decide import decide
from jostle.core.model import Policy, World
from jostle.core.plan import Fail, Finish, Plan, Requeue, Start, Stop
from jostle.core.reasons import Reason, Refusal, kept
from jostle.wording.sentences import worded
from tests.core.worlds import DISK_FULL, NO_DRIVER, codes, ended, gpu, gpus, job, lane, run, running, starts, u, with_runs, world


def test_an_empty_world_gives_an_empty_plan() -> None:
    assert decide(World(now=0.0, uid=1000)) == Plan()


def test_a_job_starts_on_the_free_card() -> None:
    plan = decide(world(job(7, memory_mib=8000), gpus=gpus(1)))
    assert plan == Plan(decisions=(Start(job=7, uuids=(u(0),), memory_mib=8000, share=False),))


def test_a_job_that_finds_its_card_taken_gets_the_reason() -> None:
    plan = decide(world(job(7), gpus=gpus(1), **with_runs(running(3, 0))))
    taken = Refusal(code="taken", uuid=u(0), index=0, params={"job": 3, "run": 1})
    assert plan == Plan(waits={7: Reason(code="gpus", params={"needed": 1, "fit": 0, "total": 1}, gpus=(taken,))})


def test_an_ended_run_gives_its_card_to_the_next_job_in_the_same_plan() -> None:
    _, leases = running(3, 0)
    plan = decide(world(job(7), gpus=gpus(1), runs=(ended(3, 0, code=0),), promises=leases))
    assert plan == Plan(decisions=(Finish(run=(3, 1), state="succeeded"), Start(job=7, uuids=(u(0),), memory_mib=None)))


def test_two_starts_of_one_plan_never_share_an_exclusive_card() -> None:
    plan = decide(world(lane(job(1, shape=1), job(2, shape=1), job(3, shape=1)), gpus=gpus(2)))
    assert starts(plan) == {1: (0,), 2: (1,)}
    assert codes(plan, 1) == {0: "taken", 1: "taken"}


@pytest.mark.parametrize(
    ("state", "kill", "stop"),
    [
        ("starting", False, (Stop(run=(1, 1)),)),
        ("running", False, (Stop(run=(1, 1)),)),
        ("running", True, (Stop(run=(1, 1), kill=True),)),
        ("stopping", False, ()),
        ("stopping", True, (Stop(run=(1, 1), kill=True),)),
    ],
)
def test_a_cancel_stops_the_run_and_a_kill_is_sent_again(state: str, kill: bool, stop: tuple[Stop, ...]) -> None:
    assert decide(world(gpus=gpus(1), runs=(run(1, 0, state=state, cancel=True, kill=kill),))).decisions == stop


def test_a_run_that_has_ended_is_not_stopped() -> None:
    plan = decide(world(runs=(ended(1, 0, code=None, signal=15, cancel=True, state="stopping"),)))
    assert plan.decisions == (Finish(run=(1, 1), state="cancelled", reason=Reason(code="cancelled")),)


def test_a_cancel_that_came_too_late_leaves_the_success() -> None:
    plan = decide(world(runs=(ended(1, 0, code=0, cancel=True, state="stopping"),)))
    assert plan.decisions == (Finish(run=(1, 1), state="succeeded"),)


def test_a_run_that_ends_well_because_it_was_told_to_end_has_not_succeeded() -> None:
    """A program that saves a checkpoint at SIGTERM and exits with 0."""
    plan = decide(world(runs=(ended(1, 0, code=0, stopped=True, cancel=True, state="stopping"),)))
    assert plan.decisions == (Finish(run=(1, 1), state="cancelled", reason=Reason(code="cancelled")),)
    (late,) = decide(world(runs=(ended(1, 0, code=0, stopped=True, timed_out=True),))).decisions
    assert isinstance(late, Finish) and (late.state, late.error_type) == ("failed", "timeout")
    (shutdown,) = decide(world(runs=(ended(1, 0, code=0, stopped=True),))).decisions
    assert isinstance(shutdown, Finish) and (shutdown.state, shutdown.error_type) == ("failed", "signal_15")
    assert shutdown.reason is not None and (shutdown.reason.code, shutdown.reason.params["signal"]) == ("signal", 15)


def test_a_voided_run_is_no_try() -> None:
    plan = decide(world(runs=(run(1, 0, voided=True, memory_mib=8000),)))
    assert plan.decisions == (Requeue(run=(1, 1), counts=False, memory_mib=8000, reason=Reason(code="not_started")),)


def test_a_voided_run_of_a_cancelled_job_is_cancelled() -> None:
    assert decide(world(runs=(run(1, 0, voided=True, cancel=True),))).decisions == (
        Finish(run=(1, 1), state="cancelled", reason=Reason(code="cancelled")),
    )


def test_nothing_starts_on_hold() -> None:
    plan = decide(world(job(1), job(2, gpus_min=0, gpus_max=0), gpus=gpus(4), hold=DISK_FULL))
    on_hold = Reason(code="on_hold", params={"hold": "disk_full"})
    assert plan.decisions == () and plan.waits == {1: on_hold, 2: on_hold}


def test_a_cpu_job_starts_while_only_the_driver_is_broken() -> None:
    plan = decide(world(job(1), job(2, gpus_min=0, gpus_max=0), gpus=gpus(4), node_hold=NO_DRIVER))
    assert starts(plan) == {2: ()} and plan.waits[1].code == "on_hold"


@pytest.mark.parametrize("cards", [(), (gpu(0, state="unknown"),), (gpu(0, state="lost"), gpu(1, state="unreadable"))])
def test_without_a_readable_gpu_only_cpu_jobs_start(cards: tuple[object, ...]) -> None:
    plan = decide(world(job(1), job(2, gpus_min=0, gpus_max=0), gpus=cards))
    assert starts(plan) == {2: ()} and plan.waits[1].code == "gpus_unknown"


def test_one_broken_gpu_never_stops_the_others() -> None:
    cards = (gpu(0, state="lost", error="GPU is lost"), gpu(1, state="unreadable"), gpu(2, state="unknown"), gpu(3))
    plan = decide(world(lane(job(1, shape=1), job(2, shape=1)), gpus=cards))
    assert starts(plan) == {1: (3,)}
    assert codes(plan, 1) == {0: "lost", 1: "unreadable", 2: "unknown", 3: "taken"}


def test_a_job_takes_as_many_cards_as_it_may() -> None:
    jobs = (job(1, gpus_min=1, gpus_max=3), job(2, gpus_min=1, gpus_max=3))
    assert starts(decide(world(*jobs, gpus=gpus(4)))) == {1: (0, 1, 2), 2: (3,)}


def test_a_job_waits_for_its_least_number_of_cards() -> None:
    plan = decide(world(job(1, gpus_min=3, gpus_max=3), gpus=gpus(4), **with_runs(running(9, 0, 1))))
    assert plan.decisions == () and plan.waits[1].params == {"needed": 3, "fit": 2, "total": 4}


def test_max_concurrent_counts_living_runs_of_the_batch_and_starts_of_the_plan() -> None:
    rule = {1: Policy(max_concurrent=2)}
    plan = decide(
        world(
            lane(*(job(i, shape=1, batch=1) for i in (1, 2, 3))), gpus=gpus(4), policies=rule, **with_runs(running(9, 0, batch=1))
        )
    )
    assert starts(plan) == {1: (1,)}
    assert plan.waits == {1: Reason(code="max_concurrent", params={"running": 2, "most": 2})}


def test_a19_b5_start_interval_spaces_the_starts_of_a_batch_and_wakes_for_the_next() -> None:
    rule = Policy(start_interval=30.0)
    jobs = lane(job(1, shape=1), job(2, shape=1))
    first = decide(world(jobs, gpus=gpus(4), policy=rule, last_start={0: 970.0}))
    assert starts(first) == {1: (0,)} and first.wake_at == 1030.0
    early = decide(world(jobs, gpus=gpus(4), policy=rule, last_start={0: 980.0}))
    assert early.decisions == () and early.wake_at == 1010.0
    assert early.waits == {1: Reason(code="start_interval", params={"left_s": 10.0, "interval_s": 30.0})}


def test_a_job_that_waited_too_long_for_gpus_fails_and_the_others_go_on() -> None:
    rule = Policy(max_wait=100.0, reserve_after=1e9)
    jobs = lane(job(1, shape=1, ready_at=900.0), job(2, shape=1, ready_at=950.0))
    plan = decide(world(jobs, gpus=gpus(1), policy=rule, **with_runs(running(9, 0, batch=7))))
    assert [(d.job, d.error_type, d.reason.code) for d in plan.decisions if isinstance(d, Fail)] == [
        (1, "wait_timeout", "wait_timeout")
    ]
    assert plan.waits[1].code == "gpus"


def given_up(*lanes: Any, **more: Any) -> list[int]:
    return [d.job for d in decide(world(*lanes, **more)).decisions if isinstance(d, Fail)]


def test_b4_while_its_own_batch_has_a_card_of_its_range_no_time_counts() -> None:
    old = lane(job(1, shape=1, ready_at=0.0), job(2, shape=1, ready_at=0.0))
    for cards, batch, expected in (((0, 1), 0, []), ((0,), 0, []), ((1,), 7, [1]), ((2,), 0, [1])):
        busy = with_runs(running(9, *cards, batch=batch), running(8, *{0, 1, 2} - set(cards), batch=7))
        rule = {0: Policy(max_wait=100.0, gpus=(0, 1))}
        assert given_up(old, gpus=gpus(3), policies=rule, **busy) == expected, (cards, batch)
    cpu = with_runs(running(8, 0, batch=7), (run(9), ()))
    assert given_up(old, gpus=gpus(1), policy=Policy(max_wait=100.0), **cpu) == [1], "a run without a card holds none"


def test_b4_the_time_counts_from_the_last_start_or_end_of_the_batch() -> None:
    rule, busy = Policy(max_wait=100.0, reserve_after=1e9), with_runs(running(9, 0, batch=7))
    for last, expected in (({}, [1]), ({0: 900.0}, [1]), ({0: 901.0}, []), ({7: 999.0}, [1])):
        for what in ("last_start", "last_end"):
            assert given_up(job(1, ready_at=0.0), gpus=gpus(1), policy=rule, **{what: last}, **busy) == expected
    plan = decide(world(job(1, ready_at=0.0), gpus=gpus(1), policy=rule, last_end={0: 950.0}, **busy))
    assert plan.wake_at == 1050.0
    assert decide(world(job(1, ready_at=990.0), gpus=gpus(1), policy=rule, last_end={0: 950.0}, **busy)).wake_at == 1090.0


def test_b4_only_the_next_job_of_a_batch_runs_out_of_time() -> None:
    rule, busy = Policy(max_wait=100.0), with_runs(running(9, 0, batch=7))
    mine = [lane(job(3, shape=3, place=3), job(4, shape=3, place=4)), job(2, place=2, memory_mib=99)]
    assert given_up(*mine, gpus=gpus(1), policy=rule, **busy) == [2]
    assert given_up(*mine, job(5, batch=1), gpus=gpus(1), policy=rule, **busy) in ([2, 5], [5, 2])
    assert given_up(*mine, job(6, place=6, priority=1), gpus=gpus(1), policy=rule, **busy) == [6]


def test_a_job_that_was_given_up_says_what_it_waited_for_after_it_was_stored() -> None:
    rule = Policy(max_wait=100.0, reserve_after=1e9)
    (failed,) = decide(world(job(1, ready_at=900.0), gpus=gpus(1), policy=rule, **with_runs(running(9, 0, batch=7)))).decisions
    assert isinstance(failed, Fail)
    stored = json.loads(json.dumps(kept(failed.reason)))
    assert stored["params"] == {"limit_s": 100.0, "last": "gpus", "refused": [{"code": "taken", "n": 1, "jobs": [9]}]}
    said = worded(stored, "en")["text"]
    assert said == "It waited longer than 100 s for its GPUs and was given up (1 is taken by your jobs (9))."
    assert worded(stored, "zh")["text"] == "等待 GPU 超过 100 秒，已放弃（1 张被您的任务占用（9））。"


def test_a_job_that_can_start_now_is_never_too_late() -> None:
    plan = decide(world(job(1, ready_at=0.0), gpus=gpus(1), policy=Policy(max_wait=10.0)))
    assert starts(plan) == {1: (0,)} and len(plan.decisions) == 1


def test_nobody_runs_out_of_time_while_we_are_blind() -> None:
    rule = Policy(max_wait=10.0)
    assert decide(world(job(1), gpus=gpus(1, state="unknown"), policy=rule)).decisions == ()
    assert decide(world(job(1), gpus=gpus(1), policy=rule, node_hold=NO_DRIVER)).decisions == ()


def test_a_lane_whose_jobs_all_gave_up_has_no_reason_left() -> None:
    plan = decide(world(job(1), gpus=gpus(1), policy=Policy(max_wait=10.0), **with_runs(running(9, 0, batch=7))))
    assert plan.waits == {} and [type(d) for d in plan.decisions] == [Fail]


def test_a_job_for_which_no_card_is_large_enough_says_so_and_stays_queued() -> None:
    plan = decide(world(job(1, memory_mib=30000), gpus=gpus(2)))
    assert plan.decisions == () and plan.waits[1].code == "impossible"
    assert plan.waits[1].params == {"needed": 1, "needed_mib": 30000, "able": 0, "largest_mib": 24576, "cards": 2}


def test_a_job_that_wants_more_cards_than_there_are_says_so() -> None:
    assert decide(world(job(1, gpus_min=3, gpus_max=3), gpus=gpus(2))).waits[1].code == "impossible_count"


def test_too_few_cards_are_told_as_that_where_each_of_them_has_the_memory() -> None:
    asked = [job(1, gpus_min=3, gpus_max=3, memory_mib=mib) for mib in (2048, 1 << 20)]
    small, large = (decide(world(one, gpus=gpus(2))).waits[1] for one in asked)
    assert (small.code, small.params["cards"]) == ("impossible_count", 2) and large.code == "impossible"


def test_nothing_is_impossible_while_a_card_is_out_of_sight() -> None:
    plan = decide(world(job(1, gpus_min=2, gpus_max=2), gpus=(gpu(0), gpu(1, total=0, state="lost"))))
    assert plan.waits[1].code == "gpus" and codes(plan, 1) == {1: "lost"}


def test_a_job_that_no_limit_ever_allows_says_so() -> None:
    plan = decide(world(job(1, gpus_min=4, gpus_max=4), gpus=gpus(8), policy=Policy(min_gpu=1, max_gpu=2)))
    assert plan.waits[1] == Reason(code="impossible_limit", params={"needed": 4, "limit": 2})


def test_deciding_wakes_when_a_card_will_have_been_idle_long_enough() -> None:
    cards = (gpu(0, idle_for=10.0), gpu(1, idle_for=25.0))
    plan = decide(world(job(1), gpus=cards, policy=Policy(idle_for=30.0)))
    assert codes(plan, 1) == {0: "idle", 1: "idle"} and plan.wake_at == 1005.0


def test_runs_that_never_begin_are_tried_again_ever_more_rarely() -> None:
    def wait(n: int) -> float:
        (again,) = decide(world(now=100.0, runs=(replace(run(1, 0, voided=True), id=(1, n)),))).decisions
        assert isinstance(again, Requeue) and not again.counts
        return again.not_before - 100.0 if again.not_before else 0.0

    waits = [wait(n) for n in range(1, 15)]
    assert waits[:2] == [0.0, 0.0] and waits == sorted(waits) and waits[2] > 0 and waits[-1] == 30.0
