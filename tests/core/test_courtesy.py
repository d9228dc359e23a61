"""SPEC A13, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from jostle.core.courtesy import limit
from jostle.core.decide import decide
from jostle.core.model import Policy
from tests.core.worlds import ALICE, GIB, ME, codes, foreign, gpu, gpus, holder, job, lane, running, starts, with_runs, world


def many(count: int, **more: Any) -> Any:
    return lane(*(job(i, shape=1, **more) for i in range(count)))


@pytest.mark.parametrize(
    ("cards", "left", "least", "most", "may"),
    [(10, 1, 3, 3, 3), (4, 1, 3, 3, 3), (3, 2, 3, 3, 3), (10, 1, 2, 5, 5)],
)
def test_a13_the_four_worked_cases(cards: int, left: int, least: int, most: int, may: int) -> None:
    rule = Policy(gpu_left=left, min_gpu=least, max_gpu=most)
    assert limit(rule, cards) == may
    assert len(starts(decide(world(many(cards), gpus=gpus(cards), policy=rule)))) == may


def test_ten_cards_two_full_of_strangers_four_held_gives_two_more() -> None:
    full = [gpu(i, used=24 * GIB - 100, holders=(holder(ALICE, 24 * GIB - 100),)) for i in (8, 9)]
    held = with_runs(*(running(100 + i, i) for i in range(4)))
    rule = Policy(gpu_left=2, min_gpu=2, max_gpu=7)
    plan = decide(world(many(10), gpus=(*gpus(8), *full), policy=rule, **held))
    assert starts(plan) == {0: (4,), 1: (5,)}
    assert plan.waits[1].code == "limit"
    said = {"limit": 6, "held": 6, "more": 0, "needed": 1, "available": 8, "left": 2, "least": 2, "most": 7}
    assert plan.waits[1].params == said
    assert codes(plan, 1) == {**dict.fromkeys(range(6), "taken"), 6: "over_limit", 7: "over_limit", 8: "stranger", 9: "stranger"}


@pytest.mark.parametrize(("least", "most", "may"), [(None, 5, 5), (4, None, 8), (None, 2, 2), (9, None, 8)])
def test_an_absent_key_has_its_default(least: int | None, most: int | None, may: int) -> None:
    assert limit(Policy(min_gpu=least, max_gpu=most), 10) == may


def test_the_least_number_may_be_held_however_few_are_free() -> None:
    assert limit(Policy(gpu_left=5, max_gpu=8), 4) == 3


def test_a13_older_configs_never_use_the_last_cards_of_their_range() -> None:
    plan = decide(world(many(8), gpus=gpus(8), policy=Policy(gpu_left=2)))
    assert [c for (c,) in starts(plan).values()] == [0, 1, 2, 3, 4, 5] and codes(plan, 1)[7] == "left"
    ranged = decide(world(many(8), gpus=gpus(8), policy=Policy(gpu_left=1, gpus=(5, 1, 3))))
    assert sorted(c for (c,) in starts(ranged).values()) == [1, 5]


def test_without_any_of_the_keys_there_is_no_limit() -> None:
    assert len(starts(decide(world(many(8), gpus=gpus(8))))) == 8


@pytest.mark.parametrize(
    "hold",
    [
        with_runs(running(50, 0), running(51, 1)),
        {"promises": (foreign(ME, 0), foreign(ME, 1))},
    ],
)
def test_cards_held_by_any_jostle_of_the_user_count(hold: dict[str, Any]) -> None:
    assert len(starts(decide(world(many(6), gpus=gpus(6), policy=Policy(min_gpu=1, max_gpu=3), **hold)))) == 1


def test_cards_used_by_hand_count_though_they_are_ignored_otherwise() -> None:
    by_hand = [gpu(i, used=2000, holders=(holder(ME, 2000, name="python"),)) for i in (0, 1)]
    rule = Policy(min_gpu=1, max_gpu=3, own_processes="ignore", choice="least-used")
    plan = decide(world(many(6, memory_mib=4000), gpus=(*by_hand, *gpus(6)[2:]), policy=rule))
    assert starts(plan) == {0: (2,), 1: (0,), 2: (1,)}  # one more card, and the two that are held already


def test_sharing_a_held_card_takes_no_further_one() -> None:
    rule = Policy(min_gpu=1, max_gpu=1, share=True)
    held = with_runs(running(50, 2, mib=8 * GIB, share=True))
    plan = decide(world(many(3, memory_mib=8 * GIB), gpus=gpus(4), policy=rule, **held))
    assert starts(plan) == {0: (2,), 1: (2,)} and plan.waits[1].code == "limit"


def test_a_job_of_several_cards_takes_only_what_the_limit_leaves() -> None:
    rule = Policy(min_gpu=1, max_gpu=3)
    assert starts(decide(world(job(1, gpus_min=1, gpus_max=8), gpus=gpus(8), policy=rule))) == {1: (0, 1, 2)}
    plan = decide(world(job(1, gpus_min=3, gpus_max=3), gpus=gpus(8), policy=rule, **with_runs(running(9, 0))))
    assert plan.decisions == () and plan.waits[1].code == "limit"


def test_a_card_that_cannot_be_read_is_not_available() -> None:
    cards = (*gpus(4), gpu(4, state="lost"), gpu(5, state="unknown"))
    assert len(starts(decide(world(many(6), gpus=cards, policy=Policy(gpu_left=2, min_gpu=0, max_gpu=8))))) == 2


def test_what_is_held_outside_the_range_is_counted_on_both_sides() -> None:
    rule = Policy(gpus=(0, 1), gpu_left=1, min_gpu=0, max_gpu=8)
    held = with_runs(*(running(50 + i, i) for i in range(2, 8)))
    assert len(starts(decide(world(many(2), gpus=gpus(8), policy=rule, **held)))) == 1
