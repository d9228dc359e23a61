"""What a submit is told of the cards of this host."""

from __future__ import annotations

from jostle.core.model import LOCAL, Policy
from jostle.engine.outlook import hopeless


def test_that_more_than_one_slice_cannot_be_had_is_in_the_answer_to_the_submit() -> None:
    parent = {"uuid": "GPU-0", "index": 0, "state": "mig", "total_mib": 81920, "mig_slice": False}
    slices = [{"uuid": f"MIG-{k}", "index": 0, "state": "ok", "total_mib": 20480, "mig_slice": True} for k in range(3)]
    jobs = [{"gpus": [n, n], "memory_mib": None} for n in (1, 2)]
    found = hopeless([parent, *slices], Policy(), jobs)
    assert found is not None
    assert {asked: reason.code for asked, reason in found.items()} == {(2, None, (LOCAL,)): "impossible_slices"}
