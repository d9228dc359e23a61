"""A big job is not starved by small ones that come later."""

from __future__ import annotations

from typing import Any

import pytest

from jostle.core.decide import decide
from jostle.core.model import Cap, Job, Limits, Policy
from jostle.core.reasons import Reason
from jostle.wording.reasons import text
from tests.core.worlds import ALICE, GIB, ME, codes, foreign, gpu, gpus, holder, job, lane, running, starts, with_runs, world

LATE = {"ready_at": 0.0}  # a thousand seconds ago
BIG: dict[str, Any] = {"gpus_min": 2, "gpus_max": 2, "batch": 1, **LATE}


def small(id: int, **more: Any) -> Job:
    return job(id, **{"batch": 2, "ready_at": 999.0, **more})


def test_the_card_that_falls_free_is_kept_for_the_big_job() -> None:
    plan = decide(world(job(1, **BIG), small(2), gpus=gpus(2), **with_runs(running(9, 0))))
    assert plan.decisions == () and plan.kept_for == (1,) and codes(plan, 2) == {0: "taken", 1: "kept"}
    assert plan.waits[2].gpus[1].params == {"job": 1}


def test_before_its_time_nothing_is_kept_and_deciding_wakes_for_it() -> None:
    plan = decide(world(job(1, **{**BIG, "ready_at": 500.0}), small(2), gpus=gpus(2), **with_runs(running(9, 0))))
    assert starts(plan) == {2: (1,)} and plan.kept_for == () and plan.wake_at == 1100.0


def test_the_patience_is_the_batchs_own() -> None:
    rule = {1: Policy(reserve_after=5000.0)}
    plan = decide(world(job(1, **BIG), small(2), gpus=gpus(2), policies=rule, **with_runs(running(9, 0))))
    assert starts(plan) == {2: (1,)}


def test_the_big_job_itself_starts_on_the_cards_kept_for_it_though_others_are_before_it() -> None:
    plan = decide(world(job(1, **{**BIG, "batch": 3}), small(2), gpus=gpus(2)))
    assert starts(plan) == {1: (0, 1)} and plan.kept_for == ()


def test_only_as_many_cards_are_kept_as_it_needs() -> None:
    plan = decide(world(job(1, **BIG), small(2), small(3), gpus=gpus(4), **with_runs(running(9, 0), running(8, 1))))
    assert starts(plan) == {1: (2, 3)}
    wide = job(1, **{**BIG, "gpus_min": 3, "gpus_max": 3})
    plan = decide(world(wide, small(2), small(3), gpus=gpus(5), **with_runs(running(8, 0), running(9, 1), running(7, 2))))
    assert plan.kept_for == (1,) and starts(plan) == {}


def test_a_job_that_is_gone_in_time_may_use_a_kept_card() -> None:
    busy = with_runs(running(9, 0, started_at=900.0, time_limit=300.0))  # card 0 is free at 1200
    for limit, allowed in ((200.0, True), (201.0, False), (None, False)):
        plan = decide(world(job(1, **BIG), small(2, time_limit=limit), gpus=gpus(2), **busy))
        assert (starts(plan) == {2: (1,)}) == allowed
        assert plan.kept_for == (1,)


def test_who_uses_a_kept_card_for_a_while_holds_it_and_that_counts_for_every_limit() -> None:
    """It is not free of charge because it is kept, and so counted, anyway."""
    busy = with_runs(running(9, 0, started_at=900.0, time_limit=300.0))
    there = {"gpus": gpus(2), **busy, "policies": {1: Policy()}}
    quick = small(2, time_limit=100.0)
    for more in ({"policy": Policy(max_gpu=1, min_gpu=0)}, {"limits": Limits(max_total_gpus=Cap(1, "own"))}):
        plan = decide(world(job(1, **BIG), quick, **there, **more))
        assert starts(plan) == {} and plan.waits[2].code in ("limit", "user_limit")


@pytest.mark.parametrize("unread", [{}, {"compute_mode": "prohibited"}, {"faulty": Reason("faulty_row")}, {"total": 8 * GIB}])
def test_a_card_that_is_not_read_for_a_moment_counts_as_coming_unless_it_can_never_do(unread: dict[str, Any]) -> None:
    cards = (gpu(0), gpu(1, state="unknown", **unread))
    plan = decide(world(job(1, **{**BIG, "memory_mib": 20 * GIB}), small(2), gpus=cards))
    assert plan.kept_for == (() if unread else (1,))
    claimed = decide(world(job(1, **BIG), small(2), gpus=cards, promises=(foreign(ALICE, 1),)))
    assert claimed.kept_for == (), "and not where somebody else has it"


def test_nobody_uses_a_kept_card_while_nobody_knows_when_the_rest_falls_free() -> None:
    plan = decide(world(job(1, **BIG), small(2, time_limit=1.0), gpus=gpus(2), **with_runs(running(9, 0))))
    assert plan.decisions == ()


PRIOR: dict[str, Any] = {**BIG, "priority": 10, "ready_at": 999.9}


def test_against_a_lower_priority_cards_are_kept_from_the_first_moment() -> None:
    plan = decide(world(job(1, **PRIOR), small(2, ready_at=0.0), gpus=gpus(2), **with_runs(running(9, 0))))
    assert plan.decisions == () and plan.kept_for == (1,) and codes(plan, 2) == {0: "taken", 1: "kept"}


def test_against_its_own_priority_only_waiting_long_helps() -> None:
    jobs = [job(1, **PRIOR), small(2, priority=10, ready_at=999.95), small(3)]  # 2 came after it
    plan = decide(world(*jobs, gpus=gpus(2), **with_runs(running(9, 0))))
    assert starts(plan) == {2: (1,)}


def test_of_lower_priority_who_is_gone_in_time_may_pass() -> None:
    busy = with_runs(running(9, 0, started_at=900.0, time_limit=300.0))  # card 0 is free at 1200
    for limit, allowed in ((200.0, True), (201.0, False), (None, False)):
        plan = decide(world(job(1, **PRIOR), small(2, time_limit=limit), gpus=gpus(2), **busy))
        assert (starts(plan) == {2: (1,)}) == allowed and plan.kept_for == (1,)


def test_among_equals_who_has_waited_long_comes_before_who_is_older() -> None:
    rules = {1: Policy(reserve_after=5000.0), 3: Policy(reserve_after=10.0)}
    jobs = [job(1, **{**PRIOR, "ready_at": 0.0}), job(3, **{**PRIOR, "ready_at": 900.0, "batch": 3}), small(2)]
    assert decide(world(*jobs, gpus=gpus(2), policies=rules, **with_runs(running(9, 0)))).kept_for == (3,)


EIGHT: dict[str, Any] = {"gpus_min": 8, "gpus_max": 8, "batch": 1}


@pytest.mark.parametrize("how", [{"priority": 10, "ready_at": 999.9}, LATE])
def test_nothing_is_kept_for_a_job_that_waits_for_a_stranger(how: dict[str, Any]) -> None:
    theirs = gpu(7, used=9000, holders=(holder(ALICE, 9000, user="alice"),))
    busy = with_runs(running(9, 0))
    plan = decide(world(job(1, **EIGHT, **how), lane(small(2, shape=2), small(3, shape=2)), gpus=(*gpus(7), theirs), **busy))
    assert starts(plan) == {2: (1,), 3: (2,)} and plan.kept_for == ()
    assert text(plan.waits[1]) == (
        "6 of 8 GPUs fit (8 needed): 1 is used by others (alice 1), 1 is taken by your jobs (9). "
        "No cards are kept for it: what is free and what your own jobs will leave is 7 of them."
    )
    assert text(plan.waits[1], "zh").endswith("没有为它保留卡：空闲的加上您自己的任务将让出的只有 7 张。")


def test_who_is_next_in_line_keeps_cards_if_the_first_cannot() -> None:
    theirs = gpu(3, used=9000, holders=(holder(ALICE, 9000),))
    jobs = [job(1, batch=1, gpus_min=4, gpus_max=4, **LATE), job(4, **{**BIG, "ready_at": 100.0, "batch": 2}), small(2, batch=3)]
    plan = decide(world(*jobs, gpus=(*gpus(3), theirs), **with_runs(running(9, 0), running(8, 1))))
    assert plan.kept_for == (4,) and starts(plan) == {} and codes(plan, 2)[2] == "kept"


def test_a_card_that_a_stranger_shares_with_our_run_is_not_counted_on() -> None:
    theirs = gpu(0, used=20000, holders=(holder(ME, 8000, run=(9, 1)), holder(ALICE, 12000, pid=7)))
    plan = decide(world(job(1, **PRIOR), small(2), gpus=(theirs, gpu(1)), **with_runs(running(9, 0))))
    assert starts(plan) == {2: (1,)} and plan.waits[1].params["coming"] == 1
    fits = decide(world(job(1, memory_mib=12000, **PRIOR), small(2), gpus=(theirs, gpu(1)), policy=Policy(strangers="share"),
                        **with_runs(running(9, 0))))  # fmt: skip
    assert fits.kept_for == (1,) and starts(fits) == {}
    larger = decide(world(job(1, memory_mib=13000, **PRIOR), small(2), gpus=(theirs, gpu(1)), policy=Policy(strangers="share"),
                          **with_runs(running(9, 0))))  # fmt: skip
    assert larger.kept_for == () and starts(larger) == {2: (1,)}


def test_nothing_is_kept_that_courtesy_would_not_let_it_use() -> None:
    by_hand = gpu(3, used=4000, holders=(holder(ME, 4000, name="python"),))
    for most, kept in ((2, ()), (3, (1,))):
        rule = Policy(min_gpu=0, max_gpu=most)
        plan = decide(world(job(1, **PRIOR), small(2), gpus=(*gpus(3), by_hand), policy=rule, **with_runs(running(9, 0, 1))))
        assert plan.kept_for == kept, most
        assert ("No cards are kept for it: you may use no more than 1." in text(plan.waits[1])) == (not kept)


@pytest.mark.parametrize(
    "card",
    [
        gpu(0, state="unknown", error="a run ended here; the next reading is on its way"),
        gpu(0, used=8000, left_at=999.0),  # what the driver still shows of it
        gpu(0, used=8000, left_at=999.0, holders=(holder(ME, 8000, run=(9, 1)),)),
    ],
)
def test_what_is_kept_stays_kept_in_the_moment_after_one_of_our_runs_has_ended(card: Any) -> None:
    plan = decide(world(job(1, **PRIOR), small(2), gpus=(card, gpu(1))))
    assert plan.kept_for == (1,) and starts(plan) == {}


def test_memory_that_stays_after_our_run_is_not_waited_for_for_ever() -> None:
    rule = Policy(strangers="share")
    stuck = gpu(0, used=8000, left_at=997.0)
    plan = decide(world(job(1, **PRIOR), small(2), gpus=(stuck, gpu(1)), policy=rule))
    assert plan.kept_for == (1,) and plan.wake_at == 1002.0
    later = decide(world(job(1, **PRIOR), small(2), gpus=(stuck, gpu(1)), policy=rule, now=1002.0))
    assert later.kept_for == () and starts(later) == {2: (1,)}


@pytest.mark.parametrize("mib", [None, 8000])
def test_in_a_container_our_runs_are_counted_on_though_nobody_sees_whose_they_are(mib: int | None) -> None:
    card = gpu(0, used=8000, holders=(holder(None, 8000),))
    plan = decide(world(job(1, **PRIOR), small(2), gpus=(card, gpu(1)), **with_runs(running(9, 0, mib=mib))))
    assert plan.kept_for == (1,) and starts(plan) == {}


def test_a_higher_priority_does_not_see_the_reservation() -> None:
    plan = decide(world(job(1, **BIG), small(2, priority=1), gpus=gpus(2), **with_runs(running(9, 0))))
    assert starts(plan) == {2: (1,)}


def test_the_highest_priority_then_the_oldest_keeps_cards() -> None:
    jobs = [
        job(1, **BIG),
        job(2, **{**BIG, "ready_at": -5.0}),
        job(3, **{**BIG, "ready_at": 50.0, "priority": 1}),
    ]
    assert decide(world(*jobs, gpus=gpus(2), **with_runs(running(9, 0)))).kept_for == (3,)
    assert decide(world(*jobs[:2], gpus=gpus(2), **with_runs(running(9, 0)))).kept_for == (2,)


def test_an_impossible_job_keeps_nothing() -> None:
    wide = job(1, **{**BIG, "gpus_min": 3, "gpus_max": 3})
    plan = decide(world(wide, small(2), gpus=gpus(2), **with_runs(running(9, 0))))
    assert starts(plan) == {2: (1,)} and plan.waits[1].code == "impossible_count"


def test_a_job_for_a_whole_card_is_not_starved_by_jobs_that_share() -> None:
    sharing = with_runs(running(8, 0, mib=GIB, share=True, started_at=10.0), running(9, 1, mib=GIB, share=True, started_at=20.0))
    jobs = [job(1, batch=1, **LATE), small(2, memory_mib=GIB, share=True)]
    plan = decide(world(*jobs, gpus=gpus(2), **sharing))
    assert plan.kept_for == (1,) and starts(plan) == {2: (1,)}  # card 0, whose youngest run is older, is being emptied


def test_jobs_before_it_in_its_own_batch_go_first_and_those_after_it_wait() -> None:
    big = job(5, place=5, **BIG)
    for place, allowed in ((4, True), (6, False)):
        plan = decide(world(big, job(2, batch=1, place=place, **LATE), gpus=gpus(2), **with_runs(running(9, 0))))
        assert (starts(plan) == {2: (1,)}) == allowed


def test_while_its_batch_has_a_big_run_older_jobs_of_others_are_not_held_back() -> None:
    served = with_runs(running(9, 0, 1, batch=1), running(8, 2))
    for ready_at, allowed in ((-1.0, True), (1.0, False)):
        plan = decide(world(job(1, **BIG), small(2, ready_at=ready_at), gpus=gpus(4), **served))
        assert (starts(plan) == {2: (3,)}) == allowed


def test_an_older_job_of_a_batch_that_has_nothing_running_is_not_held_back() -> None:
    cases = [((-1.0, with_runs(running(9, 0))), True), ((1.0, with_runs(running(9, 0))), False)]
    cases.append(((-1.0, with_runs(running(9, 0, batch=2))), False))
    for (ready_at, busy), allowed in cases:
        plan = decide(world(job(1, **BIG), small(2, ready_at=ready_at), gpus=gpus(2), **busy))
        assert (starts(plan) == {2: (1,)}) == allowed


def test_a_job_that_no_others_can_pass_keeps_nothing() -> None:
    jobs = [job(1, batch=1, memory_mib=GIB, **LATE), small(2, memory_mib=GIB)]
    assert decide(world(*jobs, gpus=gpus(1), **with_runs(running(9, 0)))).kept_for == ()


def test_under_a_limit_the_kept_cards_count_for_the_others() -> None:
    rule = Policy(min_gpu=0, max_gpu=2)
    plan = decide(world(job(1, **BIG), small(2), gpus=gpus(4), policy=rule, **with_runs(running(9, 0))))
    assert plan.decisions == () and plan.kept_for == (1,) and plan.waits[1].code == "limit"


def test_the_last_slot_of_its_batch_is_kept_too() -> None:
    rule = {1: Policy(max_concurrent=2)}
    jobs = [job(1, place=1, **BIG), job(2, place=2, batch=1, **LATE)]
    busy = with_runs(running(9, 0, batch=1), running(8, 1), running(7, 2))
    plan = decide(world(*jobs, gpus=gpus(5), policies=rule, **with_runs(running(9, 0, batch=1), running(8, 1), running(7, 2, 3))))
    assert plan.decisions == () and plan.waits[2].code == "max_concurrent" and plan.kept_for == (1,)
    assert starts(decide(world(*jobs, gpus=gpus(5), policies=rule, **busy))) == {1: (3, 4)}
