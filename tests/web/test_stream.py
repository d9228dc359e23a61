"""The stream: everything that happens, once, in order, and from the last that was heard."""

import asyncio
import contextlib
import http.client
import json

import pytest

from jostle.store.store import Store
from jostle.web.gate import Caller
from jostle.web.instances import Wanted
from jostle.web.site import Site, Visit
from jostle.web.stream import Hub, Stream
from tests.e2e.instance import PATIENCE


class Heard:
    """An open stream, read event by event."""

    def __init__(self, console, query="", **heads):
        self.connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=PATIENCE)
        self.connection.request("GET", f"/api/v1/stream{query}", headers=heads or {"Authorization": f"Bearer {console.token}"})
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def next(self):
        """(kind, data, id)"""
        fields = {}
        while True:
            line = self.answer.readline().decode()
            if not line:
                return None
            if line == "\n" and fields:
                return fields["event"], json.loads(fields["data"]), int(fields["id"]) if "id" in fields else None
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                fields[name] = value

    def until(self, good):
        """All that came, up to the first that is good."""
        came = []
        while True:
            got = self.next()
            assert got is not None, came
            came.append(got)
            if good(got):
                return came

    def close(self):
        self.connection.close()


@pytest.fixture
def hear(console):
    opened = []

    def hear(query="", **heads):
        opened.append(Heard(console, query, **heads))
        return opened[-1]

    yield hear
    for one in opened:
        one.close()


def ended(id):
    return lambda got: got[0] == "event" and got[1]["job"] == id and got[1]["kind"] in ("succeeded", "failed", "cancelled")


def test_what_happens_comes_at_once_and_in_order(console, hear):
    before = console.instance.call("hello")["seq"]
    stream = hear()
    kind, hello, _ = stream.next()
    assert kind == "hello" and hello["engine"] is True
    assert before <= hello["seq"] <= console.instance.call("hello")["seq"], "what others here have left goes on"
    id = console.instance.add("--", "true")
    events = [got for got in stream.until(ended(id)) if got[0] == "event"]
    with console.instance.reader() as reader:
        stored = [event["seq"] for event in reader.events(after=hello["seq"]) if event["seq"] <= events[-1][2]]
    assert [number for _, _, number in events] == stored


def test_who_comes_back_hears_all_that_was_missed_and_nothing_twice(console, hear):
    first = hear()
    seq = first.next()[1]["seq"]
    first.close()
    ids = [console.instance.add("--", "true") for _ in range(3)]
    console.instance.end(*ids)
    last = console.instance.call("hello")["seq"]
    for again in (hear(f"?after={seq}"), hear(Authorization=f"Bearer {console.token}", **{"Last-Event-ID": str(seq)})):
        numbers = [got[2] for got in again.until(lambda got: got[2] == last) if got[0] == "event"]
        assert numbers == list(range(seq + 1, last + 1))


def test_who_hears_nothing_else_hears_that_we_live_also_beside_a_log_that_is_silent(console, hear):
    """A page takes us for lost after three seconds without a word."""
    id = console.instance.add("--", "sleep 600")
    console.instance.reach(id, "running")
    for query in ("", f"?log={id}"):
        stream = hear(query)
        alive = 0
        while alive < 2:
            line = stream.answer.readline()
            assert line, "it has ended"
            alive += line == b": alive\n"
    console.instance.ok("cancel", "--now", str(id))
    console.instance.end(id)


def test_more_events_than_are_kept_come_from_the_store(console, hear):
    console.instance.submit(*[{"gpus": [0, 0], "intent": "hold", "name": f"many{k}"} for k in range(1500)])
    ids = [row["id"] for row in console.instance.newest(1500)]
    for verb in ("unhold", "hold"):
        console.instance.call("intent", ids=ids, batch=None, do=verb)
    last = console.instance.call("hello")["seq"]
    came = hear("?after=0").until(lambda got: got[2] is not None and got[2] >= last)
    numbers = [got[2] for got in came if got[0] == "event"]
    assert numbers == list(range(1, numbers[-1] + 1)) and len(numbers) > 3000
    console.instance.call("intent", ids=ids, batch=None, do="cancel")


def test_a_number_that_is_yet_to_come_is_of_another_store(console, hear):
    before = console.instance.call("hello")["seq"]
    stream = hear("?after=999999999")
    assert before <= stream.until(lambda got: got[0] == "behind")[-1][1]["seq"] <= console.instance.call("hello")["seq"]


def test_cards_come_when_they_change(console, hear):
    stream = hear("?gpus=0.5")
    stream.until(lambda got: got[0] == "gpus")
    id = console.instance.add("--", "sleep 600")
    came = stream.until(lambda got: got[0] == "gpus" and any(card["runs"] for card in got[1]["gpus"]))
    assert f"{id}.1" in {run for card in came[-1][1]["gpus"] for run in card["runs"]}
    console.post("/api/v1/cancel", {"ids": [id], "now": True})
    stream.until(lambda got: got[0] == "gpus" and not any(card["runs"] for card in got[1]["gpus"]))


def test_a_log_comes_as_it_is_printed_and_says_when_it_is_over(console, hear):
    work = console.instance.work
    id = console.instance.add("--", f"echo one; until [ -e {work}/go-on ]; do sleep 0.05; done; echo two")
    console.instance.reach(id, "running")
    stream = hear(f"?log={id}")
    stream.until(lambda got: got[0] == "log" and "one\n" in got[1]["text"])
    (work / "go-on").touch()
    came = stream.until(lambda got: got[0] == "log" and got[1]["over"])
    assert "".join(got[1]["text"] for got in came if got[0] == "log") == "two\n"


def test_a_character_that_is_half_printed_is_waited_for_while_its_job_runs(console, hear):
    work = console.instance.work
    waits = f"touch half; until [ -e {work}/whole ]; do sleep 0.05; done"
    id = console.instance.add("--", rf"printf 'a\xe8'; {waits}; printf '\xae\xad\n'")
    console.instance.made("half")
    stream = hear(f"?log={id}&from=0")
    part = console.get(f"/api/v1/logs/{id}?from=1")
    assert (part["text"], part["to"], part["size"]) == ("", 1, 2)
    (work / "whole").touch()
    came = stream.until(lambda got: got[0] == "log" and got[1]["over"])
    assert "".join(got[1]["text"] for got in came if got[0] == "log") == "a训\n"


def test_s14_a_stream_is_for_its_owner_before_its_first_byte(console, hear):
    page = console.log_in()
    assert hear(X="y").status == 401
    assert hear(Cookie=page["Cookie"]).status == 403
    assert hear(**page, Origin="http://evil.example").status == 403
    assert hear(**page).status == 200


def test_s16_a_stream_ends_with_its_session(console, hear):
    page = console.log_in()
    stream = hear(**page)
    stream.next()
    console.ask("POST", "/api/auth/logout", heads=page)
    id = console.instance.add("--", "true")
    console.instance.end(id)
    while stream.next() is not None:
        pass
    assert console.ask("GET", "/api/v1/ps", heads=page).status == 401


@pytest.mark.parametrize("rights", [(), ("--read-only",)], ids=["all", "read"])
@pytest.mark.parametrize("how", ["session", "token"])
def test_s16_a_stream_ends_with_its_token_and_hears_nothing_more(console, hear, how, rights):
    token = console.instance.ok("web", "--token", *rights).strip()
    stream = hear(**(console.log_in(token) if how == "session" else {"Authorization": f"Bearer {token}"}))
    assert stream.next()[0] == "hello"
    console.instance.ok("web", "--token", "--new", *rights)
    console.token = console.instance.ok("web", "--token").strip()
    id = console.instance.add("--", "true")
    console.instance.end(id)
    while (got := stream.next()) is not None:
        assert not (got[0] == "event" and got[1]["job"] == id)


def test_the_end_and_the_return_of_the_engine_are_told_and_no_event_is_lost(console, hear):
    stream = hear()
    seq = stream.next()[1]["seq"]
    stream.until(lambda got: got[0] == "engine" and got[1]["running"])
    old = console.instance.kill_engine()
    stream.until(lambda got: got[0] == "engine" and not got[1]["running"])
    console.instance.up(None)
    stream.until(lambda got: got[0] == "engine" and got[1]["running"] and got[1]["pid"] != old)
    id = console.instance.add("--", "true")
    stream.until(ended(id))
    with console.instance.reader() as reader:
        assert reader.events(after=seq)[0]["seq"] == seq + 1


def test_no_event_is_told_twice_after_a_stream_ended_as_one_came(tmp_path):
    """Who reads the events for all streams ends with the last of them, also in the instant in which it is woken."""
    Store(str(tmp_path)).close()

    async def scene():
        hub = Hub(Site(Wanted(home=str(tmp_path))))
        async with hub.listening(Caller("all", "a test")):
            workers = list(hub.tasks)
            for _ in range(10):
                await asyncio.sleep(0)  # each waits for its event now
            hub.woken.set()
        _, left = await asyncio.wait(workers, timeout=PATIENCE)
        for worker in left:
            worker.cancel()
        return left

    assert asyncio.run(scene()) == set()


def test_why_cards_cannot_be_read_is_told_in_the_words_of_status(tmp_path):
    Store(str(tmp_path)).close()

    async def scene():
        site = Site(Wanted(home=str(tmp_path)))
        hub, visit = Hub(site), Visit(site, Caller("all", "a test"), "en")
        async with contextlib.aclosing(Stream(hub, visit, after=None, log=None, cards=False).parts(0.0)) as parts:
            await anext(parts)  # hello
            hub.engine = {"running": True, "pid": 1, "hold": "", "probe": "probe_waits"}
            return await anext(parts)

    told = json.loads(asyncio.run(scene()).decode().partition("data: ")[2])
    assert (told["probe"], told["hold_text"]) == ("the GPUs do not answer: the probe waits for the driver", "")
