"""Intents: what is asked of the engine for what was typed."""

import time

import pytest

from jostle.errors import Unfit, Usage
from jostle.experiments import asked
from jostle.intake.intents import setting


@pytest.fixture
def intent(jostle, engine):
    engine.answers["intent"] = lambda request: {
        "done": request["ids"],
        "refused": [],
        "new": {str(i): i + 100 for i in request["ids"]},
    }

    def intent(*argv):
        code, out, err = jostle(*argv)
        return code, out, err, (engine.asked("intent") or [None])[-1]

    return intent


def test_cancel_names_the_jobs(intent):
    code, _, err, request = intent("cancel", "3", "5,6", "--now")
    assert code == 0 and "cancelled: 3 jobs (3, 5, 6)" in err
    assert (request["do"], request["ids"], request["now"]) == ("cancel", [3, 5, 6], True)


def test_what_runs_is_said_to_be_told_to_end_and_not_to_be_cancelled(intent, store, monkeypatch):
    waiting = store(state="cancelled", ended_at=time.time())
    runs = store(state="running", attempt=1, started_at=1.0)
    stopping = store(state="stopping", attempt=1, started_at=1.0)
    told = intent("cancel", waiting, runs, stopping)[2]
    assert told == (
        f"cancelled: 1 job ({waiting})\n"
        f"told to end: 2 jobs ({runs}, {stopping}); cancelled when the processes are gone\n"
    )
    monkeypatch.setenv("JOSTLE_LANG", "zh")
    assert intent("cancel", runs)[2] == f"已要求结束：1 个任务（{runs}）；进程全部退出后即为已取消\n"


def test_all_means_the_unfinished_to_cancel_and_the_failed_to_retry(intent, store):
    waiting, failed = store(), store(state="failed", ended_at=time.time())
    assert intent("cancel", "all")[3]["ids"] == [waiting]
    assert intent("retry", "all")[3]["ids"] == [failed]


def test_unhold_all_means_the_held(intent, store):
    store()
    held = store(intent="hold")
    assert intent("unhold", "all")[3]["ids"] == [held]


def test_nothing_to_do_starts_no_engine(jostle, home):
    assert jostle("cancel", "all") == (0, "", "nothing to do: no job is meant\n")
    assert not (home / "engine.lock").exists()


def test_retry_prints_the_new_ids(intent):
    assert intent("retry", "3", "4")[1] == "103\n104\n"


def test_a_refusal_is_told_and_is_a_failure(jostle, engine):
    why = {"code": "cannot_hold", "params": {"job": 3, "state": "failed"}}
    engine.answers["intent"] = {"done": [], "refused": [[3, why]], "new": {}}
    assert jostle("hold", 3) == (1, "", "jostle: job 3 is failed: only a queued job can be held\n")


def test_a_refusal_is_told_in_the_language_of_the_person(jostle, engine, monkeypatch):
    monkeypatch.setenv("JOSTLE_LANG", "zh")
    why = {"code": "tried_already", "params": {"job": 3, "new": 9}}
    engine.answers["intent"] = {"done": [], "refused": [[3, why]], "new": {}}
    assert jostle("retry", 3) == (1, "", "jostle: 任务 3 已经作为任务 9 重试过\n")


@pytest.mark.parametrize(
    ("argv", "to"),
    [
        (("3", "first"), "first"),
        (("3", "last"), "last"),
        (("3", "before", "9"), {"before": 9}),
        (("3", "after", "9"), {"after": 9}),
    ],
)
def test_move_says_where_to(intent, argv, to):
    assert intent("move", *argv)[3]["to"] == to


@pytest.mark.parametrize("argv", [("3",), ("3", "first", "4"), ("3", "before"), ("3", "up"), ("1-3", "first")])
def test_a_move_to_nowhere_is_a_usage_error(intent, store, argv):
    store(rows=5)
    assert intent("move", *argv)[0] == 2


def test_set_reads_units(intent):
    settings = ("priority=5", "memory=24GiB", "gpus=1-2", "time_limit=none", "tags=a,b", "share=true", "on=slurm,local")
    request = intent("set", "3", *settings)[3]
    assert request["values"] == {
        "priority": 5,
        "memory_mib": 24576,
        "gpus": [1, 2],
        "time_limit": None,
        "tags": ["a", "b"],
        "on": ["slurm", "local"],
        "share": True,
    }


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("3", "priorty=5"), "expected priority"),
        (("3", "memory=lots"), "a size"),
        (("3",), "key=value"),
        (("priority=5",), "ids"),
        (("3", "name=none", "x=1"), "no setting"),
        (("3", "bogus=3"), "expected one of name, "),
        (("3", "priorty=3"), "expected priority"),
        (("3", "share=yes"), "true, false"),
    ],
)
def test_a_bad_setting_is_a_usage_error(intent, argv, words):
    code, _, err, request = intent("set", *argv)
    assert code == 2 and words in err and request is None and "set: " in err


def test_what_is_no_setting_and_the_name_of_a_job_is_told_how_that_is_written(intent, store):
    assert "name:" not in intent("set", "lr=0.1", "priority=1")[2]
    store(name="lr=0.1")
    code, _, err, request = intent("set", "lr=0.1", "priority=1")
    assert code == 2 and request is None and "no setting 'lr'" in err
    assert err.endswith("; the job of that name is name:lr=0.1\n")
    assert intent("set", "name:lr=0.1", "priority=1")[0] == 0


def test_what_is_not_understood_is_told_without_options_and_verbs_for_other_faces_ask_too():
    for key, text in (("bogus", "3"), ("memory", "lots")):
        with pytest.raises(Usage) as why:
            setting(key, text)
        assert "set:" not in str(why.value)
    with pytest.raises(Unfit) as unfit:
        asked.size("x")
    assert unfit.value.what == "tail" and str(unfit.value).startswith("tail 'x' is not understood")


def test_retry_all_means_failed_and_skipped_jobs_that_were_not_retried(intent, store):
    ended = time.time()
    failed, skipped = store(state="failed", ended_at=ended), store(state="skipped", ended_at=ended)
    store(state="cancelled", ended_at=ended)
    again = store(state="failed", ended_at=ended, retry_of=failed)
    assert intent("retry", "all")[3]["ids"] == [skipped, again]


def test_all_means_those_that_are_not_finished_and_complains_of_none_that_has_ended_since(jostle, store, engine):
    id = store()
    ended = {"code": "ended_already", "params": {"job": id, "state": "succeeded"}}
    engine.answers["intent"] = {"done": [], "refused": [[id, ended]], "new": {}}
    assert jostle("cancel", "all") == (0, "", "")
    assert jostle("cancel", id)[0] == 1


def never(request):
    """An engine whose cards have 24 GiB."""
    wide = [k for k, job in enumerate(request["jobs"], 1) if (job["memory_mib"] or 0) > 24576]
    params = {"needed": 1, "needed_mib": 40960, "able": 0, "largest_mib": 24576, "cards": 2}
    entry = {"jobs": wide, "count": len(wide), "reason": {"code": "impossible", "params": params}}
    return {"checked": True, "never": [entry] if wide else []}


def test_a_change_or_a_retry_that_can_never_run_is_told_at_once_as_a_new_job_is(jostle, store, engine):
    first, second = store(), store(memory_mib=40960)
    engine.answers |= {"check": never, "intent": {"done": [first, second], "refused": [], "new": {}}}
    code, _, err = jostle("set", first, second, "priority=3")
    assert code == 0 and f"warning: job {second}: It can never start" in err and f"job {first}:" not in err
    engine.answers["intent"] = {"done": [first], "refused": [], "new": {str(first): second}}
    assert f"warning: job {second}: It can never start" in jostle("retry", first)[2]
