"""Who stands still while somebody else is on its cards, and when it goes on: the decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jostle.core.decide import decide
from jostle.core.model import Elastic, Exit, Pausing, Policy, Promise, Run, World
from jostle.core.pausing import LEAST_QUIET_S, left_s, quiet_s
from jostle.core.plan import Continue, Finish, Pause, Plan, Resize, Stop
from jostle.core.reasons import Reason
from jostle.core.reserve import end_of
from jostle.core.retry import CALM_S, MOST_YIELD_S
from tests.core.test_resize import elastic, resized, with_stranger
from tests.core.worlds import ME, gpu, gpus, job, running, starts, u, with_runs, world

NOW = 1000.0  # of these worlds
QUIET = quiet_s(Policy())


def polite(id: int, *cards: int, by: tuple[int, ...] = (), run: dict[str, Any] | None = None, **more: Any) -> tuple[
    Run, tuple[Promise, ...]
]:  # fmt: skip
    its, promises = running(id, *cards)
    return replace(its, pausing=Pausing(**more), intruded=tuple(u(c) for c in by), **(run or {})), promises


def paused(plan: Plan) -> dict[int, int]:
    """run -> how often, with this one."""
    return {d.run[0]: d.times for d in plan.decisions if isinstance(d, Pause)}


def continued(plan: Plan) -> dict[int, str]:
    return {d.run[0]: d.reason.code for d in plan.decisions if isinstance(d, Continue)}


def test_a_job_that_says_so_stands_still_when_a_stranger_comes_and_no_other_is_touched() -> None:
    cards = (gpu(0), with_stranger(1), gpu(2), with_stranger(3))
    other = replace(running(3, 3)[0], intruded=(u(3),)), running(3, 3)[1]
    plan = decide(world(gpus=cards, **with_runs(polite(1, 0), polite(2, 1, by=(1,)), other)))
    (decision,) = plan.decisions
    assert decision == Pause(run=(2, 1), times=1, reason=Reason("stranger_came", {"gpu": 1, "user": "bob"}))


def test_a_stranger_on_one_of_four_cards_is_enough_and_two_are_no_more() -> None:
    for by in ((2,), (0, 2)):
        cards = tuple(with_stranger(i) if i in by else gpu(i) for i in range(4))
        assert paused(decide(world(gpus=cards, **with_runs(polite(1, 0, 1, 2, 3, by=by))))) == {1: 1}


@pytest.mark.parametrize("state", [
    {"state": "starting"}, {"state": "stopping"}, {"cancel": True, "state": "stopping"}, {"yielding": True},
])  # fmt: skip
def test_one_that_is_to_end_or_has_not_begun_is_not_told(state: dict[str, Any]) -> None:
    assert paused(decide(world(gpus=(with_stranger(0),), **with_runs(polite(1, 0, by=(0,), run=state))))) == {}


def test_nor_one_that_nobody_could_continue() -> None:
    assert paused(decide(world(gpus=(with_stranger(0),), **with_runs(polite(1, 0, by=(0,), supervised=False))))) == {}


def test_it_is_told_once() -> None:
    plan = decide(world(gpus=(with_stranger(0),), **with_runs(polite(1, 0, by=(0,), now=True, times=1))))
    assert plan.decisions == ()


# --- when it goes on


def back(quiet: float | None, *, since: float = NOW - 1e6, policy: Policy | None = None, **more: Any) -> dict[int, str]:
    its = polite(1, 0, now=True, since=since, quiet_s=quiet, **{"times": 1, **more})
    return continued(decide(world(gpus=gpus(1), policy=policy or Policy(), **with_runs(its))))


def test_it_goes_on_when_nobody_else_has_been_there_for_a_while() -> None:
    assert back(QUIET) == {1: "quiet_again"} and back(QUIET - 0.1) == {}


def test_while_somebody_is_there_or_that_is_not_known_it_stands_still_however_long() -> None:
    assert back(None) == {}


def test_each_time_it_must_soon_stand_still_again_it_does_so_longer() -> None:
    def first(times: int) -> float:
        return next(s for s in range(1, 10**5) if back(1e9, since=NOW - s, times=times))

    pauses = [first(times) for times in range(1, 12)]
    assert pauses[:4] == [QUIET, 2 * QUIET, 4 * QUIET, 8 * QUIET] and pauses[-1] == MOST_YIELD_S
    assert pauses == sorted(pauses)


def test_who_could_work_for_long_begins_anew() -> None:
    def times(since: float) -> dict[int, int]:
        return paused(decide(world(gpus=(with_stranger(0),), **with_runs(polite(1, 0, by=(0,), times=4, since=since)))))

    assert times(NOW - CALM_S + 1) == {1: 5} and times(NOW - CALM_S) == {1: 1}


def test_a_rule_that_sees_a_stranger_at_once_does_not_make_it_flap() -> None:
    policy = Policy(yield_after=0.0)
    assert quiet_s(policy) == LEAST_QUIET_S and back(0.0, policy=policy) == {}
    long = Policy(yield_after=3600.0)
    assert left_s(long, Pausing(now=True, since=NOW, times=9, quiet_s=0.0), NOW) == quiet_s(long) > MOST_YIELD_S


def test_one_that_nobody_looks_after_any_more_goes_on_at_once() -> None:
    plan = decide(world(gpus=(with_stranger(0),), **with_runs(polite(1, 0, by=(0,), now=True, supervised=False))))
    assert continued(plan) == {1: "unwatched"}


def test_one_that_is_cancelled_is_stopped_and_nothing_else() -> None:
    its = polite(1, 0, now=True, quiet_s=1e9, run={"cancel": True})
    (decision,) = decide(world(gpus=gpus(1), **with_runs(its))).decisions
    assert decision == Stop(run=(1, 1))


def test_one_whose_allocation_is_released_is_stopped_and_nothing_else() -> None:
    for more in ({"now": True, "quiet_s": 1e9}, {"by": (0,)}):
        its = polite(1, 0, run={"evicted": True, "inside": 9}, **more)
        (decision,) = decide(world(gpus=(with_stranger(0),), **with_runs(its))).decisions
        assert decision == Stop(run=(1, 1))


def test_its_end_is_as_any_other() -> None:
    run = replace(polite(1, 0, now=True)[0], ended=Exit(code=0))
    (decision,) = decide(World(now=NOW, uid=ME, runs=(run,))).decisions
    assert isinstance(decision, Finish) and decision.state == "succeeded"


# --- with other cards


def both(*cards: Any, least: int = 1, most: int = 1, on: tuple[int, ...] = (0,), **more: Any) -> Plan:
    its, promises = elastic(1, *on, least=least, most=most, **more)
    run = replace(its, pausing=Pausing(), intruded=(u(0),))
    return decide(world(gpus=cards, runs=(run,), promises=promises))


def test_one_that_can_do_with_other_cards_or_fewer_does() -> None:
    plan = both(with_stranger(0), gpu(1))
    assert resized(plan) == {1: (1,)} and paused(plan) == {}
    fewer = both(with_stranger(0), gpu(1), on=(0, 1), most=2)
    assert resized(fewer) == {1: (1,)} and paused(fewer) == {}
    assert paused(both(with_stranger(0))) == {1: 1}


def test_while_it_gets_other_cards_it_is_not_stopped() -> None:
    """It could not hear of them. Nor while it is on its way off the very card."""
    assert paused(both(with_stranger(0), busy=Reason("resizing", {"leg": 2, "gpus": [0]}))) == {}
    leaving = both(with_stranger(0), gpu(1), on=(0, 1), listed=(u(1),), busy=Reason("not_left", {"leg": 2, "gpus": [0]}))
    assert paused(leaving) == {} and leaving.decisions == ()


def test_one_that_stands_still_keeps_the_cards_it_has() -> None:
    """It neither grows nor gives: nobody of it would hear of that."""
    its, promises = elastic(1, 0, 1, least=1, most=4)
    run = replace(its, pausing=Pausing(now=True, since=NOW), intruded=(u(0),))
    plan = decide(world(job(9, gpus_min=2, gpus_max=2), gpus=(with_stranger(0), gpu(1), gpu(2)), runs=(run,), promises=promises))
    assert [d for d in plan.decisions if isinstance(d, Resize)] == [] and starts(plan) == {}
    asked = replace(run, elastic=Elastic(how="restart", least=3, most=3, listed=its.uuids))
    assert decide(world(gpus=(with_stranger(0), gpu(1), gpu(2)), runs=(asked,), promises=promises)).decisions == ()


def test_when_it_ends_at_the_latest_counts_without_the_time_in_which_it_stood_still() -> None:
    run = replace(running(1, 0)[0], started_at=100.0, time_limit=50.0)
    assert end_of(run) == 150.0
    assert end_of(replace(run, pausing=Pausing(paused_s=30.0))) == 180.0
    assert end_of(replace(run, pausing=Pausing(now=True))) == float("inf")


def test_nothing_of_this_costs_a_world_without_such_runs_anything() -> None:
    """Not a time: it is not even looked at, nor for one that nobody has come to."""
    import jostle.core.resize as module

    before, module.Resizes = module.Resizes, None  # type: ignore[assignment,misc]
    try:
        decide(world(job(9), gpus=gpus(3), **with_runs(running(1, 0), polite(2, 1, quiet_s=5.0))))
    finally:
        module.Resizes = before  # type: ignore[misc]
