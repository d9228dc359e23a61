"""When jobs end and cards are free, as the faces show it: from runs that are alike, where they tell."""

import json
import time

import pytest

from jostle.session import Session
from jostle.store import runs
from jostle.views import types
from jostle.views.cards import cards
from jostle.views.listing import listing
from jostle.wording.history import foreseen, freed
from tests.cli.test_history import run
from tests.fits import misfits

U, MODEL = "GPU-0", "A100"


def ended(store, seconds, *, command="python train.py --lr 3", workdir="/w", model=MODEL, outcome="succeeded"):
    """A run that took so long."""
    now = time.time()
    id = store(state=outcome, ended_at=now, attempt=1, commands=[command], workdir=workdir)
    run(store, id, 1, U, now - seconds, now, outcome)
    with store.store.transaction():
        runs.profile(store.store, (id, 1), model, {})
    return id


def running(store, since, *, command="python3 ./train.py --lr=0.1", workdir="/w", **fields):
    began = time.time() - since
    id = store(state="running", attempt=1, started_at=began, commands=[command], workdir=workdir, **fields)
    run(store, id, 1, U, began, None, None)
    return id


@pytest.fixture
def estimate(store, engine):
    engine.answers["reasons"] = {"shapes": {}, "running": {}, "now": 0.0, "hold": "", "models": {U: MODEL}, "next": []}

    def look(id):
        session = Session()
        try:
            (row,) = [row for row in listing(session).rows if row["id"] == id]
            assert list(misfits(row, types.Job)) == []
            return row["estimate"]
        finally:
            session.close()

    return look


def test_a_running_job_ends_when_runs_like_it_had(store, estimate):
    for seconds in (600, 660, 720):
        ended(store, seconds)
    id = running(store, 60, time_limit=7200)
    told = estimate(id)
    (began,) = store.store.db.execute("SELECT started_at FROM job WHERE id = ?", (id,)).fetchone()
    assert [round(told[key] - began) for key in ("ends_at", "earliest_at", "latest_at", "limit_at")] == [660, 600, 720, 7200]
    assert told["runs"] == 3 and told["starts_at"] is None


@pytest.mark.parametrize(
    "other", [{"command": "python other.py --lr 3"}, {"workdir": "/elsewhere"}, {"model": "V100"}, {"outcome": "failed"}]
)
def test_runs_that_are_not_like_it_tell_nothing(store, estimate, other):
    for seconds in (600, 660, 720):
        ended(store, seconds, **other)
    ended(store, 600)
    told = estimate(running(store, 60))
    assert (told["ends_at"], told["runs"], told["limit_at"]) == (None, 0, None)


def test_a_card_is_free_when_our_runs_have_left_it_and_of_strangers_nothing_is_known(store, engine, estimate):
    for seconds in (600, 660, 720):
        ended(store, seconds)
    id = running(store, 60)
    ours = {"pid": 1, "user": "me", "used_mib": 1, "name": "", "exe": "", "run": f"{id}.1"}
    card = {"index": 0, "uuid": U, "name": MODEL, "runs": [f"{id}.1"], "holders": [ours], "refusal": None, "faulty": None}
    engine.answers["gpus"] = {"gpus": [card], "spec": "sim", "age_s": 0.0, "error": ""}
    session = Session()
    (seen,) = cards(session).gpus
    assert seen["free_at"] == estimate(id)["ends_at"] and seen["free_by"] is None
    engine.answers["gpus"] = {"gpus": [{**card, "holders": [ours, {**ours, "run": None}]}], "spec": "", "age_s": 0.0, "error": ""}
    assert cards(session).gpus[0]["free_at"] is None
    engine.answers["gpus"] = {"gpus": [{**card, "runs": [], "holders": []}], "spec": "", "age_s": 0.0, "error": ""}
    assert cards(session).gpus[0]["free_at"] is None, "it is free now"
    session.close()


def test_who_waits_for_cards_of_ours_may_start_when_they_are_left(store, engine, estimate):
    for seconds in (600, 660, 720):
        ended(store, seconds)
    first = running(store, 60)
    waiting = store(rows=3, ready=1)
    (shape,) = store.store.db.execute("SELECT shape FROM job WHERE id = ?", (waiting,)).fetchone()
    refusal = {"index": 0, "uuid": U, "code": "taken", "params": {"job": first, "run": 1}}
    reason = {"code": "gpus", "params": {"fit": 0, "total": 1, "needed": 1}, "gpus": [refusal]}
    order = [waiting, waiting + 1, waiting + 2]
    engine.answers["reasons"] |= {"shapes": {str(shape): reason}, "next": order}
    told = estimate(waiting)
    assert (told["starts_at"], told["gpus"], told["ends_at"]) == (estimate(first)["ends_at"], [0], None)
    assert estimate(waiting + 1) is None, "who gets the card then nobody knows"
    engine.answers["reasons"]["next"] = []
    assert estimate(waiting) is None, "others wait, too"
    stranger = {**refusal, "index": 1, "code": "taken", "params": {"job": 4711, "run": 1}}
    engine.answers["reasons"] |= {"next": order, "shapes": {str(shape): {**reason, "gpus": [refusal, stranger]}}}
    assert estimate(waiting) is None, "one of which nothing is known may be left first"


def test_it_is_told_in_both_languages_and_only_if_there_is_something_to_tell(store, engine, estimate, jostle):
    for seconds in (600, 660, 720):
        ended(store, seconds)
    id = running(store, 60, time_limit=7200)
    engine.answers["why"] = {"reason": None, "behind": 0, "models": {U: MODEL}}
    assert "ends at about" in jostle("ps")[1]
    shown = jostle("show", id)[1]
    assert "by 3 like it; at the latest" in shown
    assert json.loads(jostle("show", id, "--json")[1])["job"]["estimate"]["runs"] == 3
    nothing = {"estimate": dict.fromkeys(("starts_at", "gpus", "ends_at", "earliest_at", "latest_at", "limit_at")) | {"runs": 0}}
    assert foreseen(nothing, "en") == foreseen({"estimate": None}, "zh") == "" and freed({"free_at": None}, "en") == ""
    assert foreseen({"estimate": {**nothing["estimate"], "starts_at": 5.0}}, "zh").startswith("预计")
    assert freed({"free_at": None, "free_by": 5.0}, "zh").startswith("最迟")


def stood(store, id, seconds, *, now=False):
    with store.store.transaction():
        state = json.dumps({"now": now, "since": 0.0, "times": 1, "reason": {}})
        store.store.db.execute("UPDATE run SET paused_s = ?, paused = ? WHERE job = ?", (seconds, state, id))


def test_time_in_which_a_run_was_paused_does_not_count(store, estimate):
    for seconds in (600, 660, 720):
        stood(store, ended(store, seconds + 1000), 1000)
    id = running(store, 500, time_limit=7200, when_stranger="pause")
    stood(store, id, 300)
    told = estimate(id)
    (began,) = store.store.db.execute("SELECT started_at FROM job WHERE id = ?", (id,)).fetchone()
    assert [round(told[key] - began) for key in ("ends_at", "earliest_at", "latest_at", "limit_at")] == [960, 900, 1020, 7500]
    stood(store, id, 300, now=True)
    told = estimate(id)
    assert (told["ends_at"], told["limit_at"], told["runs"]) == (None, None, 0), "nobody knows when it goes on"
