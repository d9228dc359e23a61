"""kill -9 of engine, shim and program while a job is paused (F71-F73): nobody stays stopped without a record that says so."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from jostle import proc
from tests.e2e.instance import Instance, alive, until
from tests.e2e.test_pausing import COUNT, QUICK, Stage

PROGRAM = """
import os, signal, time
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    open("count", "w").close()  # by one of the two: the other has set up all before it forked
while not os.path.exists("go"):
    time.sleep(0.02)
"""
SAVES = f"trap 'echo $i > saved; exit 7' TERM; {COUNT}"


@pytest.fixture
def stage(instance: Instance) -> Stage:
    return Stage(instance)


def members(stage: Stage, id: int) -> dict[int, str]:
    """Processes of a run by their mark, whoever looks after them."""
    mark = stage.instance.runs(id)[-1]["uni_id"]
    stats = [proc.stat(pid) for pid in proc.pids() if proc.mark(pid) == mark]
    return {s.pid: s.state for s in stats if s is not None and s.state not in "ZX"}


def recorded(stage: Stage, id: int, kind: str) -> bool:
    return bool(stage.instance.events(kind, id))


def test_an_engine_killed_while_a_job_is_paused_changes_nothing_and_the_next_continues_it(stage: Stage) -> None:
    instance = stage.instance
    id = stage.start()
    stage.come(id)
    instance.kill_engine()
    stage.world()
    assert stage.states(id) == {"T"}, "without an engine nobody knows that it is quiet"
    instance.up(None)
    stage.leave(id)
    (instance.work / "go").touch()
    assert instance.end(id) == ["succeeded"] and len(instance.runs(id)) == 1


@pytest.mark.parametrize("step", ["store.before_commit", "store.after_commit", "pause.before_order", "pause.ordered"])
@pytest.mark.parametrize("nth", [1, 2])
def test_an_engine_killed_at_a_step_of_a_pause_leaves_the_rest_to_the_next(stage: Stage, step: str, nth: int) -> None:
    """Of the way into the pause, or of the way out."""
    instance = stage.instance
    id = stage.start()
    instance.kill_engine()
    instance.up(None, env={"JOSTLE_FAILPOINTS": f"{step}=kill@{nth}"})
    pid = instance.engine
    stage.world(stage.card(id))
    until(lambda: stage.stands(id) or not alive(pid), "it is paused, or the engine dead")
    stage.world()
    until(lambda: not alive(pid), "it was killed at that step")
    instance.up(None)
    until(lambda: stage.states(id) and "T" not in stage.states(id) and not (instance.home / f"runs/{id}.1/pause").exists())
    (instance.work / "go").touch()
    assert instance.end(id) == ["succeeded"] and len(instance.runs(id)) == 1
    assert len(instance.events("paused", id)) == len(instance.events("continued", id))


def test_a_shim_killed_while_its_job_is_paused_leaves_nobody_stopped(stage: Stage) -> None:
    """Not even what is in a session of its own; and the run's end is unknown, as ever without a shim."""
    instance = stage.instance
    (id,) = instance.submit(
        {"commands": [[sys.executable, "-I", "-c", PROGRAM]], "when_stranger": "pause", "retry": {"max": 0}}, policy=QUICK
    )
    instance.reach(id, "running")
    until(lambda: (instance.work / "count").exists() and len(members(stage, id)) == 2)
    stage.come(id)
    os.kill(instance.runs(id)[-1]["shim_pid"], signal.SIGKILL)
    until(lambda: members(stage, id) and "T" not in members(stage, id).values(), "both go on")
    until(lambda: recorded(stage, id, "continued"), "that is recorded")
    assert len(members(stage, id)) == 2, "the stranger is there still, and nobody is ended"
    (instance.work / "go").touch()
    assert instance.end(id) == ["failed"] and instance.job(id)["reason"]["code"] == "exit_unknown"


def test_engine_and_shim_killed_together_leave_nobody_stopped(stage: Stage) -> None:
    instance = stage.instance
    (id,) = instance.submit(
        {"commands": [[sys.executable, "-I", "-c", PROGRAM]], "when_stranger": "pause", "retry": {"max": 0}}, policy=QUICK
    )
    instance.reach(id, "running")
    until(lambda: (instance.work / "count").exists() and len(members(stage, id)) == 2)
    stage.come(id)
    instance.kill_engine()
    os.kill(instance.runs(id)[-1]["shim_pid"], signal.SIGKILL)
    instance.up(None)
    until(lambda: members(stage, id) and "T" not in members(stage, id).values(), "both go on")
    (instance.work / "go").touch()
    assert instance.end(id) == ["failed"]


@pytest.mark.parametrize("how", ["cancel", "down"])
def test_whoever_ends_a_paused_job_gives_it_its_grace_to_save(stage: Stage, how: str) -> None:
    instance = stage.instance
    id = stage.start(SAVES)
    stage.come(id)
    instance.ok(*(["cancel", str(id)] if how == "cancel" else ["down", "--stop-jobs"]))
    until(lambda: (instance.work / "saved").exists(), "it has saved")
    saved = int((instance.work / "saved").read_text())
    if how == "down":
        instance.up(None)
    assert instance.end(id) == ["cancelled"] and saved >= 1


def test_a_program_killed_while_it_is_paused_fails_as_ever(stage: Stage) -> None:
    instance = stage.instance
    id = stage.start(retry={"max": 0})
    stage.come(id)
    shim = instance.runs(id)[-1]["shim_pid"]
    (main,) = [pid for pid in proc.tree(shim) if (s := proc.stat(pid)) is not None and s.ppid == shim]
    os.kill(main, signal.SIGKILL)
    assert instance.end(id) == ["failed"] and instance.job(id)["error_type"] == "signal_9"


def test_one_that_gives_way_is_told_again_when_its_shim_and_the_engine_have_gone(instance: Instance) -> None:
    """It must not stay on the card of somebody else for ever: the next engine tells it, and then loses patience."""
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("grace: 0.3\n")
    stage = Stage(instance)
    id = stage.start(f"trap 'touch told' TERM; {COUNT}", when_stranger="requeue", grace=3600.0)
    stage.world(stage.card(id))
    instance.made("told")
    shim, running = instance.runs(id)[-1]["shim_pid"], set(stage.processes(id)) - {instance.runs(id)[-1]["shim_pid"]}
    instance.kill_engine()
    os.kill(shim, signal.SIGKILL)
    (instance.work / "told").unlink()
    instance.up(None)
    instance.made("told")
    instance.ok("cancel", "--now", str(id))
    assert instance.end(id) == ["cancelled"] and not any(map(alive, running))
