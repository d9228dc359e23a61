"""What cards showed, and who had them, as people see it: values of the view, lines of the terminal, both languages."""

import json
import os
import subprocess
import sys
import time

import pytest

from jostle.session import Session
from jostle.store.history import CardPage, HistoryFile, Mean, Stay
from jostle.views import historytypes
from jostle.views.history import History, history, idle_since, longest, stays
from jostle.wording.history import lines, spark, used
from tests.e2e.instance import SOURCE
from tests.fits import misfits

U, V = "GPU-0", "GPU-1"


@pytest.fixture
def now(monkeypatch):
    """It stands still: what is written and looked at meanwhile is of one moment."""
    at = time.time()
    monkeypatch.setattr("jostle.views.history.time.time", lambda: at)
    return at


def span(began, ended, **who):
    nobody = dict.fromkeys(("job", "run", "name", "outcome", "user", "pid"))
    return {"began_at": began, "ended_at": ended, **nobody, **who}


def written(home, now, *, minutes=60, load=50.0, held=()):
    """An hour of one card, its last ten seconds not over yet."""
    file = HistoryFile(str(home))
    first = int(now // 10 * 10) - 60 * minutes
    means = [Mean(at, 10.0, load, 1000.0, 40.0, None) for at in range(first, int(now // 10 * 10), 10)]
    file.write([CardPage(U, 0, "A100", 24576, means, held)])
    file.close()


def seen(seconds) -> History:
    session = Session()
    try:
        view = history(session, seconds)
        assert list(misfits(view.plain(), historytypes.History)) == []
        return view
    finally:
        session.close()


def run(store, job, n, uuid, began, ended, outcome):
    state = "running" if ended is None else "ended"
    columns = "job, n, uni_id, state, share, log, clock_at, started_at, ended_at, outcome"
    with store.store.transaction() as db:
        db.execute(
            f"INSERT INTO run ({columns}) VALUES (?, ?, ?, ?, 0, '', 0, ?, ?, ?)",
            (job, n, f"{job}.{n}", state, began, ended, outcome),
        )
        db.execute("INSERT INTO lease (job, n, uuid, idx, used_at_start) VALUES (?, ?, ?, 0, 0)", (job, n, uuid))


@pytest.mark.parametrize(
    ("seconds", "step"),
    [(60, 10), (1800, 10), (3600, 30), (7200, 60), (6 * 3600, 300), (86400, 600), (7 * 86400, 3600), (30 * 86400, 14400)],
)
def test_a_stretch_of_any_length_has_few_points_that_stay_where_they_are(home, now, seconds, step):
    written(home, now, minutes=1)
    view = seen(seconds)
    (card,) = view.cards
    assert view.step_s == step and view.began_at % step == view.ended_at % step == 0
    assert len(card["load"]) == (view.ended_at - view.began_at) / step <= 201
    assert view.ended_at - view.began_at >= seconds


def test_points_are_means_and_what_nobody_read_is_not_zero(home, now):
    written(home, now, minutes=30, load=50.0)
    (card,) = seen(3600).cards
    known = [load for load in card["load"] if load is not None]
    assert set(known) == {50} and 58 <= len(known) <= 62 and card["load"][:50] == [None] * 50
    assert set(card["used_mib"]) == {None, 1000} and set(card["temperature"]) == {None, 40} and set(card["power_w"]) == {None}


def test_the_newest_minute_is_the_engines_and_short_stretches_are_its_seconds(home, engine, now):
    written(home, now - 60, load=10.0)
    last = int(now // 10 * 10) - 20
    row = {"uuid": U, "index": 3, "name": "A100", "total_mib": 24576, "held": [[now - 50, "bob", 7, now - 1]],
           "means": [[last, 10.0, 90.0, 2000.0, None, None]], "recent": [[now - 15, 7, 5], [now - 5, 8, 6]]}  # fmt: skip
    engine.answers["history"] = lambda request: {"cards": [row if request["seconds"] else {**row, "recent": []}]}
    (card,) = seen(1800).cards
    assert 90 in card["load"] and card["load"].count(90) == 1 and 10 in card["load"] and card["index"] == 3
    assert [(one["user"], one["pid"], one["ended_at"]) for one in card["spans"]] == [("bob", 7, None)]
    assert (card["free_since"], card["before"], card["idle_since"]) == (None, None, None), "he has it, and it is busy"
    view = seen(60)
    assert view.step_s == 1 and [load for load in view.cards[0]["load"] if load is not None] == [7, *[8] * 10]


def test_our_runs_are_those_of_the_database_and_others_those_of_the_history(home, store, now):
    job, other = store(state="succeeded", ended_at=now - 600, attempt=1), store(state="running", attempt=2)
    run(store, job, 1, U, now - 900, now - 600, "succeeded")
    run(store, other, 1, U, now - 9000, now - 8000, "failed")
    run(store, other, 2, V, now - 100, None, None)
    written(home, now, held=[Stay(now - 500, "bob", 7, now - 300)])
    (card,) = seen(3600).cards
    who = [(one["job"], one["run"], one["outcome"], one["user"]) for one in card["spans"]]
    assert who == [(job, 1, "succeeded", None), (None, None, None, "bob")]
    assert card["before"]["user"] == "bob" and card["free_since"] == pytest.approx(now - 300)
    (card,) = seen(86400).cards
    assert [one["job"] for one in card["spans"]] == [other, job, None]


def test_who_had_a_card_before_is_known_beyond_the_stretch_that_is_shown(home, store, now):
    written(home, now, held=[Stay(now - 90000, "bob", 7, now - 80000)])
    (card,) = seen(3600).cards
    assert (card["spans"], card["before"]["user"], round(now - card["free_since"])) == ([], "bob", 80000)


def test_stays_of_one_user_that_follow_closely_are_one():
    held = [Stay(0, "bob", 1, 100), Stay(50, "eve", 2, 400), Stay(150, "bob", 3, 300), Stay(400, "bob", 4, 500)]
    found = stays(held, 1000, live=True)
    assert sorted(found, key=lambda one: one["began_at"]) == [
        span(0, 300, user="bob", pid=3), span(50, 400, user="eve", pid=2), span(400, 500, user="bob", pid=4),
    ]  # fmt: skip
    assert stays([Stay(0, "bob", 1, 970)], 1000, live=True) == [span(0, None, user="bob", pid=1)]
    assert stays([Stay(0, "bob", 1, 970)], 1000, live=False) == [span(0, 970, user="bob", pid=1)], "nobody looks"


def test_who_was_seen_before_the_clock_was_set_back_is_not_there_for_that():
    left, stayed = Stay(0, "bob", 1, 4600), [Stay(100, "eve", 2, 4600), Stay(900, "eve", 2, 990)]
    assert stays([left, *stayed], 1000, live=True) == [span(0, 1000, user="bob", pid=1), span(100, None, user="eve", pid=2)]
    assert stays([Stay(0, "bob", 1, 1001)], 1000, live=True) == [span(0, None, user="bob", pid=1)], "clocks are not that exact"


def test_a_card_that_is_held_and_does_nothing_has_been_idle_since_its_last_load():
    means = [(at, at + 10, 0.0) for at in range(990, 390, -10)]
    assert idle_since([*means, (390, 400, 30.0)], 0, 1000) == 400
    assert idle_since([*means, (390, 400, 30.0)], 500, 1000) == 500, "since it is held"
    assert idle_since([(990, 1000, 30.0), *means[1:]], 0, 1000) is None
    assert idle_since([(990, 1000, None), *means[1:]], 0, 1000) is None, "not known is not idle"
    assert idle_since([*means[:10], *means[30:]], 0, 1000) == 900, "nobody looked before"
    assert idle_since(means[:3], 0, 1000) is None, "too short to speak of"


def test_of_very_many_spans_the_longest_are_kept_in_their_order():
    spans = [span(at, at + (50 if at % 1000 == 0 else 1), job=at) for at in range(0, 100_000, 100)]
    kept, left_out = longest([*spans, span(100_000, None, job=1)], 200_000)
    assert len(kept) == 200 and left_out == 801 and kept[-1]["job"] == 1
    assert [one["began_at"] for one in kept] == sorted(one["began_at"] for one in kept)
    assert set(range(0, 100_000, 1000)) <= {one["job"] for one in kept}


@pytest.mark.parametrize("asked", ["30s", "31d", "0"])
def test_a_stretch_that_is_too_short_or_too_long_is_refused(jostle, asked):
    code, _, err = jostle("gpus", "--history", asked)
    assert code == 2 and "30d" in err


def test_without_any_history_that_is_said(jostle, home):
    code, out, _ = jostle("gpus", "--history", "2h")
    assert code == 0 and "nothing is known" in out
    assert json.loads(jostle("gpus", "--history", "2h", "--json")[1])["gpus"] == []


def test_a_history_that_cannot_be_read_is_said(jostle, home):
    (home / "history.db").write_bytes(b"no database" * 100)
    assert "cannot be read" in jostle("gpus", "--history", "2h")[1]
    assert json.loads(jostle("gpus", "--history", "2h", "--json")[1])["error"]


def test_a_pipe_in_its_place_is_not_waited_for(home):
    os.mkfifo(home / "pipe")
    (home / "history.db").symlink_to("pipe")
    words = [sys.executable, "-m", "jostle", "gpus", "--history", "2h"]
    told = subprocess.run(words, env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True, text=True, timeout=60)
    assert "cannot be read" in told.stdout and told.returncode == 0, told.stderr


SHOWN = {
    "at": 7200.0, "began_at": 0, "ended_at": 7200, "step_s": 60, "engine": True, "error": "",
    "gpus": [{
        "index": 0, "uuid": U, "name": "A100", "total_mib": 24576, "load": [0, None, 100], "used_mib": [0, None, 24576],
        "temperature": [], "power_w": [], "left_out": 0, "before": None, "free_since": None, "idle_since": 6600,
        "spans": [span(0, 3600, job=17, run=1, name="train\x1b[2J", outcome="failed"), span(3600, None, user="bob", pid=7)],
    }],
}  # fmt: skip


def test_the_terminal_shows_blocks_and_who_had_the_card():
    assert list(lines(SHOWN, 100, "en")) == [
        "the last 2h00m, up to 1m00s a mark; a gap: not read", "GPU 0  A100", "  load   ▁ █ 100%", "  memory ▁ █ 24 GiB / 24 GiB",
        "  idle for 10m00s, bob 1h00m until now, job 17 train�[2J (failed) 1h00m",
    ]  # fmt: skip
    chinese = "\n".join(lines(SHOWN, 100, "zh"))
    assert "已闲置 10m00s，bob 至今 1h00m，任务 17 train�[2J（failed） 1h00m" in chinese and "负载 ▁ █ 100%" in chinese


def test_a_free_card_says_for_how_long_and_who_had_it():
    card = {**SHOWN["gpus"][0], "idle_since": None, "free_since": 6000, "spans": [], "before": span(0, 6000, user="", pid=None)}
    *_, last = lines({**SHOWN, "gpus": [card]}, 100, "en")
    assert last == "  free for 20m00s, somebody who cannot be seen 1h40m"
    *_, last = lines({**SHOWN, "gpus": [{**card, "free_since": None, "before": None}]}, 100, "en")
    assert last == "  nobody has had it"


def test_many_values_become_as_many_blocks_as_there_is_room():
    assert spark([0, 100] * 50, 100, 50) == "▅" * 50
    assert spark([None, None, 0, None], 100, 2) == " ▁" and spark([], 100, 20) == ""


@pytest.mark.parametrize(
    ("language", "share", "said"),
    [
        ("en", 0.0, "load: mean 70%, p95 90%; seen for 10s"),
        ("en", 0.12, "load: mean 70%, p95 90%, 0% for 12% of the time; seen for 10s"),
        ("zh", 0.001, "负载：平均 70%，p95 90%；观测时长 10s"),
        ("zh", 0.12, "负载：平均 70%，p95 90%，12% 的时间为 0%；观测时长 10s"),
    ],
)
def test_the_time_without_load_is_told_where_there_was_some(language, share, said):
    profile = {"observed_s": 10.0, "memory_p50_mib": None, "peak_at_s": None, "shared": []}
    assert used({"profile": {**profile, "load_mean": 70.0, "load_p95": 90, "idle_share": share}}, language) == said
