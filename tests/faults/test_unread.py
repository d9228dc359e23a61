"""Cards that nobody can read any more: which there were is still told, and none of them as free."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.instance import Instance, until

CARDS = "gpus: {count: 3, total: 24GiB, name: NVIDIA GeForce RTX 4090}\n"
LOST = CARDS + "mismatch: [{from: 0}]"
WAITING = "until [ -e {0}.go ]; do sleep 0.02; done"


@pytest.fixture
def began() -> float:
    """Before any card was read."""
    return time.time()


@pytest.fixture
def jostle(instance: Instance, began: float) -> Iterator[Instance]:
    """An engine that has read three cards, with a run on the first, and card 2 taken out by hand."""
    instance.up(instance.scenario(CARDS))
    instance.see_cards()
    instance.ok("gpus", "--exclude", "2")
    (job,) = instance.submit({"commands": [WAITING.format("held")]})
    instance.reach(job, "running")
    yield instance
    (instance.work / "held.go").touch()  # it outlives every engine of these tests


def shown(jostle: Instance) -> dict[str, Any]:
    code, out, _ = jostle.run("gpus", "--json")
    assert code == 1, out
    return json.loads(out)


def is_last_known(seen: dict[str, Any]) -> None:
    """All three, none of them to be had, and the run on its card."""
    assert seen["error"]
    assert [(g["index"], g["uuid"], g["name"], g["total_mib"]) for g in seen["gpus"]] == [
        (k, f"GPU-sim-{k:04}", "NVIDIA GeForce RTX 4090", 24576) for k in range(3)
    ]
    for gpu in seen["gpus"]:
        assert (gpu["state"], gpu["available_mib"], gpu["free_mib"], gpu["utilization"]) == ("unknown", 0, 0, None)
        assert gpu["refusal"]["code"] == "unknown" and gpu["refusal"]["text"]
    assert [gpu["runs"] for gpu in seen["gpus"]] == [["1.1"], [], []]
    assert [gpu["excluded"] for gpu in seen["gpus"]] == [False, False, True]


def test_a_lost_driver_takes_no_card_out_of_sight_whichever_engine_is_asked_or_none(jostle: Instance, began: float) -> None:
    jostle.scenario(LOST)
    until(lambda: jostle.call("hello")["hold"] == "driver_mismatch")
    seen = shown(jostle)
    is_last_known(seen)
    assert seen["engine"] is True and began <= seen["read_at"] <= time.time()

    jostle.kill_engine()
    jostle.up(None)  # one that has never read them
    until(lambda: jostle.call("hello")["hold"] == "driver_mismatch")
    again = shown(jostle)
    is_last_known(again)
    assert again["read_at"] == seen["read_at"]

    jostle.ok("down")
    alone = shown(jostle)
    is_last_known(alone)
    assert (alone["engine"], alone["read_at"]) == (False, seen["read_at"])
    _, table, said = jostle.run("gpus")
    assert table.count("no fresh reading of it") == 3 and "Driver/library version mismatch" in said

    jostle.scenario(CARDS)
    jostle.up(None)
    jostle.see_cards()
    good = jostle.json("gpus")
    assert ([gpu["state"] for gpu in good["gpus"]], good["read_at"]) == (["ok"] * 3, None)


def test_an_engine_that_is_killed_tells_no_time_that_it_did_not_keep(jostle: Instance) -> None:
    jostle.kill_engine()
    jostle.scenario(LOST)
    seen = shown(jostle)
    is_last_known(seen)
    assert seen["read_at"] is None


def test_an_engine_that_was_stopped_says_when_the_cards_were_last_read(jostle: Instance, began: float) -> None:
    jostle.ok("down")
    jostle.scenario(LOST)
    assert began <= shown(jostle)["read_at"] <= time.time()


def test_cards_of_other_devices_are_not_taken_for_those_that_cannot_be_read(jostle: Instance) -> None:
    jostle.ok("down")
    other = jostle.root / "other.yaml"
    other.write_text(LOST)
    code, out, _ = jostle.run("gpus", "--json", "--gpus", f"sim:{other}")
    assert (code, json.loads(out)["gpus"]) == (1, [])
    jostle.up(f"sim:{other}")
    until(lambda: jostle.call("hello")["hold"] == "driver_mismatch")
    assert shown(jostle)["gpus"] == []
