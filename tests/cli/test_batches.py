"""`jostle ps --batches`: the batches, what each was made of, how it stands, and how long it will still take."""

import json
import os
import time

from jostle.store import jobs
from jostle.views import types
from jostle.views.batches import remaining
from tests.cli.conftest import WHOLE
from tests.fits import misfits

NOW = 2_000_000_000.0


def batch(store, key, *rows, about=None):
    """One batch of (state, fields of the row), each with a run if it has begun."""
    head = {"key": key, "name": key, "policy": {}, "about": about}
    specs = [{**WHOLE, "name": f"j{k}", "commands": ["true"], "workdir": "/", "params": row[1]} for k, row in enumerate(rows)]
    made = store.store
    with made.transaction() as db:
        answer = jobs.submit(made, {"batch": head, "context": {}, "once": None, "jobs": specs}, at=NOW, now=0.0, rank=lambda: 0.0)
        for id, (state, _, fields) in enumerate(rows, answer["ids"][0]):
            for column, value in {"state": state, **fields}.items():
                db.execute(f"UPDATE job SET {column} = ? WHERE id = ?", (value, id))
            if "started_at" in fields:
                outcome = state if "ended_at" in fields else None
                db.execute(
                    "INSERT INTO run (job, n, uni_id, state, share, log, clock_at, started_at, ended_at, outcome)"
                    " VALUES (?, 1, ?, ?, 0, '', 0, ?, ?, ?)",
                    (id, f"u{id}", "ended" if outcome else "running", fields["started_at"], fields.get("ended_at"), outcome),
                )
    return answer["batch"]


def ran(began, ended):
    return {"attempt": 1, "started_at": NOW + began, "ended_at": NOW + ended}


def test_batches_are_listed_with_their_file_their_states_and_the_time_that_is_left(jostle, store, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW + 110)
    done = json.dumps({"code": "done_before", "params": {"job": 1, "run": 1}})
    first = batch(store, "plain", ("succeeded", {}, ran(0, 30)), ("succeeded", {}, ran(10, 50)))
    second = batch(
        store, "sweep", ("succeeded", {"seed": "1"}, ran(0, 100)),
        ("running", {"seed": "2"}, {"attempt": 1, "started_at": NOW + 80}),
        ("queued", {"seed": "3"}, {}), ("skipped", {"seed": "4"}, {"ended_at": NOW, "reason": done}),
        ("skipped", {"seed": "5"}, {"ended_at": NOW}), about={"file": "/w/suites.yaml", "suite": "gamma"},
    )  # fmt: skip
    code, out, err = jostle("ps", "--batches", "--json")
    told = json.loads(out)
    assert (code, err, told.pop("schema")) == (0, "", 1)
    assert list(misfits(told, types.Batches)) == []
    newest, oldest = told["batches"]
    assert newest == {
        "id": second, "name": "sweep", "file": "/w/suites.yaml", "suite": "gamma", "sweep": True, "submitted_at": NOW,
        "started_at": NOW, "ended_at": None, "jobs": 5, "done_before": 1, "left_s": 170.0,  # 70 of one, then 100 of the next
        "counts": {"succeeded": 1, "running": 1, "queued": 1, "skipped": 2},
    }  # fmt: skip
    assert (oldest["id"], oldest["sweep"], oldest["started_at"], oldest["ended_at"]) == (first, False, NOW, NOW + 50)
    assert oldest["left_s"] is None and oldest["file"] is None
    code, out, _ = jostle("ps", "--batches")
    lines = [line.split(maxsplit=5) for line in out.splitlines()]
    assert lines[1][:5] == [str(second), "sweep", "suites.yaml", "5", "1m50s"]
    assert lines[1][5] == "1 running, 1 queued, 1 succeeded, 1 skipped, 1 done before, about 2m50s left"
    assert lines[2] == [str(first), "plain", "-", "2", "50s", "2 succeeded"]


def test_only_the_newest_are_listed_unless_all_are_wanted(jostle, store):
    for k in range(53):
        batch(store, f"b{k}", ("queued", {}, {}))
    assert len(json.loads(jostle("ps", "--batches", "--json")[1])["batches"]) == 50
    listed = json.loads(jostle("ps", "--batches", "--all", "--json")[1])["batches"]
    assert [one["name"] for one in listed] == [f"b{k}" for k in reversed(range(53))]


def test_without_any_batch_it_says_what_makes_one_and_other_options_are_refused(jostle, home):
    code, out, err = jostle("ps", "--batches")
    assert (code, out) == (0, "") and "jostle add" in err
    code, _, err = jostle("ps", "--batches", "--state", "failed")
    assert code == 2 and "--state" in err


def test_the_estimate_is_that_of_the_slower_of_all_together_and_the_last():
    assert remaining(100, [40.0], 0) == 60
    assert remaining(100, [40.0, 100.0], 4) == (60 + 0 + 400) / 2
    assert remaining(100, [150.0], 0) == 0
    assert remaining(10, [0.0], 3, at_once=4) == 10


def test_while_a_job_takes_much_longer_than_those_before_it_nobody_can_tell_when_all_is_done(jostle, store, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW + 110)
    batch(
        store, "b", ("succeeded", {}, ran(0, 5)), ("running", {}, {"attempt": 1, "started_at": NOW + 5}),
        ("running", {}, {"attempt": 1, "started_at": NOW + 109}), ("queued", {}, {}),
    )  # fmt: skip
    assert json.loads(jostle("ps", "--batches", "--json")[1])["batches"][0]["left_s"] is None
    assert "left" not in jostle("ps", "--batches")[1]


def test_a_file_in_a_folder_that_is_called_by_no_text_is_refused_with_a_sentence(jostle, store, tmp_path):
    folder = os.fsdecode(bytes(tmp_path) + b"/caf\xe9")
    os.mkdir(folder)
    with open(f"{folder}/a.yaml", "w") as f:
        f.write("jobs: [{run: 'true', gpus: 0, workdir: /tmp}]")
    code, _, err = jostle("run", "--dry-run", f"{folder}/a.yaml")
    assert code == 6 and "is not in UTF-8, and cannot be kept as it is" in err
