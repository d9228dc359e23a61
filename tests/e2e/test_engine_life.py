"""The engine as a process: up, down, replaced, and what running jobs notice of it (nothing)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from tests.e2e.instance import PATIENCE, Instance, alive, until

WAITING = "echo $$ > {0}; until [ -e {0}.go ]; do sleep 0.02; done; exit {1}"


def test_up_twice_says_so_and_starts_no_second_engine(instance: Instance) -> None:
    code, _, err = instance.run("up", "--gpus", "sim:2x24")
    assert (code, "is up" in err) == (0, True)
    pid = instance.engine
    code, _, err = instance.run("up")
    assert (code, "runs already" in err, str(pid) in err) == (0, True, True)
    assert instance.engine == pid


def test_down_leaves_jobs_running_and_up_finds_them_with_their_true_exit_codes(instance: Instance) -> None:
    instance.up("sim:4x24")
    ends, ended_meanwhile = instance.submit({"commands": [WAITING.format("a", 3)]}, {"commands": [WAITING.format("b", 0)]})
    pids = [instance.pid_in("a"), instance.pid_in("b")]
    for id in (ends, ended_meanwhile):
        instance.reach(id, "running")
    old = instance.engine
    code, _, err = instance.run("down")
    assert (code, "2 running jobs go on" in err) == (0, True)
    until(lambda: not alive(old))
    assert all(map(alive, pids))
    (instance.work / "b.go").touch()
    until(lambda: not alive(pids[1]))
    assert instance.states() == {ends: "running", ended_meanwhile: "running"}, "nobody is there to write it down"
    instance.up(None)
    assert instance.end(ended_meanwhile) == ["succeeded"]
    assert (alive(pids[0]), instance.call("hello")["gpus_spec"]) == (True, "sim:4x24")
    (instance.work / "a.go").touch()
    assert instance.end(ends) == ["failed"]
    rows = instance.jobs()
    assert [(rows[i]["exit_code"], rows[i]["attempt"]) for i in (ends, ended_meanwhile)] == [(3, 1), (0, 1)]


def test_down_with_stop_jobs_ends_them_first_and_queued_ones_wait_for_the_next_engine(instance: Instance) -> None:
    instance.up("sim:1x24")
    running, queued = instance.submit({"commands": [WAITING.format("a", 0)], "queue": "q"}, {"queue": "q"})
    pid = instance.pid_in("a")
    code, _, said = instance.run("down", "--stop-jobs")
    assert code == 0 and "1 running job was stopped" in said
    assert not alive(pid)
    assert instance.states() == {running: "cancelled", queued: "queued"}
    instance.up(None)
    assert instance.end(queued) == ["succeeded"]


def test_after_down_nobody_who_follows_jobs_starts_an_engine_and_up_lets_them_go_on(instance: Instance) -> None:
    instance.up("sim:1x24")
    (instance.work / "jobs.yaml").write_text(
        "defaults: {queue: q}\njobs:\n  - {name: a, run: '" + WAITING.format("a", 0) + "'}\n  - {name: b, run: 'true'}\n"
    )
    out, err = instance.work / "out", instance.work / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        follower = instance.start("run", "jobs.yaml", stdout=stdout, stderr=stderr)
    until(lambda: "started" in out.read_text(), "the follower hears of the start")
    instance.ok("down")
    until(lambda: "stopped by" in err.read_text() or "is back" in err.read_text(), "the follower says what it does")
    assert "stopped by `jostle down`" in err.read_text()
    assert instance.json("status")["running"] is False
    assert sorted(instance.states().values()) == ["queued", "running"]
    (instance.work / "a.go").touch()
    instance.up(None)
    assert follower.wait(PATIENCE) == 0, (out.read_text(), err.read_text())
    assert set(instance.states().values()) == {"succeeded"}


def test_a_job_starts_no_engine_for_that_would_end_with_it(instance: Instance) -> None:
    """All that a job leaves behind is ended, and so were the jobs that such an engine had started."""
    instance.up("sim:1x24")
    jostle = f"{sys.executable} -m jostle add -- true 2> said; echo $? > code"
    id = instance.add("--", f"echo $$ > a; until [ -e a.go ]; do sleep 0.02; done; {jostle}")
    instance.pid_in("a")
    os.kill(instance.engine, signal.SIGKILL)
    (instance.work / "a.go").touch()
    assert instance.pid_in("code") == 3
    assert "would end with it" in (instance.work / "said").read_text()
    instance.up(None)
    assert instance.end(id) == ["succeeded"] and len(instance.jobs()) == 1


def test_a_verb_that_needs_an_engine_starts_one(instance: Instance) -> None:
    (instance.home).mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("gpus: sim:1x24\n")
    id = instance.add("--", "true")
    assert instance.end(id) == ["succeeded"]
    assert instance.call("hello")["permanent"] is False
    instance.up(None)
    assert instance.call("hello")["permanent"] is True


def test_after_up_an_engine_stays_whoever_starts_it_until_down(instance: Instance) -> None:
    instance.ok("up", "--gpus", "sim:1x24")
    instance.kill_engine()
    assert instance.end(instance.add("--", "true")) == ["succeeded"]
    assert instance.call("hello")["permanent"] is True
    instance.ok("down")
    instance.add("--", "true")
    assert instance.call("hello")["permanent"] is False


def test_down_is_the_last_word_also_where_no_engine_runs_any_more(instance: Instance) -> None:
    instance.ok("up", "--gpus", "sim:1x24")
    instance.kill_engine()
    instance.ok("down")
    instance.add("--", "true")
    assert instance.call("hello")["permanent"] is False


def test_an_idle_engine_makes_way_for_other_gpus_and_a_busy_one_says_what_to_do(instance: Instance) -> None:
    instance.up("sim:1x24")
    instance.up("sim:2x16")
    instance.see_cards()
    assert len(instance.call("gpus")["gpus"]) == 2
    (id,) = instance.submit({"commands": [WAITING.format("a", 0)]})
    instance.pid_in("a")
    code, _, err = instance.run("up", "--gpus", "sim:4x24")
    assert code == 1
    assert "busy" in err and "JOSTLE_HOME" in err
    (instance.work / "a.go").touch()
    assert instance.end(id) == ["succeeded"]


def test_homes_are_worlds_of_their_own(make_instance: Callable[..., Instance]) -> None:
    one, two = make_instance(), make_instance()
    for each in (one, two):
        each.up("sim:1x24")
    assert one.engine != two.engine
    (id,) = one.submit({})
    assert one.end(id) == ["succeeded"]
    assert two.states() == {}


def test_down_without_an_engine_is_no_error(instance: Instance) -> None:
    code, _, err = instance.run("down")
    assert (code, err) == (0, "no engine runs\n")
    assert instance.json("status")["running"] is False


def test_reading_verbs_work_without_an_engine(instance: Instance) -> None:
    instance.up("sim:1x24")
    done, waits = instance.submit({"queue": "q", "commands": ["echo hello"]}, {"gpus": [5, 5]})
    instance.end(done)
    instance.ok("down")
    assert [row["id"] for row in instance.json("ps")["jobs"]] == [done, waits]
    assert instance.json("why", str(waits))["reason"]["code"] == "no_engine"
    assert instance.json("show", str(done))["job"]["state"] == "succeeded"
    assert instance.ok("logs", str(done)) == "hello\n"
    assert len(instance.json("gpus", "--gpus", "sim:3x24")["gpus"]) == 3


def test_an_add_whose_engine_dies_before_the_answer_is_taken_once(instance: Instance) -> None:
    instance.up("sim:1x24", env={"JOSTLE_FAILPOINTS": "service.after_commit=kill@1"})
    id = instance.add("--", "true")
    assert instance.end(id) == ["succeeded"]
    assert list(instance.states()) == [id]


def test_without_an_engine_the_processes_of_our_runs_are_no_strangers_on_their_cards(instance: Instance) -> None:
    instance.up("sim:2x24")
    id = instance.add("-m", "4GiB", "--", "sleep", "1000")
    holders = until(lambda: instance.call("gpus")["gpus"][0]["holders"], "it uses its card")
    assert [holder["run"] for holder in holders] == [f"{id}.1"]
    instance.kill_engine()
    seen, shown = instance.json("gpus"), instance.ok("gpus").splitlines()[1]
    instance.up(None)
    instance.ok("cancel", "--now", str(id))
    instance.end(id)
    assert (seen["engine"], [holder["run"] for holder in seen["gpus"][0]["holders"]]) == (False, [f"{id}.1"])
    assert f"job {id} (" in shown and holders[0]["user"] not in shown
