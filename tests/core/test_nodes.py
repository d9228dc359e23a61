"""Where a job goes: hosts with cards of their own, and clusters that choose themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jostle.core.decide import decide
from jostle.core.model import LOCAL, Gpu, Job, Node, Policy, Promise, Retry, Run, Target
from jostle.core.plan import Fail, Finish, Plan, Quarantine, Requeue, Start
from jostle.core.reasons import Hold, as_text
from jostle.core.survey import Asked, never, survey
from jostle.wording.reasons import text
from tests.core.worlds import GIB, ME, NO_DRIVER, ended, gpu, gpus, job, lane, local, promise, run, running, world

BOTH = (LOCAL, "lab")


def lab(*counts: int, hold: Hold | None = None, **more: Any) -> Target:
    """A target that places, with nodes a, b, … of so many cards, whose indices begin at 0 on each."""
    nodes = [Node(name=name, gpus=theirs(name, *gpus(n, **more)), hold=hold) for name, n in zip("abc", counts, strict=False)]
    return Target(name="lab", nodes=tuple(nodes))


def theirs(name: str, *cards: Gpu) -> tuple[Gpu, ...]:
    return tuple(replace(card, uuid=f"{name}{card.index}") for card in cards)


def slurm(**more: Any) -> Target:
    return Target(name="slurm", places=False, **more)


def where(plan: Plan) -> dict[int, tuple[str, str, tuple[str, ...]]]:
    return {d.job: (d.target, d.node, d.uuids) for d in plan.decisions if isinstance(d, Start)}


def at(*targets: Target, **more: Any) -> dict[str, Any]:
    return {"targets": targets, **more}


def test_targets_are_tried_in_the_order_of_the_job_and_then_their_nodes() -> None:
    jobs = lane(*(job(i, shape=1, place=i, on=("lab", LOCAL)) for i in range(5)))
    plan = decide(world(jobs, **at(local(gpus(1)), lab(1, 2))))
    assert where(plan) == {
        0: ("lab", "a", ("a0",)), 1: ("lab", "b", ("b0",)), 2: ("lab", "b", ("b1",)), 3: (LOCAL, LOCAL, ("GPU-0",)),
    }  # fmt: skip


def test_a_job_for_three_cards_is_not_pieced_together_from_two_hosts() -> None:
    plan = decide(world(job(1, gpus_min=3, gpus_max=3, on=BOTH), **at(local(gpus(4)), lab(2)), **taken(0, 1)))
    assert where(plan) == {} and plan.waits[1].code == "nowhere"
    assert [(p["place"], p["code"]) for p in plan.waits[1].params["places"]] == [(LOCAL, "gpus"), ("lab", "impossible_count")]
    english, chinese = text(plan.waits[1]), text(plan.waits[1], "zh")
    assert "local: 2 of 4 GPUs fit (3 needed): 2 are taken by your jobs (9)" in english and "lab: It can never start" in english
    assert "local：" in chinese and "?" not in english + chinese


def taken(*cards: int) -> dict[str, Any]:
    held = running(9, *cards)
    return {"runs": (held[0],), "promises": held[1]}


def test_a_job_that_names_one_place_hears_of_that_alone() -> None:
    plan = decide(world(job(1, on=("lab",)), **at(local(gpus(1)), lab(1)), promises=(Promise(uuid="a0", mib=None, uid=ME),)))
    assert plan.waits[1].code == "gpus" and plan.waits[1].params == {"needed": 1, "fit": 0, "total": 1}


def test_indices_and_ranges_are_those_of_each_node() -> None:
    jobs = lane(*(job(i, shape=1, place=i, on=BOTH) for i in range(4)))
    plan = decide(world(jobs, **at(local(gpus(3)), lab(3)), policy=Policy(gpus=(2,))))
    assert where(plan) == {0: (LOCAL, LOCAL, ("GPU-2",)), 1: ("lab", "a", ("a2",))}


def test_courtesy_counts_the_cards_of_each_node_by_themselves() -> None:
    jobs = lane(*(job(i, shape=1, place=i, on=BOTH) for i in range(4)))
    plan = decide(world(jobs, **at(local(gpus(3)), lab(3)), policy=Policy(min_gpu=1, max_gpu=1)))
    assert [target for target, _, _ in where(plan).values()] == [LOCAL, "lab"]


@pytest.mark.parametrize(
    "blind",
    [local(), local(gpus(2), hold=NO_DRIVER), local(gpus(2, state="unknown")), local((gpu(0, state="lost"),))],
)
def test_a_host_whose_cards_cannot_be_used_holds_up_nobody_who_may_be_handed_over(blind: Target) -> None:
    plan = decide(world(job(1, on=(LOCAL, "slurm")), job(2), **at(blind, slurm())))
    assert where(plan) == {1: ("slurm", "", ())}
    assert plan.waits[2].code in ("gpus_unknown", "on_hold")


def whom_it_lets_pass(hold: Hold, *targets: Target) -> set[int]:
    plan = decide(world(job(1, on=("lab",)), job(2, on=("lab",), gpus_min=0, gpus_max=0), **at(*targets)))
    assert all(reason.params == {"hold": as_text(hold)} for reason in plan.waits.values())
    return set(where(plan))


@pytest.mark.parametrize(("hold", "passes"), [(Hold("gpu_quota", "none left"), set()), (Hold("quota", gpus_only=True), {2})])
def test_whom_a_hold_concerns_is_what_it_says_and_not_how_its_code_begins(hold: Hold, passes: set[int]) -> None:
    """Of a node, of a target that places, and of one that jobs are handed over to."""
    assert whom_it_lets_pass(hold, lab(1, hold=hold)) == passes
    assert whom_it_lets_pass(hold, replace(lab(1), hold=hold)) == passes
    assert whom_it_lets_pass(hold, replace(slurm(hold=hold), name="lab")) == passes


def test_of_two_holds_the_one_that_concerns_all_holds_up_all() -> None:
    first = replace(lab(1, hold=Hold("gpu_quota")), hold=NO_DRIVER)
    plan = decide(world(job(1, on=("lab",), gpus_min=0, gpus_max=0), **at(first)))
    assert where(plan) == {} and plan.waits[1].params == {"hold": "gpu_quota"}


def test_what_is_handed_over_is_chosen_by_priority_and_order_and_ends_with_the_room() -> None:
    jobs = [job(i, place=i, on=("slurm",), gpus_min=8, gpus_max=8, priority=5 * (i == 3)) for i in range(4)]
    plan = decide(world(*jobs, **at(slurm(room=2))))
    assert list(where(plan)) == [3, 0]
    assert plan.waits[1].code == plan.waits[2].code == "no_room" and "slurm" in text(plan.waits[1])


def test_a_cluster_that_does_not_answer_is_passed_by() -> None:
    silent = slurm(hold=Hold("unreachable"))
    plan = decide(world(job(1, on=("slurm", LOCAL)), job(2, on=("slurm",)), **at(local(gpus(1)), silent)))
    assert where(plan) == {1: (LOCAL, LOCAL, ("GPU-0",))} and plan.waits[2].params == {"hold": "unreachable"}


def test_a_batch_runs_no_more_jobs_at_once_because_they_go_to_several_places() -> None:
    jobs = [job(1, on=("slurm",)), job(2), job(3, on=("lab",))]
    plan = decide(world(*jobs, **at(local(gpus(1)), lab(1), slurm()), policy=Policy(max_concurrent=2)))
    assert list(where(plan)) == [1, 2] and plan.waits[3].code == "max_concurrent"
    spaced = decide(world(*jobs, **at(local(gpus(1)), lab(1), slurm()), policy=Policy(start_interval=60.0)))
    assert list(where(spaced)) == [1] and spaced.waits[2].code == spaced.waits[3].code == "start_interval"


def test_a_target_that_the_engine_does_not_have_is_told_at_once_and_in_the_reason() -> None:
    there = world(job(1, on=("slrum",)), job(2, on=("slrum", LOCAL)), **at(local(gpus(1)), slurm()))
    plan = decide(there)
    assert where(plan) == {2: (LOCAL, LOCAL, ("GPU-0",))}
    assert (plan.waits[1].code, plan.waits[1].params) == ("no_target", {"target": "slrum", "known": "local, slurm"})
    nowhere, too_many = ("slrum",), (LOCAL,)
    asked = [Asked(1, None, nowhere), Asked(1, None, ("slrum", LOCAL)), Asked(9, None, too_many)]
    told = {said.on: reason.code for said, reason in never(there, [*asked, Asked(9, None, (LOCAL, "slurm"))]).items()}
    assert told == {nowhere: "no_target", too_many: "impossible_count"}


def test_of_cards_that_cannot_be_read_nothing_is_said_for_ever() -> None:
    assert never(world(gpus=gpus(1, state="unknown")), [Asked(9, None, (LOCAL,))]) == {}
    assert never(world(**at(lab())), [Asked(9, None, ("lab",))]) == {}


def test_a_target_without_nodes_takes_nobody() -> None:
    plan = decide(world(job(1, on=("lab",)), job(2, on=("lab",), gpus_min=0, gpus_max=0), **at(lab())))
    assert where(plan) == {} and plan.waits[1].code == plan.waits[2].code == "gpus_unknown"


def test_gpus_shows_the_cards_of_every_node() -> None:
    found = survey(world(**at(local(gpus(1)), lab(1, 1, hold=NO_DRIVER)), runs=(run(9, 0),), promises=(promise(9, 0),)))
    assert {uuid: no and no.code for uuid, (_, no) in found.items()} == {"GPU-0": "taken", "a0": None, "b0": None}


def test_the_last_card_of_a_node_is_not_set_aside_though_others_have_more() -> None:
    bad = local((gpu(0, new_errors=1),))
    assert decide(world(**at(bad, lab(2)))).decisions == ()
    two = decide(world(**at(local((gpu(0, new_errors=1), gpu(1))), lab(2))))
    assert [d.uuid for d in two.decisions if isinstance(d, Quarantine)] == ["GPU-0"]


@pytest.mark.parametrize(
    ("on", "decision"),
    [((LOCAL,), Finish), (BOTH, Requeue), ((LOCAL, "slurm"), Requeue), (("lab",), Requeue)],
)
def test_a_job_that_no_card_here_can_carry_is_tried_where_there_are_larger_ones(on: tuple[str, ...], decision: type) -> None:
    """Of a cluster that chooses itself nobody can say that it has none."""
    over = ended(1, 0, tail="CUDA out of memory", peak_mib=24 * GIB, retry=Retry(max=None), on=on)
    (made,) = decide(world(**at(local(gpus(1)), lab(1, total=80 * GIB), slurm()), runs=(over,))).decisions
    assert type(made) is decision
    if isinstance(made, Requeue):
        assert made.memory_mib == 24 * GIB + 1


def big(id: int, **more: Any) -> Job:
    return job(id, gpus_min=2, gpus_max=2, ready_at=0.0, on=BOTH, **more)


def busy(*names: str, limit: float | None = None, first: int = 90) -> dict[str, Any]:
    """A run of ours on each of these cards."""
    runs = [Run(id=(first + k, 1), uuids=(name,), target=LOCAL if "GPU" in name else "lab", time_limit=limit, started_at=999.0)
            for k, name in enumerate(names)]  # fmt: skip
    leases = [Promise(uuid=r.uuids[0], mib=None, uid=ME, run=r.id) for r in runs]
    return {"runs": tuple(runs), "promises": tuple(leases)}


def test_cards_are_kept_on_one_node_only_where_they_come_soonest() -> None:
    here, there = busy("GPU-0"), busy("a0", limit=100.0, first=80)
    both = {key: (*here[key], *there[key]) for key in here}
    plan = decide(world(big(1), job(2, on=(LOCAL,)), job(3, on=("lab",)), **at(local(gpus(2)), lab(2)), **both))
    assert plan.kept_for == (1,) and where(plan) == {2: (LOCAL, LOCAL, ("GPU-1",))}
    assert {r.uuid: r.code for r in plan.waits[3].gpus} == {"a0": "taken", "a1": "kept"}


def test_each_node_keeps_cards_for_a_job_of_its_own() -> None:
    jobs = [replace(big(1), on=(LOCAL,)), replace(big(2), on=("lab",))]
    plan = decide(world(*jobs, **at(local(gpus(2)), lab(2)), **busy("GPU-0", "a0")))
    assert plan.kept_for == (1, 2) and where(plan) == {}


def test_nothing_is_kept_for_a_job_that_can_be_handed_over() -> None:
    one = replace(big(1), on=(LOCAL, "slurm"))
    plan = decide(world(job(2, place=0), one, **at(local(gpus(2)), slurm()), **busy("GPU-0")))
    assert where(plan) == {2: (LOCAL, LOCAL, ("GPU-1",)), 1: ("slurm", "", ())} and plan.kept_for == ()


def waited(**more: Any) -> Plan:
    rule = Policy(max_wait=100.0)
    return decide(world(job(1, on=(LOCAL, "lab"), ready_at=0.0), policy=rule, **{"promises": OTHERS, **more}))


OTHERS = tuple(Promise(uuid=uuid, mib=None, uid=1001) for uuid in ("GPU-0", "a0"))


def test_a_job_runs_out_of_time_when_it_waits_for_cards_at_every_place() -> None:
    full = waited(**at(local(gpus(1)), lab(1)))
    (fail,) = full.decisions
    assert isinstance(fail, Fail) and fail.reason.code == "wait_timeout" and text(fail.reason)
    assert waited(**at(local(gpus(1)), lab(1, hold=NO_DRIVER))).decisions == ()
    alive = Run(id=(9, 1), uuids=("a0",), target="lab")
    assert waited(**at(local(gpus(1)), lab(1)), runs=(alive,)).decisions == (), "its batch has a card where it may go"
