"""Elastic jobs and jobs that give way, real processes on simulated cards (SPEC C7, C8): nothing overlaps, nothing is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from jostle import elastic
from tests.e2e.instance import PATIENCE, Instance, said, until

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = str(Path(__file__).with_name("elastic_job.py"))
QUICK = {"resize_interval": 0.3, "yield_after": 0.2}


class Stage:
    """A host of three cards, and the program's evidence."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.evidence = instance.work / "evidence"
        self.evidence.mkdir()
        self.world()
        instance.up(f"sim:{instance.root}/scenario.yaml")

    def world(self, *strangers: int) -> None:
        """Bob is on these cards from now on, and on no others."""
        there = "".join(f"  - {{user: bob, gpu: {card}, used: 9GiB, utilization: 50}}\n" for card in strangers)
        self.instance.scenario("gpus: {count: 3, total: 24GiB}\n" + (f"strangers:\n{there}" if there else ""))

    def submit(self, **more: Any) -> int:
        argv = [sys.executable, "-I", PROGRAM, str(self.evidence), str(self.instance.home / "sim")]
        (id,) = self.instance.submit({"commands": [argv], **more}, policy=QUICK)
        return id

    def journal(self, *kinds: str) -> list[dict[str, Any]]:
        path = self.evidence / "journal"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in lines if not kinds or line["kind"] in kinds]

    def has(self, id: int, cards: set[str]) -> None:
        """Until the program of a job works on exactly these cards, and the record says so, too."""

        def holds() -> bool:
            told = [line for line in self.journal("begin", "list") if line["job"] == id]
            return bool(told) and set(told[-1]["cards"]) == cards and self.recorded(id) == cards

        until(holds, f"{id} has {cards}: {self.journal()[-3:]}, recorded {self.recorded(id)}")

    def recorded(self, id: int) -> set[str]:
        return {str(card) for card in self.instance.job(id)["gpus"]}

    def count(self, id: int, cards: int) -> set[str]:
        until(lambda: len(self.recorded(id)) == cards, f"{id} has {cards} cards: {self.instance.call('why', id=id)['reason']}")
        held = self.recorded(id)
        self.has(id, held)
        return held


@pytest.fixture
def stage(instance: Instance) -> Stage:
    return Stage(instance)


def blockers(stage: Stage, n: int) -> list[int]:
    """Jobs that hold a card each until they are let go."""
    return stage.instance.submit(*[{"commands": [f"until [ -e {stage.evidence}/free ]; do sleep 0.02; done"]}] * n)


@pytest.mark.parametrize("how", ["restart", "signal"])
def test_c7_c8_a_job_grows_from_one_card_to_three_and_gives_back_what_others_need(stage: Stage, how: str) -> None:
    instance = stage.instance
    held = blockers(stage, 2)
    until(lambda: all(instance.job(id)["state"] == "running" for id in held))
    id = stage.submit(gpus=[1, 3], resize=how)
    assert len(stage.count(id, 1)) == 1
    instance.reason(id, "keeps_cards")
    (stage.evidence / "free").touch()
    stage.has(id, {"0", "1", "2"})
    stage.world(1)
    stage.has(id, {"0", "2"})
    (came,) = [e for e in instance.events("resizing", id) if e["data"]["reason"]["code"] == "stranger_came"]
    assert said(came["data"]["reason"]) == "Somebody else (bob) has come onto GPU 1."
    stage.world()
    stage.has(id, {"0", "1", "2"})
    (other,) = instance.submit({"commands": ["sleep 0.3"]})
    assert instance.end(other) == ["succeeded"]
    assert len(instance.events("shrunk", id)) == 2
    (stage.evidence / "go").touch()
    assert instance.end(id) == ["succeeded"]
    assert_sound(stage, id, how)


def assert_sound(stage: Stage, id: int, how: str) -> None:
    assert stage.journal("overlap") == []
    begins, ends = stage.journal("begin"), stage.journal("told to end")
    assert len(begins) == (1 if how == "signal" else len(ends) + 1)
    for told, begun in zip(ends, begins[1:], strict=True):
        assert begun["step"] == told["step"], "progress is what was saved last"
    legs = [int(line["leg"]) for line in begins]
    assert legs == sorted(set(legs)) and {line["attempt"] for line in begins} == {1}, "no try is used, and no leg begins twice"
    job = stage.instance.job(id)
    assert (job["attempt"], job["retries"]) == (1, 0)


def test_what_dies_between_saves_loses_no_more_than_since_the_last_one(stage: Stage) -> None:
    """A program that does not mind SIGTERM is killed after the grace; the next leg goes on from its last checkpoint."""
    deaf = stage.evidence / "deaf.py"
    deaf.write_text(Path(PROGRAM).read_text().replace("save(step)\n                say", "continue\n                say"))
    stage.instance.call("reload", config={"grace": 0.2})
    argv = [sys.executable, "-I", str(deaf), str(stage.evidence), str(stage.instance.home / "sim")]
    (id,) = stage.instance.submit({"commands": [argv], "gpus": [1, 1], "resize": "restart"}, policy=QUICK)
    stage.count(id, 1)
    saved = stage.evidence / f"saved-{id}"
    until(lambda: saved.exists() and int(saved.read_text()) >= 20)
    stage.instance.ok("set", str(id), "gpus=2")
    stage.count(id, 2)
    first, second = stage.journal("begin")
    assert first["step"] == 0 and second["step"] >= 20 and second["step"] % 10 == 0 and second["leg"] == "2"
    assert stage.journal("overlap") == []


def test_a_person_asks_for_cards_of_a_running_job(stage: Stage) -> None:
    instance = stage.instance
    id = stage.submit(gpus=[1, 1], resize="signal")
    stage.count(id, 1)
    assert "changed: 1 job" in instance.run("set", str(id), "gpus=3")[2]
    stage.has(id, {"0", "1", "2"})
    instance.ok("set", str(id), "gpus=1-2")
    stage.count(id, 2)
    code, _, err = instance.run("set", str(id), "gpus=0")
    assert code != 0 and "needs at least one" in err
    code, _, err = instance.run("set", str(id), "memory=4GiB")
    assert code != 0 and "only a queued job can be changed" in err
    assert stage.recorded(id) == {"0", "1"}


def test_what_was_held_when_is_shown(stage: Stage) -> None:
    """In `ps` and `show`, and in the history of the cards: a card that was given back is shown as held from then to then."""
    instance = stage.instance
    id = stage.submit(gpus=[2, 2], resize="restart")
    stage.has(id, {"0", "1"})
    instance.ok("set", str(id), "gpus=1")
    (kept,) = stage.count(id, 1)
    until(lambda: instance.events("shrunk", id))
    (row,) = instance.json("ps")["jobs"]
    assert (row["leg"], row["resize"], row["gpus"]) == (2, "restart", [int(kept)])
    assert "1, leg 2" in instance.ok("ps")
    shown = instance.ok("show", str(id))
    assert "restart, leg 2" in shown and "resizing" in shown and "A person asked for 1 card." in shown
    assert "keeps them for now" in instance.ok("why", str(id))
    spans = {str(card["index"]): card["spans"] for card in instance.json("gpus", "--history", "1h")["gpus"]}
    other = "1" if kept == "0" else "0"
    ((mine,), (left,)) = spans[kept], spans[other]
    assert mine["job"] == left["job"] == id and mine["ended_at"] is None
    assert left["ended_at"] is not None and left["began_at"] == mine["began_at"] < left["ended_at"] and left["outcome"] is None


def test_the_next_engine_goes_on_with_it(stage: Stage) -> None:
    instance = stage.instance
    id = stage.submit(gpus=[1, 1], resize="restart")
    stage.count(id, 1)
    instance.ok("set", str(id), "gpus=2")
    stage.count(id, 2)
    instance.kill_engine()
    instance.up(f"sim:{instance.root}/scenario.yaml")
    instance.ok("set", str(id), "gpus=3")
    stage.has(id, {"0", "1", "2"})
    instance.ok("set", str(id), "gpus=1")
    stage.count(id, 1)
    (stage.evidence / "go").touch()
    assert instance.end(id) == ["succeeded"]
    assert_sound(stage, id, "restart")


def test_a_job_that_gives_way_leaves_its_card_and_comes_back(stage: Stage) -> None:
    instance = stage.instance
    (other,) = blockers(stage, 1)
    instance.reach(other, "running")
    (beside,) = instance.job(other)["gpus"]
    id = stage.submit(gpus=[1, 1], when_stranger="requeue")
    (card,) = stage.count(id, 1)
    stage.world(*(i for i in range(3) if i != beside))
    until(lambda: instance.job(id)["state"] == "queued", "it leaves")
    (told,) = stage.journal("told to end")
    assert int((stage.evidence / f"saved-{id}").read_text()) == told["step"]
    job, (run,) = instance.job(id), instance.runs(id)
    assert (job["retries"], run["outcome"], job["reason"]["code"]) == (0, "yielded", "yielded")
    assert instance.job(other)["state"] == "running", "nobody else is touched"
    assert str(card) != str(beside)
    shown = instance.ok("why", str(id))
    assert "gave way to somebody else" in shown
    stage.world()
    until(lambda: len(stage.journal("begin")) == 2, "it comes back, when it has stayed away for its 30 s", patience=PATIENCE + 30)
    assert stage.journal("begin")[1]["step"] == told["step"], "and goes on where it was"
    assert (instance.job(id)["attempt"], instance.job(id)["retries"]) == (2, 0)
    (stage.evidence / "go").touch()
    (stage.evidence / "free").touch()
    assert instance.end(id, other) == ["succeeded"] * 2
    assert stage.journal("overlap") == []


def test_resize_wants_a_card_and_no_uni_id_file(stage: Stage) -> None:
    file = stage.instance.file("jobs:\n  - run: x\n    gpus: 0\n    resize: restart\n  - run: y\n    resize: sometimes\n")
    code, _, err = stage.instance.run("run", file)
    assert code == 6 and f"{os.path.basename(file)}:2" in err and f"{os.path.basename(file)}:6" in err
    code, _, err = stage.instance.run("add", "-g", "0", "--resize", "signal", "--", "true")
    assert code in (2, 6) and "resize" in err


def test_c8_the_examples_grow_and_go_on_where_they_were(instance: Instance) -> None:
    """The ten lines of Python and of bash that docs/resources.md shows: each gets other cards, and ends where it should."""
    shutil.copytree(EXAMPLES / "elastic", instance.work / "elastic")
    instance.env["PATH"] = f"{os.path.dirname(sys.executable)}:{instance.env['PATH']}"
    instance.up("sim:6x24")
    child = instance.start("run", "elastic/elastic.yaml", env={"STEPS": "100000"})
    until(lambda: len(instance.newest(3)) == 3)
    ids = {row["name"]: row["id"] for row in instance.newest(3)}
    for id in ids.values():
        instance.reach(id, "running")
        until(lambda id=id: "from step 0" in instance.output(id))
        instance.ok("set", str(id), "gpus=1")
        until(lambda id=id: len(instance.job(id)["gpus"]) == 1 or "still on it" in said(instance.call("why", id=id)["reason"]))
    instance.ok("set", str(ids["begins-again"]), "gpus=2")
    until(lambda: len(instance.job(ids["begins-again"])["gpus"]) == 2)
    begun = until(lambda: lines if len(lines := begins(instance, ids["begins-again"])) >= 2 else None)
    assert begun[0] == 0 and begun[-1] > 0, "it goes on from what it saved"
    until(lambda: "now on GPU" in instance.output(ids["is-told"]))
    assert until(lambda: lines if len(lines := begins(instance, ids["any-program"])) >= 2 else None)[-1] > 0
    instance.ok("cancel", *map(str, ids.values()))
    child.communicate(timeout=60)
    assert set(instance.end(*ids.values())) == {"cancelled"}


def begins(instance: Instance, id: int) -> list[int]:
    """The steps at which the program of an example was begun."""
    return [int(step) for step in re.findall(r"^from step (\d+) on GPU", instance.output(id), re.MULTILINE)]


def test_the_list_of_a_program_without_jostle_is_what_cuda_would_see(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (elastic.FILE, elastic.LEG):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(elastic.VISIBLE, "0,2")
    first = elastic.current()
    assert first == (("0", "2"), 1) and not elastic.changed(first)
    file = tmp_path / "gpus"
    file.write_text("1\n4\n")
    monkeypatch.setenv(elastic.FILE, str(file))
    assert elastic.changed(first) and elastic.current() == (("1",), 4)
    with elastic.watch() as cards:
        assert cards.now() == ("1",) and not cards.changed()
        file.write_text("1,3\n5\n")
        os.kill(os.getpid(), signal.SIGUSR1)
        assert cards.changed() and cards.now() == ("1", "3") and not cards.changed()
        cards.save_if_told(lambda: None)
        os.kill(os.getpid(), signal.SIGTERM)
        saved: list[int] = []
        with pytest.raises(SystemExit) as left:
            cards.save_if_told(lambda: saved.append(1))
        assert left.value.code == 143 and saved == [1]
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
