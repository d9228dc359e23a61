"""What clients may do to the engine's socket: rubbish, too much, nothing, at the wrong moment (F19, F46, F48, S35, S36)."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jostle.address import address
from jostle.client import Lost
from jostle.errors import Invalid, JostleError
from tests.e2e.instance import PATIENCE, Instance, alive, until


@pytest.fixture(scope="module")
def jostle(shared: Instance) -> Instance:
    return shared


def dial(instance: Instance) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    try:
        with address(str(instance.home)) as path:
            sock.connect(path)  # it waits where many knock; with a timeout it would be refused
        sock.settimeout(PATIENCE)
    except OSError:
        sock.close()
        raise
    return sock


def say(instance: Instance, data: bytes) -> dict[str, Any]:
    """The answer to one line."""
    with dial(instance) as sock:
        sock.sendall(data)
        with sock.makefile("rb") as answers:
            found: dict[str, Any] = json.loads(answers.readline())
    return found


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ("batch", "context", "jobs", "once", "ids", "do", "now", "to", "values", "id", "lang", "gpus", "on", "after", "config")
OPS = ("submit", "intent", "why", "reasons", "exclude", "reload", "subscribe", "hello", "no such thing")
JOB = {"commands": ["true"], "workdir": "/", "intent": "hold"}


@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(op=st.sampled_from(OPS), fields=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4))
@example(op="why", fields={"id": "x"})
@example(op="submit", fields={"jobs": [JOB], "once": {"a": 1}})
@example(op="submit", fields={"jobs": [JOB], "batch": {"key": ["a"], "name": 1 << 70}})
@example(op="submit", fields={"jobs": [JOB | {"workdir": "/\udcff"}]})
@example(op="submit", fields={"jobs": [JOB | {"needs": [["job", 1 << 61, False]]}]})
@example(op="submit", fields={"jobs": [JOB], "context": {"umask": "rwx", "limits": 5}})
@example(op="exclude", fields={"gpus": 5})
@example(op="reload", fields={"config": "x"})
@example(op="reasons", fields={"lang": 5})
@example(op="intent", fields={"batch": "x", "do": "cancel"})
@example(op="intent", fields={"ids": [1], "do": "move", "to": {"before": []}})
@example(op="subscribe", fields={"after": "x"})
def test_no_request_ends_the_engine_and_each_gets_an_answer(jostle: Instance, op: str, fields: dict[str, Any]) -> None:
    if op == "reload":
        fields = {"config": fields.get("config")} if not isinstance(fields.get("config"), dict) else {}
    before = jostle.engine
    answer = say(jostle, json.dumps({"op": op, **fields}).encode() + b"\n")
    assert isinstance(answer["ok"], bool)
    assert answer["ok"] or answer["error"]["text"]
    assert jostle.engine == before


@pytest.mark.parametrize("data", [b"\n", b"{}\n", b"[]\n", b"\xff\xfe\n", b'{"op": 1}\n', b'{"op":"hello"',
                                  b"[" * 100_000 + b"\n",
                                  b'{"op": "why", "id": ' + b"9" * 5000 + b"}\n", b'{"op": "why", "id": NaN}\n'])  # fmt: skip
def test_what_is_no_request_is_refused_and_a_torn_one_has_no_effect(jostle: Instance, data: bytes) -> None:
    if data.endswith(b"\n"):
        assert say(jostle, data)["ok"] is False
    else:
        with dial(jostle) as sock:
            sock.sendall(data)
    assert jostle.call("hello")["pid"]


@pytest.mark.parametrize("after", [10**30, -(10**30)])
def test_a_follower_from_nowhere_in_time_harms_nobody(jostle: Instance, after: int) -> None:
    before = jostle.engine
    with dial(jostle) as sock:
        sock.sendall(json.dumps({"op": "subscribe", "after": after}).encode() + b"\n")
        assert json.loads(sock.makefile("rb").readline())["ok"]
        (id,) = jostle.submit({"commands": ["true"], "gpus": [0, 0]})  # a commit, and so events for those who follow
        assert jostle.end(id) == ["succeeded"]
    assert jostle.engine == before


def test_a_request_without_end_is_cut_off(jostle: Instance) -> None:
    sent = 0
    with dial(jostle) as sock, pytest.raises(OSError):
        for _ in range(100):
            sock.sendall(b"x" * (1 << 20))
            sent += 1
    assert 60 <= sent <= 80, "64 MiB are the limit"
    assert jostle.call("hello")["pid"]


def test_one_who_does_not_read_is_in_nobodys_way(jostle: Instance) -> None:
    with dial(jostle) as deaf:
        deaf.sendall(b'{"op": "subscribe", "after": 0}\n' + b'{"op": "hello"}\n' * 2000)
        (id,) = jostle.submit({"gpus": [0, 0]})
        assert jostle.end(id) == ["succeeded"]


def test_a_thousand_idle_clients_are_in_nobodys_way(jostle: Instance) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("this host allows too few open files for a thousand clients")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, hard))
    idle: list[socket.socket] = []
    try:
        for _ in range(1000):
            idle.append(dial(jostle))
        (id,) = jostle.submit({"gpus": [0, 0]})
        assert jostle.end(id) == ["succeeded"]
    finally:
        for sock in idle:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: len(os.listdir(f"/proc/{jostle.engine}/fd")) < 200, "the engine lets go of them")


def test_an_engine_with_few_descriptors_lives_through_more_clients_than_it_can_take(instance: Instance) -> None:
    """EMFILE (F19): those who are too many wait or are turned away; nothing is lost, and nothing spins."""
    instance.up("sim:1x24", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    engine = instance.engine
    with contextlib.ExitStack() as crowd:
        for _ in range(120):
            crowd.enter_context(dial(instance))
        began, cpu = time.monotonic(), cpu_of(engine)
        until(lambda: time.monotonic() - began > 1.0)
        assert cpu_of(engine) - cpu < 0.5, "the engine spins"
    (id,) = until(lambda: quietly(lambda: instance.submit({})), "a place for a client")
    assert instance.end(id) == ["succeeded"]
    assert instance.engine == engine


def quietly(act: Any) -> Any:
    try:
        return act()
    except (JostleError, AssertionError, OSError):
        return None


def cpu_of(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request(instance: Instance, once: str, count: int = 1) -> bytes:
    job = {"commands": ["true"], "workdir": str(instance.work), "gpus": [0, 0]}
    return json.dumps({"op": "submit", "once": once, "batch": {}, "context": {}, "jobs": [job] * count}).encode() + b"\n"


def test_a_client_that_dies_in_the_middle_of_a_submit_leaves_all_of_it_or_nothing(jostle: Instance) -> None:
    whole = request(jostle, "torn", 3)
    (before,) = jostle.submit({"intent": "hold"})
    for part in (1, len(whole) // 2, len(whole) - 1):
        with dial(jostle) as sock:
            sock.sendall(whole[:part])
    jostle.call("hello")
    assert jostle.newest()[0]["id"] == before
    with dial(jostle) as sock:
        sock.sendall(whole)  # and gone before the answer
    until(lambda: jostle.newest()[0]["id"] == before + 3)
    again = say(jostle, whole)
    assert again["ids"] == [before + 1, before + 3], "asked again with the same key, the same answer"
    assert jostle.newest()[0]["id"] == before + 3


def test_fifty_clients_with_one_key_submit_one_job(jostle: Instance) -> None:
    answers: list[Any] = []
    line = request(jostle, "one of fifty")
    crowd = [threading.Thread(target=lambda: answers.append(say(jostle, line))) for _ in range(50)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(PATIENCE)
    assert len(answers) == 50
    assert len({tuple(a["ids"]) for a in answers}) == 1


@pytest.mark.parametrize("point", ["service.before_commit", "service.after_commit", "store.before_commit"])
def test_an_engine_killed_in_a_submit_gives_one_job_when_the_client_asks_again(instance: Instance, point: str) -> None:
    instance.up("sim:1x24")
    instance.see_cards()  # else what the next engine sees of them is its first commit, and the submit the second
    instance.kill_engine()  # one that is told to end notes when it read them last, and the next takes that back
    instance.up(None, env={"JOSTLE_FAILPOINTS": f"{point}=kill@1"})
    instance.see_cards()
    engine = instance.engine
    with pytest.raises(Lost):
        instance.submit({"gpus": [0, 0]}, once="again and again")
    until(lambda: not alive(engine))
    instance.up(None)
    (id,) = instance.submit({"gpus": [0, 0]}, once="again and again")
    assert list(instance.states()) == [id]
    assert instance.end(id) == ["succeeded"]


@pytest.fixture
def crowded(instance: Instance) -> Iterator[Instance]:
    instance.up("sim:1x24")
    yield instance


def test_ten_thousand_queued_and_two_hundred_submits_at_once_lose_nothing(crowded: Instance) -> None:
    blocked = {"queue": "q", "gpus": [9, 9]}
    crowded.submit(*[blocked] * 10_000)
    ids: list[int] = []

    def one() -> None:
        ids.extend(crowded.submit({"gpus": [0, 0], "intent": "hold"}))

    crowd = [threading.Thread(target=one) for _ in range(200)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join(PATIENCE)
    assert len(set(ids)) == 200
    assert set(ids) == set(range(10_001, 10_201))
    (id,) = crowded.submit({"gpus": [1, 1]})
    assert crowded.end(id) == ["succeeded"], "a long queue is in nobody else's way"
    assert len(crowded.states()) == 10_201


def test_a_batch_is_taken_whole_or_not_at_all(jostle: Instance) -> None:
    (before,) = jostle.submit({"intent": "hold"})
    with pytest.raises(Invalid, match="job 2"):
        jostle.submit({}, {"gpus": [2, 1]})
    assert jostle.newest()[0]["id"] == before


def test_a_directory_whose_name_is_no_text_is_refused_with_a_reason(jostle: Instance) -> None:
    place = os.fsencode(jostle.work) + b"/\xff"
    os.mkdir(place)
    code, _, err = jostle.run("add", "--", "true", cwd=place)
    assert (code, "UTF-8" in err) == (6, True), err
    assert jostle.call("hello")["pid"]
