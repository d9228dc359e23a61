"""Limits of a person (SPEC C3): they stand above all batches, count over all homes, and refusals carry the numbers."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from jostle.core.decide import decide
from jostle.core.fields import LIMITS
from jostle.core.limits import strictest
from jostle.core.model import Cap, Limits, Policy
from jostle.core.survey import Asked, leeway, never, survey
from tests.core import odd
from tests.core.test_properties import check_laws
from tests.core.worlds import ALICE, ME, foreign, gpus, job, lane, promise, run, running, starts, u, with_runs, world


def limited(**most: int) -> Limits:
    return Limits(**{f"max_{name}": Cap(n, "lab") for name, n in most.items()})


@settings(max_examples=200)
@given(odd.CHANCE)
def test_c3_no_plan_goes_above_a_limit(chance: Random) -> None:
    """However odd the world, with limits of every kind, several hosts and homes."""
    some = odd.world(chance, several=chance.random() < 0.5)
    tight = Limits(**{name: Cap(chance.randint(0, 3), "own") for name in LIMITS})
    check_laws(replace(some, limits=tight))


def test_c3_without_a_limit_nothing_is_counted() -> None:
    assert len(starts(decide(world(*[job(n) for n in range(1, 5)], gpus=gpus(4))))) == 4


def test_c3_all_cards_of_a_person_count_once_whatever_home_holds_them() -> None:
    """Two by a run of ours, one by another home of ours, one by a colleague; two of ours share a card."""
    one, two = running(1, 0, mib=1000, share=True), running(2, 0, 1, mib=1000, share=True)
    held: dict[str, Any] = with_runs(one, two)
    held["promises"] += (foreign(ME, 2), foreign(ALICE, 3))
    scene = world(lane(job(7)), gpus=gpus(8), limits=limited(total_gpus=3), **held)
    plan = decide(scene)
    assert starts(plan) == {}
    reason = plan.waits[7]
    assert (reason.code, reason.params) == (
        "user_limit", {"limit": "max_total_gpus", "most": 3, "held": 3, "needed": 1, "source": "lab"},
    )  # fmt: skip
    assert starts(decide(replace(scene, limits=limited(total_gpus=4)))) == {7: (4,)}


def test_c3_sharing_a_card_that_is_held_takes_no_further_one() -> None:
    held = with_runs(running(1, 0, mib=1000, share=True))
    scene = world(job(7, share=True, memory_mib=1000), gpus=gpus(2), limits=limited(total_gpus=1), **held)
    assert starts(decide(scene)) == {7: (0,)}


def test_c3_automatic_and_manual_are_counted_apart_and_together() -> None:
    """Three are held by hand, two automatically: of each kind one more may come, but in all only one."""
    held = {"promises": (*(foreign(ME, n) for n in range(3)), *(foreign(ME, n, automatic=True) for n in (3, 4)))}
    rules = {1: Policy(automatic=True)}
    both = limited(total_gpus=6, manual_gpus=4, reserved_gpus=3)
    lanes = (job(7), job(8, batch=1, priority=-1))
    assert starts(decide(world(*lanes, gpus=gpus(9), policies=rules, limits=both, **held))) == {7: (5,)}
    apart = limited(manual_gpus=3, reserved_gpus=3)
    plan = decide(world(*lanes, gpus=gpus(9), policies=rules, limits=apart, **held))
    assert starts(plan) == {8: (5,)}
    assert plan.waits[7].params["limit"] == "max_manual_gpus"
    forbidden = decide(world(*lanes, gpus=gpus(9), policies=rules, limits=limited(reserved_gpus=0), **held))
    assert forbidden.waits[8].code == "impossible_user_limit" and forbidden.waits[8].params["limit"] == "max_reserved_gpus"


def test_c3_runs_of_an_automatic_batch_count_as_automatic() -> None:
    held = with_runs(running(1, 0, batch=1), running(2, 1))
    scene = world(job(7), gpus=gpus(4), policies={1: Policy(automatic=True)}, limits=limited(manual_gpus=2), **held)
    assert starts(decide(scene)) == {7: (2,)}


def used_floor(*, inside: bool = False, by_hand: bool = False) -> dict[str, Any]:
    """Card 0 is held by hand, card 1 by an automatic allocation (2), on which something may run."""
    part = (run(9, 1, inside=2), (promise(9, 1, None, inside=2),))
    floor = running(2, 1, batch=1, allocation=True, used=by_hand)
    return {**with_runs(running(1, 0), floor, *([part] if inside else [])), "policies": {1: Policy(automatic=True)}}


@pytest.mark.parametrize("use", [{"inside": True}, {"by_hand": True}])
def test_c3_c6_what_is_held_automatically_is_held_by_hand_while_its_person_uses_it(use: dict[str, bool]) -> None:
    limits = limited(manual_gpus=2, reserved_gpus=1)
    asks = (job(7), job(8, batch=1, priority=-1))
    assert starts(decide(world(*asks, gpus=gpus(4), limits=limits, **used_floor()))) == {7: (2,)}, "one more by hand"
    plan = decide(world(*asks, gpus=gpus(4), limits=limits, **used_floor(**use)))
    assert starts(plan) == {8: (2,)}, "and one automatically instead"
    assert (plan.waits[7].params["limit"], plan.waits[7].params["held"]) == ("max_manual_gpus", 2)


def test_c3_c6_nobody_comes_above_the_manual_limit_by_using_what_is_held_automatically() -> None:
    asks = job(7, inside=2)
    plan = decide(world(asks, gpus=gpus(4), limits=limited(manual_gpus=1), **used_floor()))
    assert not starts(plan) and plan.waits[7].params["limit"] == "max_manual_gpus"
    assert starts(decide(world(asks, gpus=gpus(4), limits=limited(manual_gpus=2), **used_floor()))) == {7: (1,)}
    two = (asks, job(8, batch=3))
    plan = decide(world(*two, gpus=gpus(4), limits=limited(manual_gpus=2), **used_floor()))
    assert len(starts(plan)) == 1, "what one plan makes of them counts, too"


def test_c3_one_task_gets_no_more_than_its_limit_and_a_range_what_there_is() -> None:
    scene = world(job(7, gpus_min=1, gpus_max=4), gpus=gpus(8), limits=limited(gpus_per_task=3))
    assert starts(decide(scene)) == {7: (0, 1, 2)}
    scene = world(job(7, gpus_min=1, gpus_max=4), gpus=gpus(8), limits=limited(total_gpus=2, gpus_per_task=3))
    assert starts(decide(scene)) == {7: (0, 1)}


@pytest.mark.parametrize("name", ["total_gpus", "manual_gpus", "gpus_per_task"])
def test_c3_what_a_limit_can_never_allow_is_said_at_the_submit(name: str) -> None:
    scene = world(job(7, gpus_min=3, gpus_max=3), gpus=gpus(8), limits=limited(**{name: 2}))
    expected = {"limit": f"max_{name}", "most": 2, "needed": 3, "source": "lab"}
    asked = Asked(3, None, ("local",))
    for reason in (decide(scene).waits[7], never(scene, [asked])[asked]):
        assert (reason.code, reason.params) == ("impossible_user_limit", expected)


def test_c3_courtesy_is_named_first_where_both_are_in_the_way() -> None:
    held = with_runs(running(1, 0))
    rule = Policy(min_gpu=1, max_gpu=1)
    scene = world(job(7), gpus=gpus(4), policy=rule, limits=limited(total_gpus=1), **held)
    assert decide(scene).waits[7].code == "limit"


def test_c3_a_card_that_fits_is_one_too_many() -> None:
    held = with_runs(running(1, 0))
    scene = world(gpus=gpus(2), limits=limited(total_gpus=1), **held)
    assert {uuid: no.code for uuid, (_, no) in survey(scene).items() if no} == {u(0): "taken", u(1): "over_limit"}
    assert leeway(scene, job(7))[2] == 1


def test_c3_a_big_job_comes_to_its_cards_though_small_ones_would_fill_the_limit() -> None:
    """Four of eight cards may be held; two are. A job for four has waited long: nobody starts before it."""
    held = with_runs(running(1, 0), running(2, 1))
    big = job(7, gpus_min=4, gpus_max=4, ready_at=0.0)
    late = world(big, job(8, ready_at=900.0), gpus=gpus(8), limits=limited(total_gpus=4), **held)
    assert starts(decide(late)) == {}
    assert starts(decide(replace(late, now=500.0))) == {8: (2,)}


def test_the_strictest_holds_and_a_default_only_where_nobody_says_anything() -> None:
    said: list[tuple[str, dict[str, int | None]]] = [
        ("own", {"max_total_gpus": 6}), ("lab", {"max_total_gpus": 4, "max_manual_gpus": None}),
        ("manager", {"max_total_gpus": 4}),
    ]  # fmt: skip
    found = strictest(said, ("manager_default", {"max_total_gpus": 2, "max_manual_gpus": 6}))
    assert found == Limits(max_total_gpus=Cap(4, "lab"), max_manual_gpus=Cap(6, "manager_default"))


def test_what_is_held_above_a_limit_stays() -> None:
    held = with_runs(running(1, 0), running(2, 1))
    plan = decide(world(gpus=gpus(4), limits=limited(total_gpus=1), **held))
    assert plan.decisions == ()
