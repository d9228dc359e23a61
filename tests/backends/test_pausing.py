"""Runs that stand still while somebody else is on their cards: real shims and programs, stopped and continued."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from local_bench import Bench, Held, MakeBench, mark

from jostle import proc
from jostle.backends.local.halting import Halting
from jostle.port import Adopted

RUN = (7, 1)
WAIT = "until [ -e go ]; do sleep 0.02; done"
LOOP = f"touch up; {WAIT}; exit 3"


def start(bench: Bench, *commands: str | list[str], up: tuple[str, ...] = ("up",), **more: Any) -> Held:
    held = bench.start(RUN, *commands, **{"pauses": True, "grace": 60.0, **more})
    bench.running(RUN, *up)
    return held


def pause(bench: Bench) -> None:
    bench.local.pause(RUN, paused=True)
    bench.until(lambda: bench.poll(RUN).still and all_stand(bench), what=f"it stands still: {states(bench)}")


def all_stand(bench: Bench) -> bool:
    """Looked at twice: while the first look was made, one that it saw standing may have begun another before."""
    first = states(bench)
    return set(first.values()) == {"T"} and states(bench) == first


def go_on(bench: Bench) -> None:
    bench.local.pause(RUN, paused=False)


def states(bench: Bench) -> dict[int, str]:
    """Of all processes of the run, but the shim."""
    pid = bench.poll(RUN).session
    assert pid is not None
    found = (proc.stat(one) for one in proc.tree(pid))
    return {s.pid: s.state for s in found if s is not None and s.state not in "ZX"}


def members(bench: Bench) -> dict[int, str]:
    """The same by the mark in their environment, which needs no shim."""
    stats = [proc.stat(pid) for pid in proc.pids() if proc.mark(pid) == mark(*RUN)]
    return {s.pid: s.state for s in stats if s is not None and s.state not in "ZX"}


def moves(bench: Bench) -> None:
    bench.until(lambda: "T" not in states(bench).values(), what=f"it goes on: {states(bench)}")


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_all_of_it_stands_still_and_goes_on_where_it_was(bench: Bench) -> None:
    start(bench, f"(touch child; {WAIT}) & (setsid sh -c 'touch session; {WAIT}') & {LOOP}", up=("up", "child", "session"))
    pause(bench)
    stood = states(bench)
    assert len(stood) >= 3 and set(stood.values()) == {"T"}
    bench.local.pause(RUN, paused=True)  # said again it changes nothing
    assert states(bench) == stood and bench.poll(RUN).supervised
    (bench.home / "go").touch()
    assert states(bench) == stood, "it does not hear of it"
    go_on(bench)
    exit = bench.end(RUN)
    assert (exit.code, exit.stopped, exit.signal) == (3, False, None)
    assert "paused, as somebody else" in bench.log(RUN) and "goes on after a pause" in bench.log(RUN)


def test_who_forked_twice_stands_still_too(bench: Bench) -> None:
    start(bench, f"(({WAIT}) & echo $! > orphan.new; mv orphan.new orphan) & wait $!; {LOOP}", up=("up", "orphan"))
    orphan = int((bench.home / "orphan").read_text())
    pause(bench)
    assert states(bench)[orphan] == "T"
    go_on(bench)
    moves(bench)
    assert orphan in states(bench)


def test_a_tree_that_grows_while_it_is_stopped_stands_still_as_a_whole(bench: Bench) -> None:
    """Each of some processes starts others all the time."""
    grow = f"until [ -e go ]; do sh -c 'for i in 1 2 3; do sh -c :; done'; done & {'sh -c : & ' * 3} wait"
    start(bench, f"{grow} & {grow} & touch up; {WAIT}; kill 0")
    for _ in range(5):
        pause(bench)
        stood = states(bench)
        assert set(stood.values()) == {"T"}
        bench.turn()
        assert states(bench) == stood, "nobody of it has begun anything since"
        go_on(bench)
        moves(bench)


def test_what_the_program_had_stopped_itself_stays_stopped(bench: Bench) -> None:
    start(bench, f"({WAIT}) & echo $! > child.new; kill -STOP $!; mv child.new child; {LOOP}", up=("up", "child"))
    child = int((bench.home / "child").read_text())
    bench.until(lambda: states(bench)[child] == "T")
    pause(bench)
    go_on(bench)
    bench.until(lambda: sorted(states(bench).values()).count("T") == 1, what=f"the others go on: {states(bench)}")
    assert states(bench)[child] == "T"
    os.kill(child, signal.SIGCONT)
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 3


def test_a_shell_with_job_control_does_not_take_its_program_for_suspended(bench: Bench) -> None:
    """It would go on to the next command."""
    start(bench, f"set -m; sh -c 'touch up; {WAIT}'; echo $? > code")
    for _ in range(3):
        pause(bench)
        go_on(bench)
        moves(bench)
    assert not (bench.home / "code").exists()
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0 and text(bench.home / "code") == "0\n"


def test_who_is_continued_by_hand_is_stopped_again(bench: Bench) -> None:
    start(bench, LOOP)
    pause(bench)
    for pid in states(bench):
        os.kill(pid, signal.SIGCONT)
    bench.until(lambda: bench.poll(RUN).still and all_stand(bench))


def test_no_command_begins_while_the_run_stands_still(bench: Bench) -> None:
    bench.start(RUN, f"touch {bench.dir(RUN)}/pause", "touch second", pauses=True)
    bench.until(lambda: "paused, as" in text(bench.dir(RUN) / "log"))
    assert not (bench.home / "second").exists() and bench.poll(RUN).exit is None
    go_on(bench)
    assert bench.end(RUN).code == 0 and (bench.home / "second").exists()


def test_one_that_is_killed_by_hand_while_it_stands_still_has_ended(bench: Bench) -> None:
    """And what is left of it is told to end, for which it goes on."""
    start(bench, f"(trap 'touch told; exit' TERM; touch child; {WAIT}) & echo $$ > main; {LOOP}", up=("up", "child"))
    pause(bench)
    os.kill(int((bench.home / "main").read_text()), signal.SIGKILL)
    exit = bench.end(RUN)
    assert (exit.code, exit.signal) == (137, 9) and (bench.home / "told").exists()


def test_a_cancel_lets_it_go_on_and_gives_it_its_grace_to_save(bench: Bench) -> None:
    start(bench, f"trap 'echo saved > saved; exit 7' TERM; {LOOP}")
    pause(bench)
    bench.stop(RUN, kill=False)
    exit = bench.end(RUN)
    assert (exit.code, exit.stopped, text(bench.home / "saved")) == (7, True, "saved\n")


def test_one_that_is_told_to_end_is_not_stopped_again_in_its_grace(bench: Bench) -> None:
    start(bench, f"trap 'touch told; {WAIT}; touch saved; exit 7' TERM; {LOOP}")
    pause(bench)
    bench.stop(RUN, kill=False)
    bench.running(RUN, "told")
    bench.local.pause(RUN, paused=True)
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 7 and (bench.home / "saved").exists()


def test_a_cancel_at_once_kills_what_stands_still(bench: Bench) -> None:
    start(bench, f"(trap '' TERM; touch child; {WAIT}) & {LOOP}", up=("up", "child"))
    pause(bench)
    bench.stop(RUN, kill=True)
    assert bench.end(RUN).signal == 9


def test_time_in_which_it_stands_still_is_no_time_of_the_run(bench: Bench) -> None:
    start(bench, LOOP)
    pause(bench)
    before = time.monotonic()
    bench.until(lambda: time.monotonic() - before > 2.0)
    stood = time.monotonic() - before
    go_on(bench)
    (bench.home / "go").touch()
    exit = bench.end(RUN)
    assert exit.ran_for is not None and exit.started_at is not None and exit.ended_at is not None
    assert exit.ended_at - exit.started_at - exit.ran_for > stood - 1.0, "but for what a clock is set"


@pytest.mark.parametrize("before", [True, False])
def test_its_time_limit_stands_still_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: bool) -> None:
    """Also that of a command that could not begin before it was told to stand still."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    spec = {"dir": str(tmp_path), "commands": ["x"], "time_limit": 60.0, "command_limit": 40.0}
    run = Halting(spec, os.open(os.devnull, os.O_WRONLY))
    for n in range(2):
        if before:
            run._limit()
        now[0] += 10.0
        run._time_stands()
        if not before:
            run._limit()
        now[0] += 5000.0
        assert run._deadline is None
        run._time_passes()
        began = 1000.0 + 5000.0 * (n + 1)
        assert run._began == began and run._deadline is not None
        assert run._deadline == min(began + 60.0, (now[0] - 10.0 if before else now[0]) + 40.0)
    os.close(run.log or 0)


def test_the_limit_of_each_command_stands_still_with_it(bench: Bench) -> None:
    start(bench, f"touch up; {WAIT}", f"touch second; {WAIT.replace('go', 'gone')}; exit 3", command_limit=600.0)
    pause(bench)
    go_on(bench)
    (bench.home / "go").touch()
    bench.running(RUN, "second")
    (bench.home / "gone").touch()
    exit = bench.end(RUN)
    assert (exit.code, exit.timed_out) == (3, False)


def test_f71_the_next_engine_continues_it(bench: Bench, make_bench: MakeBench) -> None:
    held = start(bench, LOOP)
    pause(bench)
    bench.local.close()
    after = make_bench(rows=[Adopted(RUN, mark(*RUN), held.handle, True)])
    assert after.poll(RUN).still and after.poll(RUN).supervised
    (after.home / "go").touch()
    go_on(after)
    assert after.end(RUN).code == 3


def test_f71_an_engine_that_dies_before_its_shim_has_heard_is_obeyed_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wanted lies in the directory; the signal only makes it quick."""
    start(bench, LOOP)
    monkeypatch.setattr(bench.local, "_signal", lambda *_: True)
    pause(bench)
    (bench.home / "go").touch()
    go_on(bench)
    assert bench.end(RUN).code == 3


SIGNALLED = "import os, signal, time\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nopen('up', 'w').close()\n" + (
    "while not os.path.exists('go'): time.sleep(0.02)\n"
)


def test_f72_a_run_whose_shim_is_killed_while_it_stands_still_does_not_stay_so(bench: Bench) -> None:
    """The engine lets all of it go on that is provably of the run; its end is unknown, as ever without a shim."""
    apart = f"import os\nif os.fork() == 0: os.setsid()\n{SIGNALLED}"
    held = start(bench, [sys.executable, "-I", "-c", apart])
    bench.until(lambda: len(states(bench)) == 2)
    pause(bench)
    os.kill(held.pid, signal.SIGKILL)
    bench.unsupervised(RUN)
    assert "T" in members(bench).values(), "whoever is in a session of its own the kernel does not wake"
    bench.local.pause(RUN, paused=True)  # be it that the engine has not decided anew yet
    bench.until(lambda: set(members(bench).values()) and "T" not in members(bench).values())
    assert len(members(bench)) == 2, "and nobody of them is ended"
    go_on(bench)
    assert not (bench.dir(RUN) / "pause").exists()
    (bench.home / "go").touch()
    assert bench.report(RUN, "gone").cause == "exit_unknown"


def test_f72_without_a_shim_nobody_is_stopped(bench: Bench) -> None:
    held = start(bench, [sys.executable, "-I", "-c", SIGNALLED])
    os.kill(held.pid, signal.SIGKILL)
    bench.unsupervised(RUN)
    bench.local.pause(RUN, paused=True)
    assert "T" not in members(bench).values() and not bench.poll(RUN).still


@pytest.mark.parametrize("point", ["halt.before_stop", "halt.stopped", "halt.before_continue", "halt.continued"])
def test_f72_a_shim_that_dies_at_any_step_leaves_nobody_stopped(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", f"{point}=kill@1")
    bench = make_bench("failing")
    start(bench, [sys.executable, "-I", "-c", SIGNALLED])
    bench.local.pause(RUN, paused=True)
    if "continue" in point:
        bench.until(lambda: bench.poll(RUN).still)
        go_on(bench)
    bench.unsupervised(RUN)
    go_on(bench)
    bench.until(lambda: set(members(bench).values()) and "T" not in members(bench).values())
    (bench.home / "go").touch()
    assert bench.report(RUN, "gone").cause == "exit_unknown"


def test_the_engine_that_wants_it_is_not_stopped_though_the_job_has_started_it(bench: Bench) -> None:
    """Nobody would let the run go on."""
    start(bench, f"({WAIT}) & echo $! > engine.new; mv engine.new engine; {LOOP}", up=("up", "engine"))
    engine = int((bench.home / "engine").read_text())
    (bench.dir(RUN) / "pause").write_text(str(engine))
    bench.until(lambda: "T" in states(bench).values())
    family = {engine, *proc.tree(engine)}
    bench.until(lambda: all(state == "T" for pid, state in states(bench).items() if pid not in {engine, *proc.tree(engine)}))
    assert "T" not in {state for pid, state in states(bench).items() if pid in family}
    go_on(bench)
    moves(bench)


@pytest.mark.parametrize("made", ["directory", "pipe", "link", "text"])
def test_whatever_lies_in_the_place_of_the_order_the_shim_is_not_held_up(bench: Bench, made: str) -> None:
    """A job may write there itself; it stops itself at the most, and a cancel ends it."""
    start(bench, LOOP)
    path = bench.dir(RUN) / "pause"
    match made:
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to("/dev/zero")
        case _:
            path.write_text("-1 or so\n" * 9)
    bench.until(lambda: bench.poll(RUN).still)
    bench.stop(RUN, kill=False)
    assert bench.end(RUN).signal == 15


def test_a_leg_that_is_ended_while_it_stands_still_is_ended_in_good_order(bench: Bench) -> None:
    """Nobody orders that; but what was on its way is obeyed, and the next leg stands still before it begins."""
    from jostle.port import Resizing

    env = {"CUDA_VISIBLE_DEVICES": "a,b", "JOSTLE_GPUS": "0,1"}
    wants = [("GPU-a", None), ("GPU-b", None)]
    start(bench, f"echo $JOSTLE_LEG >> legs; trap 'touch saved; exit 0' TERM; {LOOP}", resize="restart", env=env, wants=wants)
    pause(bench)
    env = {"CUDA_VISIBLE_DEVICES": "a", "JOSTLE_GPUS": "0"}
    bench.local.resize([Resizing(RUN, 2, ("GPU-a",), env)])
    bench.running(RUN, "saved")
    bench.until(lambda: (footing := bench.poll(RUN).footing) is not None and footing.effective == 2)
    assert text(bench.home / "legs") == "1\n"
    go_on(bench)
    bench.until(lambda: text(bench.home / "legs") == "1\n2\n")
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 3


def test_a_process_that_was_registered_and_is_of_this_run_stands_still_too(bench: Bench) -> None:
    """It is no descendant: somebody else has started it with the run's environment (SPEC A22)."""
    import json
    import subprocess

    start(bench, LOOP, uni_id_file="ids.json")
    apart = subprocess.Popen(["sleep", "600"], env={**os.environ, proc.MARK: mark(*RUN)}, start_new_session=True)
    try:
        def register() -> bool:
            data = json.loads((bench.home / "ids.json").read_text())
            data[mark(*RUN)]["pid"] = apart.pid
            (bench.home / "ids.new").write_text(json.dumps(data))
            os.rename(bench.home / "ids.new", bench.home / "ids.json")
            noted = text(bench.dir(RUN) / "registered")
            return str(apart.pid) in noted

        bench.until(register)
        pause(bench)

        def state() -> str:
            s = proc.stat(apart.pid)
            return "" if s is None else s.state

        bench.until(lambda: state() == "T")
        go_on(bench)
        bench.until(lambda: state() == "S")
    finally:
        apart.kill()
        apart.wait()


def test_a_run_of_another_job_is_not_asked(bench: Bench) -> None:
    """One that did not say so does not look there."""
    bench.start(RUN, LOOP)
    bench.running(RUN, "up")
    bench.local.pause(RUN, paused=True)
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 3 and "paused" not in bench.log(RUN)
