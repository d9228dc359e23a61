"""Jobs that are paused while somebody else is on their card: real processes on simulated cards, a stranger who comes and goes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from jostle import proc
from tests.e2e.instance import Instance, until

QUICK = {"yield_after": 0.2}
COUNT = "i=0; until [ -e go ]; do i=$((i+1)); echo $i > count.new; mv count.new count; sleep 0.02; done; exit 0"


class Stage:
    """A host of two cards with a job on one."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.world()
        instance.up(f"sim:{instance.root}/scenario.yaml")

    def world(self, *strangers: int) -> None:
        there = "".join(f"  - {{user: bob, gpu: {card}, used: 9GiB, utilization: 50}}\n" for card in strangers)
        runs = "runs: {use: 8GiB, utilization: 90}\n"
        self.instance.scenario("gpus: {count: 2, total: 24GiB}\n" + runs + (f"strangers:\n{there}" if there else ""))

    def start(self, command: str = COUNT, **more: Any) -> int:
        job = {"commands": [command], "when_stranger": "pause", **more}
        (id,) = self.instance.submit(job, policy=QUICK)
        self.instance.reach(id, "running")
        until(lambda: (self.instance.work / "count").exists(), "it counts")
        return id

    def card(self, id: int) -> int:
        (card,) = self.instance.job(id)["gpus"]
        return int(card)

    def processes(self, id: int) -> dict[int, str]:
        """With their states."""
        shim = self.instance.runs(id)[-1]["shim_pid"]
        stats = [proc.stat(pid) for pid in proc.tree(shim)]
        return {s.pid: s.state for s in stats if s is not None and s.state not in "ZX"}

    def states(self, id: int) -> set[str]:
        return set(self.processes(id).values())

    def stands(self, id: int) -> bool:
        """Looked at twice: while the first look was made, one that it saw standing may have begun another before."""
        first = self.processes(id)
        return set(first.values()) == {"T"} and self.processes(id) == first

    def come(self, id: int) -> None:
        self.world(self.card(id))
        until(lambda: self.stands(id), "all of it is stopped")

    def leave(self, id: int) -> None:
        self.world()
        until(lambda: self.states(id) and "T" not in self.states(id), "all of it goes on")

    def count(self) -> int:
        return int((self.instance.work / "count").read_text())

    def code(self, id: int) -> str:
        reason = self.instance.call("why", id=id)["reason"]
        return str(reason["code"]) if reason else ""


@pytest.fixture
def stage(instance: Instance) -> Stage:
    return Stage(instance)


def test_a_job_is_paused_while_somebody_else_is_on_its_card_and_goes_on_after(stage: Stage) -> None:
    instance = stage.instance
    id = stage.start()
    card = stage.card(id)
    stage.come(id)
    before = stage.count()
    until(lambda: stage.code(id) == "paused", "it is said")
    shown = instance.ok("why", str(id))
    assert f"it is paused: somebody else (bob) has come onto GPU {card}. Its 8 GiB stay on the card." in shown
    assert "已暂停" in instance.ok("why", str(id), env={"JOSTLE_LANG": "zh"})
    assert "paused" in instance.ok("ps") and "is paused when somebody else comes" in instance.ok("show", str(id))

    def shown_card() -> Any:
        (gpu,) = [gpu for gpu in instance.json("gpus", "--json")["gpus"] if gpu["index"] == card]
        return gpu

    gpu = until(lambda: (seen := shown_card())["utilization"] == 50 and seen, "it computes nothing")
    assert gpu["paused"] == gpu["runs"] == [f"{id}.1"]
    assert gpu["used_mib"] == (8 + 9) * 1024, "and holds its memory all the same"
    assert f"job {id} (8 GiB, paused)" in instance.ok("gpus")
    assert instance.job(id)["state"] == "running" and stage.count() == before, "it has done nothing since"
    stage.leave(id)
    until(lambda: stage.count() > before, "it goes on where it was")
    until(lambda: stage.code(id) != "paused", "it is said no more")
    (instance.work / "go").touch()
    assert instance.end(id) == ["succeeded"]
    (paused,), (continued,) = instance.events("paused", id), instance.events("continued", id)
    assert (paused["data"]["times"], paused["data"]["reason"]["code"]) == (1, "stranger_came")
    assert continued["data"]["reason"]["code"] == "quiet_again" and continued["data"]["paused_s"] > 0
    assert len(instance.runs(id)) == 1
    log = instance.output(id)
    assert log.count("paused, as somebody else is on its GPUs") == log.count("goes on after a pause") == 1
    assert "paused" in instance.ok("show", str(id)), "it is part of its story"


def test_no_other_job_is_touched(stage: Stage) -> None:
    id = stage.start()
    (other,) = stage.instance.submit({"commands": ["until [ -e go ]; do sleep 0.02; done"]})
    stage.instance.reach(other, "running")
    stage.world(0, 1)
    until(lambda: stage.stands(id), "all of it is stopped")
    assert "T" not in stage.states(other)
    stage.leave(id)


def test_a_scenario_in_which_he_comes_and_goes(instance: Instance) -> None:
    """By the clock of the simulated world: it is paused, and comes to its end."""
    bob = "strangers:\n  - {user: bob, gpu: 0, from: 2, to: 5, used: 9GiB}\n"
    instance.scenario(f"repeat: 10s\ngpus: {{count: 1, total: 24GiB}}\n{bob}")
    instance.up(f"sim:{instance.root}/scenario.yaml")
    (id,) = instance.submit({"commands": [COUNT], "when_stranger": "pause"}, policy=QUICK)
    until(lambda: instance.events("continued", id), "it was paused, and goes on")
    (instance.work / "go").touch()
    assert instance.end(id) == ["succeeded"]
    assert len(instance.events("paused", id)) - len(instance.events("continued", id)) in (0, 1)


def test_it_can_be_asked_for_by_every_way_in(stage: Stage) -> None:
    instance = stage.instance
    id = instance.add("--when-stranger", "pause", "--hold", "--", "true")
    assert instance.job(id)["when_stranger"] == "pause"
    assert "is paused when" in instance.ok("show", str(id))
    instance.ok("set", str(id), "when_stranger=keep")
    assert instance.job(id)["when_stranger"] == "keep"
    file = instance.file("jobs:\n  - run: 'true'\n    when_stranger: pause\n  - run: 'true'\n    when_stranger: stop\n")
    code, _, err = instance.run("run", file)
    assert code == 6 and f"{os.path.basename(file)}:5" in err and "pause" in err


def test_an_elastic_job_that_is_paused_comes_to_the_next_leg_when_it_goes_on(stage: Stage) -> None:
    """At its least, with no other card: it stops; when it goes on it gets what it may have."""
    instance = stage.instance
    program = f"echo $JOSTLE_GPUS >> legs; {COUNT}"
    (blocker,) = instance.submit({"commands": ["until [ -e free ]; do sleep 0.02; done"]})
    instance.reach(blocker, "running")
    job = {"commands": [program], "when_stranger": "pause", "resize": "restart", "gpus": [1, 2]}
    (id,) = instance.submit(job, policy={**QUICK, "resize_interval": 0.3})
    until(lambda: (instance.work / "count").exists(), "it counts")
    stage.come(id)
    (instance.work / "free").touch()
    instance.end(blocker)
    until(lambda: stage.code(id) == "paused", "it is said")
    assert Path(instance.work / "legs").read_text().count("\n") == 1, "its cards do not change meanwhile"
    stage.world()
    until(lambda: instance.events("grown", id), "it goes on, and grows")
    (instance.work / "go").touch()
    assert instance.end(id) == ["succeeded"]
    kinds = [event["kind"] for kind in ("paused", "continued", "grown") for event in instance.events(kind, id)]
    assert kinds == ["paused", "continued", "grown"]
