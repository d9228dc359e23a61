"""NVML's own ways to go wrong, through the stand-in driver."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pytest
from probing import Place, Process

from fakenvml import Driver, lines
from jostle.probes import scenario
from jostle.probes.nvml import record_size
from jostle.probes.serve import one_shot
from jostle.probes.sim import reading

EIGHT = scenario.of_shape("8x24")


def probe(place: Place, extra: Sequence[str] = (), version: int = 3) -> tuple[Driver, Process]:
    driver = Driver(place.path, version)
    driver.show(EIGHT, extra=extra)
    return driver, place.start("nvml", driver.env)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_processes_are_read_by_whatever_call_the_driver_has(place: Place, version: int) -> None:
    pids = [5_000_000 + i for i in range(5)]
    _, process = probe(place, [f"proc {pid} {100 + i}" for i, pid in enumerate(pids)], version)
    procs = process.look()["gpus"][7]["procs"]
    assert [(who["pid"], who["used_mib"]) for who in procs] == [(pid, 100 + i) for i, pid in enumerate(pids)]


@pytest.mark.parametrize("version", [1, 3, 4])
def test_a_hundred_processes_fit(place: Place, version: int) -> None:
    _, process = probe(place, [f"proc {5_000_000 + i} 10" for i in range(100)], version)
    assert len(process.look()["gpus"][7]["procs"]) == 100


def test_compute_and_graphics_processes_are_one_list(place: Place) -> None:
    _, process = probe(place, ["proc 5000001 300 C", "proc 5000001 200 G", "proc 5000002 50 G"])
    procs = process.look()["gpus"][7]["procs"]
    seen = [(who["pid"], who["used_mib"], who["kind"]) for who in procs]
    assert seen == [(5000001, 300, "compute"), (5000002, 50, "graphics")]


@pytest.mark.parametrize(("version", "shown"), [(3, (500, 2000, 22076)), (1, (0, 2500, 22076))])
def test_what_the_driver_keeps_of_a_card_is_told_from_what_is_used(
    place: Place, version: int, shown: tuple[int, int, int]
) -> None:
    driver = Driver(place.path, version)
    driver.write(["gpu GPU-a 24576 2000 0 Some Card", "reserved 500"])
    gpu = place.start("nvml", driver.env).look()["gpus"][0]
    assert (gpu["reserved_mib"], gpu["used_mib"], gpu["free_mib"]) == shown


def test_health_is_read_with_the_first_reading_and_not_again_soon(place: Place) -> None:
    driver = Driver(place.path)
    driver.write(["gpu GPU-a 24576 0 0 Some Card", "ecc 1", "remap 0", "gpu GPU-b 24576 0 0 Some Card"])
    process = place.start("nvml", driver.env)
    first = process.line()
    assert first is not None
    assert [(gpu["ecc_uncorrected"], gpu["remap_failed"]) for gpu in first["gpus"]] == [(1, False), (None, None)]
    driver.write(["gpu GPU-a 24576 0 0 Some Card", "ecc 2", "remap 1", "gpu GPU-b 24576 0 0 Some Card"])
    process.say("rate 0.01\n")
    later = [process.line() for _ in range(3)]
    assert all(s and (s["gpus"][0]["ecc_uncorrected"], s["gpus"][0]["remap_failed"]) == (1, False) for s in later)


def test_an_asked_look_never_reads_the_health(place: Place) -> None:
    driver, process = probe(place)
    process.say("rate 0\n")
    process.look()
    driver.write(["gpu GPU-new 24576 0 0 Some Card", "ecc 1", "hang nvmlDeviceGetTotalEccErrors"])
    gpu = process.look()["gpus"][0]
    assert (gpu["uuid"], gpu["state"], gpu["ecc_uncorrected"]) == ("GPU-new", "ok", None)


def test_where_a_card_sits_is_told_as_the_kernel_writes_it_and_a_card_that_does_not_say_is_fine(place: Place) -> None:
    _, process = probe(place, ["fail nvmlDeviceGetPciInfo_v3 3 GPU-sim-0005"])
    gpus = process.look()["gpus"]
    assert [gpu["pci"] for gpu in gpus[4:7]] == ["0000:14:00.0", "", "0000:16:00.0"]
    assert gpus[5]["state"] == "ok"


def test_a_driver_that_hangs_when_asked_what_processes_do_costs_that_alone(place: Place) -> None:
    driver, process = probe(place, ["proc 5000001 100 C 40", "hang nvmlDeviceGetProcessUtilization"])
    process.say("watch 60\n")
    for _ in range(5):  # a card that hung with it would be late for good
        seen = process.until(lambda snapshot: all(gpu["state"] == "ok" and "read_at" not in gpu for gpu in snapshot["gpus"]))
        assert "sm" not in seen["gpus"][7]["procs"][0]
    driver.show(EIGHT, extra=["proc 5000001 100 C 40"])
    process.until(lambda snapshot: snapshot["gpus"][7]["procs"][0].get("sm") == 40)


@pytest.mark.parametrize("sample", ["fail nvmlDeviceGetProcessUtilization 3", "fail nvmlDeviceGetProcessUtilization 6", ""])
def test_a_process_of_which_the_driver_has_no_sample_or_one_that_cannot_be_has_no_load(place: Place, sample: str) -> None:
    _, process = probe(place, ["proc 5000001 100 C", "proc 5000002 100 C 4000", "proc 5000003 100 C 0", sample])
    process.say("watch 60\n")
    if sample:
        assert all("sm" not in who for who in process.look()["gpus"][7]["procs"])
        return
    known = process.until(lambda snapshot: any("sm" in who for who in snapshot["gpus"][7]["procs"]))
    assert [who.get("sm") for who in known["gpus"][7]["procs"]] == [None, 1, 0]


def test_memory_that_the_driver_does_not_tell_is_none_not_zero(place: Place) -> None:
    _, process = probe(place, ["proc 5000001 - C"])
    assert process.look()["gpus"][7]["procs"][0]["used_mib"] is None


@pytest.mark.parametrize("call", ["Memory", "Compute", "UUID", "MigMode"])
def test_any_error_of_one_gpu_is_that_gpus_state(place: Place, call: str) -> None:
    function = {"Memory": "MemoryInfo", "Compute": "ComputeRunningProcesses"}.get(call, call)
    driver, process = probe(place)
    process.look()
    for code in (1, 2, 4, 6, 7, 8, 10, 11, 14, 15, 16, 17, 20, 21, 23, 27, 28, 999, 4711):
        if (call == "MigMode" and code == 2) or code == 1:
            continue  # "invalid argument" is what a card without MIG may say; "uninitialized" is everyone's
        driver.show(EIGHT, extra=[f"fail nvmlDeviceGet{function} {code} GPU-sim-0004"])
        snapshot = process.look()
        found = [gpu["state"] for gpu in snapshot["gpus"]]
        assert found == ["ok"] * 4 + ["lost" if code in (15, 16) else "unreadable"] + ["ok"] * 3, code
        bad = snapshot["gpus"][4]
        assert (bad["free_mib"], bad["uuid"]) == (0, "GPU-sim-0004") and bad["error"], code


@pytest.mark.parametrize("call", ["UtilizationRates", "Temperature", "PowerUsage", "EnforcedPowerLimit", "FanSpeed", "ClockInfo"])
def test_a_sensor_that_is_not_there_is_none_and_the_gpu_is_fine(place: Place, call: str) -> None:
    _, process = probe(place, [f"fail nvmlDeviceGet{call} 3"])
    gpu = process.look()["gpus"][0]
    field = {"UtilizationRates": "utilization", "Temperature": "temperature", "PowerUsage": "power_w"}
    field |= {"EnforcedPowerLimit": "power_limit_w", "FanSpeed": "fan", "ClockInfo": "sm_mhz"}
    assert gpu["state"] == "ok"
    assert gpu[field[call]] is None


def test_memory_info_v1_serves_where_v2_is_refused(place: Place) -> None:
    driver = Driver(place.path, 1)
    driver.show(EIGHT)
    assert place.start("nvml", driver.env).look()["gpus"][0]["free_mib"] == 24576


@pytest.mark.parametrize("code", [1, 18])
def test_a_driver_that_goes_away_under_us_is_told_and_tried_again_by_a_fresh_process(place: Place, code: int) -> None:
    driver, process = probe(place)
    process.look()
    driver.show(EIGHT, extra=[f"fail nvmlDeviceGetMemoryInfo {code}"])
    snapshot = process.look()
    assert snapshot["gpus"] == [] and snapshot["error"]
    assert snapshot["hold"] == ("driver_mismatch" if code == 18 else None)
    assert process.child.wait(60) == 0
    driver.show(EIGHT)
    assert len(place.start("nvml", driver.env).look()["gpus"]) == 8


def test_a_host_without_nvml_says_what_to_do(place: Place) -> None:
    snapshot = place.start("nvml", {"LD_LIBRARY_PATH": "/nonexistent"}).look()
    assert snapshot["error"] == "no NVML on this host: install the NVIDIA driver, or try --gpus sim:8x24"
    assert (snapshot["hold"], snapshot["gpus"]) == (None, [])


def test_after_a_failed_start_of_the_library_the_next_try_is_a_fresh_process(place: Place) -> None:
    driver = Driver(place.path)
    driver.write(["init 9"])
    process = place.start("nvml", driver.env)
    told = process.line()
    assert told is not None and "no NVML" in told["error"]
    assert process.child.wait(60) == 0


def test_a_library_that_appears_later_is_found(place: Place) -> None:
    driver = Driver(place.path)
    driver.show(EIGHT)
    folder = os.path.join(place.path, "lib")
    os.mkdir(folder)  # the loader forgets directories that are not there at first
    process = place.start("nvml", {**driver.env, "LD_LIBRARY_PATH": folder})
    assert "no NVML" in process.look()["error"]
    os.symlink(os.path.join(driver.env["LD_LIBRARY_PATH"], "libnvidia-ml.so.1"), os.path.join(folder, "libnvidia-ml.so.1"))
    process.until(lambda s: len(s["gpus"]) == 8)


def test_a_crash_inside_the_driver_ends_only_the_probe(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, process = probe(place)
    process.look()
    driver.show(EIGHT, extra=["crash nvmlDeviceGetMemoryInfo GPU-sim-0002"])
    process.say("look 99\n")
    assert process.child.wait(60) == -signal.SIGSEGV
    for key, value in driver.env.items():
        monkeypatch.setenv(key, value)
    assert one_shot("nvml")["error"] == "the probe crashed inside the driver"


def test_one_shot_does_not_wait_for_a_hanging_driver(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(place.path)
    driver.show(EIGHT, extra=["hang nvmlDeviceGetCount"])
    for key, value in driver.env.items():
        monkeypatch.setenv(key, value)
    snapshot = one_shot("nvml", timeout=0.5)
    assert snapshot["error"] == "no answer from the GPUs in 0.5 s: the driver is starting, or hangs"
    assert snapshot["gpus"] == []


def test_a_host_whose_gpus_all_vanish_has_none_and_no_error(place: Place) -> None:
    driver, process = probe(place)
    process.look()
    driver.write([])
    snapshot = process.look()
    assert (snapshot["gpus"], snapshot["error"]) == ([], None)


@pytest.mark.parametrize("size", [16, 24, 32])
def test_the_size_of_records_is_seen_in_what_was_written(size: int) -> None:
    for count in range(2, 20):
        raw = b"\x01" * (size * count) + b"\xa5" * (32 * 64 - size * count)
        assert record_size(raw, count, expected=24) == size


def test_a_buffer_that_was_written_all_over_tells_nothing() -> None:
    assert record_size(b"\x00" * 1024, 3, expected=24) == 24


def test_the_stand_in_reads_what_the_simulator_shows() -> None:
    state = lines(reading(EIGHT, 0.0))
    assert state[0] == "gpu GPU-sim-0000 24576 0 0 Simulated GPU"
    assert len(state) == 8
    assert os.path.exists(os.path.join(os.path.dirname(os.path.dirname(__file__)), "fakenvml", "fakenvml.c"))
