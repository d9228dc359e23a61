"""The simulated world as a directory: claims of runs, use files, and probes that share it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from typing import Any

import pytest
from probing import Place

from jostle.backends.local.claims import Claim, name_of
from jostle.probes.serve import one_shot


def claim(place: Place, sid: int, gpu: int = 0, mib: int | None = 8000, job: int = 1) -> tuple[str, int]:
    """A published claim: its path, and the descriptor that holds its lock."""
    name = name_of(Claim(uuid=f"GPU-sim-{gpu:04d}", mib=mib, sid=sid, home="a1b2c3d4", run=(job, 1)))
    hidden, path = os.path.join(place.lease_dir, "." + name), os.path.join(place.lease_dir, name)
    fd = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o444)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.rename(hidden, path)
    return path, fd


def used(snapshot: dict[str, Any]) -> list[int]:
    return [gpu["used_mib"] for gpu in snapshot["gpus"]]


def use(place: Place, pid: int, text: str) -> str:
    path = os.path.join(place.sim_dir, "use", str(pid))
    with open(path + ".new", "w") as f:
        f.write(text)
    os.replace(path + ".new", path)
    return path


def test_a_live_claim_is_used_memory_held_by_its_session(place: Place) -> None:
    child = place.child()
    _, fd = claim(place, child.pid, gpu=1)
    snapshot = place.start("sim:2x24").look()
    assert used(snapshot) == [0, 8000]
    assert [(who["pid"], who["sid"], who["uid"]) for who in snapshot["gpus"][1]["procs"]] == [(child.pid, child.pid, os.getuid())]
    os.close(fd)


def test_a_claim_that_is_let_go_is_gone_in_the_very_next_look(place: Place) -> None:
    probe, child = place.start("sim:2x24"), place.child()
    path, fd = claim(place, child.pid)
    assert used(probe.look()) == [8000, 0]
    os.close(fd)
    assert used(probe.look()) == [0, 0]
    os.unlink(path)
    assert used(probe.look()) == [0, 0]


def test_a_claim_that_nobody_holds_or_is_no_claim_does_not_count(place: Place) -> None:
    child = place.child()
    _, fd = claim(place, child.pid)
    os.close(fd)
    os.mkdir(os.path.join(place.lease_dir, "jostle-GPU-sim-0000~x~1~a1b2c3d4~2.1"))
    os.mkfifo(os.path.join(place.lease_dir, "jostle-GPU-sim-0000~x~1~a1b2c3d4~3.1"))
    os.symlink("nowhere", os.path.join(place.lease_dir, "jostle-GPU-sim-0000~x~1~a1b2c3d4~4.1"))
    with open(os.path.join(place.lease_dir, "jostle-what"), "w"):
        pass
    assert used(place.start("sim:2x24").look()) == [0, 0]


def test_a_locked_claim_without_any_process_of_its_session_does_not_count(place: Place) -> None:
    child = place.child("true")
    child.wait()
    _, fd = claim(place, child.pid)
    assert used(place.start("sim:2x24").look()) == [0, 0]
    os.close(fd)


def test_a_run_whose_leader_died_is_held_by_who_is_left(place: Place) -> None:
    child = place.child("sh", "-c", "sleep 600 & echo $!; exec sleep 601", stdout=subprocess.PIPE)
    assert child.stdout
    left = int(child.stdout.readline())
    child.stdout.close()
    _, fd = claim(place, child.pid)
    child.kill()
    child.wait()
    snapshot = place.start("sim:2x24").look()
    assert [who["pid"] for who in snapshot["gpus"][0]["procs"]] == [left]
    assert snapshot["gpus"][0]["procs"][0]["sid"] == child.pid
    os.kill(left, 9)  # our own grandchild
    os.close(fd)


def test_memory_shows_for_a_while_after_the_end_if_the_scenario_says_so(place: Place) -> None:
    file = os.path.join(place.path, "s.yaml")
    with open(file, "w") as f:
        f.write("gpus: {count: 1, total: 24GiB}\nruns: {free_lag: 0.4}\n")
    probe, child = place.start("sim:" + file), place.child()
    _, fd = claim(place, child.pid)
    assert used(probe.look()) == [8000]
    os.close(fd)
    snapshot = probe.look()
    assert (used(snapshot), snapshot["gpus"][0]["procs"]) == ([8000], [])
    assert probe.until(lambda s: used(s) == [0])


def test_a_run_ramps_from_the_birth_of_its_claim_whichever_probe_looks(place: Place) -> None:
    file = os.path.join(place.path, "s.yaml")
    with open(file, "w") as f:
        f.write("gpus: {count: 1, total: 24GiB}\nruns: {ramp: 1000}\n")
    child = place.child()
    path, fd = claim(place, child.pid, mib=20000)
    first = place.start("sim:" + file).until(lambda s: used(s)[0] > 4)
    again = place.start("sim:" + file).look()
    assert used(first)[0] <= used(again)[0] < 20000
    os.utime(path, (1, 1))  # a clock that was far behind: no claim is older than its process
    assert used(place.start("sim:" + file).look())[0] < 20000
    os.utime(path, (1e11, 1e11))  # … or far ahead: it is born when it is first seen
    assert place.start("sim:" + file).until(lambda s: 0 < used(s)[0] < 20000)
    os.close(fd)


def test_too_big_promises_are_seen(place: Place) -> None:
    child = place.child()
    fds = [claim(place, child.pid, mib=20000, job=job)[1] for job in (1, 2)]
    gpu = place.start("sim:1x24").look()["gpus"][0]
    assert (gpu["used_mib"], gpu["overcommitted"]) == (24576, True)
    for fd in fds:
        os.close(fd)


def test_a_process_may_say_what_it_uses_while_it_lives(place: Place) -> None:
    probe, child = place.start("sim:2x24"), place.child()
    probe.look()
    path = use(
        place, child.pid, "1 3000 55\nGPU-sim-0000 200\nnonsense\n0 x\n-1 5\n9 100\n0 " + "9" * 5000 + "\n" + "9" * 5000 + " 1\n"
    )
    snapshot = probe.look()
    assert used(snapshot) == [200, 3000]
    assert snapshot["gpus"][1]["utilization"] == 55
    assert [who["pid"] for who in snapshot["gpus"][1]["procs"]] == [child.pid]
    use(place, child.pid, "1 4000\n")
    assert used(probe.look()) == [0, 4000]
    child.kill()
    child.wait()
    assert used(probe.look()) == [0, 0]
    assert not os.path.exists(path)


def test_what_a_run_says_replaces_what_its_claim_would_show(place: Place) -> None:
    probe, child = place.start("sim:2x24"), place.child()
    probe.look()
    _, fd = claim(place, child.pid, mib=8000)
    use(place, child.pid, "0 1234\n")
    assert used(probe.look()) == [1234, 0]
    os.close(fd)


def test_who_is_stopped_keeps_its_memory_and_shows_no_load(place: Place) -> None:
    """A run by its claim, and a process that says what it uses."""
    shim = place.child("sh", "-c", "sleep 600 & echo $!; wait", stdout=subprocess.PIPE)
    assert shim.stdout is not None
    with shim.stdout as told:
        program = int(told.readline())
    alone = place.child()
    probe = place.start("sim:2x24")
    _, fd = claim(place, shim.pid)
    probe.look()
    use(place, alone.pid, "1 3000 40\n")

    def shown() -> list[tuple[int, int]]:
        return [(gpu["used_mib"], gpu["utilization"]) for gpu in probe.look()["gpus"]]

    assert shown() == [(8000, 90), (3000, 40)]
    for number, loads in ((signal.SIGSTOP, (0, 0)), (signal.SIGCONT, (90, 40))):
        os.kill(program, number)
        os.kill(alone.pid, number)
        deadline = time.monotonic() + 60
        while shown() != [(8000, loads[0]), (3000, loads[1])]:
            assert time.monotonic() < deadline
    os.kill(program, signal.SIGKILL)
    os.close(fd)


def test_two_probes_share_one_world(place: Place) -> None:
    os.mkdir(place.sim_dir, 0o755)
    file = os.path.join(place.path, "s.yaml")
    with open(file, "w") as f:
        f.write("gpus: {count: 2, total: 24GiB}\nstrangers: [{gpu: 1, used: 20GiB, ramp: 100000}]\n")
    probes = [place.start("sim:" + file) for _ in range(2)]
    child = place.child()
    _, fd = claim(place, child.pid)
    first, second = probes[0].look(), probes[1].look()
    assert used(first)[0] == used(second)[0] == 8000
    with open(os.path.join(place.sim_dir, "began")) as f:
        began = f.read()
    third = place.start("sim:" + file).look()
    assert used(third)[1] >= used(first)[1]
    with open(os.path.join(place.sim_dir, "began")) as f:
        assert f.read() == began
    assert os.stat(os.path.join(place.sim_dir, "use")).st_mode & 0o7777 == 0o1777, "who gets there may say what they use"
    assert os.listdir(place.sim_dir).count("began") == 1 and len(os.listdir(place.sim_dir)) == 2
    os.close(fd)


def test_a_world_of_an_earlier_boot_begins_again(place: Place) -> None:
    os.mkdir(place.sim_dir)
    with open(os.path.join(place.sim_dir, "began"), "w") as f:
        f.write("another-boot 1.0\n")
    file = os.path.join(place.path, "s.yaml")
    with open(file, "w") as f:
        f.write("gpus: {count: 1, total: 24GiB}\nstrangers: [{gpu: 0, used: 1GiB, from: 0, to: 500}]\n")
    assert used(place.start("sim:" + file).look()) == [1024]


@pytest.mark.parametrize("what", ["missing", "bad"])
def test_a_scenario_that_cannot_be_read_is_said_and_tried_again(place: Place, what: str) -> None:
    file = os.path.join(place.path, "s.yaml")
    if what == "bad":
        with open(file, "w") as f:
            f.write("gpus: {count: many, total: 24GiB}")
    probe = place.start("sim:" + file)
    snapshot = probe.look()
    assert snapshot["gpus"] == []
    assert ("s.yaml:1: gpus.count" if what == "bad" else "neither a scenario file") in snapshot["error"]
    with open(file, "w") as f:
        f.write("gpus: {count: 3, total: 24GiB}")
    assert len(probe.until(lambda s: s["error"] is None)["gpus"]) == 3


def test_a_hang_ends_when_its_time_is_over_and_with_the_engine(place: Place) -> None:
    file = os.path.join(place.path, "s.yaml")
    with open(file, "w") as f:
        f.write("gpus: {count: 1, total: 24GiB}\nhang: [{from: 0, to: 0.5}]\n")
    probe = place.start("sim:" + file)
    snapshot = probe.line()
    assert snapshot is not None and len(snapshot["gpus"]) == 1
    with open(file, "w") as f:
        f.write("gpus: {count: 1, total: 24GiB}\nhang: [{from: 0}]\n")
    probe.say("look 5\n")
    assert probe.end() == 0


def test_one_shot_gives_one_snapshot(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in place.env.items():
        monkeypatch.setenv(key, value)
    snapshot = one_shot("sim:4x80+4x24")
    assert [gpu["total_mib"] for gpu in snapshot["gpus"]] == [81920] * 4 + [24576] * 4
