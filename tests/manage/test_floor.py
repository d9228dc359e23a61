"""The automatic floor (SPEC C6): what it takes and gives back, over every way that a host may look."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jostle.manage.floor import Aim, FloorCard, Situation, Step, step


def floor(count: int, **more: bool) -> tuple[FloorCard, ...]:
    return tuple(FloorCard(id=n, holds=True, **more) for n in range(1, count + 1))


def test_c6_to_the_minimum_at_once_then_one_card_at_a_time_up_to_the_most() -> None:
    aim = Aim(least=3, most=5)
    assert step(Situation(now=0, free=8), aim) == Step(take=3)
    assert step(Situation(now=0, free=5, held=3, kept=floor(3)), aim) == Step(take=1)
    assert step(Situation(now=0, free=5, held=3, kept=floor(3), grow_at=5), aim) == Step(), "one at a time"
    assert step(Situation(now=0, free=5, held=2, kept=floor(2), grow_at=5), aim) == Step(take=1), "but the minimum at once"
    assert step(Situation(now=0, free=3, held=5, kept=floor(5)), aim) == Step()


def test_c6_only_while_any_are_free_and_as_courtesy_and_limits_let() -> None:
    aim = Aim(least=2, most=4)
    assert step(Situation(now=0, free=1), aim) == Step(take=1)
    assert step(Situation(now=0, free=0), aim) == Step()
    assert step(Situation(now=0, free=8, may=1), aim) == Step(take=1)
    assert step(Situation(now=0, free=8, held=3, may=2, may_keep=2, kept=floor(3)), aim) == Step(give=(3,), why="enough")


def test_c6_what_cannot_be_read_for_a_moment_is_no_reason_to_take_or_to_give() -> None:
    seen = Situation(now=0, free=0, held=2, may=1, may_keep=3, kept=floor(2))
    assert step(seen, Aim(most=3)) == Step()


def test_c6_running_jobs_count_and_the_floor_makes_room_for_them() -> None:
    aim = Aim(least=1, most=2)
    assert step(Situation(now=0, free=4, held=2), aim) == Step()
    assert step(Situation(now=0, free=4, held=3, kept=floor(2)), aim) == Step(give=(2,), why="enough")
    assert step(Situation(now=0, free=4, held=1), aim) == Step(take=1)


def test_c6_own_waiting_jobs_come_first() -> None:
    seen = Situation(now=0, free=4, held=2, kept=floor(2), waiting=True)
    assert step(seen, Aim()) == Step(give=(1, 2), why="waiting")


def test_c6_it_ends_when_nothing_of_ours_ran_for_half_an_hour_and_comes_back_with_the_next() -> None:
    kept = floor(2)
    assert step(Situation(now=1799, held=2, kept=kept), Aim()) == Step()
    assert step(Situation(now=1800, held=2, kept=kept), Aim()) == Step(give=(1, 2), why="idle")
    assert step(Situation(now=5000, free=4), Aim()) == Step(why="idle")
    assert step(Situation(now=5000, free=4, active_at=4999), Aim()) == Step(take=1)


def test_c6_a_card_that_another_person_came_onto_is_given_back() -> None:
    kept = (FloorCard(id=1, holds=True), FloorCard(id=2, holds=True, crowded=True))
    assert step(Situation(now=0, free=4, held=2, kept=kept), Aim()) == Step(give=(2,), why="crowded")


def test_c6_who_forbids_it_ends_it() -> None:
    assert step(Situation(now=0, free=4, held=1, kept=floor(1)), Aim(off="lab")) == Step(give=(1,), why="off")


def test_c6_what_was_asked_for_and_not_had_is_given_up_and_not_asked_for_again_at_once() -> None:
    assert step(Situation(now=0, free=4, kept=(FloorCard(id=7, holds=False),)), Aim()) == Step(give=(7,), why="not_had")
    assert step(Situation(now=5, free=4, again_at=60), Aim()) == Step()


KEPT = st.lists(st.booleans(), max_size=6).map(
    lambda crowded: tuple(FloorCard(id=n, holds=True, crowded=c) for n, c in enumerate(crowded, 1))
)


@given(
    KEPT, st.integers(0, 8), st.none() | st.integers(0, 8), st.integers(0, 8), st.booleans(), st.integers(0, 4), st.integers(0, 4)
)
def test_c6_never_more_than_it_may_and_nothing_while_own_jobs_wait(
    kept: tuple[FloorCard, ...], beside: int, may: int | None, free: int, waiting: bool, least: int, more: int
) -> None:
    seen = Situation(now=0, kept=kept, held=len(kept) + beside, may=may, may_keep=may, free=free, waiting=waiting)
    aim = Aim(least=least, most=least + more)
    done = step(seen, aim)
    left = len(kept) - len(done.give) + done.take
    assert not (done.take and done.give) and set(done.give) <= {k.id for k in kept}
    assert done.take <= free
    if waiting:
        assert left == 0
    if done.take:
        assert beside + left <= aim.most and (may is None or beside + left <= may)
        assert done.take == 1 or beside + left <= aim.least
    elif not any(k.crowded for k in kept):
        assert left == 0 or (beside + left <= aim.most and (may is None or beside + left <= may))
