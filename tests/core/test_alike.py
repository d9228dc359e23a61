"""One look for all batches whose rules and requests are equal: it costs as many looks as there are different ones, and changes
no plan. Each case here has somebody who is refused first, and then somebody who differs from them in one thing and is not."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.core.decide import decide
from jostle.core.model import Policy, World
from jostle.core.place import Places
from jostle.core.plan import Plan
from jostle.core.table import Table
from tests.core import odd
from tests.core.worlds import GIB, gpus, job, run, running, starts, u, with_runs, world

Wish = dict[str, Any]
ONE_BUSY = {"gpus": gpus(2), **with_runs(running(9, 0, mib=8 * GIB, batch=9, share=True), running(8, 1, batch=8))}

ONE_BUSY_BY_ALL_OF_IT = {"gpus": gpus(2), **with_runs(running(8, 1, batch=8))}
LICENSED = run(5, counters=(("licence", 1),))


def looking_at_each(world: World) -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Places, "_alike", lambda places, job: None)
        return decide(world)


def test_batches_that_ask_alike_under_equal_rules_cost_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    place = Table.place
    monkeypatch.setattr(Table, "place", lambda table, job: (looks.append(job.id), place(table, job))[1])
    wishes = [{"memory_mib": 8 * GIB}, {"memory_mib": 30 * GIB}]
    waiting = [job(id, batch=id, **wishes[id % 2]) for id in range(100, 400)]
    plan = decide(world(*waiting, gpus=gpus(2), **with_runs(running(1, 0), running(2, 1))))
    assert set(plan.waits) == {j.shape for j in waiting} and {r.code for r in plan.waits.values()} == {"gpus", "impossible"}
    assert len(looks) == 2


@pytest.mark.parametrize(
    ("refused", "taken", "more"),
    [
        ({}, {"share": True, "memory_mib": 8 * GIB}, ONE_BUSY),
        ({"memory_mib": 8 * GIB}, {"share": True, "memory_mib": 8 * GIB}, ONE_BUSY),
        ({}, {"gpus_min": 0, "gpus_max": 0}, ONE_BUSY),
        ({"on": ("elsewhere",)}, {}, {"gpus": gpus(1)}),
        ({"inside": 77}, {}, {"gpus": gpus(1)}),
        ({"counters": (("licence", 2),)}, {}, {"gpus": gpus(1), "counters": {"licence": 2}, "runs": (LICENSED,)}),
        ({"avoid": frozenset({u(0)})}, {}, ONE_BUSY_BY_ALL_OF_IT),
        ({"gpus_min": 0, "gpus_max": 0, "cpus": 3}, {"gpus_min": 0, "gpus_max": 0, "cpus": 1}, {}),
    ],
)  # fmt: skip
def test_who_differs_from_one_that_was_refused_is_looked_at(refused: Wish, taken: Wish, more: Wish) -> None:
    wishes = enumerate((refused, taken, refused), 1)
    first, second, third = (job(id, batch=id, ready_at=999.0, **wish) for id, wish in wishes)  # nobody has waited long
    its = world(first, second, third, turn=0, **more)
    if "cpus" in refused:
        its = replace(its, targets=(replace(its.targets[0], nodes=(replace(its.targets[0].nodes[0], cpus=2),)),))
    plan = decide(its)
    assert set(starts(plan)) == {2} and set(plan.waits) == {1, 3}
    assert plan == looking_at_each(its)


def test_what_a_batch_may_is_its_own() -> None:
    """Equal rules of two batches, of which one has as much as it may, or has begun a moment ago."""
    for rules, more in (
        (Policy(max_concurrent=1), with_runs(running(9, 0, batch=1))),
        (Policy(start_interval=60.0), {"last_start": {1: 990.0}}),
    ):
        its = world(job(1, batch=1), job(2, batch=2), gpus=gpus(3), policies={1: rules, 2: rules}, turn=0, **more)
        assert set(starts(decide(its))) == {2}
        assert decide(its) == looking_at_each(its)


def test_cards_that_are_kept_are_asked_about_for_each() -> None:
    """One that will be gone in time may have a kept card, the same without a time limit may not."""
    busy = with_runs(running(9, 0, batch=9, started_at=900.0, time_limit=300.0))
    big = job(1, batch=1, gpus_min=2, gpus_max=2, ready_at=-1e6)
    its = world(big, job(2, batch=2), job(3, batch=3, time_limit=10.0), gpus=gpus(2), turn=0, **busy)
    plan = decide(its)
    assert set(starts(plan)) == {3} and plan.kept_for == (1,)
    assert plan == looking_at_each(its)


def test_after_a_start_those_who_ask_alike_are_told_what_is_so_then() -> None:
    """The second of them hears of the run that has begun in between."""
    wants, shares = ({"memory_mib": mib, "share": True, "ready_at": 999.0} for mib in (20 * GIB, 8 * GIB))
    its = world(job(1, batch=1, **wants), job(2, batch=2, **shares), job(3, batch=3, **wants), turn=0, **ONE_BUSY)
    plan = decide(its)
    assert set(starts(plan)) == {2}
    assert plan.waits[1] != plan.waits[3] and plan == looking_at_each(its)


@settings(max_examples=200)
@given(odd.CHANCE, st.booleans())
def test_looking_once_for_all_who_ask_alike_changes_no_plan(chance: Random, several: bool) -> None:
    its = among_their_like(odd.world(chance, several=several))
    assert decide(its) == looking_at_each(its)


def among_their_like(world: World) -> World:
    """Each lane a second time, in a batch of its own under the very same rules."""
    again = {lane[0].batch: 500 + lane[0].batch for lane in world.lanes}
    lanes = [tuple(replace(j, id=j.id + 500, shape=j.shape + 500, batch=again[j.batch]) for j in lane) for lane in world.lanes]
    rules = {new: world.policies.get(batch, world.policy) for batch, new in again.items()}
    return replace(world, lanes=(*world.lanes, *lanes), policies={**world.policies, **rules})
