"""States and the groups of them have one home (tests/test_architecture.py); each is final or has a way on."""

from jostle.core import states


def test_each_state_is_final_or_has_a_way_on():
    assert set(states.UNFINISHED) | set(states.FINAL) == set(states.ALL) == set(states.SUMMED)
    assert set(states.OPEN) < set(states.UNFINISHED) and states.SUCCEEDED not in states.UNSUCCESSFUL
