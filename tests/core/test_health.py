"""Which cards are set aside, and whose fault a failure is."""

from __future__ import annotations

from typing import Any

import pytest

from jostle.core.decide import decide
from jostle.core.model import Exit, Gpu, Policy, Retry, Run
from jostle.core.plan import Decision, Doubt, Finish, Plan, Quarantine, Requeue
from jostle.core.reasons import Reason
from tests.core.worlds import (
    ALICE,
    GIB,
    ME,
    ROOT,
    codes,
    ended,
    foreign,
    gpu,
    gpus,
    holder,
    job,
    run,
    running,
    starts,
    u,
    with_runs,
    world,
)

ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
SICK = Reason(code="faulty_row")


def plan_of(*runs: Run, **more: Any) -> Plan:
    return decide(world(**{"gpus": gpus(4), "runs": runs, **more}))


def aside(plan: Plan) -> list[int]:
    return [d.index for d in plan.decisions if isinstance(d, Quarantine)]


def requeued(plan: Plan) -> Requeue:
    (found,) = [d for d in plan.decisions if isinstance(d, Requeue)]
    return found


def without_doubt(plan: Plan) -> list[Decision]:
    return [d for d in plan.decisions if isinstance(d, Doubt | Quarantine)]


@pytest.mark.parametrize(
    "tail",
    [
        ECC,
        "cudaErrorECCUncorrectable: 214",
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU",
        "pynvml.NVMLError_GpuIsLost: NVML_ERROR_GPU_IS_LOST",
        "NVRM: Xid 79, GPU has fallen off the bus.",
    ],
)
def test_the_words_of_the_list_set_the_card_aside_and_the_try_is_not_counted(tail: str) -> None:
    plan = plan_of(ended(7, 2, tail=tail, ran_for=3600.0))
    assert aside(plan) == [2]
    again = requeued(plan)
    assert (again.counts, again.excused, again.not_before) == (False, True, 0.0)
    assert again.reason is not None and again.reason.code == "card_failed"


@pytest.mark.parametrize(
    "tail",
    [
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: device-side assert triggered",
        "CUDA error: out of memory",
        "corrected ECC errors: 3",
        "RuntimeError: CUDA error: unspecified launch failure",
        "ecc enabled",
    ],
)
def test_a_programs_own_errors_say_nothing_about_a_card(tail: str) -> None:
    plan = plan_of(ended(7, 2, tail=tail))
    assert aside(plan) == [] and isinstance(plan.decisions[0], Finish)


def test_only_a_failed_log_speaks() -> None:
    assert aside(plan_of(ended(7, 2, code=0, tail=ECC))) == []
    assert aside(plan_of(ended(7, 2, code=None, signal=15, tail=ECC, cancel=True, state="stopping"))) == []


@pytest.mark.parametrize(
    ("card", "code"), [({"new_errors": 2}, "faulty_memory"), ({"remap_failed": True}, "faulty_row")]
)
def test_a_fact_of_the_driver_sets_a_card_aside_while_its_run_goes_on(card: dict[str, Any], code: str) -> None:
    cards = (gpu(0), gpu(1, **card))
    plan = decide(world(job(9), gpus=cards, **with_runs(running(3, 1))))
    assert [(d.index, d.reason.code) for d in plan.decisions if isinstance(d, Quarantine)] == [(1, code)]
    assert starts(plan) == {9: (0,)}


def test_no_job_starts_on_a_card_in_the_plan_that_sets_it_aside() -> None:
    plan = decide(world(job(9, gpus_min=2, gpus_max=2), gpus=(gpu(0, new_errors=1), gpu(1), gpu(2))))
    assert aside(plan) == [0] and starts(plan) == {9: (1, 2)}
    plan = decide(world(job(9), gpus=(gpu(0, faulty=SICK), gpu(1)), **with_runs(running(3, 1))))
    assert starts(plan) == {} and codes(plan, 9) == {0: "faulty_row", 1: "taken"}


def test_a_failure_on_a_card_that_the_driver_speaks_against_is_excused_whatever_the_log_says() -> None:
    sick = (gpu(0), gpu(1, faulty=SICK))
    assert requeued(plan_of(ended(3, 1, code=1), gpus=sick)).excused
    assert requeued(plan_of(ended(3, 0, 1, code=1), gpus=(gpu(0), gpu(1, new_errors=1), gpu(2)))).avoid == (u(1),)
    late = plan_of(ended(3, 1, code=None, signal=15, timed_out=True), gpus=sick)
    assert isinstance(late.decisions[0], Finish)  # its time limit is not the card's


def test_three_tries_are_excused_and_the_next_counts() -> None:
    answers = [plan_of(ended(3, 1, tail=ECC, excused=n, retry=Retry(max=0))).decisions[-1] for n in range(5)]
    assert [isinstance(a, Requeue) for a in answers] == [True, True, True, False, False]
    assert isinstance(answers[3], Finish) and answers[3].state == "failed"
    counted = requeued(plan_of(ended(3, 1, tail=ECC, excused=3, retry=Retry(max=1))))
    assert counted.counts and not counted.excused


@pytest.mark.parametrize(
    "other",
    [
        {"excluded": True}, {"state": "lost"}, {"state": "unreadable"}, {"faulty": SICK}, {"compute_mode": "prohibited"},
        {"state": "mig"},
    ],
)  # fmt: skip
def test_the_last_card_that_can_be_used_is_never_set_aside(other: dict[str, Any]) -> None:
    cards = (gpu(0, **other), gpu(1, new_errors=3))
    plan = plan_of(ended(7, 1, tail=ECC), gpus=cards)
    assert aside(plan) == [] and requeued(plan).excused
    assert aside(plan_of(ended(7, 0, tail=ECC), gpus=gpus(1))) == []


def test_of_two_that_fail_at_once_one_stays() -> None:
    plan = plan_of(ended(7, 0, tail=ECC), ended(8, 1, tail=ECC), gpus=gpus(2))
    assert aside(plan) == [0]
    assert aside(plan_of(gpus=gpus(4, new_errors=1))) == [0, 1, 2]


def test_a_card_that_cannot_be_read_any_more_is_set_aside_by_words_too() -> None:
    assert aside(plan_of(ended(7, 1, tail="GPU is lost"), gpus=(gpu(0), gpu(1, state="lost")))) == [1]


def test_words_of_a_run_on_several_cards_blame_none_of_them_and_it_goes_elsewhere() -> None:
    plan = plan_of(ended(7, 0, 1, tail=ECC))
    assert aside(plan) == []
    assert requeued(plan).excused and requeued(plan).avoid == (u(0), u(1))


def test_after_a_quick_failure_the_job_avoids_the_card_and_nothing_more() -> None:
    plan = plan_of(ended(7, 2, ran_for=1.0, retry=Retry(max=3)))
    assert requeued(plan).avoid == (u(2),) and requeued(plan).counts and without_doubt(plan) == []


@pytest.mark.parametrize(
    "end",
    [
        {"ran_for": 60.0}, {"ran_for": None}, {"code": 127}, {"code": None, "error": "no such file"},
        {"code": None, "signal": 15, "timed_out": True}, {"tail": "CUDA out of memory"},
    ],
)  # fmt: skip
def test_a_failure_that_took_long_or_is_plainly_the_commands_own_avoids_no_card(end: dict[str, Any]) -> None:
    assert requeued(plan_of(ended(7, 2, **{"ran_for": 1.0, **end}, retry=Retry(max=3)))).avoid == ()


def witness(id: int, bad: int, good: int, **more: Any) -> Run:
    """A job that failed at once on one card and is on another now."""
    return run(id, good, **{"tried": ((u(bad), 1.0, "exit_code_1"),), "failures": 1, "started_at": 900.0, **more})


def test_three_jobs_that_failed_at_once_and_run_longer_elsewhere_set_a_card_aside() -> None:
    assert without_doubt(plan_of(witness(5, 0, 1), gpus=gpus(4))) == [Doubt(uuid=u(0), jobs=(5,))]
    more = plan_of(witness(6, 0, 2), gpus=gpus(4), doubts={u(0): (5,)})
    assert without_doubt(more) == [Doubt(uuid=u(0), jobs=(5, 6))]
    (verdict,) = without_doubt(plan_of(witness(7, 0, 3), gpus=gpus(4), doubts={u(0): (5, 6)}))
    assert isinstance(verdict, Quarantine) and verdict.index == 0 and verdict.reason.params == {"failed": "5, 6, 7"}


def test_one_job_counts_once_and_only_when_it_does_better_elsewhere() -> None:
    held = {u(0): (5,)}
    assert without_doubt(plan_of(witness(5, 0, 1), doubts=held)) == []  # heard before
    assert without_doubt(plan_of(witness(6, 0, 1, started_at=995.0), doubts=held)) == []  # five seconds so far
    assert without_doubt(plan_of(witness(6, 0, 0), doubts={})) == []  # it is the same card
    quick = Exit(code=1, ran_for=1.5)
    assert without_doubt(plan_of(witness(6, 0, 1, ended=quick), doubts=held)) == []  # it fails there, too
    well = Exit(code=0, ran_for=1.5)
    assert without_doubt(plan_of(witness(6, 0, 1, ended=well), doubts=held)) == [Doubt(uuid=u(0), jobs=(5, 6))]
    typing = witness(6, 0, 1, tried=((u(0), 1.0, "exit_code_127"), (u(2), 30.0, "exit_code_1")))
    assert without_doubt(plan_of(typing)) == []


SENT = ["signal_9", "signal_15", "signal_2", "signal_1", "exit_code_137", "exit_code_143", "exit_code_130", "timeout", "unknown"]
OF_ITS_OWN = ["signal_11", "signal_6", "exit_code_139", "exit_code_134", "exit_code_1", "exit_code_255", "runtime_error"]


@pytest.mark.parametrize(("kind", "counts"), [*((k, False) for k in SENT), *((k, True) for k in OF_ITS_OWN)])
def test_a_signal_that_was_sent_says_nothing_about_a_card_and_a_crash_may(kind: str, counts: bool) -> None:
    told = without_doubt(plan_of(witness(6, 0, 1, tried=((u(0), 1.0, kind),))))
    assert told == ([Doubt(uuid=u(0), jobs=(6,))] if counts else [])


@pytest.mark.parametrize(
    "end", [{"code": None, "signal": 9}, {"code": 137}, {"code": None, "signal": 2}, {"code": 1, "stopped": True}]
)
def test_whoever_was_killed_or_told_to_end_avoids_no_card(end: dict[str, Any]) -> None:
    assert requeued(plan_of(ended(7, 2, **{"ran_for": 1.0, **end}, retry=Retry(max=3)))).avoid == ()


def test_a_run_that_has_not_begun_does_no_better() -> None:
    """A host without processes keeps it waiting for half a minute, and says nothing about the card it failed on."""
    assert without_doubt(plan_of(witness(6, 0, 1, state="starting"))) == []
    assert without_doubt(plan_of(witness(6, 0, 1, ended=Exit(unable=True, error="EAGAIN", ran_for=30.0)))) == []


def test_a_time_that_cannot_be_is_no_quick_failure() -> None:
    """The clock of the host was set back meanwhile."""
    assert without_doubt(plan_of(witness(6, 0, 1, tried=((u(0), -3600.0, "exit_code_1"),)))) == []


def test_a_job_that_does_better_is_looked_at_when_it_has_lasted() -> None:
    plan = plan_of(witness(6, 0, 1, started_at=995.0), lanes=world(job(9, gpus_min=9, gpus_max=9)).lanes)
    assert plan.wake_at == 1005.0


def test_a_run_that_lasts_on_a_card_clears_it() -> None:
    """A file server that was away for a minute failed everybody's jobs; the cards were good all along."""
    held = {u(0): (5, 6)}
    alive = run(8, 0, started_at=900.0)
    assert without_doubt(plan_of(alive, witness(7, 0, 1), doubts=held)) == [Doubt(uuid=u(0), jobs=())]
    assert without_doubt(plan_of(ended(8, 0, ran_for=20.0), doubts=held)) == [Doubt(uuid=u(0), jobs=())]
    assert without_doubt(plan_of(run(8, 0, started_at=999.0), doubts=held)) == []


def test_a_run_that_goes_well_on_a_card_clears_it_however_short_it_is() -> None:
    """Short jobs that fail now and then do so everywhere; a faulty card fails them all."""
    held = {u(0): (5, 6)}
    well = ended(8, 0, code=0, ran_for=0.2)
    assert without_doubt(plan_of(well, witness(7, 0, 1), doubts=held)) == [Doubt(uuid=u(0), jobs=())]
    assert without_doubt(plan_of(ended(8, 0, code=1, ran_for=0.2), doubts=held)) == []


ACCUSED = Reason(code="faulty_jobs", params={"failed": "5, 6, 7"})


def wide(cards: int, **more: Any) -> Any:
    return job(9, gpus_min=cards, gpus_max=cards, **more)


def test_what_only_jobs_speak_against_is_the_last_resort_of_a_job_that_could_never_start_without() -> None:
    cards = (gpu(0, faulty=ACCUSED), gpu(1), gpu(2, faulty=ACCUSED), gpu(3))
    assert starts(decide(world(wide(2), gpus=cards))) == {9: (1, 3)}
    assert starts(decide(world(wide(3), gpus=cards))) == {9: (0, 1, 3)}
    assert starts(decide(world(wide(4), gpus=cards))) == {9: (0, 1, 2, 3)}
    assert starts(decide(world(job(9, gpus_min=1, gpus_max=4), gpus=cards))) == {9: (1, 3)}
    plan = decide(world(wide(2), gpus=cards, **with_runs(running(3, 1))))  # it has only to wait
    assert starts(plan) == {} and codes(plan, 9) == {0: "faulty_jobs", 1: "taken", 2: "faulty_jobs"}
    large = (gpu(0, total=80 * GIB, faulty=ACCUSED), gpu(1))
    assert starts(decide(world(job(9, memory_mib=60 * GIB), gpus=large))) == {9: (0,)}
    assert starts(decide(world(job(9), gpus=cards, policy=Policy(gpus=(0, 2))))) == {9: (0,)}


def test_what_the_driver_or_a_log_speaks_against_is_no_resort() -> None:
    for reason in (SICK, Reason(code="faulty_said", params={"job": 1, "run": 1, "words": ECC})):
        plan = decide(world(wide(3), gpus=(gpu(0, faulty=reason), gpu(1, faulty=ACCUSED), gpu(2), gpu(3, faulty=reason))))
        assert starts(plan) == {} and codes(plan, 9) == {0: reason.code, 3: reason.code}


def test_what_the_driver_says_later_counts_more_than_what_jobs_said() -> None:
    plan = decide(world(wide(2), gpus=(gpu(0, faulty=ACCUSED, new_errors=1), gpu(1))))
    assert [d.reason.code for d in plan.decisions if isinstance(d, Quarantine)] == ["faulty_memory"] and starts(plan) == {}
    assert aside(plan_of(gpus=(gpu(0, faulty=SICK, new_errors=1), gpu(1)))) == []


def test_cards_are_kept_for_a_job_that_needs_what_jobs_speak_against() -> None:
    cards = (gpu(0, faulty=ACCUSED), gpu(1), gpu(2))
    first = wide(3, priority=10)
    plan = decide(world(first, job(10, shape=10), gpus=cards, **with_runs(running(3, 1))))
    assert starts(plan) == {} and plan.kept_for == (9,) and codes(plan, 9) == {1: "taken"}


def test_the_card_a_job_failed_on_is_used_again_if_others_are_not_to_be_had() -> None:
    """Else a job with a hiccup would wait for days beside a free card."""
    shy = job(9, avoid=frozenset({u(0)}), ready_at=1000.0)
    taken = (holder(ALICE, 8 * GIB),)
    assert starts(decide(world(shy, gpus=(gpu(0), gpu(1, used=8 * GIB, holders=taken))))) == {9: (0,)}
    assert starts(decide(world(shy, gpus=(gpu(0), gpu(1, excluded=True), gpu(2, faulty=SICK))))) == {9: (0,)}
    small = job(9, avoid=frozenset({u(0)}), memory_mib=8 * GIB, ready_at=1000.0)
    full = (gpu(0), gpu(1, used=20 * GIB, holders=taken))
    assert starts(decide(world(small, gpus=full, policy=Policy(strangers="share")))) == {9: (0,)}


def test_a_job_waits_a_while_for_another_card_that_our_own_run_has_and_then_takes_the_one_it_failed_on() -> None:
    shy, busy = job(9, avoid=frozenset({u(0)}), ready_at=900.0), with_runs(running(3, 1))
    plan = decide(world(shy, gpus=gpus(2), **busy))
    assert codes(plan, 9) == {0: "avoided", 1: "taken"} and plan.wake_at == 1500.0
    assert starts(decide(world(shy, gpus=gpus(2), now=1500.0, **busy))) == {9: (0,)}
    assert starts(decide(world(shy, gpus=gpus(2), now=1500.0))) == {9: (1,)}


def test_a_prohibited_card_is_refused_with_that_reason() -> None:
    plan = decide(world(job(1), gpus=(gpu(0, compute_mode="prohibited"),)))
    assert codes(plan, 1) == {0: "prohibited"}


EXCLUSIVE: dict[str, Any] = {"compute_mode": "exclusive_process"}


@pytest.mark.parametrize(
    ("card", "more", "fits"),
    [
        (gpu(0, **EXCLUSIVE), {}, True),
        (gpu(0, used=10, holders=(holder(ALICE, 10),), **EXCLUSIVE), {}, False),
        (gpu(0, used=10, holders=(holder(ROOT, 10),), **EXCLUSIVE), {}, False),
        (gpu(0, used=10, holders=(holder(ME, None),), **EXCLUSIVE), {}, False),
        (gpu(0, used=10, holders=(holder(ROOT, 10, kind="graphics"),), **EXCLUSIVE), {}, True),
        (gpu(0, **EXCLUSIVE), with_runs(running(3, 0, mib=GIB, share=True)), False),
        (gpu(0, **EXCLUSIVE), {"promises": (foreign(ALICE, 0, GIB),)}, False),
    ],
)
def test_an_exclusive_card_is_never_shared(card: Gpu, more: dict[str, Any], fits: bool) -> None:
    easy = Policy(share=True, strangers="share", own_processes="ignore")
    plan = decide(world(job(1, memory_mib=GIB, share=True), gpus=(card,), policy=easy, **more))
    assert (starts(plan) == {1: (0,)}) == fits
    assert fits or codes(plan, 1) == {0: "exclusive"}


def test_who_has_an_exclusive_card_alone_is_named() -> None:
    plan = decide(world(job(1), gpus=(gpu(0, **EXCLUSIVE),), **with_runs(running(3, 0))))
    assert codes(plan, 1) == {0: "taken"}


def test_two_jobs_of_one_plan_do_not_share_an_exclusive_card() -> None:
    jobs = [job(n, shape=n, memory_mib=GIB, share=True) for n in (1, 2)]
    plan = decide(world(*jobs, gpus=(gpu(0, **EXCLUSIVE),)))
    assert starts(plan) == {1: (0,)} and codes(plan, 2) == {0: "exclusive"}
