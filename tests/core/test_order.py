"""Who comes first."""

from __future__ import annotations

import sys
from types import FrameType

from jostle.core import fit
from jostle.core.decide import decide
from jostle.core.model import Job, Policy, World
from jostle.core.plan import Start
from tests.core.worlds import codes, gpus, job, lane, running, with_runs, world


def order(w: World) -> list[int]:
    return [d.job for d in decide(w).decisions if isinstance(d, Start)]


def batch(id: int, *ids: int, **more: object) -> list[Job]:
    return [job(i, batch=id, shape=i, **more) for i in ids]


def test_higher_priority_first_then_the_file() -> None:
    jobs = [job(1, place=3), job(2, place=1), job(3, place=9, priority=5), job(4, place=2, priority=-1)]
    assert order(world(*jobs, gpus=gpus(4))) == [3, 2, 1, 4]


def test_batches_take_turns_and_each_start_passes_the_turn() -> None:
    jobs = [*batch(1, 11, 12, 13), *batch(2, 21), *batch(3, 31, 32)]
    assert order(world(*jobs, gpus=gpus(6))) == [11, 21, 31, 12, 32, 13]
    assert order(world(*jobs, gpus=gpus(6), turn=1)) == [21, 31, 11, 32, 12, 13]
    assert order(world(*jobs, gpus=gpus(6), turn=3)) == [11, 21, 31, 12, 32, 13]
    assert order(world(*jobs, gpus=gpus(6), turn=99)) == [11, 21, 31, 12, 32, 13]


def test_jobs_that_are_alike_do_not_keep_the_turn_of_their_batch() -> None:
    lanes = [lane(*(job(10 * b + n, batch=b, shape=b) for n in (1, 2, 3))) for b in (1, 2)]
    assert order(world(*lanes, gpus=gpus(6))) == [11, 21, 12, 22, 13, 23]


def test_a_batch_that_cannot_start_anything_does_not_lose_the_others_their_turn() -> None:
    jobs = [*batch(1, 11, memory_mib=10**6), *batch(1, 12), *batch(2, 21)]
    assert order(world(*jobs, gpus=gpus(2))) == [12, 21]


def looks(w: World) -> int:
    """How often a card is judged: the calls of fit's functions, as the interpreter counts them."""
    calls = 0

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename == fit.__file__

    sys.setprofile(called)
    try:
        decide(w)
    finally:
        sys.setprofile(None)
    return calls


def test_cards_are_judged_once_for_each_rules_and_request_whatever_the_number_of_batches() -> None:
    taken = with_runs(*(running(k + 1, k) for k in range(8)))

    def waiting(batches: int, kinds: int) -> World:
        rules = {b: Policy(margin_mib=b % kinds) for b in range(1, batches + 1)}  # equal, and not the same
        jobs = [job(100 + b, batch=b, memory_mib=1024) for b in rules]
        return world(*jobs, gpus=gpus(8), policies=rules, **taken)

    once = looks(waiting(batches=1, kinds=1))
    assert once > 0 and looks(waiting(batches=50, kinds=1)) == once
    assert looks(waiting(batches=3, kinds=3)) == looks(waiting(batches=150, kinds=3)) == 3 * once


def test_the_turn_goes_on_across_priorities() -> None:
    jobs = [*batch(1, 11, priority=1), *batch(1, 12), *batch(2, 21)]
    assert order(world(*jobs, gpus=gpus(3))) == [11, 21, 12]


def test_a_random_order_follows_the_ranks_drawn() -> None:
    jobs = [job(1, rank=0.7), job(2, rank=0.1), job(3, rank=0.4)]
    assert order(world(*jobs, gpus=gpus(3), policy=Policy(order="random"))) == [2, 3, 1]


def test_by_gpus_the_widest_come_first_then_queues_by_number() -> None:
    jobs = [job(1, queue="10"), job(2, queue="9"), job(3, queue="b", gpus_min=2, gpus_max=2), job(4, queue="a"), job(5)]
    assert order(world(*jobs, gpus=gpus(6), policy=Policy(order="gpus-desc"))) == [3, 2, 1, 4, 5]


def test_jobs_of_a_lane_start_in_its_order() -> None:
    jobs = lane(job(5, shape=1, place=1), job(4, shape=1, place=2))
    assert order(world(jobs, job(6, place=1), gpus=gpus(3))) == [5, 6, 4]


def test_once_the_first_of_a_lane_does_not_fit_the_rest_is_not_tried() -> None:
    plan = decide(world(lane(job(1, shape=1), job(2, shape=1), job(3, shape=1)), gpus=gpus(2), **with_runs(running(9, 0, 1))))
    assert plan.decisions == () and codes(plan, 1) == {0: "taken", 1: "taken"}


def test_a_small_job_passes_a_big_one_that_does_not_fit_yet() -> None:
    jobs = [job(1, gpus_min=2, gpus_max=2, ready_at=900.0), job(2, ready_at=950.0)]
    assert order(world(*jobs, gpus=gpus(2), **with_runs(running(9, 0)))) == [2]
