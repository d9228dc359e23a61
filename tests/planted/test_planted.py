"""The tests see what they promise to see: some of the faults at each commit, `make seeded` all of them."""

import os

import plant
import pytest
from fault_table import EACH_COMMIT, FAULTS


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", EACH_COMMIT)
def test_a_promise_that_is_broken_turns_its_tests_red(name):
    assert set(plant.hunt(name).values()) == {"seen"}


def test_every_promise_has_a_fault_and_none_is_stale():
    assert {fault.promise for fault in FAULTS.values()} >= {str(number) for number in range(1, 11)}
    for name, fault in FAULTS.items():
        with open(os.path.join(plant.ROOT, "src", "jostle", fault.file), encoding="utf-8") as f:
            assert f.read().count(fault.right) == 1, f"{name}: {fault.file} has changed; the fault is to be written anew"
