"""What a submit is told of the cards of this host."""

from __future__ import annotations

from jostle.core.model import LOCAL, Policy
from jostle.engine.observe import here
from jostle.engine.outlook import cards, hopeless


def test_that_more_than_one_slice_cannot_be_had_is_in_the_answer_to_the_submit() -> None:
    parent = {"uuid": "GPU-0", "index": 0, "state": "mig", "total_mib": 81920, "mig_slice": False}
    slices = [{"uuid": f"MIG-{k}", "index": 0, "state": "ok", "total_mib": 20480, "mig_slice": True} for k in range(3)]
    jobs = [{"gpus": [n, n], "memory_mib": None, "on": [LOCAL]} for n in (1, 2)]
    found = hopeless((here(cards([parent, *slices])),), Policy(), jobs)
    assert found is not None
    assert {asked: reason.code for asked, reason in found.items()} == {(2, None, (LOCAL,)): "impossible_slices"}


def test_a_target_that_the_engine_does_not_have_is_told_though_nothing_is_known_of_the_cards() -> None:
    jobs = [{"gpus": [1, 1], "memory_mib": None, "on": on} for on in (["slrum"], ["slrum", LOCAL], [LOCAL])]
    found = hopeless((here(()),), Policy(), jobs)
    assert found is not None and {asked[2]: reason.code for asked, reason in found.items()} == {("slrum",): "no_target"}
    assert hopeless((here(()),), Policy(), jobs[1:]) is None
