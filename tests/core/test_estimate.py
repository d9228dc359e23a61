"""When a run ends is told from runs like it, or not at all."""

from __future__ import annotations

from jostle.core.estimate import Took, expected, starts


def test_the_median_of_those_like_it_tells_and_a_tenth_at_each_end_is_left_out() -> None:
    assert expected([100, 120, 110]) == Took(100, 110, 120, 3)
    assert expected([100, 120]) == Took(100, 110, 120, 2)
    assert expected([1.0, *[100.0] * 18, 1000.0]) == Took(100, 100, 100, 20), "one that is odd at each end does not spoil it"


def test_fewer_than_two_or_too_different_ones_tell_nothing() -> None:
    assert expected([]) is None and expected([100]) is None
    assert expected([100, 1000]) is None and expected([1000, 1900]) is not None and expected([1000, 3100]) is None
    assert expected([1, 50]) is not None, "within a minute of each other"


def test_a_run_is_like_those_that_took_longer_than_it_has_taken() -> None:
    durations = [1000, 1100, 1200, 1300]
    assert expected(durations, 1050) == Took(1100, 1200, 1300, 3)
    assert expected(durations, 1150) == Took(1200, 1250, 1300, 2)
    assert expected(durations, 1250) is None, "most had ended by now"
    assert expected(durations, 5000) is None


def test_jobs_that_wait_for_our_cards_start_in_their_order_as_cards_come_back() -> None:
    ends = {0: 300.0, 1: 100.0, 2: 200.0}
    assert starts([7, 8, 9, 10], 1, 0, ends) == {7: (100.0, [1]), 8: (200.0, [2]), 9: (300.0, [0])}
    assert starts([7, 8], 2, 0, ends) == {7: (200.0, [1, 2])}
    assert starts([7, 8], 2, 1, ends) == {7: (100.0, [1]), 8: (300.0, [0, 2])}, "one is there already"
    assert starts([7], 4, 0, ends) == {} and starts([], 1, 0, ends) == {} and starts([7], 0, 0, ends) == {}
    assert starts([7], 1, 1, ends) == {}, "nothing is in its way"
