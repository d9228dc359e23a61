"""MIG: a program sees one slice, and no card beside it."""

from __future__ import annotations

import pytest

from jostle.core.decide import decide
from jostle.core.model import LOCAL, Gpu, Policy
from jostle.core.survey import Asked, never
from tests.core.worlds import ALICE, foreign, gpu, job, running, starts, u, world


def cards(whole: int, slices: int) -> tuple[Gpu, ...]:
    made = [gpu(i) for i in range(whole)]
    return (*made, *(gpu(whole + i, total=10240, mig_slice=True, utilization=None) for i in range(slices)))


def test_a_job_for_one_card_gets_a_slice() -> None:
    assert starts(decide(world(job(1), gpus=cards(0, 2)))) == {1: (0,)}


@pytest.mark.parametrize("whole", [0, 1])
def test_a_job_for_several_never_starts_where_there_are_too_few_whole_cards(whole: int) -> None:
    plan = decide(world(job(1, gpus_min=2, gpus_max=2), gpus=cards(whole, 4)))
    assert starts(plan) == {}
    assert (plan.waits[1].code, plan.waits[1].params) == ("impossible_slices", {"needed": 2, "slices": 4, "cards": whole})


def test_that_more_than_one_slice_cannot_be_had_is_known_at_the_submit() -> None:
    asked = [(1, None), (2, None), (2, 4096), (5, None)]
    found = never(world(gpus=cards(0, 4)), [Asked(count, mib, (LOCAL,)) for count, mib in asked])
    assert {(said.gpus, said.memory_mib): reason.code for said, reason in found.items()} == {
        (2, None): "impossible_slices", (2, 4096): "impossible_slices", (5, None): "impossible_count",
    }  # fmt: skip


def test_a_job_for_several_gets_whole_cards_and_no_slice() -> None:
    assert starts(decide(world(job(1, gpus_min=2, gpus_max=4), gpus=cards(2, 4)))) == {1: (0, 1)}


def test_while_a_whole_card_is_taken_a_slice_is_no_stand_in() -> None:
    run, leases = running(9, 0)
    plan = decide(world(job(1, gpus_min=2, gpus_max=2), gpus=cards(2, 2), runs=(run,), promises=leases))
    assert starts(plan) == {}
    reason = plan.waits[1]
    assert reason.code == "gpus"
    assert {r.uuid: r.code for r in reason.gpus} == {u(0): "taken", u(2): "slice", u(3): "slice"}


def test_a_job_for_one_or_more_takes_whole_cards_or_one_slice_alone() -> None:
    wide = job(1, gpus_min=1, gpus_max=4)
    assert starts(decide(world(wide, gpus=cards(2, 4)))) == {1: (0, 1)}
    assert starts(decide(world(wide, gpus=cards(0, 4)))) == {1: (0,)}


def test_no_slice_is_kept_for_a_job_that_cannot_use_it() -> None:
    run, leases = running(9, 0)
    first, small = job(1, gpus_min=2, gpus_max=2, ready_at=0.0, priority=5), job(2, ready_at=900.0)
    plan = decide(world(first, small, gpus=cards(2, 2), runs=(run,), promises=leases, policy=Policy(reserve_after=1.0)))
    assert starts(plan)[2] in ((2,), (3,)), "the slices are free for others"
    assert plan.kept_for == (1,)


def test_a_slice_that_a_run_of_ours_will_leave_does_not_count_for_a_job_that_cannot_use_it() -> None:
    run, leases = running(9, 2)
    first, small = job(1, gpus_min=2, gpus_max=2, ready_at=0.0, priority=5), job(2, ready_at=900.0)
    theirs = foreign(ALICE, 0)
    plan = decide(world(first, small, gpus=cards(2, 1), runs=(run,), promises=(*leases, theirs)))
    assert (starts(plan), plan.kept_for) == ({2: (1,)}, ()), "there would never be two, so none is kept"


def test_a_card_that_is_not_read_may_be_a_whole_one() -> None:
    unread = gpu(0, state="unknown")
    plan = decide(world(job(1, gpus_min=2, gpus_max=2), gpus=(unread, *cards(1, 2)[1:], gpu(5))))
    assert plan.waits[1].code == "gpus"
