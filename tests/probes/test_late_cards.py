"""One card that does not answer, or only after a while: it is late alone, says so, and is believed only for what it was asked."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from probing import Place, Process, World

from fakenvml import Driver
from jostle.probes import relay, scenario
from jostle.probes.relay import LastReading, Relay, late
from jostle.probes.snapshot import GpuReading, Relieved, blind

TEXT = "gpus: {count: 8, total: 24GiB}\n"
EIGHT = scenario.of_shape("8x24")
THIRD = "GPU-sim-0003"


def in_time(snapshot: dict[str, Any]) -> list[int]:
    """The cards that were read for this snapshot."""
    return [gpu["index"] for gpu in snapshot["gpus"] if gpu["state"] == "ok" and "read_at" not in gpu]


def others() -> list[int]:
    return [0, 1, 2, 4, 5, 6, 7]


def test_one_hung_card_is_late_alone_and_the_others_are_read_at_every_look(world: World) -> None:
    probe = world.probe(TEXT + "strangers: [{user: bob, gpu: 3, used: 8GiB}]")
    first = probe.look()
    assert in_time(first) == list(range(8))
    world.show(TEXT + "hang: [{gpu: 3}]\nstrangers: [{user: eve, gpu: 4, used: 2GiB}]")
    for _ in range(5):
        seen = probe.look()
        assert in_time(seen) == others()
        assert seen["gpus"][4]["used_mib"] == 2048
        card = seen["gpus"][3]
        assert (card["uuid"], card["used_mib"], card["procs"][0]["used_mib"]) == (THIRD, 8192, 8192), "as it was last seen"
        assert card["asked"] <= first["asked"] and card["read_at"] <= seen["at"], "of a look before it hung"


def test_a_card_that_hangs_from_the_start_is_starting_and_the_others_are_there(world: World) -> None:
    seen = world.probe(TEXT + "hang: [{gpu: 3}]").look()
    assert in_time(seen) == others()
    card = seen["gpus"][3]
    assert (card["state"], card["free_mib"]) == ("starting", 0)
    assert card["silent_since"] <= seen["at"]
    assert len({gpu["uuid"] for gpu in seen["gpus"]}) == 8


def test_a_card_that_answers_again_is_read_with_the_others(world: World) -> None:
    probe = world.probe(TEXT + "hang: [{gpu: 3}]")
    assert in_time(probe.look()) == others()
    world.show(TEXT)
    probe.until(lambda s: in_time(s) == list(range(8)))


def test_after_a_while_it_cannot_be_read_and_when_no_card_answers_the_probe_is_as_silent(world: World) -> None:
    probe = world.probe(TEXT, silent=0.5)
    assert in_time(probe.look()) == list(range(8))
    world.show(TEXT + "hang: [{gpu: [0, 1, 2, 3, 4, 5, 6]}]")
    seen = probe.until(lambda s: {gpu["state"] for gpu in s["gpus"][:7]} == {"unreadable"})
    assert in_time(seen) == [7], "one that answers is enough"
    assert all((gpu["uuid"][-1], gpu["free_mib"]) == (str(i), 0) for i, gpu in enumerate(seen["gpus"][:7]))
    assert all(gpu["silent_since"] <= seen["at"] - 0.499 for gpu in seen["gpus"][:7])
    probe.say("rate 0.05\n")
    world.show(TEXT + "hang: [{gpu: all}]")
    while (line := probe.line(patience=3)) is not None:
        assert seen["seq"] + 1000 > line["seq"], "it never falls silent, so nobody would replace it"


@pytest.fixture
def driver(place: Place) -> Driver:
    made = Driver(place.path)
    made.show(EIGHT)
    return made


def started(place: Place, driver: Driver) -> Process:
    process = place.start("nvml", driver.env)
    process.say("rate 0\n")
    assert in_time(process.look()) == list(range(8))
    return process


def test_a_slow_card_is_told_when_it_has_answered_with_the_look_it_answers(place: Place, driver: Driver) -> None:
    process = started(place, driver)
    driver.show(EIGHT, extra=[f"slow nvmlDeviceGetMemoryInfo 900 {THIRD}", "proc 5000001 10 C"])
    asked = process.look()
    assert in_time(asked) == others()
    assert asked["gpus"][3]["asked"] < asked["asked"], "it has not answered this look"
    told = process.line()
    assert told is not None and told["asked"] is None, "unasked"
    assert (told["gpus"][3]["state"], told["gpus"][3]["asked"]) == ("ok", asked["asked"])
    assert told["gpus"][3]["read_at"] > asked["gpus"][3]["read_at"]
    assert process.line(patience=1.0) is None, "and it is not read again before somebody asks"


def test_a_reading_that_began_before_a_look_does_not_answer_it(place: Place, driver: Driver) -> None:
    process = started(place, driver)
    driver.show(EIGHT, extra=[f"slow nvmlDeviceGetMemoryInfo 1500 {THIRD}"])
    first = process.look()
    second = process.look()  # the reading of the card is still that of the first
    told = process.line()
    assert told is not None
    assert first["asked"] <= told["gpus"][3]["asked"] < second["asked"]
    process.look()
    told = process.line()
    assert told is not None and told["gpus"][3]["asked"] > second["asked"], "the next one does"


def test_a_card_that_was_slow_for_a_while_comes_back_to_the_others(place: Place, driver: Driver) -> None:
    process = started(place, driver)
    driver.show(EIGHT, extra=[f"slow nvmlDeviceGetMemoryInfo 1500 {THIRD}"])
    assert in_time(process.look()) == others()
    driver.show(EIGHT)
    process.until(lambda s: in_time(s) == list(range(8)))


def test_a_slow_start_of_each_card_shows_one_after_the_other(place: Place, driver: Driver) -> None:
    driver.show(EIGHT, extra=[f"once nvmlDeviceGetHandleByIndex 900 {card.uuid}" for card in EIGHT.cards[4:]])
    process = place.start("nvml", driver.env)
    first = process.line()
    assert first is not None
    assert [gpu["state"] for gpu in first["gpus"]][:4] == ["ok"] * 4
    assert "starting" in [gpu["state"] for gpu in first["gpus"]][4:]
    process.until(lambda s: in_time(s) == list(range(8)))


def test_a_card_that_is_late_when_others_move_up_is_not_shown_twice(place: Place, driver: Driver) -> None:
    process = started(place, driver)
    driver.show(EIGHT, extra=[f"hang nvmlDeviceGetMemoryInfo {THIRD}"])
    process.look()
    seven = scenario.Scenario(cards=EIGHT.cards[1:])
    driver.show(seven)
    seen = process.look()
    uuids = [gpu["uuid"] for gpu in seen["gpus"]]
    assert len(set(uuids)) == len(uuids) == 7 and uuids[2] == THIRD and seen["gpus"][2]["state"] == "ok"
    assert (seen["gpus"][3]["state"], seen["gpus"][3]["free_mib"]) == ("unreadable", 0)


@pytest.mark.parametrize("call", [f"nvmlDeviceGetMemoryInfo {THIRD}", "nvmlDeviceGetCount", "nvmlInit"])
def test_whatever_hangs_the_end_of_stdin_is_its_end(place: Place, driver: Driver, call: str) -> None:
    driver.show(EIGHT, extra=[f"hang {call}"])
    process = place.start("nvml", driver.env)
    if THIRD in call:
        process.look()
    assert process.end() == 0


def test_an_error_of_one_card_without_a_handle_is_told_from_one_with(place: Place, driver: Driver) -> None:
    driver.show(EIGHT, extra=[f"fail nvmlDeviceGetHandleByIndex 4 {THIRD}", "fail nvmlDeviceGetMemoryInfo 999 GPU-sim-0004"])
    gpus = place.start("nvml", driver.env).look()["gpus"]
    assert [gpu.get("no_handle", False) for gpu in gpus] == [False] * 3 + [True] + [False] * 4
    assert [gpu["state"] for gpu in gpus[3:5]] == ["unreadable"] * 2


def test_a_card_that_reports_memory_that_cannot_be_is_unreadable_alone(place: Place, driver: Driver) -> None:
    process = started(place, driver)
    for memory in ("100 200 0", "100 0 0", f"{1 << 34} {1 << 63} {1 << 63}", f"{1 << 34} {1 << 34} {1 << 30}"):
        driver.show(EIGHT, extra=[f"memory {memory}"])
        gpus = process.look()["gpus"]
        assert [gpu["state"] for gpu in gpus] == ["ok"] * 7 + ["unreadable"], memory
        assert (gpus[7]["free_mib"], "cannot be" in gpus[7]["error"]) == (0, True)


# --- what is shown of it, with numbers for time


def card(state: str = "ok") -> GpuReading:
    gpu = blind(3, THIRD, "a card", state, "", 24576)
    gpu["free_mib"] = 24576
    return gpu


@pytest.mark.parametrize(
    ("waited", "state"), [(0.1, "ok"), (5.0, "ok"), (relay.SILENT - 0.1, "ok"), (relay.SILENT, "unreadable"), (9e5, "unreadable")]
)
def test_a_busy_driver_may_take_seconds_and_then_the_card_cannot_be_read(waited: float, state: str) -> None:
    (gpu,) = late(3, LastReading([card()], 100.0, 7), 200.0, 200.0, 200.0 + waited, 8)
    assert (gpu["uuid"], gpu["state"]) == (THIRD, state)
    if state == "ok":
        assert (gpu["read_at"], gpu["asked"]) == (100.0, 7)
    else:
        assert (gpu["silent_since"], gpu["free_mib"], gpu["error"]) == (200.0, 0, "no answer")


@pytest.mark.parametrize(("count", "patience"), [(1, 60), (4, 60), (8, 120)])
def test_a_card_that_never_answered_is_starting_for_fifteen_seconds_a_card(count: int, patience: float) -> None:
    for waited, state in ((patience - 1, "starting"), (patience, "unreadable")):
        (gpu,) = late(3, None, 200.0, 200.0, 200.0 + waited, count)
        assert (gpu["state"], gpu["silent_since"]) == (state, 200.0)


def test_a_card_that_fails_after_each_long_wait_says_since_when() -> None:
    seen = LastReading([card("unreadable")], 245.0, 7)
    for waited in (1.0, 50.0):
        (gpu,) = late(3, seen, 245.0, 200.0, 245.0 + waited, 8)
        assert (gpu["state"], gpu["silent_since"]) == ("unreadable", 200.0)


# --- the threads


class Cards:
    """Cards that can be stuck, and a leader that stands in for the probe's."""

    def __init__(self) -> None:
        self.gates: dict[int, threading.Event] = {}
        self.reads: list[int] = []
        self.relay = Relay(self.read)

    def read(self, number: int) -> list[GpuReading]:
        gate = self.gates.get(number)
        if gate is not None:
            gate.wait()
        self.reads.append(number)
        return [blind(number, f"GPU-{number}", "", "ok", "", 100)]

    def round(self, look: int = 0, again: bool = True) -> list[list[GpuReading]]:
        return [self.relay.card(i, look, 3, again=again) for i in range(3)]


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cards]:
    monkeypatch.setattr(relay, "PATIENCE", 1.0)  # a thread that is not stuck gets a core within it
    monkeypatch.setattr(relay, "CHECK", 0.005)
    made = Cards()
    yield made
    for gate in made.gates.values():
        gate.set()


def test_while_all_answer_one_thread_does_it_all(cards: Cards) -> None:
    before = set(threading.enumerate())
    for _ in range(10):
        assert [part["uuid"] for (part,) in cards.round()] == ["GPU-0", "GPU-1", "GPU-2"]
    assert cards.reads == [0, 1, 2] * 10 and set(threading.enumerate()) <= before


def test_the_thread_that_is_stuck_is_relieved_and_keeps_its_card(cards: Cards) -> None:
    cards.gates[1] = threading.Event()
    relieved = threading.Event()

    def lead() -> None:
        try:
            cards.round(look=5)
        except Relieved:
            relieved.set()

    threading.Thread(target=lead, daemon=True).start()
    cards.relay.stand_by()  # returns because card 1 is stuck
    first = cards.round(look=6)
    assert [part["state"] for (part,) in first] == ["ok", "starting", "ok"]
    cards.gates[1].set()
    assert os.read(cards.relay.news, 1) == b"."
    (late_one,) = cards.round(look=6, again=False)[1]
    assert (late_one["state"], late_one["asked"]) == ("ok", 5)
    deadline = time.monotonic() + 60
    while not relieved.is_set() and time.monotonic() < deadline:
        cards.round(look=7)
    assert relieved.is_set(), "quick again: the card is given back and its thread is done"
    assert "read_at" not in cards.round()[1][0]
