"""A preview says what a submit would then do, and leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest

from jostle.engine.loop import Loop
from jostle.engine.preview import MOST
from jostle.engine.service import Service
from jostle.errors import Invalid
from tests.engine.fakes import Host


@pytest.fixture
def host(tmp_path):
    """Four cards: one is held by a job that lasts, one by a stranger."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    made = Host(str(home))
    (id,) = made.submit({"queue": "busy"})
    made.disk.durations[id] = (1000.0, 0, "")
    made.disk.strangers["GPU-3"] = 20000
    made.step()
    made.step(1)
    return made


def asked(host: Host, *jobs: dict[str, Any], **head: Any) -> dict[str, Any]:
    full = [{"commands": ["true"], "workdir": "/", **job} for job in jobs]
    service = Service(host.engine, Loop(), permanent=True)
    answer = service.previews.answer({"op": "preview", "batch": head, "jobs": full, "once": None})
    service.server.close()
    return answer


def whole(host: Host) -> list[Any]:
    tables = ("batch", "job", "event", "dep", "context", "shape", "run", "lease", "once", "meta", "sqlite_sequence")
    known = [row for (row,) in host.store.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = [host.store.db.execute(f"SELECT * FROM {table}").fetchall() for table in tables if table in known]
    engine = host.engine
    return [rows, host.store.next_job, host.store.next_batch, host.store.generation, engine.lanes, engine.waits,
            dict(engine.rules.of_batch), dict(engine.last_end), engine.turn]  # fmt: skip


WAYS: list[dict[str, Any]] = [
    {},
    {"gpus": [2, 2]},
    {"gpus": [0, 0]},
    {"gpus": [3, 3]},
    {"gpus": [9, 9]},
    {"memory_mib": 30000},
    {"memory_mib": 4000},
    {"queue": "busy"},
    {"queue": "quiet"},
    {"needs": [["job", 1, False]]},
    {"intent": "hold"},
    {"on": ["elsewhere"]},
]


@pytest.mark.parametrize("job", WAYS, ids=str)
@pytest.mark.parametrize("policy", [{}, {"min_gpu": 1, "max_gpu": 2, "gpu_left": 1}, {"max_concurrent": 1}], ids=str)
def test_what_a_preview_says_is_what_the_submit_then_does(host, job, policy):
    (told,) = asked(host, job, policy=policy)["jobs"]
    (id,) = host.submit(job, policy=policy)
    host.step()
    state, reason = host.store.db.execute("SELECT state, reason FROM job WHERE id = ?", (id,)).fetchone()
    held = [index for (index,) in host.store.db.execute("SELECT idx FROM lease WHERE job = ? ORDER BY idx", (id,))]
    assert told["starts"] is (state in ("starting", "running")) and told["gpus"] == held
    if not told["starts"]:
        service = Service(host.engine, Loop(), permanent=True)
        why = service.answers.why({"id": id})["reason"]
        service.server.close()
        assert told["reason"]["code"] == why["code"] and reason is None


def test_a_preview_leaves_no_trace_in_the_store_or_the_engine(host):
    host.submit({"gpus": [3, 3]})  # it waits
    host.step()
    before = whole(host)
    for policy in ({}, {"order": "random", "share": True}):
        asked(host, {}, {"queue": "busy"}, {"gpus": [2, 2]}, policy=policy, queues="own")
        asked(host, {"queue": "busy"}, key="add", join=True, policy=policy)
        assert whole(host) == before
    (id,) = host.submit({}, policy={"max_concurrent": 5})
    host.step()
    batch = host.store.db.execute("SELECT batch FROM job WHERE id = ?", (id,)).fetchone()[0]
    assert host.engine.rules.of_batch[batch].max_concurrent == 5 and not host.engine.rules.of_batch[batch].share


def test_jobs_of_one_question_are_told_apart_from_those_that_are_there(host):
    told = asked(
        host, {"queue": "1"}, {"queue": "1"}, {"queue": "1"}, {"needs": [["index", 0, False], ["job", 1, False]]}, queues="own"
    )  # fmt: skip
    first, second, third, needy = told["jobs"]
    assert first["starts"] and (second["after"], third["after"]) == ([0], [1]) and second["reason"] is None
    assert needy["reason"] == {"code": "after", "params": {"jobs": [1]}, "gpus": []}
    (own,) = [job for job in asked(host, {}, {"needs": [["index", 0, False]]})["jobs"] if job["after"]]
    assert own["after"] == [0]


def test_as_many_start_as_there_are_cards_for_and_the_rest_is_told_why(host):
    told = asked(host, *({} for _ in range(20)))["jobs"]
    assert sum(job["starts"] for job in told) == 2
    assert {job["reason"]["code"] for job in told if not job["starts"]} == {"gpus"}


def test_which_of_several_come_first_is_not_promised_where_chance_decides(host):
    drawn = {"order": "random"}
    both = asked(host, {}, {}, policy=drawn)  # there is a card for each
    assert both["drawn"] and [(job["starts"], job["chance"], job["gpus"]) for job in both["jobs"]] == [(True, False, [])] * 2
    few = asked(host, {}, {}, {"gpus": [2, 2]}, {"gpus": [9, 9]}, policy=drawn)["jobs"]
    assert [(job["starts"], job["chance"]) for job in few] == [(False, True)] * 3 + [(False, False)]
    assert few[3]["reason"]["code"] == "impossible_count" and few[0]["reason"] is None
    none = asked(host, {"gpus": [3, 3]}, {"gpus": [3, 3]}, policy=drawn)["jobs"]
    assert [(job["chance"], job["reason"]["code"]) for job in none] == [(False, "gpus")] * 2
    assert not asked(host, {}, policy=drawn)["drawn"] and not asked(host, {}, {})["drawn"]


def test_the_cards_that_are_held_and_may_be_held_are_counted_as_decide_counts_them(host):
    told = asked(host, {}, policy={"min_gpu": 1, "max_gpu": 8, "gpu_left": 1})
    assert (told["held"], told["may"]) == (["GPU-0"], 3)
    assert [card["refusal"] and card["refusal"]["code"] for card in told["cards"]] == ["taken", None, None, "stranger"]
    assert asked(host, {})["may"] is None


def test_what_can_never_run_is_told_as_a_submit_tells_it(host):
    told = asked(host, {"memory_mib": 90000})
    assert told["checked"] and told["never"][0]["reason"]["code"] == "impossible"


def test_a_preview_is_of_few_jobs(host):
    with pytest.raises(Invalid, match=f"at most {MOST} jobs"):
        asked(host, *({} for _ in range(MOST + 1)))


RULES = [{}, {"gpu_left": 1}, {"gpu_left": 1, "min_gpu": 1}, {"max_gpu": 2}, {"gpu_left": 4, "max_gpu": 8}, {"gpus": [0, 1]},
         {"gpus": [1, 2], "gpu_left": 1, "max_gpu": 8}, {"min_gpu": 2, "max_gpu": 2}]  # fmt: skip


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_how_many_cards_rules_allow_is_counted_as_a_job_under_them_would_find_it(host, rules):
    """Whoever asks for as many as may be held more gets them, if so many are there; one more is refused by the rules."""
    service = Service(host.engine, Loop(), permanent=True)
    courtesy = service.previews.what_if({"policy": rules})["courtesy"]
    service.server.close()
    assert courtesy["held"] == [0] and (courtesy["limits"] is not None) is bool({"min_gpu", "max_gpu"} & set(rules))
    free = len({1, 2} & set(courtesy["range"]) - set(courtesy["left"]))  # of the other cards a stranger has one
    most = min(courtesy["more"], free) if courtesy["limits"] else free
    for count in range(1, 5):
        (told,) = asked(host, {"gpus": [count, count]}, policy=rules)["jobs"]
        assert told["starts"] is (count <= most), (count, courtesy)


def test_other_rules_tell_which_waiting_jobs_would_start_and_change_nothing(host):
    strict = {"min_gpu": 0, "max_gpu": 1}
    first, second = host.submit({"gpus": [1, 1]}, {"gpus": [2, 2]}, policy=strict)
    host.step()
    batch = host.store.db.execute("SELECT batch FROM job WHERE id = ?", (first,)).fetchone()[0]
    before = whole(host)
    service = Service(host.engine, Loop(), permanent=True)
    rules = {most: {**strict, "max_gpu": most} for most in (1, 2, 3)}
    said = {most: service.previews.what_if({"policy": of, "batches": {str(batch): of}}) for most, of in rules.items()}
    service.server.close()
    assert whole(host) == before
    assert [(job["id"], job["starts"]) for job in said[1]["waiting"]] == [(first, False), (second, False)]
    assert {job["reason"]["code"] for job in said[1]["waiting"]} == {"limit", "impossible_limit"}
    assert [job["starts"] for job in said[2]["waiting"]] == [True, False]
    assert said[3]["courtesy"]["more"] == 2
