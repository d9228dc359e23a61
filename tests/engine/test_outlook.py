"""What a submit is told of the cards of this host."""

from __future__ import annotations

from jostle.core.model import LOCAL, Limits, Policy
from jostle.core.survey import Asked
from jostle.engine.observe import here
from jostle.engine.outlook import cards, hopeless

NO_MORE = {"memory_mib": None, "cpus": None, "host_memory_mib": None, "counters": {}}


def test_that_more_than_one_slice_cannot_be_had_is_in_the_answer_to_the_submit() -> None:
    parent = {"uuid": "GPU-0", "index": 0, "state": "mig", "total_mib": 81920, "mig_slice": False}
    slices = [{"uuid": f"MIG-{k}", "index": 0, "state": "ok", "total_mib": 20480, "mig_slice": True} for k in range(3)]
    jobs = [{**NO_MORE, "gpus": [n, n], "on": [LOCAL]} for n in (1, 2)]
    found = hopeless((here(cards([parent, *slices])),), Policy(), Limits(), {}, jobs)
    assert found is not None
    assert {asked: reason.code for asked, reason in found.items()} == {Asked(2, None, (LOCAL,)): "impossible_slices"}


def test_a_target_that_the_engine_does_not_have_is_told_though_nothing_is_known_of_the_cards() -> None:
    jobs = [{**NO_MORE, "gpus": [1, 1], "on": on} for on in (["slrum"], ["slrum", LOCAL], [LOCAL])]
    found = hopeless((here(()),), Policy(), Limits(), {}, jobs)
    assert found is not None and {asked.on: reason.code for asked, reason in found.items()} == {("slrum",): "no_target"}
    assert hopeless((here(()),), Policy(), Limits(), {}, jobs[1:]) is None


def test_c13_more_cores_memory_or_of_a_counter_than_there_is_are_told_with_the_numbers() -> None:
    """C13."""
    host = here((), cpus=8, host_memory_mib=65536)
    more = [{"cpus": 9}, {"host_memory_mib": 65537}, {"counters": {"licence": 3}}, {"counters": {"tape": 1}}]
    fits = {"cpus": 8, "host_memory_mib": 65536, "counters": {"licence": 2}}
    jobs = [{**NO_MORE, "gpus": [0, 0], "on": [LOCAL], **one} for one in (*more, fits)]
    found = hopeless((host,), Policy(), Limits(), {"licence": 2}, jobs)
    assert found is not None
    told = {reason.code + reason.params.get("name", ""): reason.params for reason in found.values()}
    assert told == {
        "impossible_cpus": {"needed": 9, "total": 8}, "impossible_host_memory": {"needed_mib": 65537, "total_mib": 65536},
        "impossible_counterlicence": {"name": "licence", "needed": 3, "total": 2},
        "impossible_countertape": {"name": "tape", "needed": 1, "total": 0},
    }  # fmt: skip
