"""Who gets other cards while it runs, and who gives way (SPEC C7, C8): the decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jostle.core.decide import decide
from jostle.core.model import Cap, Elastic, Exit, Gpu, Limits, Policy, Promise, Run, World
from jostle.core.plan import Finish, Plan, Requeue, Resize, Yield
from jostle.core.reasons import Reason
from jostle.core.resize import MOST_PAUSE, pause
from jostle.core.retry import CALM_S, MOST_YIELD_S, YIELD_S
from tests.core.worlds import BOB, GIB, ME, NO_DRIVER, foreign, gpu, gpus, holder, job, running, starts, u, with_runs, world

LONG_AGO = 0.0


def elastic(id: int, *cards: int, least: int = 1, most: int = 4, how: str = "restart", run: dict[str, Any] | None = None,
            **more: Any) -> tuple[Run, tuple[Promise, ...]]:  # fmt: skip
    its, promises = running(id, *cards, **(run or {}))
    said = {"listed": its.uuids, "resized_at": LONG_AGO, "tempted_for": 1e6, **more}
    return replace(its, elastic=Elastic(how=how, least=least, most=most, **said)), promises


def resized(plan: Plan) -> dict[int, tuple[int, ...]]:
    """run -> indices of the cards that it is to have."""
    return {d.run[0]: tuple(int(x.split("-")[1]) for x in d.uuids) for d in plan.decisions if isinstance(d, Resize)}


def why(plan: Plan, run: int) -> str:
    (reason,) = (d.reason for d in plan.decisions if isinstance(d, Resize) and d.run[0] == run)
    return reason.code


def keeps(plan: Plan, run: int) -> Reason:
    return plan.keeps[run, 1]


def with_stranger(card: int, mib: int = 9000) -> Gpu:
    return gpu(card, used=mib, holders=(holder(BOB, mib, user="bob"),))


# --- growing


def test_c7_a_run_that_may_grow_gets_the_cards_that_nobody_waits_for() -> None:
    plan = decide(world(gpus=gpus(4), **with_runs(elastic(1, 0, most=3))))
    assert resized(plan) == {1: (0, 1, 2)} and why(plan, 1) == "free_cards"


def test_c8_a_run_that_declared_nothing_is_never_resized() -> None:
    plan = decide(world(gpus=gpus(4), **with_runs(running(1, 0))))
    assert plan.decisions == ()


def test_c7_free_cards_go_to_the_program_with_the_smallest_share_first() -> None:
    pairs = elastic(1, 0, 1, most=8), elastic(2, 2, most=8), elastic(3, 3, 4, 5, most=8)
    assert resized(decide(world(gpus=gpus(7), **with_runs(*pairs)))) == {2: (2, 6)}
    assert resized(decide(world(gpus=gpus(9), **with_runs(*pairs)))) == {1: (0, 1, 7), 2: (2, 6, 8)}


def test_jobs_that_wait_come_first() -> None:
    plan = decide(world(job(9), job(10), gpus=gpus(4), **with_runs(elastic(1, 0))))
    assert starts(plan) == {9: (1,), 10: (2,)} and resized(plan) == {1: (0, 3)}


def test_it_grows_no_sooner_than_a_while_after_its_last_change() -> None:
    plan = decide(world(gpus=gpus(2), **with_runs(elastic(1, 0, resized_at=990.0))))
    assert resized(plan) == {}
    assert keeps(plan, 1) == Reason("resize_pause", {"left_s": 50.0, "lost": 0}) and plan.wake_at == 1050.0
    assert resized(decide(world(gpus=gpus(2), now=1050.0, **with_runs(elastic(1, 0, resized_at=990.0))))) == {1: (0, 1)}


def test_each_loss_to_others_doubles_that_while() -> None:
    some = Elastic(how="restart", least=1, most=4)
    pauses = [pause(60.0, replace(some, lost_to_others=n)) for n in range(12)]
    assert pauses[:4] == [60.0, 120.0, 240.0, 480.0] and max(pauses) == 60.0 * 2**MOST_PAUSE == pauses[-1]
    lost = elastic(1, 0, resized_at=900.0, lost_to_others=1)
    assert resized(decide(world(gpus=gpus(2), **with_runs(lost)))) == {}


def test_free_cards_are_left_idle_until_that_has_cost_as_much_as_the_change() -> None:
    """Half of `resize_interval` (60 s) on each of the four that it has: one card costs as much in 120 s, three in 40 s."""

    def after(seconds: float, count: int, **more: Any) -> Plan:
        mine = elastic(1, 0, 1, 2, 3, most=8, tempted_for=seconds, **more)
        return decide(world(gpus=gpus(4 + count), **with_runs(mine)))

    plan = after(50.0, 1)
    assert resized(plan) == {} and keeps(plan, 1) == Reason("too_dear", {"more": 1, "left_s": 70.0}) and plan.wake_at == 1070.0
    assert resized(after(120.0, 1)) == {1: (0, 1, 2, 3, 4)}
    assert resized(after(39.0, 3)) == {} and resized(after(40.0, 3)) == {1: (0, 1, 2, 3, 4, 5, 6)}
    assert resized(after(0.0, 1, least=5)) == {1: (0, 1, 2, 3, 4)}, "a person asks for it"


def test_where_it_must_leave_a_card_it_gets_others_in_the_same_change() -> None:
    cards = (gpu(0), with_stranger(1), gpu(2), gpu(3))
    plan = decide(world(gpus=cards, **with_runs(intruded(1, 0, 1, by=(1,)))))
    assert resized(plan) == {1: (0, 2, 3)} and why(plan, 1) == "stranger_came"
    chased = decide(world(gpus=cards, **with_runs(intruded(1, 0, 1, by=(1,), resized_at=990.0))))
    assert resized(chased) == {1: (0,)}, "who follows it from card to card makes it smaller, and not dance"


def test_after_a_try_in_vain_it_waits_and_one_that_is_being_resized_is_left_alone() -> None:
    assert resized(decide(world(gpus=gpus(2), **with_runs(elastic(1, 0, not_before=1010.0))))) == {}
    busy = Reason("resizing", {"leg": 2})
    plan = decide(world(gpus=gpus(2), **with_runs(elastic(1, 0, busy=busy))))
    assert resized(plan) == {} and keeps(plan, 1) == busy


@pytest.mark.parametrize("state", [{"state": "starting"}, {"state": "stopping"}, {"cancel": True}, {"yielding": True}])
def test_one_that_has_not_begun_or_is_to_end_is_left_alone(state: dict[str, Any]) -> None:
    assert resized(decide(world(gpus=gpus(2), **with_runs(elastic(1, 0, run=state))))) == {}


def test_it_grows_within_courtesy() -> None:
    plan = decide(world(gpus=gpus(6), policy=Policy(min_gpu=1, max_gpu=8, gpu_left=3), **with_runs(elastic(1, 0, most=6))))
    assert resized(plan) == {1: (0, 1, 2)}
    older = decide(world(gpus=gpus(4), policy=Policy(gpu_left=2), **with_runs(elastic(1, 0))))
    assert resized(older) == {1: (0, 1)}
    assert resized(decide(world(gpus=gpus(4), policy=Policy(gpus=(0, 1)), **with_runs(elastic(1, 0))))) == {1: (0, 1)}


def test_c3_it_grows_within_the_limits_of_the_person() -> None:
    def caps(**most: int) -> Limits:
        return Limits(**{name: Cap(n, "lab") for name, n in most.items()})

    def grown(limits: Limits, *more: Any) -> dict[int, tuple[int, ...]]:
        return resized(decide(world(gpus=gpus(6), limits=limits, **with_runs(elastic(1, 0, most=6), *more))))

    assert grown(caps(max_gpus_per_task=2)) == {1: (0, 1)}
    assert grown(caps(max_total_gpus=4), running(2, 4)) == {1: (0, 1, 2)}
    assert grown(caps(max_manual_gpus=2)) == {1: (0, 1)}
    assert grown(caps(max_total_gpus=1)) == {}
    two = with_runs(elastic(1, 0), running(2, 1))
    assert keeps(decide(world(gpus=gpus(6), limits=caps(max_total_gpus=2), **two)), 1).code == "user_limit"
    assert keeps(decide(world(gpus=gpus(6), limits=caps(max_total_gpus=1), **two)), 1) == Reason("at_most", {"most": 1})


def test_it_gets_no_card_that_a_job_would_not_get() -> None:
    cards = (gpu(0), with_stranger(1), gpu(2, excluded=True), gpu(3, state="unknown"), gpu(4, used=20 * GIB), gpu(5))
    pair = elastic(1, 0, most=8, run={"mib": 8 * GIB})
    plan = decide(world(gpus=cards, **with_runs(pair)))
    assert resized(plan) == {1: (0, 5)}
    run, promises = pair
    taken = {"runs": (run,), "promises": (*promises, foreign(BOB, 5))}
    assert resized(decide(world(gpus=cards, **taken))) == {}


def test_one_that_shares_cards_does_not_get_its_own_again() -> None:
    plan = decide(world(gpus=gpus(2), **with_runs(elastic(1, 0, most=2, run={"mib": 4 * GIB, "share": True}))))
    assert resized(plan) == {1: (0, 1)}
    (resize,) = plan.decisions
    assert isinstance(resize, Resize) and resize.mib_on(u(1)) == 4 * GIB


def test_one_that_shares_gets_each_card_once() -> None:
    plan = decide(world(gpus=gpus(3), **with_runs(elastic(1, 0, most=6, run={"mib": 4 * GIB, "share": True}))))
    assert resized(plan) == {1: (0, 1, 2)}


def test_while_one_of_its_cards_is_gone_from_sight_it_is_left_alone() -> None:
    assert resized(decide(world(job(9), gpus=gpus(2), **with_runs(elastic(1, 0, 1, 5))))) == {}


def test_slices_are_no_cards_to_grow_on() -> None:
    assert resized(decide(world(gpus=(gpu(0), gpu(1, mig_slice=True)), **with_runs(elastic(1, 0))))) == {}
    assert resized(decide(world(gpus=(gpu(0, mig_slice=True), gpu(1)), **with_runs(elastic(1, 0))))) == {}


def test_c7_load_decides_where_a_rule_says_so() -> None:
    rules = Policy(scale_up=80, scale_down=30)

    def plan(load: float | None, *cards: int) -> Plan:
        return decide(world(gpus=gpus(4), policy=rules, **with_runs(elastic(1, *cards, load=load))))

    assert resized(plan(85.0, 0)) == {1: (0, 1, 2, 3)}
    for load in (79.0, None):
        assert resized(plan(load, 0)) == {} and keeps(plan(load, 0), 1).code == "load_too_low"
    down = plan(12.0, 0, 1, 2)
    assert resized(down) == {1: (0, 1)} and why(down, 1) == "low_load", "one at a time"
    assert resized(plan(12.0, 0)) == {}, "and never below the minimum"
    assert resized(plan(None, 0, 1)) == {}, "what is not known is no low load"
    soon = decide(world(gpus=gpus(4), policy=rules, **with_runs(elastic(1, 0, 1, load=12.0, resized_at=990.0))))
    assert resized(soon) == {}


def test_cards_that_are_kept_for_a_big_job_are_not_grown_on() -> None:
    big = job(9, gpus_min=3, gpus_max=3, ready_at=0.0)
    held = running(2, 1, 2)
    plan = decide(world(big, gpus=gpus(4), **with_runs(elastic(1, 0, most=4), held)))
    assert plan.kept_for == (9,) and resized(plan) == {}
    assert {r.code for r in keeps(plan, 1).gpus} >= {"kept"}


def test_it_still_grows_beside_a_job_that_cannot_start_while_it_lives() -> None:
    """All four cards are asked for: whatever it gives back, that one waits for its end, and then it has everything."""
    big = job(9, gpus_min=4, gpus_max=4, ready_at=0.0)
    plan = decide(world(big, gpus=gpus(4), **with_runs(elastic(1, 0, most=4))))
    assert plan.kept_for == (9,) and resized(plan) == {1: (0, 1, 2, 3)}
    again = decide(world(big, gpus=gpus(4), **with_runs(elastic(1, 0, 1, 2, 3, most=4))))
    assert resized(again) == {}, "and does not give them back for it, either"


def test_one_that_starts_begins_with_what_nobody_else_could_use() -> None:
    its = job(9, gpus_min=1, gpus_max=4, elastic=True)
    assert starts(decide(world(its, gpus=gpus(3)))) == {9: (0, 1, 2)}
    assert starts(decide(world(its, job(10), job(11), gpus=gpus(4)))) == {9: (0, 3), 10: (1,), 11: (2,)}
    both = decide(world(its, gpus=gpus(6), **with_runs(elastic(1, 0, 1, most=8))))
    assert starts(both) == {9: (2, 3, 5)} and resized(both) == {1: (0, 1, 4)}, "each has as many in the end"
    few = decide(world(its, gpus=gpus(4), policy=Policy(gpu_left=1, min_gpu=1, max_gpu=2)))
    assert starts(few) == {9: (0, 1)}


# --- giving back


def test_c7_it_gives_back_what_a_waiting_job_of_ours_needs_and_no_more() -> None:
    plan = decide(world(job(9), gpus=gpus(3), **with_runs(elastic(1, 0, 1, 2))))
    assert resized(plan) == {1: (0, 1)} and why(plan, 1) == "for_job"
    two = decide(world(job(9, gpus_min=2, gpus_max=2), gpus=gpus(4), **with_runs(elastic(1, 0, 1, 2))))
    assert resized(two) == {1: (0, 1)}, "one is free"


def test_it_gives_back_nothing_for_a_job_that_could_not_start_all_the_same() -> None:
    assert resized(decide(world(job(9, gpus_min=3, gpus_max=3), gpus=gpus(3), **with_runs(elastic(1, 0, 1, 2))))) == {}
    assert resized(decide(world(job(9, memory_mib=90 * GIB), gpus=gpus(3), **with_runs(elastic(1, 0, 1, 2))))) == {}
    held = decide(world(job(9), gpus=gpus(3), node_hold=NO_DRIVER, **with_runs(elastic(1, 0, 1, 2))))
    assert resized(held) == {}


def test_never_below_its_least() -> None:
    assert resized(decide(world(job(9), gpus=gpus(3), **with_runs(elastic(1, 0, 1, 2, least=3))))) == {}
    two = decide(world(job(9), job(10), gpus=gpus(3), **with_runs(elastic(1, 0, 1, 2, least=2))))
    assert resized(two) == {1: (0, 1)}


def test_a_job_of_lower_priority_gets_nothing_from_it() -> None:
    assert resized(decide(world(job(9, priority=-1), gpus=gpus(2), **with_runs(elastic(1, 0, 1))))) == {}
    assert resized(decide(world(job(9, priority=3), gpus=gpus(2), **with_runs(elastic(1, 0, 1, priority=3))))) == {1: (0,)}


def test_of_several_the_one_gives_that_has_most_to_give() -> None:
    pairs = elastic(1, 0, 1), elastic(2, 2, 3, 4), elastic(3, 5, least=1)
    assert resized(decide(world(job(9), gpus=gpus(6), **with_runs(*pairs)))) == {2: (2, 3)}
    big = job(9, gpus_min=3, gpus_max=3)
    assert resized(decide(world(big, gpus=gpus(6), **with_runs(*pairs)))) == {1: (0,), 2: (2,)}


def test_what_is_on_its_way_back_is_not_asked_for_twice() -> None:
    """One was told a moment ago to leave a card: the job will have that, and nobody else must give one."""
    leaving = elastic(1, 0, 1, busy=Reason("resizing", {}), listed=(u(0),))
    plan = decide(world(job(9), gpus=gpus(4), **with_runs(leaving, elastic(2, 2, 3))))
    assert resized(plan) == {}
    another = decide(world(job(9), job(10), gpus=gpus(4), **with_runs(leaving, elastic(2, 2, 3))))
    assert resized(another) == {2: (2,)}


def test_a_card_that_was_left_a_moment_ago_and_is_not_read_yet_is_not_asked_for_again() -> None:
    cards = (*gpus(3), gpu(3, state="unknown", left_at=999.0))
    plan = decide(world(job(9), gpus=cards, **with_runs(elastic(1, 0, 1, 2))))
    assert resized(plan) == {} and plan.wake_at is not None
    assert resized(decide(world(job(9), gpus=cards, now=1010.0, **with_runs(elastic(1, 0, 1, 2))))) == {1: (0, 1)}


def test_a_card_that_a_job_waits_for_together_with_others_is_not_grown_on() -> None:
    """It needs two: one is there, one is being left. Who may grow must not snatch the first."""
    leaving = elastic(1, 0, 1, busy=Reason("resizing", {}), listed=(u(0),))
    pair = job(9, gpus_min=2, gpus_max=2)
    plan = decide(world(pair, gpus=gpus(4), **with_runs(leaving, elastic(2, 2, most=2))))
    assert resized(plan) == {}


def test_courtesy_that_allows_fewer_cards_takes_some_back() -> None:
    """Eight cards of which two are to be left: strangers have taken the two that were free."""
    cards = (*gpus(6), with_stranger(6, 24 * GIB), with_stranger(7, 24 * GIB))
    rules = Policy(gpu_left=2, min_gpu=1, max_gpu=8)
    plan = decide(world(gpus=cards, policy=rules, **with_runs(elastic(1, 0, 1, 2, 3, 4, 5, most=8))))
    assert resized(plan) == {1: (0, 1, 2, 3)} and why(plan, 1) == "courtesy"
    pairs = elastic(1, 0, 1, 2, 3, least=3), elastic(2, 4, 5)
    both = decide(world(gpus=cards, policy=rules, **with_runs(*pairs)))
    assert resized(both) == {1: (0, 1, 2), 2: (4,)}, "of both, and of none below its least"


def test_a_waiting_job_that_courtesy_holds_up_gets_room_too() -> None:
    rules = Policy(gpu_left=1, min_gpu=1, max_gpu=3)
    plan = decide(world(job(9), gpus=gpus(6), policy=rules, **with_runs(elastic(1, 0, 1, 2))))
    assert resized(plan) == {1: (0, 1)} and why(plan, 1) == "for_job"


# --- strangers


def intruded(id: int, *cards: int, by: tuple[int, ...], **more: Any) -> tuple[Run, tuple[Promise, ...]]:
    its, promises = elastic(id, *cards, **more)
    return replace(its, intruded=tuple(u(c) for c in by)), promises


def test_c7_a_card_that_a_stranger_has_come_onto_is_dropped_at_once() -> None:
    cards = (gpu(0), with_stranger(1), gpu(2))
    plan = decide(world(gpus=cards, **with_runs(intruded(1, 0, 1, 2, by=(1,), resized_at=999.0, lost_to_others=5))))
    assert resized(plan) == {1: (0, 2)}
    (reason,) = (d.reason for d in plan.decisions if isinstance(d, Resize))
    assert reason == Reason("stranger_came", {"gpu": 1, "user": "bob"})


def test_at_its_least_it_moves_to_another_card_if_one_is_free() -> None:
    cards = (with_stranger(0), gpu(1))
    assert resized(decide(world(gpus=cards, **with_runs(intruded(1, 0, by=(0,), most=1))))) == {1: (1,)}
    soon = decide(world(gpus=cards, **with_runs(intruded(1, 0, by=(0,), most=1, resized_at=999.0))))
    assert resized(soon) == {}, "not as often as somebody might follow it"
    stays = decide(world(gpus=(with_stranger(0),), **with_runs(intruded(1, 0, by=(0,)))))
    assert resized(stays) == {} and keeps(stays, 1).code == "at_minimum"


def test_who_shares_with_strangers_does_not_mind_them() -> None:
    shares = Policy(strangers="share")
    plan = decide(world(gpus=(gpu(0), with_stranger(1)), policy=shares, **with_runs(intruded(1, 0, 1, by=(1,), most=2))))
    assert resized(plan) == {}


# --- what a person asks for


def test_a_person_asks_for_fewer_or_more_and_nothing_else_is_waited_for() -> None:
    assert resized(decide(world(gpus=gpus(4), **with_runs(elastic(1, 0, 1, 2, most=1, resized_at=999.0))))) == {1: (0,)}
    more = decide(world(gpus=gpus(4), **with_runs(elastic(1, 0, least=3, most=3, resized_at=999.0, lost_to_others=3))))
    assert resized(more) == {1: (0, 1, 2)} and why(more, 1) == "asked_for"
    some = decide(world(gpus=gpus(2), **with_runs(elastic(1, 0, least=3, most=3))))
    assert resized(some) == {1: (0, 1)}, "as many as there are"


def test_a_run_without_a_program_is_changed_by_people_alone() -> None:
    """An allocation: it neither grows by itself nor gives way."""
    cards = (gpu(0), with_stranger(1), gpu(2), gpu(3))
    its, promises = elastic(1, 0, 1, least=2, most=2, how="hold")
    plan = decide(world(job(9), job(10), job(11), gpus=cards, runs=(replace(its, intruded=(u(1),)),), promises=promises))
    assert resized(plan) == {}
    grow = decide(world(gpus=gpus(4), **with_runs(elastic(1, 0, 1, least=3, most=3, how="hold"))))
    assert resized(grow) == {1: (0, 1, 2)}
    assert resized(decide(world(gpus=gpus(4), **with_runs(elastic(1, 0, 1, least=2, most=4, how="hold"))))) == {}


# --- leaving altogether


def low(id: int, *cards: int, by: tuple[int, ...] = (), **more: Any) -> tuple[Run, tuple[Promise, ...]]:
    its, promises = running(id, *cards)
    return replace(its, yields=True, intruded=tuple(u(c) for c in by), **more), promises


def yields(plan: Plan) -> list[int]:
    return [d.run[0] for d in plan.decisions if isinstance(d, Yield)]


def test_a_job_that_says_so_leaves_when_a_stranger_comes_and_no_other_is_touched() -> None:
    cards = (gpu(0), with_stranger(1), gpu(2), with_stranger(3))
    other = replace(running(3, 3)[0], intruded=(u(3),)), running(3, 3)[1]
    plan = decide(world(gpus=cards, **with_runs(low(1, 0), low(2, 1, by=(1,)), other)))
    assert yields(plan) == [2] and len(plan.decisions) == 1


def test_it_is_told_once() -> None:
    for state in ({"yielding": True}, {"cancel": True, "state": "stopping"}):
        assert yields(decide(world(gpus=(with_stranger(0),), **with_runs(low(1, 0, by=(0,), **state))))) == []


def test_one_that_can_do_with_other_cards_stays() -> None:
    def both(*cards: Gpu) -> Plan:
        its, promises = intruded(1, 0, by=(0,), most=1)
        return decide(world(gpus=cards, runs=(replace(its, yields=True),), promises=promises))

    plan = both(with_stranger(0), gpu(1))
    assert resized(plan) == {1: (1,)} and yields(plan) == []
    assert yields(both(with_stranger(0))) == [1]


def after_yield(lately: int = 0, ran_for: float = 60.0, **more: Any) -> Requeue | Finish:
    fields: dict[str, Any] = {"yielding": True, "yielded": lately, "yielded_lately": lately, **more}
    run = replace(running(1, 0)[0], ended=Exit(code=143, signal=15, ran_for=ran_for, stopped=True), **fields)
    (decision,) = decide(World(now=1000.0, uid=ME, runs=(run,))).decisions
    assert isinstance(decision, Requeue | Finish)
    return decision


def test_who_gave_way_is_queued_again_without_a_try_and_stays_away_longer_each_time() -> None:
    pauses = []
    for lately in range(12):
        again = after_yield(lately)
        assert isinstance(again, Requeue) and again.yielded and not again.counts
        pauses.append(again.not_before - 1000.0)
    assert pauses[:3] == [YIELD_S, 2 * YIELD_S, 4 * YIELD_S] and pauses[-1] == MOST_YIELD_S
    calm = after_yield(5, ran_for=CALM_S)
    assert isinstance(calm, Requeue) and calm.not_before == 1000.0 + YIELD_S


def test_one_that_is_cancelled_while_it_leaves_is_cancelled() -> None:
    end = after_yield(state="stopping", cancel=True)
    assert isinstance(end, Finish) and end.state == "cancelled"


def test_nothing_of_this_costs_a_world_without_such_runs_anything() -> None:
    """Not a time: it is not even looked at."""
    import jostle.core.resize as module

    before, module.Resizes = module.Resizes, None  # type: ignore[assignment,misc]
    try:
        decide(world(job(9), gpus=gpus(2), **with_runs(running(1, 0))))
    finally:
        module.Resizes = before  # type: ignore[misc]
