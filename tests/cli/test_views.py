"""What people look at, as values: the faces put words and layout to them, and any thread may ask."""

import json
import re
import threading
import time
from pathlib import Path
from typing import Any

from jostle.core.model import Gpu
from jostle.core.reasons import Reason
from jostle.engine.shown import gpu
from jostle.session import Session
from jostle.views import metrics, types
from jostle.views.cards import cards
from jostle.views.listing import listing
from jostle.views.story import story
from jostle.views.why import explained
from tests.engine.test_service import words_in
from tests.fits import misfits

GPUS = {"shapes": {}, "running": {}, "now": 0.0, "hold": ""}


def without_words(value):
    if isinstance(value, dict):
        return {key: without_words(v) for key, v in value.items() if key not in ("text", "decides")}
    return [without_words(v) for v in value] if isinstance(value, list) else value


def scene(store, engine):
    """A job that waits, one that is behind it, one that failed; and an engine that says why."""
    first = store(rows=2, queue="q")
    failed = store(state="failed", ended_at=time.time(), reason=json.dumps({"code": "time_limit", "params": {"limit_s": 60}}))
    with store.store.transaction():
        store.store.event(time.time(), "failed", batch=1, job=failed, run=1, reason={"code": "cancelled", "params": {}})
    (shape,) = store.store.db.execute("SELECT shape FROM job WHERE id = ?", (first,)).fetchone()
    refusal = {"index": 0, "uuid": "GPU-0", "code": "taken", "params": {"job": 4}}
    reason = {"code": "gpus", "params": {"fit": 0, "total": 1, "needed": 1}, "gpus": [refusal]}
    engine.answers |= {
        "reasons": {**GPUS, "shapes": {str(shape): reason}},
        "why": lambda request: {"reason": reason if request["id"] == first else None, "behind": 2},
        "gpus": {"gpus": [{"index": 0, "refusal": refusal, "faulty": None}], "spec": "sim", "age_s": 0.0, "error": ""},
    }
    return first, failed


def test_views_have_codes_and_numbers_and_json_is_their_plain_form_with_words(jostle, store, engine):
    first, failed = scene(store, engine)
    session = Session()
    told = json.loads(jostle("why", first, "--json")[1])
    assert without_words(told) == {"schema": 1, **explained(session, first).plain(True)}
    assert told["reason"]["text"] and told["gpus"][0]["text"]
    told = json.loads(jostle("show", failed, "--json")[1])
    assert without_words(told) == {"schema": 1, **story(session, failed).plain()}
    assert told["job"]["reason"]["text"] and told["events"][0]["data"]["reason"]["text"]
    told = json.loads(jostle("ps", "--json")[1])
    assert without_words(told["jobs"]) == listing(session).rows and all(row["reason"]["text"] for row in told["jobs"])
    told = json.loads(jostle("gpus", "--json")[1])
    assert told["gpus"][0]["refusal"].pop("text") == "taken by your job 4"
    assert told["gpus"][0]["refusal"] == cards(session).gpus[0]["refusal"]
    seen = [explained(session, first), story(session, failed), listing(session), cards(session)]
    assert words_in(seen) == []
    session.close()


def test_any_thread_may_look_and_several_at_once(store, engine):
    first, failed = scene(store, engine)
    session = Session()
    looks = [lambda: listing(session, short=True), lambda: explained(session, first), lambda: story(session, failed)] * 3
    wanted = [look() for look in looks]
    found = [None] * len(looks)

    def put(k):
        for _ in range(5):
            found[k] = looks[k]()

    threads = [threading.Thread(target=put, args=(k,)) for k in range(len(looks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted
    session.close()


def test_cards_without_an_engine_are_of_the_same_type(home):
    session = Session()
    seen = cards(session, "sim:2x8").plain()
    assert len(seen["gpus"]) == 2 and list(misfits(seen, types.Cards)) == []
    session.close()


def test_cards_of_an_engine_are_of_the_views_type_and_in_words_of_that_of_json(jostle, home, engine):
    faulty = Reason("faulty_memory", {"errors": 2})
    aside: list[dict[str, Any]] = [{"faulty": faulty}, {"quarantine": ((12, 7, 1),)}, {}]
    gpus = [Gpu(uuid=f"GPU-{n}", index=n, **why) for n, why in enumerate(aside)]
    shown = [json.loads(json.dumps(gpu(card, 0, None, (), None))) for card in gpus]
    engine.answers["gpus"] = {"gpus": shown, "spec": "sim", "age_s": 0.0, "error": "", "more": None}
    session = Session()
    seen = cards(session).plain()
    session.close()
    assert list(misfits(seen, types.Cards)) == []
    assert [card["faulty"] and card["faulty"]["code"] for card in seen["gpus"]] == ["faulty_memory", None, None]
    assert seen["gpus"][1]["quarantine"] == [[12, 7, 1]]
    told = json.loads(jostle("gpus", "--json")[1])
    assert told.pop("schema") == 1 and list(misfits(told, types.WordedCards)) == []
    assert [bool(card["quarantine"]) for card in told["gpus"]] == [True, True, False]


def test_a_short_list_says_how_much_it_leaves_out(store):
    now = time.time()
    last = store(rows=130) + 129
    store(rows=40, state="succeeded", ended_at=now)
    store(rows=25, state="failed", ended_at=now)
    session = Session()
    short = listing(session, short=True)
    assert (short.engine, short.waiting, short.failed) == (False, (30, last), 5)
    assert len(short.rows) + 30 + short.failed + short.ended == len(listing(session, everything=True).rows)
    session.close()


def test_the_numbers_tell_how_many_jobs_are_paused(store, monkeypatch):
    said = {str(n): {"code": code, "params": {}} for n, code in enumerate(("paused", "pausing", "paused_until", "no_load"))}
    for reasons, told in (({"shapes": {}, "running": said}, [3]), ({"shapes": {}, "running": {}}, [0]), (None, [])):
        monkeypatch.setattr(metrics, "_engine", lambda _, reasons=reasons: ({}, {}, reasons, {}))
        session = Session()
        assert [one.value for one in metrics.metrics(session) if one.name == "jostle_jobs_paused"] == told
        session.close()


def test_the_numbers_have_every_outcome_of_a_run():
    page = (Path(__file__).parents[2] / "docs" / "states.md").read_text("utf-8").partition("## Runs and their outcomes")[2]
    table = re.findall(r"^\| `(\w+)` \|", page.partition("## Error types")[0], re.MULTILINE)
    assert sorted(metrics.OUTCOMES) == sorted(table)
