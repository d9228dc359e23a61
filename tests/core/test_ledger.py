"""What a card still has to give."""

from __future__ import annotations

from typing import Any

import pytest

from jostle.core.ledger import available_mib
from jostle.core.model import Gpu, Promise
from tests.core.worlds import ALICE, GIB, ME, ROOT, ended, foreign, gpu, holder, promise, run, u, world


def available(card: Gpu, *promises: Promise, **more: Any) -> int:
    runs = tuple(run(p.run[0], 0, share=True, memory_mib=p.mib) for p in promises if p.run is not None)
    return available_mib(world(gpus=(card,), promises=promises, **{"runs": runs, **more}))[u(0)]


def test_an_empty_card_has_what_is_free() -> None:
    assert available(gpu(0, used=300)) == 24 * GIB - 300


def test_a19_a_run_that_has_not_allocated_yet_counts() -> None:
    assert available(gpu(0), promise(1, 0, 8 * GIB)) == 16 * GIB


def test_what_a_run_uses_is_not_counted_twice() -> None:
    half = gpu(0, used=4 * GIB, holders=(holder(ME, 4 * GIB, run=(1, 1)),))
    assert available(half, promise(1, 0, 8 * GIB, used_mib=4 * GIB)) == 16 * GIB


def test_a_run_that_uses_more_than_promised_owes_nothing() -> None:
    much = gpu(0, used=10 * GIB, holders=(holder(ME, 10 * GIB, run=(1, 1)),))
    assert available(much, promise(1, 0, 8 * GIB, used_mib=10 * GIB)) == 14 * GIB


def test_a_strangers_use_counts_beside_our_promises() -> None:
    card = gpu(0, used=6 * GIB, holders=(holder(ALICE, 6 * GIB),))
    assert available(card, promise(1, 0, 8 * GIB)) == 10 * GIB


@pytest.mark.parametrize("uid", [None, ROOT])
def test_use_in_a_container_is_taken_for_the_run_that_has_none(uid: int | None) -> None:
    card = gpu(0, used=5 * GIB + 300, holders=(holder(uid, 5 * GIB),))
    assert available(card, promise(1, 0, 8 * GIB, used_at_start_mib=300)) == 16 * GIB - 300


def test_use_that_was_there_before_is_not_the_runs() -> None:
    card = gpu(0, used=5 * GIB, holders=(holder(None, 5 * GIB),))
    assert available(card, promise(1, 0, 8 * GIB, used_at_start_mib=5 * GIB)) == 11 * GIB


def test_unnamed_use_explains_no_more_than_was_promised() -> None:
    card = gpu(0, used=12 * GIB)
    assert available(card, promise(1, 0, 8 * GIB)) == 12 * GIB


def test_unnamed_use_of_one_run_does_not_pay_for_a_younger_one() -> None:
    card = gpu(0, used=8 * GIB)
    both = (promise(1, 0, 5 * GIB), promise(2, 0, 10 * GIB, used_at_start_mib=8 * GIB))
    assert available(card, *both) == 6 * GIB


def test_named_use_never_explains_a_silent_run() -> None:
    card = gpu(0, used=8 * GIB, holders=(holder(ME, 8 * GIB, run=(1, 1)),))
    both = (promise(1, 0, 8 * GIB, used_mib=8 * GIB), promise(2, 0, 4 * GIB))
    assert available(card, *both) == 12 * GIB


def test_neighbours_promises_count_by_their_sessions_use() -> None:
    card = gpu(0, used=3 * GIB, holders=(holder(ALICE, 3 * GIB, sid=900),))
    assert available(card, foreign(ALICE, 0, 8 * GIB, used_mib=3 * GIB)) == 16 * GIB


def test_a_whole_card_promise_leaves_nothing() -> None:
    assert available(gpu(0), foreign(ALICE, 0)) == 0


def test_readings_that_contradict_each_other_never_make_more_than_the_card_has() -> None:
    assert available(gpu(0), promise(1, 0, 20 * GIB, used_mib=20 * GIB)) == 4 * GIB


def test_the_promise_of_an_ended_run_is_over_but_its_memory_counts_while_shown() -> None:
    card = gpu(0, used=5 * GIB)
    assert available(card, promise(1, 0, 8 * GIB), runs=(ended(1, 0, code=0),)) == 19 * GIB


def test_an_unreadable_gpu_is_never_free() -> None:
    assert available(gpu(0, state="unknown")) == 0
