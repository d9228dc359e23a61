"""The laws of tests/core/test_properties.py over many more worlds than it takes time for."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings

from tests.core import odd, test_properties

LONG = settings(max_examples=600, derandomize=True, deadline=None, database=None)


@LONG
@given(odd.CHANCE)
def test_no_plan_breaks_the_laws(chance: Random) -> None:
    test_properties.check_laws(odd.world(chance))


@LONG
@given(odd.CHANCE)
def test_cards_of_several_hosts_are_never_mixed(chance: Random) -> None:
    test_properties.check_laws(odd.world(chance, several=True))


@LONG
@given(odd.CHANCE)
def test_what_happens_on_one_host_does_not_depend_on_another(chance: Random) -> None:
    test_properties.check_independence(chance)
