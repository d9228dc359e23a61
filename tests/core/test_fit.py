"""Which card is refused for what, and which of those that fit is taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jostle.core.decide import decide
from jostle.core.fit import CHOICES
from jostle.core.model import Gpu, Policy
from jostle.core.plan import Start
from jostle.wording.reasons import text
from tests.core.worlds import (
    ALICE,
    GIB,
    ME,
    ROOT,
    codes,
    foreign,
    gpu,
    gpus,
    holder,
    job,
    lane,
    promise,
    run,
    running,
    starts,
    u,
    with_runs,
    world,
)

SHARE = Policy(share=True)
BY_MEMORY = Policy(strangers="share")


def refused(card: Gpu, *, want: dict[str, Any] | None = None, policy: Policy | None = None, **more: Any) -> str | None:
    """The refusal of the one card there is; None: the job starts on it."""
    asked = {"memory_mib": 4 * GIB} if want is None else want
    plan = decide(world(job(1, **asked), gpus=(card,), policy=policy or Policy(), **more))
    return None if starts(plan) else plan.waits[1].gpus[0].code


@pytest.mark.parametrize(
    ("card", "code"),
    [
        (gpu(0), None),
        (gpu(0, state="lost"), "lost"),
        (gpu(0, state="unreadable"), "unreadable"),
        (gpu(0, state="unknown"), "unknown"),
        (gpu(0, state="never heard of"), "unknown"),
        (gpu(0, state="mig"), "mig"),
        (gpu(0, excluded=True), "excluded"),
        (gpu(0, quarantine=((7, 1, 1),)), "quarantined"),
    ],
)
def test_only_a_card_read_as_ok_is_given(card: Gpu, code: str | None) -> None:
    plan = decide(world(job(1), gpus=(card, gpu(1, excluded=True))))
    assert (starts(plan) == {1: (0,)}) if code is None else (codes(plan, 1)[0] == code)


@pytest.mark.parametrize(
    ("holders", "used", "utilization", "code"),
    [
        ((holder(ALICE, 8000, user="alice"),), 8000, 90, "stranger"),
        ((holder(ALICE, 100, small_for=120.0),), 100, 0, None),  # small and idle: need not cost a whole card
        ((holder(ALICE, 100, small_for=119.0),), 100, 0, "newcomer"),  # who is just starting looks so, too
        ((holder(ALICE, 100, kind="graphics"),), 100, 0, None),
        ((holder(ALICE, 100, small_for=1e6),), 100, 5, None),
        ((holder(ALICE, 100, small_for=1e6),), 100, 6, "stranger"),  # small but busy
        ((holder(ALICE, 100, small_for=1e6),), 100, None, "stranger"),  # unknown load is never good news
        ((holder(ALICE, 300), holder(ALICE + 1, 300)), 600, 0, "stranger"),  # together they are not small
        ((holder(ALICE, 9, small_for=1e6), holder(ALICE + 1, 9)), 18, 0, "newcomer"),  # the youngest counts
        ((holder(ALICE, None),), 100, 0, "stranger"),  # the driver does not say how much
        ((holder(ROOT, 100, kind="graphics"),), 100, 90, None),  # an X server
        ((holder(ROOT, 100),), 100, 90, "newcomer"),  # a container that computes
        ((holder(ROOT, 600, kind="graphics"),), 600, 0, "stranger"),
        ((holder(ROOT, 600),), 600, 0, "stranger"),
        ((holder(None, 600),), 600, 0, "stranger"),  # a container's process
        ((holder(None, 100),), 100, 0, "newcomer"),
        ((holder(None, 100, small_for=120.0),), 100, 0, None),
        ((), 600, 0, "unexplained"),  # memory without an owner is not idle
        ((), 300, 0, None),
    ],
)
def test_strangers_are_avoided_unless_small_and_idle(holders: Any, used: int, utilization: int | None, code: str | None) -> None:
    card = gpu(0, used=used, holders=holders, utilization=utilization, mean_utilization=utilization)
    assert refused(card) == code


def test_deciding_wakes_when_a_small_process_will_have_been_idle_long_enough() -> None:
    card = gpu(0, used=100, holders=(holder(ALICE, 100, small_for=20.0, user="alice"),))
    plan = decide(world(job(1), gpus=(card,)))
    assert codes(plan, 1) == {0: "newcomer"} and plan.wake_at == 1100.0
    assert starts(decide(world(job(1), gpus=(card,), policy=Policy(small_for=20.0)))) == {1: (0,)}


def test_a_newcomer_among_several_cards_is_not_taken_before_them() -> None:
    starting = gpu(0, used=300, holders=(holder(ALICE, 300),))
    for choice in CHOICES:
        jobs = lane(job(1, shape=1, memory_mib=9), job(2, shape=1, memory_mib=9))
        plan = decide(world(jobs, gpus=(starting, gpu(1)), policy=Policy(choice=choice)))
        assert starts(plan) == {1: (1,)} and codes(plan, 1)[0] == "newcomer"


def test_a17_where_strangers_are_shared_with_memory_alone_decides() -> None:
    card = gpu(0, used=8 * GIB, holders=(holder(ALICE, 8 * GIB),), utilization=90)
    assert refused(card, policy=BY_MEMORY) is None
    assert refused(card, policy=BY_MEMORY, want={"memory_mib": 17 * GIB}) == "memory"
    assert refused(gpu(0, used=8 * GIB), policy=BY_MEMORY) is None


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("strangers", ["avoid", "share"])
def test_a_job_without_memory_gets_a_card_nobody_is_on(share: bool, strangers: str) -> None:
    rule = Policy(share=share, strangers=strangers)
    assert refused(gpu(0, used=511), want={}, policy=rule) is None
    assert refused(gpu(0, used=2000), want={}, policy=rule) in ("unexplained", "not_empty")
    beside = with_runs(running(9, 0, mib=1000, share=True))
    assert refused(gpu(0), want={}, policy=rule, **beside) == "taken"


SOLD_AS_24 = {"total": 24564, "reserved_mib": 300}  # an empty one offers 24264


@pytest.mark.parametrize(("mib", "whole"), [(24264, ()), (24265, (u(0),)), (24474, (u(0),)), (24576, (u(0),)), (25477, (u(0),))])
def test_a_request_hardly_above_what_an_empty_card_offers_means_the_whole_card(mib: int, whole: tuple[str, ...]) -> None:
    empty = gpu(0, **SOLD_AS_24, free_mib=24264)
    plan = decide(world(job(1, memory_mib=mib, share=True), job(2, memory_mib=1, share=True), gpus=(empty,), policy=SHARE))
    (start,) = (d for d in plan.decisions if isinstance(d, Start))
    assert (start.job, start.memory_mib, start.whole) == (1, mib, whole)
    assert start.mib_on(u(0)) == (None if whole else mib)
    assert codes(plan, 2) == {0: "taken" if whole else "memory"}


def test_whoever_asks_for_that_much_gets_the_card_only_if_nobody_is_on_it() -> None:
    for memory in (24264, 24576):
        assert refused(gpu(0, used=600, **SOLD_AS_24), want={"memory_mib": memory}, policy=BY_MEMORY) == (
            "memory" if memory == 24264 else "not_empty"
        )


def test_on_a_larger_card_the_request_is_the_number() -> None:
    rule = Policy(share=True, choice="first-fit")
    cards = (gpu(0, **SOLD_AS_24), gpu(1, total=80 * GIB))
    both = decide(world(job(1, memory_mib=24576, share=True, gpus_min=2, gpus_max=2), job(2, memory_mib=GIB, share=True),
                        gpus=cards, policy=rule))  # fmt: skip
    first = next(d for d in both.decisions if isinstance(d, Start))
    assert first.whole == (u(0),) and starts(both) == {1: (0, 1), 2: (1,)}


def test_beyond_that_it_can_never_start_and_the_numbers_tell_why() -> None:
    reason = decide(world(job(1, memory_mib=25478), gpus=(gpu(0, **SOLD_AS_24),))).waits[1]
    assert reason.code == "impossible"
    assert "it needs 1 card with 24.9 GiB" in text(reason) and "the largest offers 23.7 GiB when it is empty" in text(reason)


def test_the_promise_of_a_job_without_memory_is_the_whole_card_even_where_it_shares() -> None:
    jobs = lane(job(1, shape=1, share=True), job(2, shape=1, share=True))
    plan = decide(world(jobs, job(3, memory_mib=10, share=True), gpus=gpus(1)))
    assert starts(plan) == {1: (0,)} and codes(plan, 3) == {0: "taken"}


def test_runs_of_ours_share_a_card_by_memory_only_if_both_want_to() -> None:
    assert refused(gpu(0), policy=SHARE, **with_runs(running(9, 0, mib=8 * GIB, share=True))) is None
    assert refused(gpu(0), **with_runs(running(9, 0, mib=8 * GIB, share=True))) == "taken"
    assert refused(gpu(0), policy=SHARE, **with_runs(running(9, 0, mib=8 * GIB, share=False))) == "taken"
    assert refused(gpu(0), policy=SHARE, **with_runs(running(9, 0, mib=21 * GIB, share=True))) == "memory"


def test_a_neighbours_jostle_keeps_its_card_and_shares_it_where_strangers_are_shared_with() -> None:
    assert refused(gpu(0), promises=(foreign(ALICE, 0),)) == "neighbour"
    assert refused(gpu(0), promises=(foreign(ALICE, 0),), policy=BY_MEMORY) == "neighbour"
    assert refused(gpu(0), promises=(foreign(ALICE, 0, 8 * GIB),)) == "neighbour"
    assert refused(gpu(0), promises=(foreign(ALICE, 0, 8 * GIB),), policy=BY_MEMORY) is None
    assert refused(gpu(0), promises=(foreign(ALICE, 0, 21 * GIB),), policy=BY_MEMORY) == "memory"


def test_another_home_of_the_same_user_counts_as_ours() -> None:
    assert refused(gpu(0), promises=(foreign(ME, 0, 8 * GIB),)) == "taken_elsewhere"
    assert refused(gpu(0), promises=(foreign(ME, 0, 8 * GIB),), policy=SHARE) is None
    assert refused(gpu(0), promises=(foreign(ME, 0),), policy=SHARE) == "taken_elsewhere"


@pytest.mark.parametrize(
    ("process", "code"),
    [
        (holder(ME, 300, name="python3.11"), "own_process"),
        (holder(ME, 3, name="pt_main_thread", exe="python3.11"), "own_process"),
        (holder(ME, 300, name="pythonic-shell", exe="gnome-shell"), None),
        (holder(ME, 300, name="gnome-shell"), None),
        (holder(ME, 600, name="gnome-shell"), "own_process"),
        (holder(ME, None, name="?"), "own_process"),
    ],
)
def test_a17_what_the_user_started_by_hand_keeps_its_card(process: Any, code: str | None) -> None:
    card = gpu(0, used=process.used_mib or 0, holders=(process,))
    assert refused(card) == code
    assert refused(card, policy=Policy(own_processes="ignore")) is None
    assert refused(card, policy=SHARE) is None


def test_a_run_that_sits_on_a_card_it_was_not_given_keeps_it() -> None:
    stray = gpu(0, used=4000, holders=(holder(ME, 4000, run=(9, 1)),))
    cards = (stray, gpu(1))
    plan = decide(world(job(1, memory_mib=4000), gpus=cards, **with_runs(running(9, 1))))
    assert codes(plan, 1) == {0: "misplaced", 1: "taken"}


def test_memory_of_a_run_that_just_ended_is_waited_for_only_where_it_is_needed() -> None:
    card = gpu(0, used=8 * GIB, holders=(holder(ME, 8 * GIB, run=(9, 1)),))
    assert refused(card, want={}) == "leaving"
    assert refused(card) is None
    assert refused(card, want={"memory_mib": 17 * GIB}) == "memory"


def test_b3_gates_hold_together() -> None:
    gate = Policy(min_free_mib=8000, max_utilization=30)
    busy = {"utilization": 31, "mean_utilization": 10}
    assert refused(gpu(0), policy=gate) is None
    assert refused(gpu(0, **busy), policy=gate) == "utilization"
    assert refused(gpu(0, utilization=None, mean_utilization=None), policy=gate) == "utilization_unknown"
    assert refused(gpu(0, total=7000), want={"memory_mib": 10}, policy=Policy(min_free_mib=7000, margin_mib=0)) is None
    tight = gpu(0, used=17000, holders=(holder(ALICE, 17000),))
    assert refused(tight, policy=Policy(min_free_mib=8000, strangers="share")) == "min_free"


def test_the_margin_is_never_promised() -> None:
    assert refused(gpu(0), want={"memory_mib": 23 * GIB}, policy=Policy(margin_mib=GIB)) is None
    plan = decide(world(job(1, memory_mib=23 * GIB + 1), gpus=gpus(1), policy=Policy(margin_mib=GIB)))
    assert plan.waits[1].code == "impossible"


def test_cards_outside_the_range_are_not_used() -> None:
    plan = decide(world(lane(job(1, shape=1), job(2, shape=1)), gpus=gpus(3), policy=Policy(gpus=(2, 7))))
    assert starts(plan) == {1: (2,)} and codes(plan, 1) == {0: "out_of_range", 1: "out_of_range", 2: "taken"}


def test_a_card_that_squeezed_the_job_is_avoided_while_there_are_others() -> None:
    burnt = frozenset({u(0)})
    assert starts(decide(world(job(1, avoid=burnt), gpus=gpus(2)))) == {1: (1,)}
    plan = decide(world(job(1, avoid=burnt, ready_at=999.0), gpus=gpus(2), **with_runs(running(9, 1))))
    assert codes(plan, 1) == {0: "avoided", 1: "taken"}
    assert starts(decide(world(job(1, avoid=burnt), gpus=gpus(1)))) == {1: (0,)}


def test_idling_is_not_asked_of_a_card_we_are_on_ourselves() -> None:
    card = gpu(0, idle_for=0.0)
    rule = Policy(share=True, idle_for=60.0)
    assert refused(card, policy=rule) == "idle"
    assert refused(card, policy=rule, **with_runs(running(9, 0, mib=1000, share=True))) is None


CARDS = (
    gpu(0, used=4000, holders=(holder(ME, 4000),), mean_utilization=20, given_at=50.0),
    gpu(1, used=0, mean_utilization=15, given_at=30.0),
    gpu(2, used=9000, holders=(holder(ME, 9000),), mean_utilization=3, given_at=40.0),
    gpu(3, used=100, mean_utilization=None, utilization=None, given_at=20.0),
)


@pytest.mark.parametrize(
    ("choice", "order"),
    [
        ("best-fit", (2, 0, 3, 1)),
        ("least-used", (1, 3, 0, 2)),
        ("most-free", (1, 3, 0, 2)),
        ("lowest-utilization", (2, 1, 0, 3)),
        ("round-robin", (3, 1, 2, 0)),
        ("first-fit", (0, 1, 2, 3)),
        ("source-score", (1, 3, 0, 2)),
    ],
)
def test_a18_b8_the_choice_among_cards_that_fit(choice: str, order: tuple[int, ...]) -> None:
    rule = Policy(choice=choice, strangers="share", own_processes="ignore")
    plan = decide(world(lane(*(job(i, shape=1, memory_mib=1000) for i in range(4))), gpus=CARDS, policy=rule))
    assert tuple(cards[0] for cards in starts(plan).values()) == order
    several = decide(world(job(1, gpus_min=2, gpus_max=2, memory_mib=1000), gpus=CARDS, policy=rule))
    assert starts(several) == {1: tuple(sorted(order[:2]))}


def test_every_choice_is_tested() -> None:
    marks = test_a18_b8_the_choice_among_cards_that_fit.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in marks[0].args[1]} == set(CHOICES)


PEOPLED = tuple(replace(card, holders=(holder(ALICE, card.used_mib),)) for card in CARDS)


@pytest.mark.parametrize("choice", sorted(CHOICES))
def test_a17_cards_on_which_other_people_compute_come_last_in_every_choice(choice: str) -> None:
    rule = Policy(choice=choice, strangers="share", own_processes="ignore")
    ours = tuple(replace(c, index=c.index + 4, uuid=u(c.index + 4)) for c in CARDS)
    jobs = lane(*(job(i, shape=1, memory_mib=1000) for i in range(8)))
    order = [cards[0] for cards in starts(decide(world(jobs, gpus=(*PEOPLED, *ours), policy=rule))).values()]
    alone = [cards[0] for cards in starts(decide(world(jobs, gpus=CARDS, policy=rule))).values()]
    assert order == [i + 4 for i in alone] + alone, "the order of the choice holds within each group"
    several = decide(world(job(1, gpus_min=3, gpus_max=3, memory_mib=1000), gpus=(*PEOPLED, *ours), policy=rule))
    assert all(index >= 4 for index in starts(several)[1])


@pytest.mark.parametrize(
    ("card", "promises", "last"),
    [
        (gpu(0, used=300, holders=(holder(ALICE, 300, small_for=1e6),)), (), True),  # small and idle, but a person
        (gpu(0, used=300, holders=(holder(ALICE, 300, kind="graphics"),)), (), False),
        (gpu(0, used=300, holders=(holder(ROOT, 300, small_for=1e6),)), (), True),  # perhaps a container
        (gpu(0, used=300, holders=(holder(ROOT, 300, kind="graphics"),)), (), False),  # a desktop
        (gpu(0, used=300), (), False),
        (gpu(0, used=8000), (), True),  # memory of nobody we can see
        (gpu(0), (foreign(ALICE, 0, 1000),), True),  # claimed, not used yet
        (gpu(0), (foreign(ME, 0, 1000),), False),
        (gpu(0, used=5000, holders=(holder(ME, 5000),)), (), False),
    ],
)
def test_who_counts_as_another_person_on_a_card(card: Gpu, promises: Any, last: bool) -> None:
    rule = Policy(strangers="share", own_processes="ignore", share=True, choice="first-fit")
    plan = decide(world(job(1, memory_mib=1000, share=True), gpus=(card, gpu(1)), promises=promises, policy=rule))
    assert starts(plan) == {1: (1 if last else 0,)}


def test_where_only_cards_with_people_are_left_memory_decides_as_before() -> None:
    plan = decide(world(job(1, memory_mib=1000), gpus=PEOPLED, policy=BY_MEMORY))
    assert starts(plan) == {1: (2,)}


def test_in_a_container_our_own_nameless_processes_are_not_people() -> None:
    mine = gpu(0, used=4000, holders=(holder(None, 4000),))
    rule = Policy(share=True, choice="first-fit")
    ours = with_runs(running(9, 0, mib=4000, share=True))
    plan = decide(world(job(1, memory_mib=1000), gpus=(mine, gpu(1)), policy=rule, **ours))
    assert starts(plan) == {1: (0,)}


def test_best_fit_counts_what_was_promised_a_moment_ago() -> None:
    jobs = lane(*(job(i, shape=1, memory_mib=8 * GIB) for i in range(4)))
    plan = decide(world(jobs, gpus=gpus(2), policy=SHARE))
    assert starts(plan) == {0: (0,), 1: (0,), 2: (0,), 3: (1,)}


def test_round_robin_takes_the_card_given_longest_ago_as_far_as_runs_tell() -> None:
    alive = with_runs(running(8, 0, mib=10, share=True, started_at=5.0), running(9, 1, mib=10, share=True, started_at=4.0))
    rule = Policy(choice="round-robin", share=True)
    jobs = lane(*(job(i, shape=1, memory_mib=10) for i in (1, 2, 3)))
    assert starts(decide(world(jobs, gpus=gpus(2), policy=rule, **alive))) == {1: (1,), 2: (0,), 3: (1,)}


def test_a_promise_on_an_unknown_card_is_no_trouble() -> None:
    assert starts(decide(world(job(1), gpus=gpus(1), promises=(promise(9, 5),), runs=(run(9, 5),)))) == {1: (0,)}


def test_c6_a_neighbours_claim_with_nobody_on_the_card_is_named_as_idle() -> None:
    """At once if it is a floor's; else when it is so for minutes, for who is just starting has nothing there either."""
    def seen(card: Gpu, **more: Any) -> str:
        plan = decide(world(job(7), gpus=(card,), promises=(foreign(ALICE, 0, **more),)))
        return plan.waits[7].gpus[0].code

    assert seen(gpu(0), automatic=True) == seen(gpu(0), held_s=400.0) == "neighbour_idle"
    assert seen(gpu(0), held_s=20.0) == "neighbour"
    assert seen(gpu(0, holders=(holder(ALICE, 100),)), automatic=True) == "neighbour"
