"""What `jostle compete` tells to those who do not see why a task does not go on, and where programs find its state."""

from __future__ import annotations

import json

from tests.e2e.instance import Instance, until
from tests.e2e.space import WAIT, Space, ended

ONE_CARD = "use_all_gpus: false\ncompete_gpus: [%d]\n"


def test_a32_logs_status_has_the_files_of_logs_state_and_loses_them_alike(jostle: Instance) -> None:
    space = Space(jostle, "both", f"1\n{WAIT % 'go'}\n1\n", ONE_CARD % 0)
    killed = space.start()
    space.state(pid=killed.pid, running_tasks=1)
    killed.kill()
    killed.communicate()
    client = space.start()
    space.state(pid=client.pid, running_tasks=1)
    status = space.root / "logs" / "status"
    until(lambda: [p.name for p in status.iterdir()] == [f"{client.pid}.json"], "the one of the dead scheduler is gone")
    until(lambda: json.loads((status / f"{client.pid}.json").read_text())["running_tasks"] == 1, "and it is up to date")
    space.file("go").touch()
    assert ended(client)[0] == 0 and not any(status.iterdir()) and not any((space.root / "logs" / "state").iterdir())


LEFT = "mkfifo go; (echo $BASHPID > pid; exec cat go) &"
"""Returns at once and leaves one process behind, until somebody writes into the pipe."""


def test_a22_a_task_that_waits_for_what_it_left_in_the_background_says_so_with_pids(jostle: Instance) -> None:
    space = Space(jostle, "left", f"1\n{LEFT}\n1\n", ONE_CARD % 1)
    client = space.start()
    pid, id = jostle.pid_in("left/pid"), jostle.newest()[0]["id"]
    sentence = f"ts commands have ended; it waits for what they left running: process {pid}."
    space.says(f"waiting    {id} queue 1 task 1")
    assert sentence in space.log() and sentence in jostle.ok("why", str(id))
    assert "留在后台的" in jostle.ok("why", str(id), env={"JOSTLE_LANG": "zh"})
    told = jostle.json("why", str(id))
    assert told["reason"]["code"] == "background" and told["reason"]["params"] == {"pids": [pid]}
    assert f"(its commands have ended; waiting for process {pid})" in space.run("--status")[1]
    space.says(f"(its commands have ended; waiting for process {pid})")
    space.file("go").write_text("")
    assert ended(client)[0] == 0 and jostle.job(id)["reason"] is None


def test_a22_so_does_one_whose_commands_ended_while_no_engine_was_there(instance: Instance) -> None:
    instance.up("sim:1x24")
    (id,) = instance.submit({"commands": [f"touch begun; until [ -e end ]; do sleep 0.02; done; {LEFT}"], "leftovers": "wait"})
    instance.made("begun")
    instance.kill_engine()
    (instance.work / "end").touch()
    pid = instance.pid_in("pid")
    until(lambda: "waiting for what they left" in instance.output(id), "its shim waits")
    instance.up(None)
    until(lambda: (instance.job(id)["reason"] or {}).get("code") == "background", "it is known")
    instance.kill_engine()
    instance.up(None)
    assert instance.job(id)["reason"]["params"] == {"pids": [pid]}
    (instance.work / "go").write_text("")
    assert instance.end(id) == ["succeeded"] and len(instance.events("background", id)) == 1


def test_a22_a_registered_process_that_outlives_its_commands_is_named_too(jostle: Instance) -> None:
    script = f'({WAIT % "go"}) & jostle uni-id set --state running --pid $!; echo $! > {{work_dir}}/pid; disown'
    (jostle.root / "bin").mkdir()
    (jostle.root / "bin" / "jostle").write_text('#!/bin/sh\nexec python3 -m jostle "$@"\n')
    (jostle.root / "bin" / "jostle").chmod(0o755)
    space = Space(jostle, "named", f"1\n{script}\n1\n", ONE_CARD % 2)
    client = space.start(env={"PATH": f"{jostle.root / 'bin'}:{jostle.env['PATH']}"})
    space.says("waiting    ")
    pid = jostle.pid_in("named/pid")
    assert jostle.job(jostle.newest()[0]["id"])["reason"]["params"]["pids"] == [pid], space.log()
    space.file("go").touch()
    assert ended(client)[0] == 0
