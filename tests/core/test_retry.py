"""What becomes of a run that failed."""

from __future__ import annotations

from typing import Any

import pytest

from jostle.core.decide import decide
from jostle.core.model import Exit, Holder, Policy, Retry, Run, World
from jostle.core.plan import Finish, Requeue
from jostle.core.reasons import Reason
from jostle.core.retry import error_type, jitter, pause
from jostle.wording.reasons import text
from tests.core.worlds import ALICE, GIB, ME, ROOT, ended, gpu, gpus, holder, run, u, world

EVER = Retry(max=None)
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory."


def after(r: Run, **more: Any) -> Finish | Requeue:
    (decision,) = decide(world(runs=(r,), **{"gpus": gpus(2), **more})).decisions
    assert isinstance(decision, Finish | Requeue)
    return decision


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (Exit(code=1, tail="RuntimeError: CUDA out of memory"), "oom"),
        (Exit(code=1, tail="slurmstepd: error: Detected 1 OOM event"), "oom"),
        (Exit(code=1, tail="CUDA_ERROR_OUT_OF_MEMORY"), "oom"),
        (Exit(code=1, tail="in the bedroom there is room"), "exit_code_1"),
        (Exit(code=1, tail="oom_score_adj set"), "exit_code_1"),
        (Exit(code=1, tail="RUNTIMEERROR: shape mismatch"), "runtime_error"),
        (Exit(code=1, tail="a Runtime Error happened", timed_out=True), "runtime_error"),
        (Exit(code=None, signal=15, timed_out=True), "timeout"),
        (Exit(signal=9), "signal_9"),
        (Exit(code=3), "exit_code_3"),
        (Exit(), "unknown"),
        (Exit(lost="host_rebooted"), "unknown"),
        (Exit(error="no such file: trian.py"), "start_failed"),
    ],
)
def test_a26_the_error_class_comes_from_the_tail_then_the_time_limit_then_the_exit(end: Exit, kind: str) -> None:
    assert error_type(end) == kind


@pytest.mark.parametrize(
    ("exit_fields", "code"),
    [
        ({"code": 2}, "exit_code"),
        ({"code": None, "signal": 9}, "signal"),
        ({"code": None}, "exit_unknown"),
        ({"code": None, "lost": "host_rebooted"}, "host_rebooted"),
        ({"code": None, "timed_out": True, "time_limit": 60.0}, "time_limit"),
        ({"code": None, "error": "no such directory"}, "start_failed"),
        ({"code": 1, "tail": "RuntimeError"}, "exit_code"),
    ],
)
def test_without_a_retry_the_first_failure_is_final_and_says_why(exit_fields: dict[str, Any], code: str) -> None:
    answer = after(ended(1, 0, **exit_fields))
    assert isinstance(answer, Finish) and answer.state == "failed" and answer.reason is not None
    assert answer.reason.code == code and answer.reason.params["failures"] == 1


@pytest.mark.parametrize(
    ("failures", "most", "again"), [(0, 1, True), (1, 1, False), (99, None, True), (99, 100, True), (100, 100, False)]
)
def test_as_many_tries_as_were_allowed(failures: int, most: int | None, again: bool) -> None:
    answer = after(ended(1, 0, failures=failures, retry=Retry(max=most)))
    assert isinstance(answer, Requeue) == again


def test_a25_every_third_failure_waits_and_the_others_do_not() -> None:
    waits = [after(ended(1, 0, failures=n, retry=EVER)) for n in range(6)]
    assert [w.not_before for w in waits if isinstance(w, Requeue)] == [0.0, 0.0, 1600.0, 0.0, 0.0, 1600.0]


def test_a_command_that_fails_at_once_waits_ever_longer_up_to_a_minute() -> None:
    patient = Retry(max=None, backoff_after=0)
    waits = [pause(run(1, failures=n, uni_id=f"id-{n}"), Exit(code=1, ran_for=0.01), patient) for n in range(12)]
    base = [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60]
    assert all(b <= w < b * 1.25 for b, w in zip(base, waits, strict=True))
    assert len(set(waits)) == 12


def test_a_host_without_processes_costs_no_try_and_is_asked_ever_more_rarely() -> None:
    waits = []
    end = Exit(code=126, error="/bin/bash: Resource temporarily unavailable", unable=True, ran_for=30.0, ended_at=1.0)
    for n in range(1, 200):
        again = after(Run(id=(1, n), uuids=(u(0),), uni_id="x", retry=Retry(max=0), ended=end))
        assert isinstance(again, Requeue) and not again.counts and again.reason is not None
        assert again.reason.code == "no_process"
        waits.append(again.not_before - world().now)
    assert waits == sorted(waits) and 1 < waits[0] < 5 and 30 < waits[-1] < 90
    assert after(Run(id=(1, 5), uuids=(u(0),), uni_id="x", ended=end, cancel=True)) == Finish(
        run=(1, 5), state="cancelled", reason=Reason(code="cancelled")
    )


def test_a_crash_loop_of_a_thousand_failures_stays_slow() -> None:
    total = sum(pause(run(1, failures=n, uni_id=str(n)), Exit(code=1, ran_for=0.0), EVER) for n in range(1000))
    assert total > 1000 * 60 * 0.6


def test_jitter_is_spread_and_always_the_same() -> None:
    values = [jitter(f"run-{n}") for n in range(500)]
    assert values == [jitter(f"run-{n}") for n in range(500)]
    assert all(0 <= v < 1 for v in values) and 0.4 < sum(values) / 500 < 0.6


@pytest.mark.parametrize(
    "other",
    [holder(ALICE, 18000), holder(ME, 18000), holder(ME, 18000, run=(2, 1)), holder(None, None), holder(ROOT, 18000)],
)
def test_squeezed_by_a_neighbour_it_goes_elsewhere_with_the_same_request(other: Holder) -> None:
    crowded = gpu(1, used=23000, holders=(holder(ME, 5000, run=(1, 1)), other))
    answer = after(ended(1, 1, tail=OOM, memory_mib=8000, peak_mib=5000, retry=EVER), gpus=(gpu(0), crowded))
    assert isinstance(answer, Requeue) and answer.reason is not None
    assert (answer.memory_mib, answer.avoid, answer.error_type, answer.reason.code) == (8000, (u(1),), "oom", "oom_squeezed")


@pytest.mark.parametrize("others", [(), (holder(ROOT, 60),)])
def test_alone_on_its_card_nobody_took_the_rest(others: tuple[Holder, ...]) -> None:
    """A single allocation that was too large: below what it asked for, and no neighbour to blame."""
    own = gpu(1, used=5000, holders=(holder(ME, 5000, run=(1, 1)), *others))
    answer = after(ended(1, 1, tail=OOM, memory_mib=8000, peak_mib=5000, retry=EVER), gpus=(gpu(0), own))
    assert isinstance(answer, Requeue) and answer.reason is not None
    assert (answer.memory_mib, answer.avoid, answer.reason.code) == (10240, (), "oom_raised")
    assert "it used 4.9 GiB and had asked for 7.8 GiB" in text(answer.reason)


@pytest.mark.parametrize(
    ("asked", "peak", "wanted"),
    [
        (8000, 7900, 10240),  # a quarter more: 10,000, in steps of 256
        (8000, 12000, 12032),  # what was measured
        (20000, 19000, None),  # 25,000 is more than any card has: a whole one
    ],
)
def test_needing_more_than_asked_the_request_is_raised(asked: int, peak: int, wanted: int | None) -> None:
    answer = after(ended(1, 0, tail=OOM, memory_mib=asked, peak_mib=peak, retry=EVER))
    assert isinstance(answer, Requeue) and answer.reason is not None
    assert (answer.memory_mib, answer.avoid, answer.reason.code) == (wanted, (), "oom_raised")


def test_out_of_a_whole_card_it_asks_for_a_larger_one() -> None:
    answer = after(ended(1, 0, tail=OOM, retry=EVER, peak_mib=24000), gpus=(gpu(0), gpu(1, total=80 * GIB)))
    assert isinstance(answer, Requeue) and answer.memory_mib == 24 * GIB + 1


def test_larger_cards_outside_the_range_do_not_help() -> None:
    cards = (gpu(0), gpu(1, total=80 * GIB))
    assert isinstance(after(ended(1, 0, tail=OOM, retry=EVER, peak_mib=24000), gpus=cards, policy=Policy(gpus=(0,))), Finish)


def test_out_of_the_largest_card_it_fails_whatever_tries_are_left() -> None:
    answer = after(ended(1, 0, tail=OOM, retry=EVER, peak_mib=24000))
    assert isinstance(answer, Finish) and answer.reason is not None
    assert (answer.state, answer.error_type, answer.reason.code) == ("failed", "oom", "oom_beyond_any_card")


@pytest.mark.parametrize("asked", [None, 10 * GIB])
def test_a25_out_of_memory_by_its_log_alone_teaches_nothing_and_is_tried_again_as_it_was(asked: int | None) -> None:
    """Its use was never measured (it ended too soon, or it was the host's memory): no neighbour is blamed, nothing is final."""
    answer = after(ended(1, 0, tail="DataLoader worker: host Out Of Memory", retry=EVER, memory_mib=asked))
    assert isinstance(answer, Requeue) and answer.reason is not None
    assert (answer.memory_mib, answer.error_type, answer.reason.code) == (asked, "oom", "retry")


def test_a28_the_limit_that_is_told_is_the_one_that_was_set() -> None:
    answer = after(ended(1, 0, code=143, timed_out=True, ran_for=3.04), policy=Policy(command_limit=3.0))
    assert isinstance(answer, Finish) and answer.reason is not None and answer.reason.params["limit_s"] == 3.0


def test_a_stranger_on_the_whole_card_squeezed_it() -> None:
    crowded = gpu(0, used=20000, holders=(holder(ALICE, 20000),))
    answer = after(ended(1, 0, tail=OOM, retry=EVER, peak_mib=3000), gpus=(crowded, gpu(1)))
    assert isinstance(answer, Requeue) and (answer.memory_mib, answer.avoid) == (None, (u(0),))


def test_an_oom_with_no_tries_left_is_final() -> None:
    answer = after(ended(1, 0, tail=OOM, memory_mib=8000, peak_mib=7900))
    assert isinstance(answer, Finish) and answer.reason is not None and answer.reason.code == "oom"


def test_a_use_that_was_never_seen_is_told_as_unknown_and_not_as_zero() -> None:
    answer = after(ended(1, 0, tail=OOM, memory_mib=8000))
    assert isinstance(answer, Finish) and answer.reason is not None
    assert answer.reason.params == {"peak_mib": None, "failures": 1}
    assert text(answer.reason) == "It ran out of GPU memory and has failed 1 time."
    assert text(answer.reason, "zh") == "显存不足，共失败 1 次。"


def test_an_oom_without_gpus_is_plain_failure() -> None:
    answer = after(ended(1, tail=OOM, retry=EVER))
    assert isinstance(answer, Requeue) and answer.reason is not None and answer.reason.code == "retry"


def test_cards_of_different_sizes_are_never_gone_round_for_ever() -> None:
    """A job that needs more than the largest card has comes to an end, from whatever request it starts."""
    cards = {0: 12 * GIB, 1: 24 * GIB, 2: 80 * GIB}
    host = tuple(gpu(i, total=t) for i, t in cards.items())
    for asked in (None, 1000, 12 * GIB, 30 * GIB, 79 * GIB):
        mib: int | None = asked
        for _ in range(40):
            card = min(i for i, total in cards.items() if total >= (mib or 0))
            answer = after(ended(1, card, tail=OOM, retry=EVER, memory_mib=mib, peak_mib=cards[card] - 100), gpus=host)
            if isinstance(answer, Finish):
                break
            mib = answer.memory_mib
        assert isinstance(answer, Finish) and answer.reason is not None and answer.reason.code == "oom_beyond_any_card"


def test_a_retry_keeps_the_request() -> None:
    answer = after(ended(1, 0, memory_mib=8000, retry=EVER))
    assert isinstance(answer, Requeue) and answer.memory_mib == 8000 and answer.counts


def test_deciding_on_an_end_needs_no_gpus() -> None:
    assert isinstance(decide(World(now=0.0, uid=1000, runs=(ended(1, 0, tail=OOM, retry=EVER),))).decisions[0], Requeue)
