"""Jobs as people write them: by number, by name, by queue, tag and batch."""

import json
import shlex

import pytest

from jostle.core.limits import MANAGER
from jostle.errors import NotFound, Usage
from jostle.intake import ids
from jostle.store import memberreads
from jostle.store.reads import Reader as StoreReader


class Reader:
    def last_id(self):
        return 20


class Nothing:
    def last_id(self):
        return None


def test_ids_are_read_in_the_order_given_and_each_once():
    assert ids.jobs(["12", "3-5", "1,4", "last"], Reader, lambda: [99]) == [12, 3, 4, 5, 1, 20]


def test_all_means_what_the_verb_says():
    assert ids.jobs(["all"], Reader, lambda: [7, 8]) == [7, 8]


def test_a_range_means_what_there_is_of_it():
    assert ids.jobs(["18-999999999"], Reader) == [18, 19, 20]


def test_the_store_is_not_read_for_plain_numbers():
    def never():
        raise AssertionError("the store was read")

    assert ids.jobs(["1", "2,3"], never) == [1, 2, 3]


def test_where_groups_are_not_asked_for_there_are_none():
    """Whoever may only look may wait for numbers, and must not try out names."""
    for word in ("queue:12", "name:12", "batch:1"):
        with pytest.raises(Usage):
            ids.jobs([word], Reader, list)


@pytest.mark.parametrize("word", ["-1", "1.5", "1e3", "x", "5-3", "1--2", "٣", "9" * 30, "a5f0-11ee", "all"])
def test_what_is_no_id_is_a_usage_error(word):
    with pytest.raises(Usage):
        ids.jobs([word], Reader)


def test_a_range_beyond_the_last_job_is_not_found():
    with pytest.raises(NotFound):
        ids.jobs(["30-40"], Reader)


def test_the_last_of_nothing_is_not_found():
    with pytest.raises(NotFound):
        ids.jobs(["last"], Nothing)


def test_one_job_must_be_one():
    assert ids.single("last", Reader) == 20
    with pytest.raises(Usage):
        ids.single("1-3", Reader)


# --- names, queues, tags and batches


ENDED = {"state": "succeeded", "ended_at": 1.0}


@pytest.fixture
def asked(jostle, engine):
    """The ids that a verb asks the engine for, or its exit code and message."""
    engine.answers["intent"] = lambda request: {
        "done": request["ids"],
        "refused": [],
        "new": {str(id): id + 100 for id in request["ids"]},
    }
    engine.answers["why"] = {"reason": None}

    def asked(line):
        before = len(engine.asked("intent"))
        code, _, err = jostle(*shlex.split(line))
        sent = engine.asked("intent")[before:]
        return sent[0]["ids"] if sent and code == 0 else (code, err.removeprefix("jostle: ").rstrip())

    return asked


def test_a_name_means_for_each_verb_what_all_would_mean_of_it(asked, store):
    waits, other, held = store(name="train"), store(name="other"), store(name="train", intent="hold")
    runs = store(name="train", state="running", attempt=1, started_at=1.0)
    store(name="train", **ENDED)
    failed = store(name="train", state="failed", ended_at=1.0)
    tried = store(name="train", state="failed", ended_at=1.0)
    again = store(name="train", state="skipped", ended_at=1.0, retry_of=tried)
    assert asked("cancel train") == [waits, held, runs]
    assert asked("hold train") == [waits, held]
    assert asked("unhold train") == [held]
    assert asked("retry train") == [failed, again]
    assert asked("set train priority=3") == [waits, held]
    assert asked(f"cancel {other},train {waits}") == [other, waits, held, runs]


def test_set_of_gpus_alone_means_what_runs_and_may_resize_too(asked, store):
    """The store changes nothing else of what runs, and nothing but its cards: `all` is what can be done."""
    began = {"state": "running", "attempt": 1, "started_at": 1.0}
    waits, grows = store(name="grow"), store(name="grow", gpus=[1, 4], resize="signal", **began)
    store(name="grow", **began)
    held = store(name="held", commands=[], **began)
    store(name="grow", gpus=[1, 4], resize="restart", **{**began, "state": "stopping"})
    assert asked("set grow gpus=1") == asked("set name:grow gpus=1") == [waits, grows]
    assert asked("set held gpus=2") == [held]
    assert asked("set all gpus=2") == asked("set batch:1 gpus=2") == [waits, grows, held]
    for others in ("priority=3", "gpus=2 priority=3"):
        assert asked(f"set all {others}") == asked(f"set grow {others}") == [waits]
    assert asked("hold grow") == [waits]


def test_a_queue_a_tag_and_a_batch_are_called_by_what_they_are(asked, store):
    first, second = store(name="a", queue="night", tags=["x", "y"]), store(name="night", tags=["x,y"])
    third = store(name="c", queue="night", tags=["y"])
    store(name="d", queue="night", tags=["y"], **ENDED)
    assert asked("hold queue:night") == [first, third]
    assert asked("hold tag:y") == [first, third]
    assert asked("hold tag:x,y") == [second]  # one tag: a comma after a prefix is its own
    assert asked("hold night queue:night") == [second, first, third]
    assert asked("hold batch:1") == [first, second, third]
    assert asked(f"hold {second},queue:night") == [second, first, third]


def test_one_job_is_the_newest_of_the_name_that_has_not_ended_else_the_newest(jostle, asked, store):
    store(name="train", **ENDED)
    newest = store(name="train", **ENDED)

    def shown(verb, word="train"):
        return json.loads(jostle(verb, word, "--json")[1])

    assert shown("show")["job"]["id"] == shown("why")["id"] == newest
    first, second = store(name="train", queue="q"), store(name="train", queue="q")
    store(name="train", **ENDED)
    assert shown("show")["job"]["id"] == shown("why")["id"] == second  # `why` of a name is of one job, and its JSON is one object
    assert asked("move train first") == [second]
    assert asked(f"move {first} before train") == [first]
    for word in ("queue:q", "batch:1"):
        assert [job["id"] for job in shown("why", word)["jobs"]] == [first, second]
    assert shown("show", "queue:q")["job"]["id"] == second
    assert f"job {second} " in jostle("logs", "train")[2]


def test_wait_judges_what_is_left_of_a_name_else_the_newest_and_a_batch_as_a_whole(jostle, store):
    store(name="train", state="failed", ended_at=1.0)
    assert jostle("wait", "train")[0] == 1
    newest = store(name="train", **ENDED)
    assert json.loads(jostle("wait", "train", "--json")[1])["jobs"] == {str(newest): "succeeded"}
    assert jostle("wait", "batch:1")[0] == 1


def test_a_job_comes_after_all_that_is_left_of_a_name(jostle, engine, store):
    engine.answers["submit"] = {"batch": 1, "ids": [9, 9], "count": 1}
    store(name="prepare", **ENDED)
    first, second = store(name="prepare"), store(name="prepare")
    jostle("add", "--after", "prepare", "--", "true")
    (job,) = engine.asked("submit")[-1]["jobs"]
    assert job["needs"] == [["job", first, False], ["job", second, False]]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("训练", "训练"),
        ("3d-train", "3d-train"),
        ("python train.py", "'python train.py'"),
        ("%", "%"),
        ("_", "_"),
        ("x' OR '1", "\"x' OR '1\""),
        ("12", "name:12"),
        ("1-3", "name:1-3"),
        ("last", "name:last"),
        ("all", "name:all"),
        ("a,b", "name:a,b"),
        ("x:y", "name:x:y"),
        ("name:x", "name:name:x"),
        ("queue:q", "name:queue:q"),
        ("lr=0.1", "name:lr=0.1"),
        ("a\x1b[2J\nb", "'a\x1b[2J\nb'"),
    ],
)
def test_every_name_can_be_written_and_means_no_other_job(asked, jostle, store, name, word):
    store.store.db.execute("PRAGMA ignore_check_constraints = ON")
    id = store(name="some")
    store.store.db.execute("UPDATE job SET name = ? WHERE id = ?", (name, id))
    for other in ("a", "b", "x", "y", "q", "ab", "python", "12x"):
        store(name=other)
    assert asked(f"hold {word}") == [id]
    assert asked(f"hold 5,{word}") == [5, id]
    assert asked(f"set {word} priority=2") == [id]
    assert "\x1b" not in jostle("show", *shlex.split(word))[1]


@pytest.mark.parametrize(
    "line",
    ["cancel ''", "cancel 1 ''", "hold ,", "unhold ''", "retry ''", "set '' priority=1", "move '' first", "move 1 before ''",
     "why ''", "wait ''", "show ''", "logs ''", "add --after , -- true"],
)  # fmt: skip
def test_an_empty_word_is_no_id_as_that_of_a_variable_that_is_not_set(asked, store, line):
    store()
    code, text = asked(line)
    assert code == 2 and "is no job id; expected ids such as 12" in text


def test_a_name_that_nobody_has_is_not_found_and_the_nearest_is_told_as_it_is_typed(asked, store):
    store(name="train", queue="night", tags=["long"])
    store(name="eval,all")
    store(name="two words")
    store.store.db.execute("UPDATE job SET name = ? WHERE id = ?", ("trian\x1b[2J", store()))
    assert asked("cancel trian") == (4, "there is no job named trian; did you mean train?")
    assert asked("cancel name:eval,al") == (4, "there is no job named eval,al; did you mean name:eval,all?")
    assert asked("cancel 'two word'") == (4, "there is no job named 'two word'; did you mean 'two words'?")
    assert asked("cancel queue:nigth") == (4, "there is no job in queue nigth; did you mean queue:night?")
    assert asked("cancel tag:lnog") == (4, "there is no job with tag lnog; did you mean tag:long?")
    assert asked("cancel batch:7") == (4, "there is no job of batch 7")
    assert asked("cancel zzzzzz") == (4, "there is no job named zzzzzz")
    assert asked("show \udcff") == (4, "there is no job named '\ufffd\ufffd\ufffd'")  # bytes that are no text
    assert asked("cancel 'a\x1b[2J'") == (4, "there is no job named 'a\\x1b[2J'")


@pytest.mark.parametrize("word", ["batch:x", "batch:", "batch:1,2", "batch:٣", "queue:", "name:", "tag:", "que:x", "5-3", "1.5"])
def test_what_is_written_wrongly_is_a_usage_error_that_says_what_was_expected(asked, store, word):
    store(rows=5)
    code, text = asked(f"cancel {word}")
    assert code == 2 and "expected" in text


def test_where_a_verb_can_do_nothing_with_a_name_what_there_is_of_it_is_told(asked, store):
    store(name="train", **ENDED)
    store(name="train", **ENDED)
    store(name="train", state="running", attempt=1, started_at=1.0)
    there = "2 succeeded, 1 running; the newest is 3"
    assert asked("hold train") == (4, f"nothing to hold among the jobs named train: {there}")
    by_number = "what was cancelled or has succeeded is retried by number"
    assert asked("retry batch:1") == (4, f"nothing to retry among the jobs of batch 1: {there}; {by_number}")
    stopped = store(name="stopped", state="cancelled", ended_at=1.0)
    assert asked("retry stopped")[1].endswith(f": 1 cancelled; the newest is {stopped}; {by_number}")
    assert asked(f"retry {stopped}") == [stopped]
    tried = store(name="tried", state="failed", ended_at=1.0)
    store(name="again", retry_of=tried)
    assert by_number not in asked("retry tried")[1]


def test_a_job_that_ends_before_its_cancel_arrives_is_no_mistake_unless_its_number_was_given(jostle, engine, store):
    named, numbered = store(name="train"), store(name="other")
    ended = [[id, {"code": "ended_already", "params": {"job": id, "state": "succeeded"}}] for id in (named, numbered)]
    engine.answers["intent"] = {"done": [], "refused": ended[:1], "new": {}}
    assert jostle("cancel", "train")[0] == 0
    assert jostle("cancel", named)[0] == 1
    engine.answers["intent"]["refused"] = ended
    code, _, err = jostle("cancel", "train", numbered)
    assert code == 1 and f"job {numbered} " in err and f"job {named} " not in err


def test_an_allocation_is_a_job_and_is_called_by_its_name(jostle, asked, store):
    """With the prefix of the manager's file, too, or without it, as `release` takes it."""
    id = store(name="lab_debug", commands=[])
    store.store.put(MANAGER, {"prefix": "lab_"})
    for word in ("lab_debug", "debug"):
        assert json.loads(jostle("why", word, "--json")[1])["id"] == id
        assert json.loads(jostle("show", word, "--json")[1])["job"]["id"] == id
        assert asked(f"cancel {word}") == [id]


def test_the_jobs_of_a_batch_come_from_an_index(store, home):
    store(name="train")
    reader = StoreReader(str(home))
    plan = reader._all(f"EXPLAIN QUERY PLAN SELECT id, state FROM job WHERE {memberreads.OF['batch']}", ("1",))
    assert "job_batch" in plan[0]["detail"]
    reader.close()
