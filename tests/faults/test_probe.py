"""A probe that hangs, crashes, babbles or finds no driver, and GPUs that are lost, change places or are split (F33-F39, F43)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jostle import proc
from jostle.core.devices import LEAST_STARTING, SILENT
from jostle.core.survey import survey
from jostle.engine import probing
from jostle.engine.loop import Loop
from jostle.engine.observe import Observer
from jostle.engine.probing import ProbeProcess
from jostle.probes import scenario
from jostle.probes.command import command
from jostle.wording.reasons import refusal_text
from tests.core import worlds
from tests.e2e.instance import Instance, alive, said, until
from tests.fakenvml import Driver, library_dir

WAITING = "echo $$ > {0}; until [ -e {0}.go ]; do sleep 0.02; done; exit {1}"
CARDS = "gpus: {count: 2, total: 24GiB}\n"
CARD = {"index": 0, "uuid": "GPU-0", "name": "x", "state": "ok", "error": "", "total_mib": 1000, "used_mib": 0, "free_mib": 1000,
        "utilization": 0, "procs": []}  # fmt: skip


@pytest.fixture(scope="module")
def jostle(shared: Instance) -> Iterator[Instance]:
    """An engine whose world the tests rewrite, each beginning with two good cards."""
    shared.up(shared.scenario(CARDS))
    yield shared


@pytest.fixture
def world(jostle: Instance) -> Iterator[Callable[[str], None]]:
    yield lambda text: void(jostle.scenario(CARDS + text))
    jostle.scenario(CARDS)


def void(_: object) -> None: ...


def cards(instance: Instance) -> dict[str, str]:
    return {g["uuid"]: g["state"] for g in instance.call("gpus")["gpus"]}


def shows(instance: Instance, uuid: str, state: str) -> bool:
    return cards(instance).get(uuid) == state


def probe_of(instance: Instance) -> int:
    found = lambda: next((p for p in proc.tree(instance.engine) if "jostle.probes" in proc.command_line(p)), None)  # noqa: E731
    return int(until(found, "a probe"))


def test_one_broken_card_never_stops_the_others(jostle: Instance, world: Callable[[str], None]) -> None:
    for state in ("lost", "unreadable"):
        world(f"faults: [{{gpu: 0, state: {state}}}]")
        until(partial(shows, jostle, "GPU-sim-0000", state))
        one, both = jostle.submit({"commands": ["echo $CUDA_VISIBLE_DEVICES"]}, {"gpus": [2, 2]})
        assert jostle.end(one) == ["succeeded"]
        assert jostle.job(one)["gpu_uuids"] == ["GPU-sim-0001"]
        assert jostle.output(one) == ("GPU-sim-0001\n" if state == "lost" else "1\n"), "an index could mean another card"
        until(partial(shows, jostle, "GPU-sim-0001", "ok"))  # after an end it is known again when it was looked at
        assert {g["code"] for g in jostle.reason(both, "gpus")["gpus"]} == {state}
        world("")
        assert jostle.end(both) == ["succeeded"]


def test_a_driver_mismatch_holds_starts_fails_nobody_and_burns_no_tries(jostle: Instance, world: Callable[[str], None]) -> None:
    (running,) = jostle.submit({"commands": [WAITING.format("mismatch", 0)]})
    pid = jostle.pid_in("mismatch")
    world("mismatch: [{from: 0}]")
    until(lambda: jostle.call("gpus") and jostle.call("hello")["hold"] == "driver_mismatch")
    waits, cpu = jostle.submit({"retry": {"max": 3, "backoff_after": 3, "backoff": 1}}, {"gpus": [0, 0]})
    assert "driver" in jostle.reason(waits, "on_hold")["text"]
    assert jostle.end(cpu) == ["succeeded"]
    assert alive(pid)
    world("")
    assert jostle.end(waits) == ["succeeded"]
    (jostle.work / "mismatch.go").touch()
    assert jostle.end(running) == ["succeeded"]
    assert (jostle.job(waits)["attempt"], jostle.job(waits)["retries"]) == (1, 0)


def test_leases_are_by_uuid_when_cards_change_places_or_disappear(jostle: Instance, world: Callable[[str], None]) -> None:
    (first,) = jostle.submit({"commands": [WAITING.format("places", 0)]})
    pid = jostle.pid_in("places")
    (uuid,) = jostle.reach(first, "running")["gpu_uuids"]
    other = {"GPU-sim-0000": "GPU-sim-0001", "GPU-sim-0001": "GPU-sim-0000"}[uuid]
    world(f"reorder: [{{gpu: {int(uuid[-1])}}}]")
    until(lambda: [g["uuid"] for g in jostle.call("gpus")["gpus"]] == [other, uuid])
    (second,) = jostle.submit({"commands": ["echo $CUDA_VISIBLE_DEVICES"]})
    assert jostle.end(second) == ["succeeded"]
    assert (jostle.job(second)["gpu_uuids"], jostle.output(second)) == ([other], "0\n"), "the index of now"
    world(f"missing: [{{gpu: {int(uuid[-1])}}}]")
    until(lambda: list(cards(jostle)) == [other])
    assert (alive(pid), jostle.states([first])[first]) == (True, "running")
    (third,) = jostle.submit({})
    assert jostle.end(third) == ["succeeded"]
    assert jostle.job(third)["gpu_uuids"] == [other]
    (jostle.work / "places.go").touch()
    assert jostle.end(first) == ["succeeded"]


def test_a_card_that_is_split_between_readings_is_offered_in_parts_and_whole_again_later(
    jostle: Instance, world: Callable[[str], None]
) -> None:
    world("mig: [{gpu: 0, slices: 2}, {gpu: 1, slices: 1}]")
    until(lambda: set(cards(jostle).values()) == {"mig", "ok"})
    ids = jostle.submit(*[{"memory_mib": 8000}] * 3)
    assert set(jostle.end(*ids)) == {"succeeded"}
    assert all(uuid.startswith("MIG-") for id in ids for uuid in jostle.job(id)["gpu_uuids"])
    world("")
    until(lambda: set(cards(jostle).values()) == {"ok"})
    (whole,) = jostle.submit({"memory_mib": 20_000})
    assert jostle.end(whole) == ["succeeded"]


def test_while_the_probe_hangs_nothing_is_free_and_everything_else_goes_on(
    jostle: Instance, world: Callable[[str], None]
) -> None:
    (running,) = jostle.submit({"commands": [WAITING.format("hang", 0)]})
    jostle.pid_in("hang")
    old = probe_of(jostle)
    world("hang: [{from: 0}]")
    answer = until(lambda: next(iter([a for a in [jostle.call("gpus")] if a["error"]]), None), "the silence is told")
    assert {g["state"] for g in answer["gpus"]} == {"unknown"}
    waits, cpu = jostle.submit({}, {"gpus": [0, 0]})
    assert jostle.end(cpu) == ["succeeded"]
    assert jostle.reason(waits, "gpus_unknown")
    (jostle.work / "hang.go").touch()
    assert jostle.end(running) == ["succeeded"], "a run may end while we are blind"
    assert jostle.states([waits])[waits] == "queued"
    world("")
    os.kill(old, signal.SIGKILL)  # a crash inside the driver; the next probe finds it mended
    assert jostle.end(waits) == ["succeeded"]
    until(lambda: old not in proc.tree(jostle.engine), "it is gone")
    assert probe_of(jostle) != old


def test_one_hung_card_is_not_used_the_others_are_and_the_probe_is_not_killed(
    jostle: Instance, world: Callable[[str], None]
) -> None:
    until(partial(shows, jostle, "GPU-sim-0000", "ok"))  # one that a probe has never read would be starting
    old = probe_of(jostle)
    world("hang: [{gpu: 0}]")
    until(partial(shows, jostle, "GPU-sim-0000", "unknown"))
    assert shows(jostle, "GPU-sim-0001", "ok")
    ids = jostle.submit(*[{"commands": ["echo $CUDA_VISIBLE_DEVICES"]}] * 3)
    assert set(jostle.end(*ids)) == {"succeeded"}
    assert {jostle.output(id) for id in ids} == {"1\n"}, "a hung reading changes nothing about indices"
    (both,) = jostle.submit({"gpus": [2, 2]})
    assert {g["code"] for g in jostle.reason(both, "gpus")["gpus"]} == {"unknown"}
    assert probe_of(jostle) == old
    world("")
    assert jostle.end(both) == ["succeeded"]


def test_a_lease_directory_that_cannot_be_used_holds_up_nobody_who_needs_no_gpu(
    make_instance: Callable[..., Instance], tmp_path: Path
) -> None:
    leases = tmp_path / "leases"
    leases.mkdir(mode=0o700)
    instance = make_instance(JOSTLE_LEASE_DIR=str(leases))
    instance.up("sim:1x24")
    leases.rmdir()
    leases.touch()  # nothing can be claimed in a file
    (gpu,) = instance.submit({})
    assert str(leases) in said(instance.reason(gpu, "on_hold"))
    (cpu,) = instance.submit({"gpus": [0, 0]})
    assert instance.end(cpu) == ["succeeded"]
    leases.unlink()
    leases.mkdir(mode=0o700)
    assert instance.end(gpu) == ["succeeded"], "and goes on by itself"


def test_a_driver_that_starts_slowly_comes_up_and_meanwhile_all_say_so(instance: Instance) -> None:
    driver = Driver(str(instance.root))
    driver.show(scenario.of_shape("2x24"), extra=["hang nvmlInit"])
    instance.up("nvml", env={**driver.env, "JOSTLE_LEASE_DIR": str(instance.root)})
    gpu, cpu = instance.submit({}, {"gpus": [0, 0]})
    assert instance.end(cpu) == ["succeeded"]
    until(lambda: "the driver is starting" in said(instance.call("why", id=gpu)["reason"]), "why says so")
    told = json.loads(instance.run("gpus", "--json", env={"JOSTLE_LANG": "zh"})[1])
    assert told["error"].startswith("驱动正在启动，已 ") and told["error"].endswith(" 秒")
    assert told["age_s"] is None, "there was none yet"
    assert "the driver is starting, " in "".join(instance.run("gpus", env={"JOSTLE_LANG": "en"})[1:])
    found = {check["name"]: check["found"] for check in json.loads(instance.run("doctor", "--json")[1])["checks"]}
    assert found["gpus"].startswith("the driver is starting, ")
    driver.show(scenario.of_shape("2x24"))
    assert instance.end(gpu) == ["succeeded"]
    assert instance.call("gpus")["error"] == ""


def test_doctor_says_that_the_driver_is_starting_while_one_card_has_not_answered_yet(instance: Instance) -> None:
    driver, two = Driver(str(instance.root)), scenario.of_shape("2x24")
    driver.show(two, extra=["hang * GPU-sim-0001"])
    instance.up("nvml", env={**driver.env, "JOSTLE_LEASE_DIR": str(instance.root)})
    until(lambda: [g["state"] for g in instance.call("gpus")["gpus"]] == ["ok", "starting"])
    _, out, _ = instance.run("doctor", "--json", env=driver.env)
    (check,) = (c for c in json.loads(out)["checks"] if c["name"] == "gpus")
    assert check["verdict"] == "warn"
    assert check["found"].startswith("the driver is starting, ")


def test_while_a_card_has_no_handle_jobs_get_uuids_and_while_one_cannot_be_read_indices(instance: Instance) -> None:
    driver, two = Driver(str(instance.root)), scenario.of_shape("2x24")
    driver.show(two, extra=["fail nvmlDeviceGetHandleByIndex 999 GPU-sim-0000"])
    instance.up("nvml", env={**driver.env, "JOSTLE_LEASE_DIR": str(instance.root)})
    (unsure,) = instance.submit({"commands": ["echo $CUDA_VISIBLE_DEVICES $JOSTLE_GPUS"]})
    assert instance.end(unsure) == ["succeeded"]
    assert instance.output(unsure) == "GPU-sim-0001 1\n", "CUDA may count without the first"
    driver.show(two, extra=["fail nvmlDeviceGetMemoryInfo 999 GPU-sim-0000"])
    until(lambda: instance.call("gpus")["gpus"][0]["uuid"] == "GPU-sim-0000")
    (sure,) = instance.submit({"commands": ["echo $CUDA_VISIBLE_DEVICES"]})
    assert instance.end(sure) == ["succeeded"]
    assert instance.output(sure) == "1\n"


def test_without_a_driver_gpu_jobs_wait_with_a_reason_that_names_it_and_others_run(instance: Instance) -> None:
    instance.up("nvml", env={"LD_LIBRARY_PATH": "/nonexistent"})
    gpu, cpu = instance.submit({}, {"gpus": [0, 0]})
    assert instance.end(cpu) == ["succeeded"]
    until(lambda: "no NVML on this host" in said(instance.call("why", id=gpu)["reason"]), "it names what is missing")
    code, _, err = instance.run("gpus")
    assert (code, "NVML" in err) == (1, True)
    assert instance.states([gpu]) == {gpu: "queued"}


# --- the process itself, with time as a number


class Silent:
    """A probe that never answers, and what the engine hears of it."""

    def __init__(self, spec: str = "sim:1x24", env: dict[str, str] | None = None) -> None:
        self.loop = Loop()
        self.lines: list[bytes] = []
        self.probe = ProbeProcess(self.loop, command(spec), {**os.environ, **(env or {})}, self.lines.append)

    def until(self, true: Callable[[], Any]) -> None:
        """Until this holds, or nothing was heard of it for a long time."""
        deadline = time.monotonic() + 30
        while not true():
            assert time.monotonic() < deadline, "never happened"
            self.loop.wait(0.5)

    def close(self) -> None:
        self.probe.close()
        self.loop.close()


@pytest.fixture
def silent(tmp_path: Any) -> Iterator[Silent]:
    scenario = tmp_path / "hang.yaml"
    scenario.write_text(CARDS + "hang: [{from: 0}]\n")
    silent = Silent(f"sim:{scenario}", {"JOSTLE_SIM_DIR": str(tmp_path / "sim"), "JOSTLE_LEASE_DIR": str(tmp_path)})
    yield silent
    silent.close()


def test_a_silent_probe_is_killed_and_replaced_with_growing_pauses(silent: Silent) -> None:
    probe, now, opened = silent.probe, 1000.0, []
    probe.open(now)
    for _ in range(5):
        child = probe.child
        assert child is not None
        opened.append(now)
        now += LEAST_STARTING + 1
        probe.tick(now)
        assert (probe.child, probe.trouble and probe.trouble.code) == (None, "probe_silent")
        assert child.wait(60) == -signal.SIGKILL
        while probe.child is None:
            now += 0.5
            probe.tick(now)
    pauses = [b - a - LEAST_STARTING - 1 for a, b in pairwise(opened)]
    assert pauses == sorted(pauses) and pauses[-1] >= 4 * pauses[0], pauses
    assert silent.lines == []


def test_a_probe_that_cannot_be_killed_is_abandoned_and_has_no_second_beside_it(silent: Silent) -> None:
    probe, now = silent.probe, 1000.0
    probe.open(now)
    probe.tick(now + LEAST_STARTING + 1)

    class Stuck:
        """In the kernel for ever: it takes the signal, and stays."""

        def poll(self) -> None: ...
        def wait(self, timeout: float) -> int:
            raise AssertionError("nobody waits for it")

    assert probe.stuck is not None
    probe.stuck.wait(60)
    probe.stuck = Stuck()  # type: ignore[assignment]
    for step in range(200):
        probe.tick(now + 120 + step)
        assert probe.child is None, "one stuck child at the most"
    probe.stuck = None
    probe.tick(now + 600)
    assert probe.child is not None


def test_a_probe_that_ends_at_once_is_not_started_over_and_over(tmp_path: Any) -> None:
    broken = Silent("no such spec")
    probe, starts, now = broken.probe, 0, 1000.0
    try:
        probe.open(now)
        for _ in range(60):
            if probe.child is not None:
                starts += 1
                probe.child.wait(60)
                broken.loop.wait(5)
            now += 1
            probe.tick(now)
    finally:
        broken.close()
    assert 3 <= starts <= 8, "a minute of a probe that cannot live"


@pytest.mark.parametrize(("cards", "patience"), [(0, 60), (4, 60), (8, 120)])
def test_a_fresh_probe_has_fifteen_seconds_a_card_for_its_first_word_and_then_the_usual_time(
    silent: Silent, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, cards: int, patience: float
) -> None:
    for i in range(cards):
        (tmp_path / "listed" / f"0000:{i:02x}:00.0").mkdir(parents=True)
    monkeypatch.setattr(probing, "LISTED", str(tmp_path / "listed"))
    probe = silent.probe
    probe.open(1000.0)
    assert probe.opening_since == 1000.0
    probe.tick(1000.0 + patience)
    assert probe.child is not None
    probe.tick(1000.5 + patience)
    assert (probe.child, probe.opening_since) == (None, None)


def test_a_probe_that_has_spoken_and_falls_silent_is_hung_after_the_usual_time(tmp_path: Any) -> None:
    heard = Silent("sim:1x24", {"JOSTLE_SIM_DIR": str(tmp_path / "sim"), "JOSTLE_LEASE_DIR": str(tmp_path)})
    try:
        heard.probe.open(0.0)
        heard.until(lambda: heard.lines)
        assert heard.probe.opening_since is None
        heard.probe.look(100.0)
        heard.probe.tick(100.0 + SILENT)
        assert heard.probe.child is not None
        heard.probe.tick(100.5 + SILENT)
        assert heard.probe.child is None
    finally:
        heard.close()


def test_a_library_that_is_replaced_under_a_running_probe_is_loaded_by_the_next(tmp_path: Any) -> None:
    driver, folder = Driver(str(tmp_path)), tmp_path / "lib"
    driver.show(scenario.of_shape("8x24"))
    folder.mkdir()
    library = folder / "libnvidia-ml.so.1"
    shutil.copy(os.path.join(library_dir(init=18), library.name), library)
    heard, now = Silent("nvml", {**driver.env, "LD_LIBRARY_PATH": str(folder)}), 0.0
    probe = heard.probe
    try:
        probe.open(now)
        heard.until(lambda: probe.child is None)
        assert [json.loads(line)["hold"] for line in heard.lines] == ["driver_mismatch"]
        assert probe.trouble is None, "what the driver said is what is told"
        shutil.copy(os.path.join(library_dir(), library.name), folder / "new")
        os.replace(folder / "new", library)
        while probe.child is None and now < 5:
            assert probe.stuck is None or probe.stuck.wait(60) is not None
            now += 1.0
            probe.tick(now)
        heard.until(lambda: len(heard.lines) > 1)
        assert len(json.loads(heard.lines[-1])["gpus"]) == 8
        assert now <= 5, "within seconds"
    finally:
        heard.close()


def test_a_driver_that_does_not_start_is_tried_ever_more_rarely(tmp_path: Any) -> None:
    driver = Driver(str(tmp_path))
    driver.write(["init 18"])
    heard, now = Silent("nvml", driver.env), 0.0
    try:
        heard.probe.open(now)
        for _ in range(60):
            heard.until(lambda: heard.probe.child is None)
            if heard.probe.stuck is not None:
                heard.probe.stuck.wait(60)
            now += 1
            heard.probe.tick(now)
    finally:
        heard.close()
    assert 3 <= len(heard.lines) <= 8, "a minute of a driver that does not match"


def test_a_look_that_a_dead_probe_was_asked_is_asked_of_the_next(tmp_path: Any) -> None:
    heard = Silent("sim:1x24", {"JOSTLE_SIM_DIR": str(tmp_path / "sim"), "JOSTLE_LEASE_DIR": str(tmp_path)})
    try:
        heard.probe.open(0.0)
        assert heard.probe.child is not None
        os.kill(heard.probe.child.pid, signal.SIGKILL)
        heard.probe.child.wait(60)
        number = heard.probe.look(0.0)
        heard.until(lambda: heard.probe.child is None)
        heard.lines.clear()
        for now in range(1, 10):
            heard.probe.tick(float(now))
        heard.until(lambda: any(json.loads(line)["asked"] == number for line in heard.lines))
    finally:
        heard.close()


# --- a card that is late by itself


def snapshot(asked: int | None, at: float, *late: dict[str, Any]) -> bytes:
    """Three cards, of which the first ones are late in these ways."""
    gpus = [{**CARD, "index": i, "uuid": f"GPU-{i}", **(late[i] if i < len(late) else {})} for i in range(3)]
    return json.dumps({"asked": asked, "at": at, "error": None, "hold": None, "driver": "1", "gpus": gpus}).encode()


def states_of(seen: Observer, now: float) -> list[str]:
    return [g.state for g in seen.gpus(now)]


def test_a_card_that_is_late_is_as_old_as_it_says_and_the_others_are_fresh() -> None:
    seen = Observer(1000)
    seen.hear(snapshot(None, 50.0, {"read_at": 49.5, "asked": 0}), 100.0)
    assert states_of(seen, 100.1) == ["ok"] * 3
    seen.hear(snapshot(None, 54.0, {"read_at": 49.5, "asked": 0}), 104.0)
    assert states_of(seen, 104.1) == ["unknown", "ok", "ok"]
    assert seen.gpus(104.1)[0].error == "the last reading is 5 s old"
    seen.hear(snapshot(None, 64.0, {"read_at": 49.5, "asked": 0}), 114.0)  # the same cards, read later
    assert states_of(seen, 114.1) == ["unknown", "ok", "ok"]


def test_after_an_end_a_card_that_has_not_answered_the_look_is_not_believed() -> None:
    seen = Observer(1000)
    seen.hear(snapshot(None, 50.0), 100.0)
    seen.distrust(["GPU-0", "GPU-1"], 5, 100.0)
    seen.hear(snapshot(5, 50.2, {"read_at": 50.0, "asked": 4}), 100.2)
    assert states_of(seen, 100.2) == ["unknown", "ok", "ok"]
    seen.hear(snapshot(6, 50.3, {"read_at": 50.0, "asked": 4}), 100.3)
    assert states_of(seen, 100.3) == ["unknown", "ok", "ok"], "no later look speaks for it"
    seen.hear(snapshot(None, 50.5, {"read_at": 50.3, "asked": 6}), 100.5)
    assert states_of(seen, 100.5) == ["ok"] * 3


def test_a_card_without_an_answer_says_for_how_long() -> None:
    seen = Observer(1000)
    silent, starting = {"state": "unreadable", "silent_since": 50.0}, {"state": "starting", "silent_since": 71.0}
    seen.hear(snapshot(None, 95.0, silent, starting), 100.0)
    texts: dict[str, list[str]] = {"en": [], "zh": []}
    for card in survey(worlds.world(gpus=seen.gpus(100.0))).values():
        for lang, found in texts.items():
            found.append(refusal_text(card[1], lang) if card[1] else "yes")
    assert texts["en"] == ["no answer from it for 45 s", "the driver is starting, 24 s so far", "yes"]
    assert texts["zh"] == ["已 45 秒没有响应", "驱动正在启动，已 24 秒", "yes"]


# --- what it may say


def observer() -> Observer:
    made = Observer(1000)
    assert made.hear(json.dumps({"asked": None, "error": None, "hold": None, "driver": "1", "gpus": [CARD]}).encode(), 100.0)
    return made


PROCESS = {"pid": 1, "used_mib": 5, "uid": 1, "sid": 1, "user": "u", "name": "n", "mark": None}
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*CARD, *PROCESS, "asked"]), inner),
    max_leaves=8,
)
SPOILT = st.dictionaries(st.sampled_from(sorted(CARD)), JUNK, min_size=1, max_size=3)


@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(line=st.binary(max_size=200) | JUNK.map(lambda v: json.dumps(v).encode()))
@example(line=b"")
@example(line=b'{"gpus": [{}]}')
@example(line=b'{"gpus": [null]}\r')
@example(line=b'{"asked": "x", "gpus": []}')
@example(line=b"[" * 100_000)
@example(line=b"\xff" * 10)
@example(line="显卡已丢失".encode())
@example(line=b'{"gpus": "' + b"x" * (10 << 20) + b'"}')
def test_garbage_from_the_probe_is_no_reading_and_no_crash(line: bytes) -> None:
    seen = observer()
    told = seen.hear(line, 200.0)
    cards_now = seen.gpus(200.0)
    if not told:
        assert all(g.state == "unknown" for g in cards_now) or seen.read_at == 200.0
    seen.misplaced()
    seen.intruders()


@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(spoilt=SPOILT, head=st.dictionaries(st.sampled_from(["asked", "error", "hold", "driver"]), JUNK, max_size=2), whose=JUNK)
def test_a_reading_with_wrong_parts_is_taken_whole_or_not_at_all(
    spoilt: dict[str, Any], head: dict[str, Any], whose: Any
) -> None:
    seen = observer()
    procs = [{**PROCESS, "used_mib": whose}]
    data = {"asked": None, "error": None, "hold": None, "driver": None, **head, "gpus": [{**CARD, "procs": procs, **spoilt}]}
    seen.hear(json.dumps(data).encode(), 200.0)
    found = seen.gpus(200.0)
    assert len(found) == 1
    seen.used_mib(), seen.misplaced(), seen.used_by_session("GPU-0")


def test_a_line_that_comes_in_pieces_or_with_others_is_read_whole(tmp_path: Any) -> None:
    heard = Silent("sim:1x24", {"JOSTLE_SIM_DIR": str(tmp_path / "sim"), "JOSTLE_LEASE_DIR": str(tmp_path)})
    try:
        heard.probe.open(0.0)
        for n in range(20):
            heard.probe.look(float(n))
        heard.until(lambda: heard.lines and json.loads(heard.lines[-1])["asked"] == 20)
    finally:
        heard.close()
