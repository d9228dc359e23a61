"""`jostle run FILE` as a process that is followed, interrupted, killed, and whose engine dies."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.e2e.instance import PATIENCE, Instance, alive, listening, until


@pytest.fixture(scope="module")
def jostle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """Its grace is longer than anybody waits here: who ends on SIGTERM needs none, and who is killed at once gets none."""
    instance = Instance(tmp_path_factory.mktemp("patient"))
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("grace: 600\n")
    instance.up("sim:4x24")
    yield instance
    instance.close()


def test_a_batch_that_succeeds_ends_with_0_and_one_that_fails_with_1(jostle: Instance) -> None:
    good = jostle.file("jobs:\n  - {run: 'true'}\n  - {run: ['true', 'true'], gpus: 0}\n", "good.yaml")
    bad = jostle.file("jobs:\n  - {name: fine, run: 'true'}\n  - {name: broken, run: exit 3}\n", "bad.yaml")
    code, out, err = jostle.run("run", good)
    assert (code, "2 succeeded" in err) == (0, True), (out, err)
    code, out, err = jostle.run("run", bad)
    assert (code, "1 failed" in err, "broken" in out) == (1, True, True), (out, err)


def test_json_tells_each_event_and_the_result(jostle: Instance) -> None:
    file = jostle.file("jobs: [{name: one, run: 'true'}]", "json.yaml")
    lines = [json.loads(line) for line in jostle.ok("run", file, "--json").splitlines()]
    assert [e["kind"] for e in lines[:-1] if e["job"]][-1] == "succeeded"
    assert lines[-1]["ok"] is True


def test_detached_it_prints_the_ids_and_leaves(jostle: Instance) -> None:
    wait = "until [ -e left ]; do sleep 0.02; done"
    file = jostle.file(f"jobs: [{{run: '{wait}'}}, {{run: '{wait}'}}]", "detached.yaml")
    first, last = map(int, jostle.ok("run", "--detach", file).strip().split("-"))
    assert set(jostle.states([first, last]).values()) <= {"queued", "starting", "running"}
    (jostle.work / "left").touch()
    assert jostle.end(first, last) == ["succeeded", "succeeded"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cancels_the_batch_and_ends_with_130(jostle: Instance, number: int) -> None:
    name = f"cut-{int(number)}"
    text = f"jobs:\n  - {{name: first, run: touch {name}; exec sleep 600}}\n  - {{after: first, run: 'true'}}\n"
    file = jostle.file(text, f"{name}.yaml")
    child = jostle.start("run", file)
    jostle.made(name)
    listening(child)
    child.send_signal(number)
    out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, (out, err)
    newest = jostle.newest(2)
    assert [row["state"] for row in newest] == ["cancelled", "cancelled"]
    assert "cancelling the batch" in err


def test_a_second_interrupt_does_not_wait_for_those_who_ignore_the_first(jostle: Instance) -> None:
    file = jostle.file("jobs: [{run: \"trap '' TERM; echo $$ > stubborn; while :; do sleep 0.05; done\"}]", "stubborn.yaml")
    child = jostle.start("run", file)
    pid = jostle.pid_in("stubborn")
    listening(child)
    child.send_signal(signal.SIGINT)
    until(lambda: jostle.newest()[0]["state"] == "stopping")
    assert alive(pid)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, alive(pid)) == (130, False), err
    assert "killing" in err


def test_kill_9_of_the_client_leaves_the_batch_and_the_same_command_attaches_again(jostle: Instance) -> None:
    file = jostle.file("jobs: [{run: 'touch going; until [ -e go ]; do sleep 0.02; done'}]", "again.yaml")
    client = jostle.start("run", file)
    jostle.made("going")
    client.kill()
    client.communicate()
    before = jostle.newest()[0]["id"]
    second = jostle.start("run", file)
    assert "attached" in until(second.stderr.readline if second.stderr else str)
    (jostle.work / "go").touch()
    _, err = second.communicate(timeout=PATIENCE)
    assert (second.returncode, jostle.newest()[0]["id"]) == (0, before), err
    (row,) = jostle.newest()
    assert (row["state"], row["attempt"]) == ("succeeded", 1)


def test_a_hang_up_of_the_client_leaves_the_batch_running(jostle: Instance) -> None:
    file = jostle.file("jobs: [{run: 'touch hung; until [ -e on ]; do sleep 0.02; done'}]", "hangup.yaml")
    client = jostle.start("run", file)
    jostle.made("hung")
    client.send_signal(signal.SIGHUP)
    client.communicate(timeout=PATIENCE)
    (row,) = jostle.newest()
    jostle.reach(row["id"], "running")
    (jostle.work / "on").touch()
    assert jostle.end(row["id"]) == ["succeeded"]


def test_when_the_engine_is_killed_the_client_connects_again_and_ends_truly(jostle: Instance) -> None:
    file = jostle.file("jobs:\n  - {name: a, run: 'touch alive; until [ -e enough ]; do sleep 0.02; done; exit 4'}\n"
                       "  - {after_any: a, run: 'true'}\n", "survive.yaml")  # fmt: skip
    client = jostle.start("run", file)
    jostle.made("alive")
    listening(client)
    old = jostle.kill_engine()
    (jostle.work / "enough").touch()
    out, err = client.communicate(timeout=PATIENCE)
    assert client.returncode == 1, (out, err)
    assert "connecting again" in err and "the engine is back" in err
    rows = jostle.newest(2)
    assert [(r["state"], r["exit_code"], r["attempt"]) for r in rows] == [("failed", 4, 1), ("succeeded", 0, 1)]
    assert jostle.engine != old


def test_an_interrupt_while_the_engine_is_dead_is_not_forgotten(jostle: Instance) -> None:
    file = jostle.file("jobs: [{run: 'echo $$ > orphan; exec sleep 600'}]", "orphan.yaml")
    client = jostle.start("run", file)
    pid = jostle.pid_in("orphan")
    listening(client)
    engine = jostle.engine
    os.kill(engine, signal.SIGKILL)
    client.send_signal(signal.SIGINT)
    out, err = client.communicate(timeout=PATIENCE)
    assert client.returncode == 130, (out, err)
    assert jostle.newest()[0]["state"] == "cancelled"
    until(lambda: not alive(pid))
