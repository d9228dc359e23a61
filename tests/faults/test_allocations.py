"""kill -9 of engine, shim and program at every step of an allocation (F62-F65): no card is held twice, none is kept by nobody."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jostle import proc
from jostle.client import Lost
from tests.e2e.instance import FINAL, Instance, alive, remove, until
from tests.e2e.test_allocations import burning

LONG = "trap 'exit 0' TERM; while :; do sleep 0.05; done"


@pytest.fixture
def two(instance: Instance) -> Instance:
    instance.up("sim:2x24")
    instance.see_cards()
    return instance


def allocate(instance: Instance, **more: Any) -> int:
    (id,) = instance.submit({"commands": [], "name": "train", **more})
    return id


def start(instance: Instance, allocation: int, **more: Any) -> int:
    (id,) = instance.submit({"commands": [f"echo up; {LONG}"], "inside": allocation, **more}, policy={})
    return id


def up_inside(instance: Instance, allocation: int, **more: Any) -> int:
    id = start(instance, allocation, **more)
    until(lambda: instance.job(id)["state"] == "running" and "up" in instance.output(id), "it runs")
    return id


def shim(instance: Instance, id: int) -> int:
    pid = instance.runs(id)[-1]["shim_pid"]
    assert pid is not None
    return int(pid)


def claims(instance: Instance) -> set[str]:
    """The jobs that hold cards, as all users' jostles see it."""
    return {name.split("~")[4].partition(".")[0] for name in os.listdir(instance.home / "leases") if name.count("~") == 4}


def release(instance: Instance, id: int) -> None:
    instance.call("intent", ids=[id], do="cancel")


def all_free(instance: Instance) -> None:
    """Nothing is left: a job that needs all cards runs."""
    (id,) = instance.submit({"gpus": [2, 2]})
    assert instance.end(id) == ["succeeded"]
    until(lambda: not claims(instance), "no claim is left")


# --- the engine

STEPS = ("engine.after_reserve", "engine.reserved", "engine.before_spawn", "engine.after_spawn")


@pytest.mark.parametrize("step", STEPS)
def test_an_engine_killed_while_an_allocation_starts_gives_it_its_cards_once(instance: Instance, step: str) -> None:
    instance.up("sim:2x24", env={"JOSTLE_FAILPOINTS": f"{step}=kill"})
    pid = instance.engine
    id = allocate(instance, gpus=[2, 2])
    until(lambda: not alive(pid), "it was killed at that step")
    instance.up(None)
    instance.reach(id, "running")
    runs = instance.runs(id)
    assert [run["state"] for run in runs if run["outcome"] != "voided"] == ["running"], "it is held once"
    assert claims(instance) == {str(id)}
    release(instance, id)
    assert instance.end(id) == ["succeeded"]
    all_free(instance)


@pytest.mark.parametrize("step", STEPS)
def test_an_engine_killed_while_a_program_starts_inside_starts_it_once(two: Instance, step: str) -> None:
    instance = two
    held = allocate(instance)
    instance.reach(held, "running")
    instance.kill_engine()
    instance.up(None, env={"JOSTLE_FAILPOINTS": f"{step}=kill"})
    pid = instance.engine
    (id,) = instance.submit({"commands": [f"echo up >> began; {LONG}"], "inside": held})
    until(lambda: not alive(pid), "it was killed at that step")
    instance.up(None)
    instance.reach(id, "running")
    until(lambda: (instance.work / "began").exists(), "it has begun")
    assert (instance.work / "began").read_text() == "up\n"
    release(instance, held)
    assert instance.end(held, id) == ["succeeded", "cancelled"]
    all_free(instance)


@pytest.mark.parametrize("step", ["engine.before_stop", "engine.ends_recorded", "service.before_commit", "service.after_commit"])
@pytest.mark.parametrize("inside", [True, False])
def test_an_engine_killed_while_an_allocation_is_released_leaves_the_rest_to_the_next(
    two: Instance, step: str, inside: bool
) -> None:
    held = allocate(two)
    two.reach(held, "running")
    ids = [held, *([up_inside(two, held)] if inside else [])]
    two.kill_engine()
    two.up(None, env={"JOSTLE_FAILPOINTS": f"{step}=kill"})
    pid = two.engine
    with contextlib.suppress(Lost):  # nobody answers who is killed before
        release(two, held)
    until(lambda: not alive(pid), "it was killed at that step")
    two.up(None)
    if step == "service.before_commit":
        assert two.job(held)["intent"] == "run", "what was not recorded was not asked for"
        release(two, held)
    assert two.end(*ids) == ["succeeded", *(["cancelled"] if inside else [])]
    all_free(two)


def test_a_release_that_was_decided_is_done_by_the_next_engine(two: Instance) -> None:
    """For want of use; and when the next one comes, its cards are used again: what was recorded holds."""
    two.kill_engine()
    two.up(None, env={"JOSTLE_FAILPOINTS": "engine.before_stop=kill"})
    pid, held = two.engine, allocate(two, idle_release=0.5)
    until(lambda: not alive(pid), "it was killed between the record and the signal")
    assert two.job(held)["state"] == "stopping" and alive(shim(two, held))
    with burning(two, two.job(held)["gpus"][0]):
        two.up(None)
        assert two.end(held) == ["succeeded"]
    all_free(two)


def test_without_an_engine_it_holds_its_cards_and_ends_in_time_with_what_runs_inside(two: Instance) -> None:
    held = allocate(two, time_limit=8.0)
    two.reach(held, "running")
    inside = up_inside(two, held)
    pids = [shim(two, held), shim(two, inside)]
    two.kill_engine()
    assert claims(two) == {str(held), str(inside)}
    until(lambda: not any(map(alive, pids)), "both have ended by themselves")
    two.up(None)
    assert two.end(held, inside)[0] == "succeeded" and two.job(held)["reason"]["code"] == "released_time"
    assert two.job(inside)["state"] == "cancelled" and two.job(inside)["reason"]["code"] == "allocation_over"
    all_free(two)


# --- the shim of the allocation


@pytest.mark.parametrize("step", ["shim.before_claim", "shim.after_claim", "shim.holding"])
def test_a_shim_killed_while_it_takes_the_cards_leaves_none_behind(instance: Instance, step: str) -> None:
    """Before its claim nothing has begun, and it is tried again; after it the allocation is lost."""
    instance.up("sim:2x24", env={"JOSTLE_FAILPOINTS": f"{step}=kill@1"})
    held = allocate(instance)
    if step == "shim.before_claim":
        until(lambda: len(instance.runs(held)) > 1, "another try")
        assert instance.runs(held)[0]["outcome"] == "voided"
        release(instance, held)
        assert instance.end(held)[0] in ("cancelled", "succeeded")
    else:
        assert instance.end(held) == ["failed"] and instance.job(held)["reason"]["code"] == "exit_unknown"
    instance.kill_engine()
    instance.up(None)
    all_free(instance)


def test_a_shim_killed_while_it_holds_loses_the_allocation_and_what_runs_inside_keeps_its_cards(two: Instance) -> None:
    held = allocate(two, gpus=[2, 2])
    two.reach(held, "running")
    inside = up_inside(two, held, gpus=[1, 1])
    waiting = start(two, held, gpus=[2, 2])
    os.kill(shim(two, held), signal.SIGKILL)
    assert two.end(held, waiting) == ["failed", "skipped"] and two.job(held)["reason"]["code"] == "exit_unknown"
    until(lambda: claims(two) == {str(inside)}, "what the dead one had claimed is free")
    assert two.job(inside)["state"] == "running"
    (other,) = two.submit({"gpus": [1, 1], "commands": [LONG]})
    two.reach(other, "running")
    assert set(two.job(other)["gpus"]).isdisjoint(two.job(inside)["gpus"]), "the card that is free, and no other"
    two.kill_engine()
    two.up(None)
    assert two.job(inside)["state"] == "running", "the next engine does not end it either"
    two.call("intent", ids=[inside, other], do="cancel")
    two.end(inside, other)
    all_free(two)


def test_a_shim_killed_while_it_lets_go_leaves_no_card_behind(instance: Instance) -> None:
    instance.up("sim:2x24", env={"JOSTLE_FAILPOINTS": "shim.releasing=kill"})
    held = allocate(instance)
    instance.reach(held, "running")
    release(instance, held)
    assert instance.end(held)[0] in FINAL
    instance.kill_engine()
    instance.up(None)
    all_free(instance)


# --- the program inside, and its shim


def test_a_program_killed_inside_fails_and_the_allocation_stays(two: Instance) -> None:
    held = allocate(two)
    two.reach(held, "running")
    for victim in ("program", "shim"):
        inside = up_inside(two, held)
        pids = proc.tree(shim(two, inside))
        os.kill(shim(two, inside) if victim == "shim" else pids[0], signal.SIGKILL)
        if victim == "shim":
            two.call("intent", ids=[inside], do="cancel")  # its program has no shim any more, and goes on
        assert two.end(inside) == (["failed"] if victim == "program" else ["cancelled"])
        until(lambda pids=pids: not any(map(alive, pids)), "nobody is left of it")  # type: ignore[misc]
    assert two.job(held)["state"] == "running" and claims(two) == {str(held)}
    release(two, held)
    assert two.end(held) == ["succeeded"]
    all_free(two)


def test_a_program_whose_shim_was_killed_is_ended_before_the_allocation_is_released(two: Instance) -> None:
    held = allocate(two)
    two.reach(held, "running")
    inside = up_inside(two, held)
    pids = proc.tree(shim(two, inside))
    os.kill(shim(two, inside), signal.SIGKILL)
    release(two, held)
    assert two.end(held)[0] == "succeeded" and not any(map(alive, pids)), "nobody is on the cards that were let go"
    two.end(inside)
    all_free(two)


# --- races


@pytest.mark.parametrize("how", ["released", "killed"])
def test_no_program_starts_on_cards_that_its_allocation_has_let_go(two: Instance, tmp_path: Path, how: str) -> None:
    """It is on its way to its shim while the allocation ends: then it does not begin."""
    two.kill_engine()
    gate = tmp_path / "gate"
    gate.touch()
    two.up(None, env={"JOSTLE_FAILPOINTS": f"shim.received=until:{gate}"})
    two.see_cards()
    with subprocess.Popen(["sleep", "600"]) as tied:
        stat = proc.stat(tied.pid)
        assert stat is not None
        held = allocate(two, tied_to=[stat.pid, stat.ticks])
        two.reach(held, "running")
        gate.unlink()
        (inside,) = two.submit({"commands": ["touch began"], "inside": held})
        until(lambda: two.job(inside)["state"] == "starting", "it is on its way")
        os.kill(shim(two, held) if how == "killed" else tied.pid, signal.SIGKILL)
        tied.kill()
    assert two.end(held) == (["failed"] if how == "killed" else ["succeeded"])
    gate.touch()
    two.end(inside)
    assert two.job(inside)["reason"]["code"] == "allocation_over" and not (two.work / "began").exists()
    all_free(two)


def test_releases_starts_and_kills_that_race_leave_nothing(two: Instance) -> None:
    """An engine that is killed again and again, in the midst of all of it."""
    ids: list[int] = []
    for k in range(6):
        held = allocate(two, name=f"n{k}", gpus=[1, 2])
        inside = start(two, held)
        ids += [held, inside]
        end = time.monotonic() + 0.03 * k
        until(lambda end=end: time.monotonic() >= end)  # type: ignore[misc]  # a moment of the race: any length must be right
        release(two, held)
        if k % 2:
            two.kill_engine()
            two.up(None)
    states = two.end(*ids)
    assert set(states) <= set(FINAL) and "failed" not in states, two.states(ids)
    all_free(two)


def test_after_a_reboot_it_is_over_and_who_waited_inside_is_skipped(two: Instance) -> None:
    held = allocate(two)
    two.reach(held, "running")
    inside, waits = up_inside(two, held), start(two, held)
    pids = [shim(two, held), shim(two, inside)]
    two.kill_engine()
    for pid in [*proc.tree(pids[1]), *pids]:
        with contextlib.suppress(ProcessLookupError):  # its program begins another again and again
            os.kill(pid, signal.SIGKILL)
    until(lambda: not any(map(alive, pids)), "all are gone, as after a power cut")
    two.up(None, env={"JOSTLE_TEST_BOOT_ID": "another-boot"})
    assert two.end(held, inside, waits) == ["failed", "failed", "skipped"]
    assert two.job(held)["reason"]["code"] == "host_rebooted"
    two.kill_engine()
    two.up(None)
    all_free(two)


def test_an_allocation_whose_home_was_removed_does_not_hold_its_cards_for_ever(
    make_instance: Callable[..., Instance], tmp_path: Path
) -> None:
    """Nobody could ever release it."""
    leases = tmp_path / "leases"
    leases.mkdir(mode=0o700)
    first, second = (make_instance(name, JOSTLE_LEASE_DIR=str(leases), JOSTLE_SIM_DIR=str(tmp_path / "sim")) for name in "ab")
    for instance in (first, second):
        instance.up("sim:2x24")
        instance.see_cards()
    held = allocate(first, gpus=[2, 2])
    first.reach(held, "running")
    pid = shim(first, held)
    first.kill_engine()
    remove(first.home)
    (id,) = second.submit({"gpus": [2, 2]})
    assert second.end(id) == ["succeeded"] and not alive(pid)
