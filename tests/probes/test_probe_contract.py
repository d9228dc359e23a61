"""What every probe does, over the simulator and over NVML through the stand-in driver (process calls v3 and v2)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

from probing import Place, World

from jostle import proc

EIGHT = "gpus: {count: 8, total: 24GiB, name: Some Card}\n"
GPU_KEYS = {
    "index", "uuid", "name", "state", "error", "total_mib", "used_mib", "free_mib",
    "utilization", "temperature", "power_w", "mig_slice", "procs",
}  # fmt: skip
PROC_KEYS = {"pid", "used_mib", "uid", "sid", "ticks", "user", "name", "mark", "kind", "exe"}


def states(snapshot: dict[str, Any]) -> list[str]:
    return [gpu["state"] for gpu in snapshot["gpus"]]


def uuids(snapshot: dict[str, Any]) -> list[str]:
    return [gpu["uuid"] for gpu in snapshot["gpus"]]


def test_eight_gpus_are_shown_with_what_is_on_them(world: World) -> None:
    text = EIGHT + "strangers: [{user: bob, gpu: 3, used: 8GiB, utilization: 70}]"
    snapshot = world.probe(text).line()
    assert snapshot is not None
    assert (snapshot["seq"], snapshot["asked"], snapshot["error"], snapshot["hold"]) == (1, None, None, None)
    assert isinstance(snapshot["driver"], str) and snapshot["took_ms"] >= 0
    assert [gpu["index"] for gpu in snapshot["gpus"]] == list(range(8))
    assert uuids(snapshot) == [f"GPU-sim-{i:04d}" for i in range(8)]
    for gpu in snapshot["gpus"]:
        assert gpu.keys() >= GPU_KEYS
        assert (gpu["state"], gpu["name"], gpu["total_mib"]) == ("ok", "Some Card", 24576)
        assert gpu["used_mib"] + gpu["free_mib"] == 24576
    third = snapshot["gpus"][3]
    assert (third["used_mib"], third["utilization"], third["temperature"]) == (8192, 70, 63)
    assert [who["used_mib"] for who in third["procs"]] == [8192]
    assert third["procs"][0].keys() == PROC_KEYS
    assert snapshot["gpus"][0]["procs"] == []


def test_what_each_process_does_is_told_while_somebody_looks_and_then_no_more(world: World) -> None:
    two = "strangers: [{user: bob, gpu: 3, used: 8GiB, utilization: 70}, {user: dave, gpu: 3, used: 1GiB, utilization: 2}]"
    process = world.probe(EIGHT + two)

    def loads(snapshot: dict[str, Any]) -> list[int | None]:
        return [who.get("sm") for who in snapshot["gpus"][3]["procs"]]

    assert loads(process.look()) == [None, None]
    process.say("watch 60\n")
    assert process.until(lambda snapshot: loads(snapshot) == [70, 2])["gpus"][3]["utilization"] == 72
    process.say("watch 0\n")
    process.until(lambda snapshot: all("sm" not in who for gpu in snapshot["gpus"] for who in gpu["procs"]))


def test_a_holder_is_known_by_user_session_start_and_mark(world: World, place: Place) -> None:
    child = place.child(env={**os.environ, proc.MARK: "a-mark"})
    probe = world.probe(EIGHT + f"strangers: [{{gpu: 0, used: 1GiB, pid: {child.pid}}}]")
    who = probe.until(lambda s: s["gpus"][0]["procs"][0]["name"] == "sleep")["gpus"][0]["procs"][0]
    stat = proc.stat(child.pid)
    assert stat is not None
    assert (who["pid"], who["uid"], who["sid"], who["ticks"]) == (child.pid, os.getuid(), child.pid, stat.ticks)
    assert who["user"] and who["mark"] == "a-mark"


def test_a_holder_is_known_by_the_file_it_executes_whatever_it_calls_itself(world: World, place: Place) -> None:
    rename = "open('/proc/self/comm', 'w').write('pt_main_thread'); print(flush=True); import time; time.sleep(600)"
    child = place.child(sys.executable, "-c", rename, stdout=subprocess.PIPE)
    assert child.stdout and child.stdout.readline()
    child.stdout.close()
    who = world.probe(EIGHT + f"strangers: [{{gpu: 0, used: 1GiB, pid: {child.pid}}}]").look()["gpus"][0]["procs"][0]
    assert (who["name"], who["exe"]) == ("pt_main_thread", os.path.basename(os.path.realpath(sys.executable)))


def test_what_a_process_does_on_the_card_is_told(world: World) -> None:
    text = "strangers: [{gpu: 0, used: 300MiB, kind: graphics}, {gpu: 0, used: 300MiB}]"
    procs = world.probe(EIGHT + text).look()["gpus"][0]["procs"]
    assert [who["kind"] for who in procs] == ["graphics", "compute"]


def test_the_compute_mode_of_each_card_is_told(world: World) -> None:
    text = "gpus: [{total: 8GiB}, {total: 8GiB, compute_mode: prohibited}, {total: 8GiB, compute_mode: exclusive_process}]"
    modes = [gpu["compute_mode"] for gpu in world.probe(text).look()["gpus"]]
    assert modes == ["default", "prohibited", "exclusive_process"]


def test_errors_of_a_cards_memory_are_told_and_the_card_still_answers(world: World) -> None:
    snapshot = world.probe(EIGHT + "faults: [{gpu: 1, state: ecc}, {gpu: 1, state: ecc}, {gpu: 2, state: remap}]").line()
    assert snapshot is not None and states(snapshot) == ["ok"] * 8
    assert [gpu["ecc_uncorrected"] or 0 for gpu in snapshot["gpus"]] == [0, 2] + [0] * 6
    assert [gpu["remap_failed"] or False for gpu in snapshot["gpus"]] == [False, False, True] + [False] * 5


def test_a_holder_that_is_gone_is_unknown_not_ours(world: World, place: Place) -> None:
    child = place.child("true")
    child.wait()
    snapshot = world.probe(EIGHT + f"strangers: [{{gpu: 0, used: 1GiB, pid: {child.pid}}}]").look()
    who = snapshot["gpus"][0]["procs"][0]
    assert (who["pid"], who["uid"], who["sid"], who["ticks"], who["mark"]) == (child.pid, None, None, None, None)
    assert snapshot["gpus"][0]["used_mib"] == 1024


def test_a_lost_gpu_leaves_the_others_readable(world: World) -> None:
    snapshot = world.probe(EIGHT + "faults: [{gpu: 2, state: lost}]").look()
    assert states(snapshot) == ["ok", "ok", "lost"] + ["ok"] * 5
    assert snapshot["error"] is None
    assert snapshot["gpus"][2]["free_mib"] == 0 and "lost" in snapshot["gpus"][2]["error"]
    assert len(set(uuids(snapshot))) == 8


def test_a_gpu_that_is_lost_later_keeps_its_uuid_and_comes_back(world: World) -> None:
    probe = world.probe(EIGHT)
    assert states(probe.look()) == ["ok"] * 8
    world.show(EIGHT + "faults: [{gpu: 7, state: lost}]")
    snapshot = probe.look()
    assert states(snapshot) == ["ok"] * 7 + ["lost"]
    assert uuids(snapshot)[7] == "GPU-sim-0007"
    world.show(EIGHT)
    assert states(probe.look()) == ["ok"] * 8


def test_an_unreadable_gpu_is_never_free(world: World) -> None:
    snapshot = world.probe(EIGHT + "faults: [{gpu: [0, 5], state: unreadable}]").look()
    assert states(snapshot) == ["unreadable", "ok", "ok", "ok", "ok", "unreadable", "ok", "ok"]
    for index in (0, 5):
        gpu = snapshot["gpus"][index]
        assert (gpu["free_mib"], gpu["utilization"], gpu["procs"]) == (0, None, [])
        assert gpu["error"] == "Unknown Error"


def test_a_driver_mismatch_holds_the_host_until_it_is_over(world: World) -> None:
    probe = world.probe(EIGHT + "mismatch: [{from: 0}]")
    snapshot = probe.line()
    assert snapshot is not None
    assert snapshot["hold"] == "driver_mismatch"
    assert snapshot["error"].startswith("Driver/library version mismatch")
    assert snapshot["gpus"] == []
    world.show(EIGHT)
    snapshot = (probe if world.kind == "sim" else world.probe(EIGHT)).look()
    assert (snapshot["hold"], snapshot["error"], len(snapshot["gpus"])) == (None, None, 8)


def test_a_hanging_driver_gives_no_answer_and_can_be_killed(world: World) -> None:
    probe = world.probe(EIGHT)
    assert probe.line() is not None
    probe.say("rate 0\n")
    probe.look()
    world.show(EIGHT + "hang: [{from: 0}]")
    probe.say("look 99\n")
    assert probe.line(patience=0.3) is None
    probe.child.kill()
    assert probe.child.wait(60) == -signal.SIGKILL


def test_mig_slices_are_gpus_and_their_parent_is_not(world: World) -> None:
    text = (
        "gpus: {count: 3, total: 40GiB}\nmig: [{gpu: 1, slices: [20GiB, 10GiB]}]\nstrangers: [{user: eve, gpu: 4, used: 3GiB}]\n"
    )
    probe = world.probe(text)
    snapshot = probe.look()
    assert states(snapshot) == ["ok", "mig", "ok", "ok", "ok"]
    assert [gpu["index"] for gpu in snapshot["gpus"]] == [0, 1, 2, 3, 4]
    assert [gpu["mig_slice"] for gpu in snapshot["gpus"]] == [False, False, False, True, True]
    assert uuids(snapshot)[3:] == ["MIG-sim-0001-0", "MIG-sim-0001-1"]
    assert [gpu["total_mib"] for gpu in snapshot["gpus"]][3:] == [20480, 10240]
    assert [gpu["used_mib"] for gpu in snapshot["gpus"]] == [0, 0, 0, 0, 3072]
    assert snapshot["gpus"][1]["free_mib"] == 0
    assert snapshot["gpus"][4]["utilization"] is None
    assert [len(gpu["procs"]) for gpu in snapshot["gpus"]] == [0, 0, 0, 0, 1]
    world.show("gpus: {count: 3, total: 40GiB}")
    assert states(probe.look()) == ["ok", "ok", "ok"]


def test_a_gpu_that_disappears_moves_the_others_up_and_uuids_stay(world: World) -> None:
    probe = world.probe(EIGHT + "strangers: [{user: bob, gpu: 3, used: 8GiB}]")
    probe.look()
    world.show(EIGHT + "strangers: [{user: bob, gpu: 3, used: 8GiB}]\nmissing: [{gpu: 1}]")
    snapshot = probe.look()
    assert [gpu["index"] for gpu in snapshot["gpus"]] == list(range(7))
    assert uuids(snapshot) == [f"GPU-sim-{i:04d}" for i in (0, 2, 3, 4, 5, 6, 7)]
    assert [gpu["used_mib"] for gpu in snapshot["gpus"]][:4] == [0, 0, 8192, 0]


def test_gpus_that_change_places_keep_what_is_on_them(world: World) -> None:
    text = EIGHT + "strangers: [{user: bob, gpu: 3, used: 8GiB}]\n"
    probe = world.probe(text)
    probe.look()
    world.show(text + "reorder: [{gpu: 0}]")
    snapshot = probe.look()
    assert uuids(snapshot) == [f"GPU-sim-{i:04d}" for i in (1, 2, 3, 4, 5, 6, 7, 0)]
    assert {gpu["uuid"]: gpu["used_mib"] for gpu in snapshot["gpus"]}["GPU-sim-0003"] == 8192


def test_memory_without_a_visible_process_is_used(world: World) -> None:
    snapshot = world.probe(EIGHT + "strangers: [{gpu: 6, used: 5GiB, hidden: true}]").look()
    gpu = snapshot["gpus"][6]
    assert (gpu["used_mib"], gpu["free_mib"], gpu["procs"]) == (5120, 19456, [])
