"""The uni_id file of a workspace where shims are killed and files are damaged, and what is told of runs whose end nobody saw."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from typing import Any

from jostle import proc
from tests.e2e.instance import Instance, until
from tests.e2e.space import WAIT, Space, ended

ONE_CARD = "use_all_gpus: false\ncompete_gpus: [%d]\n"


def entries(space: Space) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((space.root / "logs" / "uni_id.json").read_text())
    return found


def run_of(space: Space, n: int = 1) -> dict[str, Any]:
    """The n-th run of the newest job, when its task has begun to work."""
    space.made(f"begun{n}")
    return space.jostle.runs(space.jostle.newest()[0]["id"])[n - 1]


def test_a22_an_entry_that_a_killed_shim_left_is_abnormal_once_none_of_its_processes_lives(jostle: Instance) -> None:
    settings = ONE_CARD % 0 + "retry_config: {max_retries: 0}\n"
    space = Space(jostle, "orphan", f"1\ntouch {{work_dir}}/begun1; {WAIT % 'go'}\n1\n", settings)
    client = space.start()
    run, id = run_of(space), jostle.newest()[0]["id"]
    jostle.reach(id, "running")
    os.kill(run["shim_pid"], signal.SIGKILL)
    until(lambda: jostle.events("unsupervised", id), "it is noticed")
    assert entries(space)[run["uni_id"]]["state"] == "running", "its command lives"
    space.file("go").touch()
    code, told = ended(client)
    entry = entries(space)[run["uni_id"]]
    assert (code, entry["state"], bool(entry["error_type"])) == (1, "abnormal_exit", True), told
    assert f"WARNING {space.root}/logs/uni_id.json: {run['uni_id']} was left at running" in space.log()
    failed = next(line for line in space.log().split("\n") if " ERROR failed " in line)
    assert " after " not in failed, "nobody knows how long it ran"
    shown = jostle.json("show", str(id))
    assert shown["job"]["ran_s"] is None and shown["runs"][0]["ran_s"] is None and shown["runs"][0]["outcome"] == "lost"
    assert jostle.ok("show", str(id)).split("\nRUN ")[1].split("\n")[1].split()[:6:4] == ["1", "-"]


def test_a22_what_was_left_while_no_scheduler_was_there_is_set_right_by_the_next(jostle: Instance) -> None:
    settings = ONE_CARD % 1 + "retry_config: {max_retry_before_backoff: 1, backoff_duration: 0.05}\n"
    space = Space(jostle, "later", f"1\ntouch {{work_dir}}/begun$JOSTLE_ATTEMPT; {WAIT % 'go'}\n1\n", settings)
    client = space.start()
    run = run_of(space)
    client.kill()
    client.communicate()
    os.kill(run["shim_pid"], signal.SIGSTOP)  # so that it cannot see its child die
    for pid in [*proc.tree(run["shim_pid"]), run["shim_pid"]]:
        with contextlib.suppress(ProcessLookupError):  # a sleep that has just ended
            os.kill(pid, signal.SIGKILL)
    second = run_of(space, 2)
    assert entries(space)[run["uni_id"]]["state"] == "running"
    again = space.start()
    until(lambda: entries(space)[run["uni_id"]]["state"] == "abnormal_exit", "the scheduler sets it right")
    assert entries(space)[second["uni_id"]]["state"] == "running", "that of a run that lives is left alone"
    space.file("go").touch()
    assert ended(again)[0] == 0 and list(entries(space)) == [run["uni_id"]]


def test_a23_a_damaged_file_is_told_in_the_scheduler_s_log_and_on_the_screen(jostle: Instance) -> None:
    space = Space(jostle, "damaged", f"1\ntouch {{work_dir}}/begun1; {WAIT % 'go'}\n1\n", ONE_CARD % 2)
    file = space.root / "logs" / "uni_id.json"
    file.parent.mkdir()
    file.write_text('{"old": {"pid"')
    client = space.start()
    space.says(f"WARNING {file} was damaged: it was replaced by {{}}, and kept as {file}.damaged-")
    run = run_of(space)
    file.write_text('{"new": {"pid"')
    until(lambda: space.log().count(f"WARNING {file} was damaged: it was replaced by {{}}, and kept as") == 2, "the second one")
    assert len([*file.parent.glob("uni_id.json.damaged-*")]) == 2
    until(lambda: entries(space).get(run["uni_id"], {}).get("state") == "running", "its entry is there again")
    space.file("go").touch()
    code, told = ended(client)
    assert code == 0 and told.count("was damaged: it was replaced") == 2, "each once"
