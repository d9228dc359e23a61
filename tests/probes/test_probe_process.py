"""The probe as a process: commands, pace, garbage, and its end."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any

import pytest
from probing import Place

from jostle import config
from jostle.core.devices import REAL
from jostle.errors import Usage
from jostle.formats import spec as written
from jostle.probes import serve
from jostle.probes.serve import one_shot, probe


@pytest.mark.parametrize("devices", [*REAL, "sim:1x24"])
def test_devices_that_have_a_name_are_taken_as_an_option_and_as_a_setting_and_have_a_probe(devices: str) -> None:
    assert config.devices(devices) == written.devices(devices) == devices
    probe(devices)  # no Usage


def test_the_first_snapshot_comes_unasked_and_numbers_go_up(place: Place) -> None:
    probe = place.start("sim:1x24")
    snapshot = probe.line()
    assert snapshot is not None and (snapshot["seq"], snapshot["asked"]) == (1, None)
    probe.say("rate 0\n")
    first, *more = [probe.look()["seq"] for _ in range(3)]
    assert first >= 2 and more == [first + 1, first + 2]  # one more came unasked, if it did not get a core for long


def test_looks_that_come_together_share_the_answer_to_the_last_of_them(place: Place) -> None:
    probe = place.start("sim:1x24")
    assert probe.line() is not None
    probe.say("rate 0\nlook 5\nlook 6\nlook 7\nloo")
    while (together := probe.line()) is not None and together["asked"] is None:
        pass  # came unasked before it read this
    assert together is not None and together["asked"] == 7
    probe.say("k 8\n")
    last = probe.line()
    assert last is not None and last["asked"] == 8
    assert probe.line(patience=0.2) is None


def test_the_rate_says_how_often_it_speaks_unasked(place: Place) -> None:
    probe = place.start("sim:1x24")
    probe.say("rate 0.01\n")
    snapshots = [probe.line() for _ in range(10)]
    assert [s and s["asked"] for s in snapshots] == [None] * 10
    probe.say("rate 0\n")
    probe.look()
    assert probe.line(patience=0.3) is None


def test_no_time_of_a_card_is_later_than_its_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        spent = False

        def read(self, asked: int | None, again: bool) -> dict[str, Any]:
            return {"gpus": [{"silent_since": time.monotonic()}]}

    written: list[bytes] = []
    monkeypatch.setattr(serve, "_write", written.append)
    monkeypatch.setattr(time, "monotonic", lambda: 11342.9581762)
    serve.ProbeServer(Silent())._answer(1)  # type: ignore[arg-type]
    snapshot = json.loads(written[0])
    assert snapshot["gpus"][0]["silent_since"] <= snapshot["at"]


GARBAGE = (
    "\n\n", "look\n", "look x\n", "rate\n", "rate nan\n", "rate -1\n", "rate x\n", "rate inf\n", "jump 3\n", "look 1 2\n",
    "\x00\x01 é ü\n", "look " + "9" * 5000 + "\n", "x" * 200_000 + "\n",
)  # fmt: skip


def test_garbage_is_ignored(place: Place) -> None:
    probe = place.start("sim:1x24")
    for asked, garbage in enumerate(GARBAGE, start=1):
        probe.say(garbage)
        assert probe.look()["asked"] == asked, garbage[:20]


def test_the_end_of_stdin_is_its_end(place: Place) -> None:
    probe = place.start("sim:1x24")
    assert probe.line() is not None
    assert probe.end() == 0


def test_it_keeps_no_inherited_file_open(place: Place) -> None:
    reading, writing = os.pipe()
    probe = place.start("sim:1x24", pass_fds=(writing,))
    os.close(writing)
    assert probe.line() is not None
    assert select.select([reading], [], [], 60)[0]
    assert os.read(reading, 1) == b""  # no writer is left
    os.close(reading)


@pytest.mark.parametrize("devices", ["cuda", "", "sim", "nvml:0"])
def test_an_unknown_set_of_devices_is_a_usage_error(place: Place, devices: str) -> None:
    with pytest.raises(Usage, match="expected nvml, sim:8x24"):
        one_shot(devices)


def test_a_host_without_the_nvml_binding_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.delitem(sys.modules, "jostle.probes.nvml", raising=False)
    reading = probe("nvml").read()
    assert reading["gpus"] == []
    assert "pip install nvidia-ml-py" in (reading["error"] or "")
