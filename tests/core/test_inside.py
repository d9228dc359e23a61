"""Allocations and what runs inside them, as decide sees them (SPEC C2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jostle.core.decide import decide
from jostle.core.health import clears
from jostle.core.ledger import alive, available_mib, cards_of
from jostle.core.model import Exit, Orphan, Promise, Run
from jostle.core.plan import Fail, Finish, Plan, Requeue, Stop
from jostle.core.reasons import Hold
from tests.core.worlds import GIB, ME, foreign, gpu, gpus, holder, job, promise, run, running, starts, u, with_runs, world

Pair = tuple[Run, tuple[Promise, ...]]


def held(id: int, *cards: int, mib: int | None = None, **more: Any) -> Pair:
    return running(id, *cards, mib=mib, allocation=True, **more)


def within(id: int, allocation: int, *cards: int, mib: int | None = None, used: int = 0, **more: Any) -> Pair:
    parts = tuple(promise(id, card, mib, inside=allocation, used_mib=used) for card in cards)
    return run(id, *cards, memory_mib=mib, inside=allocation, **more), parts


def reason(plan: Plan, id: int) -> tuple[str, dict[str, Any]]:
    return plan.waits[id].code, dict(plan.waits[id].params)


def stops(plan: Plan) -> dict[int, bool]:
    """job -> whether it is killed."""
    return {d.run[0]: d.kill for d in plan.decisions if isinstance(d, Stop)}


# --- where a job inside goes


def test_a_job_inside_gets_cards_of_its_allocation_and_no_others() -> None:
    plan = decide(world(job(7, inside=1, gpus_min=2, gpus_max=2), gpus=gpus(4), **with_runs(held(1, 2, 3))))
    assert starts(plan) == {7: (2, 3)}


def test_a_job_inside_is_not_bound_by_what_keeps_others_from_these_cards() -> None:
    """Strangers, courtesy and processes of this user by hand: all that was met when the allocation got its cards."""
    from jostle.core.model import Policy

    visited = gpu(0, used=9 * GIB, holders=(holder(1001, 5 * GIB), holder(ME, 4 * GIB, pid=9, run=(1, 1))))
    policy = Policy(max_gpu=1, gpu_left=3, min_gpu=1, idle_for=600.0, max_utilization=0)
    plan = decide(world(job(7, inside=1), gpus=(visited, gpu(1)), policy=policy, **with_runs(held(1, 0))))
    assert starts(plan) == {7: (0,)}


def test_a_job_inside_waits_while_its_allocation_has_no_cards_yet() -> None:
    waiting = decide(world(job(1, gpus_min=5, gpus_max=5), job(7, inside=1), gpus=gpus(4)))
    assert reason(waiting, 7) == ("inside_waits", {"allocation": 1})
    starting = decide(world(job(7, inside=1), gpus=gpus(4), **with_runs(held(1, 0, state="starting"))))
    assert reason(starting, 7) == ("inside_waits", {"allocation": 1})


@pytest.mark.parametrize("leaves", [{"cancel": True}, {"state": "stopping"}, {"cancel": True, "kill": True}])
def test_nothing_starts_in_an_allocation_that_is_being_released(leaves: dict[str, Any]) -> None:
    plan = decide(world(job(7, inside=1), gpus=gpus(4), **with_runs(held(1, 0, **leaves))))
    assert starts(plan) == {} and reason(plan, 7)[0] == "inside_releasing"


def test_nothing_starts_on_the_cards_of_an_allocation_that_has_just_ended() -> None:
    over = replace(held(1, 0)[0], ended=Exit(code=0, released="asked"))
    plan = decide(world(job(7, inside=1), gpus=gpus(4), runs=(over,), promises=held(1, 0)[1]))
    assert starts(plan) == {} and reason(plan, 7)[0] == "inside_waits"


def test_more_cards_or_memory_than_the_allocation_has_is_told_as_impossible() -> None:
    pair = held(1, 0, 1, mib=8 * GIB)
    plan = decide(world(job(7, inside=1, gpus_min=3, gpus_max=3), job(8, inside=1, memory_mib=9 * GIB), gpus=gpus(4),
                        **with_runs(pair)))  # fmt: skip
    assert reason(plan, 7)[0] == reason(plan, 8)[0] == "inside_impossible"
    assert reason(plan, 8)[1]["most_mib"] == 8 * GIB


def test_a_card_that_cannot_be_read_is_not_used_inside_either() -> None:
    lost = (gpu(0, state="lost"), gpu(1))
    plan = decide(world(job(7, inside=1, gpus_min=2, gpus_max=2), gpus=lost, **with_runs(held(1, 0, 1))))
    assert reason(plan, 7)[0] == "inside_full" and [r.code for r in plan.waits[7].gpus] == ["lost"]


def test_a_job_inside_keeps_no_cards_and_holds_nobody_up() -> None:
    """Though it is old, wants much, and has the highest priority."""
    wants = job(7, inside=1, gpus_min=3, gpus_max=3, priority=9, ready_at=0.0)
    plan = decide(world(wants, job(8), gpus=gpus(3), now=1e6, **with_runs(held(1, 0))))
    assert starts(plan) == {8: (1,)} and plan.kept_for == ()


# --- what they share


def test_a_job_that_asks_for_no_memory_has_its_card_to_itself_unless_it_runs_beside() -> None:
    pairs = with_runs(held(1, 0), within(5, 1, 0))
    plan = decide(world(job(7, inside=1), job(8, inside=1, share=True), gpus=gpus(2), **pairs))
    assert starts(plan) == {8: (0,)}
    assert reason(plan, 7)[0] == "inside_full" and plan.waits[7].gpus[0].code == "taken"


def test_all_together_get_no_more_memory_than_the_allocation_was_promised() -> None:
    pairs = with_runs(held(1, 0, mib=10 * GIB), within(5, 1, 0, mib=6 * GIB, share=True))
    fits, too_much = (job(n, inside=1, share=True, memory_mib=m * GIB) for n, m in ((7, 4), (8, 1)))
    plan = decide(world(fits, too_much, gpus=gpus(1), **pairs))
    assert starts(plan) == {7: (0,)}
    assert plan.waits[8].gpus[0].params == {"available_mib": 0, "needed_mib": GIB}


def test_memory_that_somebody_else_uses_on_the_card_is_not_handed_out_inside() -> None:
    crowded = gpu(0, used=20 * GIB)
    plan = decide(world(job(7, inside=1, memory_mib=5 * GIB), gpus=(crowded,), **with_runs(held(1, 0))))
    assert plan.waits[7].gpus[0].params == {"available_mib": 4 * GIB, "needed_mib": 5 * GIB}


# --- the ledger


def test_what_is_promised_inside_is_part_of_the_allocation_and_counted_once() -> None:
    pairs = with_runs(held(1, 0, mib=10 * GIB, share=True), within(5, 1, 0, mib=8 * GIB, used=6 * GIB))
    card = gpu(0, used=6 * GIB, holders=(holder(ME, 6 * GIB, run=(5, 1)),))
    assert available_mib(world(gpus=(card,), **pairs)) == {u(0): 14 * GIB}, "24 less 10, of which 6 are used and 4 are owed"


def test_what_runs_inside_counts_by_itself_once_its_allocation_is_gone() -> None:
    """It was lost: its shim was killed."""
    alone = with_runs(within(5, 1, 0, mib=8 * GIB))
    assert available_mib(world(gpus=gpus(1), **alone)) == {u(0): 0}, "it does not share"
    ends = replace(held(1, 0, mib=10 * GIB)[0], ended=Exit(lost="exit_unknown"))
    same = {"runs": (ends, *alone["runs"]), "promises": (*held(1, 0, mib=10 * GIB)[1], *alone["promises"])}
    assert available_mib(world(gpus=gpus(1), **same)) == {u(0): 0}


def test_on_a_card_that_the_allocation_has_not_any_more_it_counts_by_itself() -> None:
    """It grew onto the card, a program began there, and then the order came to nothing."""
    made = with_runs(held(1, 0, mib=10 * GIB, share=True), within(5, 1, 0, 1, mib=8 * GIB, share=True))
    assert available_mib(world(gpus=gpus(2), **made)) == {u(0): 14 * GIB, u(1): 16 * GIB}


def test_nothing_starts_on_a_card_that_the_allocation_is_to_leave_or_does_not_have_yet() -> None:
    from jostle.core.model import Elastic
    from jostle.core.reasons import Reason

    def seen(listed: tuple[int, ...], busy: Reason | None = None) -> Plan:
        elastic = Elastic(how="hold", least=1, most=1, listed=tuple(map(u, listed)), busy=busy)
        return decide(world(job(7, inside=1, gpus_max=4), gpus=gpus(3), **with_runs(held(1, 0, 1, elastic=elastic))))

    assert starts(seen((0,), Reason("not_left"))) == {7: (0,)}
    assert starts(seen((0, 1, 2))) == {7: (0, 1)}, "the third is not its own"
    assert reason(seen((0, 1), Reason("resizing")), 7)[0] == "inside_resizing"


def test_processes_of_what_runs_inside_are_promised_and_nobody_strays() -> None:
    card = gpu(0, used=6 * GIB, holders=(holder(ME, 6 * GIB, run=(5, 1)),))
    made = world(gpus=(card,), **with_runs(held(1, 0), within(5, 1, 0)))
    (entered,) = cards_of(made, made.gpus, alive(made))
    assert [h.pid for h in entered.holders("promised")] == [500] and entered.holders("strayed") == []


def test_a_plan_that_starts_two_inside_counts_the_first_for_the_second() -> None:
    two = [job(n, inside=1, memory_mib=6 * GIB, share=True) for n in (7, 8)]
    plan = decide(world(*two, gpus=gpus(1), **with_runs(held(1, 0, mib=10 * GIB))))
    assert starts(plan) == {7: (0,)} and 8 in plan.waits


def test_other_users_claims_on_the_card_stay_what_they_are() -> None:
    pairs = with_runs(held(1, 0, mib=4 * GIB, share=True), within(5, 1, 0, mib=4 * GIB))
    made = world(gpus=gpus(1), runs=pairs["runs"], promises=(*pairs["promises"], foreign(1001, 0, 10 * GIB)))
    assert available_mib(made) == {u(0): 10 * GIB}


# --- how it ends


def test_a_release_stops_what_runs_inside_first_and_then_the_allocation() -> None:
    pairs = with_runs(held(1, 0, cancel=True), within(5, 1, 0), running(6, 1))
    assert stops(decide(world(gpus=gpus(2), **pairs))) == {5: False}
    assert stops(decide(world(gpus=gpus(2), **with_runs(held(1, 0, cancel=True), running(6, 1))))) == {1: False}


def test_a_release_at_once_kills_what_runs_inside() -> None:
    pairs = with_runs(held(1, 0, cancel=True, kill=True), within(5, 1, 0, state="stopping"))
    assert stops(decide(world(gpus=gpus(1), **pairs))) == {5: True}


def test_what_runs_inside_ends_with_an_allocation_that_ended_by_itself() -> None:
    over = replace(held(1, 0)[0], ended=Exit(code=0, released="time"), time_limit=60.0)
    inner = within(5, 1, 0)[0]
    plan = decide(world(gpus=gpus(1), runs=(over, inner)))
    assert stops(plan) == {5: False}
    (finish,) = (d for d in plan.decisions if isinstance(d, Finish))
    assert (finish.run, finish.state, finish.reason and finish.reason.code) == ((1, 1), "succeeded", "released_time")
    later = decide(world(gpus=gpus(1), runs=(replace(inner, evicted=True),)))
    assert stops(later) == {5: False}, "also when an engine comes that never saw the allocation"


def test_an_allocation_that_was_lost_takes_nothing_with_it() -> None:
    lost = replace(held(1, 0)[0], ended=Exit(lost="exit_unknown"))
    plan = decide(world(gpus=gpus(1), runs=(lost, within(5, 1, 0)[0])))
    assert stops(plan) == {}
    (finish,) = (d for d in plan.decisions if isinstance(d, Finish))
    assert (finish.state, finish.reason and finish.reason.code) == ("failed", "exit_unknown")


def test_who_was_told_to_end_with_its_allocation_is_cancelled_and_says_so() -> None:
    inner = replace(within(5, 1, 0)[0], state="stopping", evicted=True, ended=Exit(code=143, signal=15))
    (finish,) = decide(world(gpus=gpus(1), runs=(inner,))).decisions
    assert isinstance(finish, Finish)
    assert (finish.state, finish.reason and finish.reason.code) == ("cancelled", "allocation_over")


def test_also_one_that_its_shim_ended_while_there_was_no_engine() -> None:
    inner = replace(within(5, 1, 0)[0], evicted=True, ended=Exit(code=0, stopped=True))
    (finish,) = decide(world(gpus=gpus(1), runs=(inner,))).decisions
    assert isinstance(finish, Finish)
    assert (finish.state, finish.reason and finish.reason.code) == ("cancelled", "allocation_over")


def test_one_that_failed_by_itself_is_tried_again_as_ever() -> None:
    from jostle.core.model import Retry

    failed = replace(within(5, 1, 0)[0], ended=Exit(code=1, ran_for=60.0), retry=Retry(max=3))
    (again,) = decide(world(gpus=gpus(1), runs=(held(1, 0)[0], failed))).decisions
    assert isinstance(again, Requeue)


@pytest.mark.parametrize(("how", "more", "code"), [
    ("asked", {"cancel": True}, "released"), ("process", {}, "released_process"),
    ("asked", {"idle_release": 60.0}, "released_idle"), ("time", {"time_limit": 5.0}, "released_time"),
])  # fmt: skip
def test_each_way_to_end_is_its_success_and_has_its_reason(how: str, more: dict[str, Any], code: str) -> None:
    over = replace(held(1, 0)[0], ended=Exit(code=0, released=how), **more)
    (finish,) = decide(world(gpus=gpus(1), runs=(over,))).decisions
    assert isinstance(finish, Finish) and finish.state == "succeeded"
    assert finish.reason is not None and finish.reason.code == code


# --- idle


def test_an_idle_allocation_is_released_after_the_time_that_was_asked_for_and_not_before() -> None:
    idle = {"idle_since": 900.0, "idle_release": 60.0}
    assert stops(decide(world(gpus=gpus(1), now=959.0, **with_runs(held(1, 0, **idle))))) == {}
    assert decide(world(gpus=gpus(1), now=959.0, **with_runs(held(1, 0, **idle)))).wake_at == 960.0
    assert stops(decide(world(gpus=gpus(1), now=960.0, **with_runs(held(1, 0, **idle))))) == {1: False}


@pytest.mark.parametrize("state", ["unknown", "lost", "unreadable"])
def test_an_allocation_whose_cards_cannot_be_read_is_not_called_idle(state: str) -> None:
    pair = held(1, 0, idle_since=0.0, idle_release=60.0)
    assert stops(decide(world(gpus=(gpu(0, state=state),), **with_runs(pair)))) == {}


def test_one_that_was_not_asked_to_go_stays_however_long_it_is_idle() -> None:
    plan = decide(world(gpus=gpus(1), now=1e9, **with_runs(held(1, 0, idle_since=0.0))))
    assert plan.decisions == () and plan.wake_at is None


def test_an_allocation_says_nothing_of_the_health_of_its_cards() -> None:
    assert not clears(held(1, 0)[0], 1e6) and clears(running(2, 0)[0], 1e6)


# --- whose process is gone


def given_up(plan: Plan) -> dict[int, tuple[str, str]]:
    return {d.job: (d.state, d.reason.code) for d in plan.decisions if isinstance(d, Fail)}


@pytest.mark.parametrize(("awaited", "code"), [(True, "waiter_ended"), (False, "tied_ended")])
def test_what_nobody_waits_for_starts_no_more_and_leaves_the_line_wherever_it_stands(awaited: bool, code: str) -> None:
    lanes = (job(7), job(8), job(9))
    gone = {id: Orphan(1, True, awaited) for id in (7, 40)}  # the second is too far behind to be seen
    plan = decide(world(*lanes, gpus=gpus(1), orphans=gone))
    assert given_up(plan) == {7: ("cancelled", code), 40: ("cancelled", code)}
    assert starts(plan) == {8: (0,)}, "and the next has its card"
    held_up = decide(world(gpus=(), orphans=gone, hold=Hold("disk_full")))
    assert given_up(held_up).keys() == gone.keys(), "also where nothing starts"


def test_cards_that_nobody_was_told_of_are_given_back() -> None:
    gone = {1: Orphan(1, False, True)}
    assert stops(decide(world(gpus=gpus(2), orphans=gone, **with_runs(held(1, 0))))) == {1: False}
    end = with_runs(held(1, 0, state="stopping", ended=Exit(code=0, released="asked"), idle_release=9.0))
    (finish,) = decide(world(gpus=gpus(2), orphans=gone, **end)).decisions
    assert isinstance(finish, Finish) and finish.reason is not None
    assert (finish.state, finish.reason.code) == ("succeeded", "waiter_ended")
