"""`run` and `wait`: attached clients, against an engine that is a script."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from jostle import proc
from jostle.cli.watching import picture
from jostle.client import Lost
from jostle.follow.feed import Feed
from jostle.follow.followed import CANCEL, DETACH, GO_ON, Followed, tell_failures
from jostle.follow.listener import Listener, NextWaiting
from jostle.follow.progress import Progress
from jostle.session import Session
from tests.cli.conftest import event

JOBS = "jobs:\n  - {name: a, run: x}\n  - {name: b, run: y}\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text(JOBS)
    return path


def started(home, *argv):
    env = {**os.environ, "JOSTLE_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([sys.executable, "-m", "jostle", *map(str, argv)], env=env, stdout=-1, stderr=-1, text=True)


def ran(home, *argv):
    child = started(home, *argv)
    out, err = child.communicate(timeout=60)
    return child.returncode, out, err


def submits(engine):
    engine.answers["submit"] = {"batch": 1, "ids": [1, 2], "count": 2}
    engine.answers["intent"] = {"done": [], "refused": [], "new": {}}
    return engine


STORY = [
    event(1, "starting", 1, gpus=[0, 1]),
    event(2, "running", 1),
    event(3, "starting", 2, gpus=[]),
    event(4, "succeeded", 1, exit_code=0, ran_s=3.0),
    event(5, "succeeded", 2, exit_code=0, ran_s=2.0),
]


def test_a_run_ends_with_its_batch_and_tells_its_story(home, engine, file):
    submits(engine).events = STORY
    code, out, err = ran(home, "run", file)
    assert code == 0, err
    assert [line.split(" ", 1)[1] for line in out.splitlines()] == [
        "started    1 a on GPU 0,1",
        "started    2 b",
        "succeeded  1 a after 3.0s",
        "succeeded  2 b after 2.0s",
    ]
    assert "batch 1: 2 succeeded" in err
    request = engine.asked("submit")[0]
    assert request["batch"]["key"] == f"run:{file}" and request["batch"]["owner"][0] > 1 and len(request["once"]) == 32


def test_a_failure_is_exit_code_1_and_says_why(home, engine, file):
    submits(engine).events = [*STORY[:4], event(5, "failed", 2, exit_code=3, error_type="exit_code_3", ran_s=2.0)]
    code, out, _ = ran(home, "run", file)
    assert code == 1 and "failed     2 b after 2.0s: exit_code_3" in out


def test_json_is_one_event_a_line_and_a_summary(home, engine, file):
    submits(engine).events = STORY
    code, out, _ = ran(home, "run", "--json", file)
    *events, last = map(json.loads, out.splitlines())
    assert (code, events, last) == (0, STORY, {"schema": 1, "batch": 1, "ok": True, "counts": {"succeeded": 2}})


def test_a_lost_engine_is_found_again_and_nothing_is_told_twice(home, engine, file):
    submits(engine).events = [*STORY[:2], "hang up", *STORY[2:]]
    code, out, err = ran(home, "run", file)
    assert code == 0 and "connecting again" in err and out.count("started    1 a") == 1
    assert [r["after"] for r in engine.asked("subscribe")] == [0, 2]


def test_an_unfinished_batch_of_the_same_file_is_attached_to(home, engine, file, store):
    first = store(rows=2)
    store.store.db.execute("UPDATE batch SET key = ?", (f"run:{file}",))
    submits(engine).events = [event(100, "succeeded", first), event(101, "succeeded", first + 1)]
    code, _, err = ran(home, "run", file)
    assert code == 0 and "attached to it again" in err and engine.asked("submit") == []
    assert "the file has changed since batch 1 was submitted" in err


def test_a_file_that_did_not_change_is_attached_to_without_a_word_about_it(home, engine, file, store):
    first = store(name="a", commands=["x"])
    store(name="b", commands=["y"])
    store(name="b", commands=["y"], retry_of=first + 1, state="succeeded", ended_at=time.time())
    store.store.db.execute("UPDATE batch SET key = ?", (f"run:{file}",))
    submits(engine).events = [event(100, "succeeded", first), event(101, "succeeded", first + 1)]
    code, _, err = ran(home, "run", file)
    assert code == 0 and "attached to it again" in err and "changed" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_batch(home, engine, file, number):
    submits(engine).events = [*STORY[:2], "wait", event(3, "cancelled", 2), event(4, "cancelled", 1)]
    child = started(home, "run", file)
    assert child.stdout.readline().endswith("started    1 a on GPU 0,1\n")
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert "cancelled  1 a" in out and "cancelled  2 b" in out
    assert child.returncode == 130 and "cancelling the batch" in err and "2 cancelled" in err
    assert [(r["batch"], r["now"]) for r in engine.asked("intent")] == [(1, False)]


def test_a_second_signal_cancels_at_once(home, engine, file):
    submits(engine).events = [*STORY[:2]]
    engine._stream = lambda f, request: (
        f.write(b'{"ok": true}\n' + json.dumps(STORY[0]).encode() + b"\n"),
        f.flush(),
        engine.over.wait(),
    )
    child = started(home, "run", file)
    child.stdout.readline()
    for count in (1, 2):
        child.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 60
        while len(engine.asked("intent")) < count and time.monotonic() < deadline:
            time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert [r["now"] for r in engine.asked("intent")] == [False, True] and child.returncode == 130


def full(count):
    """An engine whose disk is full for so many cancels."""
    left = [count]

    def answer(request):
        left[0] -= 1
        if left[0] >= 0:
            return {"ok": False, "error": {"code": "disk_full", "text": "no space left for jostle.db"}}
        return {"done": [], "refused": [], "new": {}}

    return answer


def test_an_interrupt_that_the_engine_cannot_record_is_told_again_until_it_is(home, engine, file):
    submits(engine).answers["intent"] = full(2)

    def stream(f, request):
        f.write(b'{"ok": true}\n' + json.dumps(STORY[0]).encode() + b"\n")
        f.flush()
        deadline = time.monotonic() + 60
        while len(engine.asked("intent")) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        for one in (event(3, "cancelled", 2), event(4, "cancelled", 1)):
            f.write(json.dumps(one).encode() + b"\n")
        f.flush()
        engine.over.wait()

    engine._stream = stream
    child = started(home, "run", file)
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=60)
    assert [r["now"] for r in engine.asked("intent")] == [False] * 3 and child.returncode == 130
    assert err.count("no space left for jostle.db; told again until it is taken") == 1 and "has taken it now: cancelling" in err


def test_a_third_signal_does_not_say_that_the_jobs_are_killed_when_nobody_could_be_told(home, engine, file):
    submits(engine).answers["intent"] = full(1000)
    engine._stream = lambda f, request: (
        f.write(b'{"ok": true}\n' + json.dumps(STORY[0]).encode() + b"\n"),
        f.flush(),
        engine.over.wait(),
    )
    child = started(home, "run", file)
    child.stdout.readline()
    for now in (False, True):
        child.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 60
        while now not in [r["now"] for r in engine.asked("intent")] and time.monotonic() < deadline:
            time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130 and "the jobs are being killed" not in err
    assert "could not be told to kill the jobs (no space left for jostle.db): batch 1 runs on" in err


def test_detached_it_prints_the_ids_and_leaves(home, engine, file):
    submits(engine)
    assert ran(home, "run", "-d", file)[:2] == (0, "1-2\n")
    assert engine.asked("submit")[0]["batch"]["owner"] is None and engine.asked("subscribe") == []


def test_a_bad_file_queues_nothing(home, engine, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("jobs:\n  - run: x\n    gpus: many\n")
    code, out, err = ran(home, "run", path)
    assert (code, out) == (6, "") and err.startswith(f"{path}:3: gpus: ") and engine.requests == []


def test_wait_says_whether_all_succeeded(home, engine, store):
    first = store(rows=2)
    engine.events = [event(90, "succeeded", first), event(91, "failed", first + 1)]
    assert ran(home, "wait", first)[0] == 0
    code, _, err = ran(home, "wait")
    assert code == 1 and f"job {first + 1} failed" in err


def test_wait_for_what_has_ended_does_not_wait(home, store):
    id = store(state="succeeded", ended_at=1.0)
    assert ran(home, "wait", id)[0] == 0


def test_wait_gives_up_in_time(home, engine, store):
    store()
    engine._stream = lambda f, request: (f.write(b'{"ok": true}\n'), f.flush(), engine.over.wait())
    code, _, err = ran(home, "wait", "--timeout", "0.3s")
    assert code == 124 and "1 job not finished" in err


def test_wait_says_in_a_line_why_the_next_waits_if_it_takes_long(home, engine, store):
    id = store(rows=2)
    reason = {"code": "impossible_count", "params": {"needed": 9, "cards": 2}}
    engine.answers["why"] = lambda request: {"reason": {**reason, "params": {**reason["params"], "needed": request["id"] + 8}}}
    engine._stream = lambda f, request: (f.write(b'{"ok": true}\n'), f.flush(), engine.over.wait())
    child = subprocess.Popen([sys.executable, "-m", "jostle", "wait", "all"], stderr=subprocess.PIPE, text=True)
    line = child.stderr.readline()
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[1] == "" and child.returncode == 130
    assert line.startswith(f"waiting    {id}") and f"it needs {id + 8} cards and may use 2" in line
    assert len(engine.asked("why")) == 1


def test_wait_says_on_a_terminal_what_it_waits_for(home, engine, store):
    id = store()
    ours, theirs = os.openpty()
    child = subprocess.Popen([sys.executable, "-m", "jostle", "wait"], stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    line = os.read(ours, 4096).decode()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    os.close(ours)
    assert line.startswith(f"waiting for 1 job ({id})") and child.returncode == 130


def test_wait_for_an_unknown_job_is_not_found(home, store):
    store()
    assert ran(home, "wait", "99")[0] == 4


def row(id, state="queued", **more):
    return {"id": id, "name": f"n{id}", "state": state, "gpus": [], "started_at": None, **more}


def test_a_retry_is_told_and_its_job_waits_again():
    progress = Progress([row(1)])
    progress.take(event(1, "starting", 1, gpus=[0]))
    assert progress.take(event(2, "requeued", 1, error_type="oom")) == "again      1 n1: oom"
    assert progress.states[1] == "queued" and not progress.over
    assert progress.take(event(3, "starting", 1, run=2, gpus=[1])) == "started    1 n1 on GPU 1 (try 2)"


def test_events_of_other_batches_and_replays_change_nothing():
    progress = Progress([row(1, "succeeded")])
    assert progress.take(event(1, "failed", 1)) is not None and progress.succeeded
    assert progress.take(event(2, "starting", 77, gpus=[])) is None and progress.over


def test_the_live_view_fits_its_screen():
    progress = Progress([row(k, "running", started_at=0.0) for k in range(30)] + [row(99)])
    lines = picture(progress, 10.0, columns=40, rows=8, waiting="next: " + "x" * 100)
    assert len(lines) <= 8 and all(len(line) < 40 for line in lines) and "30 running, 1 queued" in lines[0]


@pytest.mark.parametrize("columns", [0, 40, 120])
def test_a_terminal_gets_a_live_view_that_ends_clean(home, engine, file, columns):
    import fcntl
    import pty
    import struct
    import termios

    submits(engine).events = STORY
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24 if columns else 0, columns, 0, 0))
    env = {**os.environ, "JOSTLE_HOME": str(home), "TERM": "xterm"}
    child = subprocess.Popen([sys.executable, "-m", "jostle", "run", str(file)], env=env, stdout=theirs, stderr=-1, text=True)
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:
        pass  # how Linux says that the other side is gone
    os.close(ours)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    text = seen.decode()
    assert "succeeded  1 a after 3.0s" in text and "2 queued" in text and text.endswith("F\x1b[J")
    assert all(len(line.split("\x1b[J")[-1]) <= (columns or 80) for line in text.splitlines())


class Deaf(Session):
    """Whose engine goes away in the middle of the first call."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def client(self, **_):
        return self

    def call(self, op, **fields):
        self.calls.append((op, fields["now"]))
        if len(self.calls) == 1:
            raise Lost("the engine went away")

    def close(self):
        pass


def test_an_interrupt_that_a_dying_engine_did_not_take_is_told_to_the_next():
    session = Deaf()
    listener = Listener(session)
    listener.note = lambda text: None
    row = {"id": 1, "name": "", "state": "queued"}
    items = iter((("signal", 2), ("lost", "gone"), ("back", None), ("back", None), ("event", event(9, "cancelled", 1))))

    class Feed:
        def next(self, timeout):
            return next(items, None)

    assert Followed(session, 1, Progress([row]), Feed(), listener).to_the_end()
    assert session.calls == [("intent", False), ("intent", False)]


class Asked:
    """A person who gives these answers, one at each look, and is always there."""

    def __init__(self, *answers):
        self.answers, self.questions = list(answers), 0

    def there(self):
        return True

    def ask(self, batch):
        self.questions += 1

    def answer(self, batch):
        return self.answers.pop(0)


class Told(Listener):
    def __init__(self, session):
        super().__init__(session)
        self.told = []

    def event(self, event, line):
        self.told.append((event["kind"], event["job"]))

    def note(self, text):
        self.told.append(text)

    def close(self):
        self.told.append("closed")

    def idle(self):
        self.told.append("drawn again")


def followed(items, person=None, rows=({"id": 1, "name": "", "state": "queued"},)):
    """What was followed, what its listener was told, and what the engine was asked."""
    session, asked = Session(), []
    session.client = lambda **_: SimpleNamespace(call=lambda op, **fields: asked.append(fields["do"]), close=lambda: None)
    session._reader = SimpleNamespace(jobs=lambda ids: [{"id": id, "name": "", "state": "queued"} for id in ids])
    items, listener = iter(items), Told(session)
    feed = SimpleNamespace(next=lambda timeout: next(items, None))
    made = Followed(session, 1, Progress(rows), feed, listener, person=person)
    return made, made.to_the_end(), listener.told, asked


def test_a_person_is_asked_and_what_happens_meanwhile_is_told_after_the_answer():
    person = Asked("", GO_ON, DETACH)
    items = (("signal", signal.SIGINT), None, ("event", event(1, "starting", 1)), None, ("signal", signal.SIGINT), None)
    made, interrupted, told, asked = followed(items, person)
    assert (interrupted, made.detached, asked, person.questions) == (False, True, [], 2)
    assert told == ["closed", ("starting", 1), "drawn again", "closed", "closed"]


@pytest.mark.parametrize("items", [(None,), (("signal", signal.SIGTERM),)])
def test_an_answer_cancels_and_so_does_a_second_signal(items):
    ends = (("event", event(9, "cancelled", 1)),)
    made, interrupted, _, asked = followed((("signal", signal.SIGINT), *items, *ends), Asked(CANCEL))
    assert (interrupted, made.detached, asked) == (True, False, ["cancel"])


def test_sigterm_asks_nobody_and_the_end_of_the_batch_answers_too():
    person = Asked()
    assert followed((("signal", signal.SIGTERM), ("event", event(9, "cancelled", 1))), person)[3] == ["cancel"]
    assert person.questions == 0
    _, interrupted, told, asked = followed((("signal", signal.SIGINT), ("event", event(9, "succeeded", 1))), person)
    assert (interrupted, asked, person.questions) == (False, [], 1) and told == ["closed", ("succeeded", 1), "closed"]


def test_jobs_that_joined_the_batch_belong_to_its_end_whoever_follows_it():
    joins = event(1, "submitted", None, first=1, count=2)
    made, _, told, _ = followed([("event", e) for e in (joins, event(2, "succeeded", 1), event(3, "failed", 2))])
    assert told[:-1] == [("submitted", None), ("succeeded", 1), ("failed", 2)]
    assert sorted(made.progress.states) == [1, 2] and not made.progress.succeeded


def test_why_the_next_job_waits_is_asked_for_now_and_then_and_said_as_long_as_it_waits(monkeypatch):
    progress, asked = Progress([{"id": 7, "name": "a", "state": "queued"}]), []
    reason = {"code": "no_gpu", "text": "Wait."}
    monkeypatch.setattr("jostle.follow.listener.waits", lambda session, id: asked.append(id) or reason)
    following = NextWaiting(Session(), progress)
    assert following.text == ""
    following.look()
    following.look()
    assert asked == [7] and "7 a" in following.text and "Wait." in following.text
    progress.take(event(1, "starting", 7, gpus=[]))
    assert following.text == ""


def test_an_engine_that_is_back_is_told_at_once_and_not_at_its_next_event():
    class Client:
        def stream(self, after, batch):
            tries.append(after)
            if len(tries) == 1:
                raise Lost("gone")
            return iter(threading.Event().wait, None)  # nothing happens any more

        def close(self): ...

    tries = []
    feed = Feed(Client, after=7, batch=1)
    feed.start()
    assert [feed.next(60)[0], feed.next(60)[0]] == ["lost", "back"] and tries == [7, 7]


def test_a_signal_that_does_not_interrupt_the_waiting_is_heard_at_once():
    """It was taken by another thread, or in the instant in which the waiting began: Python runs its handler when the main thread
    comes to it."""
    feed = Feed(None, after=0, batch=None)
    feed.catch(signal.SIGUSR1)
    about = threading.Event()

    def strike():
        about.wait()
        time.sleep(0.01)
        while proc.stat(os.getpid()).state != "S":  # the main thread waits
            time.sleep(0.01)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    striker = threading.Thread(target=strike)
    try:
        striker.start()
        about.set()
        assert feed.next(60) == ("signal", signal.SIGUSR1)
    finally:
        striker.join()
        feed.close()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def pending(pid):
    """The signals that this process has been sent and has not taken yet."""
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1], 16) for line in f if line.startswith("ShdPnd"))


def test_a_feed_that_is_closed_hears_nothing_more_and_gives_signals_back():
    class Client:
        def stream(self, after, batch):
            listens.set()
            ended.wait()
            raise Lost("hung up")

        hang_up = close = lambda self: ended.set()

    listens, ended, before = threading.Event(), threading.Event(), signal.getsignal(signal.SIGTERM)
    feed = Feed(Client, after=0, batch=1)
    feed.catch(signal.SIGTERM)
    thread = feed.start()
    listens.wait()
    feed.close()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before and feed.next(0) is None


def test_an_interrupt_during_the_submit_cancels_what_was_submitted(home, engine, file):
    client = None

    def answer(request):
        client.send_signal(signal.SIGINT)
        while pending(client.pid) & 1 << signal.SIGINT - 1:
            time.sleep(0.01)  # the signal arrives before the answer
        return {"batch": 1, "ids": [1, 2], "count": 2}

    submits(engine).answers["submit"] = answer
    engine.events = ["wait", event(1, "cancelled", 1), event(2, "cancelled", 2)]
    client = started(home, "run", file)
    client.communicate(timeout=60)
    assert client.returncode == 130 and [r["do"] for r in engine.asked("intent")] == ["cancel"]


def test_of_a_job_that_failed_without_a_run_no_log_is_named(capsys):
    from jostle.cli.terminal import Terminal

    row = {"name": "a", "state": "failed", "reason": None, "ended_at": 9.0, "gpus": [], "error_type": "x", "exit_code": None}
    progress = Progress([{**row, "id": 1, "started_at": None}, {**row, "id": 2, "started_at": 1.0}])
    tell_failures(Terminal(), progress)
    told = capsys.readouterr().err.splitlines()
    assert told[0].endswith("(jostle show 1)") and told[1].endswith("(jostle logs 2)")
