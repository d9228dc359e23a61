"""Too many, too slow, or no answer: the console stays bounded, says what is wrong, and goes on when it is over."""

import contextlib
import http.client
import os
import select
import signal
import socket
from functools import partial

import pytest

from jostle.web.answers import Busy, status_of
from jostle.web.children import perform
from jostle.web.gate import Caller
from jostle.web.instances import Wanted
from jostle.web.site import LENGTHY, Site, Visit
from jostle.web.stream import KEPT_PLACES
from jostle.web.stream import MOST as STREAMS
from tests.e2e.instance import PATIENCE, alive, until


def test_f60_an_engine_that_does_not_answer_is_told_of_and_nothing_is_done_twice(console):
    id = console.instance.add("--hold", "--", "true")
    pid = console.instance.engine
    os.kill(pid, signal.SIGSTOP)
    try:
        assert console.ask("GET", "/api/health").status == 200
        looks = partial(console.script, "GET", f"/api/v1/ps?id={id}")
        seen, told = console.at_once([looks, partial(console.script, "POST", "/api/v1/hold", {"ids": [id]})])
        assert seen.json["jobs"][0]["state"] == "queued"
        assert told.status == 503 and told.json["code"] == "no_engine"
    finally:
        os.kill(pid, signal.SIGCONT)
    assert console.post("/api/v1/cancel", {"ids": [id]})["done"] == [id]
    assert len(console.instance.events("cancelled", job=id)) == 1


def test_f57_a_console_whose_home_is_gone_ends(make_console):
    console = make_console(gpus=None)
    pid = console.pid
    (console.instance.home / "web" / "instances" / f"{pid}.json").unlink()
    until(lambda: not alive(pid), "its end")


def test_s56_what_strangers_call_themselves_is_text_and_short(make_console):
    console = make_console(gpus=None)
    name = "<script>alert(1)</script>" * 20
    scene = f"gpus: {{count: 1, total: 24GiB}}\nstrangers: [{{user: bob, gpu: 0, used: 2GiB, name: \"{name}\"}}]\n"
    console.instance.up(console.instance.scenario(scene))
    (card,) = until(lambda: [card for card in console.get("/api/gpu")["gpus"] if card.get("processes")], "bob on the card")
    assert card["processes"][0]["username"] == "bob" and len(card["processes"][0]["name"]) <= 200
    told = console.script("GET", "/api/gpu")
    assert told.heads["content-type"] == "application/json" and told.heads["x-content-type-options"] == "nosniff"


def test_s56_of_many_strangers_on_a_card_a_bounded_number_is_told_and_our_own_are_among_them(make_console):
    console = make_console(gpus=None)
    scene = "gpus: {count: 1, total: 24GiB}\nruns: {use: 0.5}\n"
    console.instance.up(console.instance.scenario(scene))
    id = console.instance.add("-m", "1GiB", "--", "sleep 600")
    console.instance.reach(id, "running")
    many = "".join(f"  - {{user: u{n}, gpu: 0, used: 8MiB, name: \"{'n' * 300}\"}}\n" for n in range(400))
    console.instance.scenario(f"{scene}strangers:\n{many}")
    until(lambda: len(console.instance.call("gpus")["gpus"][0]["holders"]) == 401, "all of them")
    (card,) = until(lambda: [card for card in console.get("/api/v1/gpus")["gpus"] if card["holders"][0]["run"]], "our own")
    assert len(card["holders"]) == 256 and card["holders"][0]["run"] == f"{id}.1"
    (seen,) = console.get("/api/gpu")["gpus"]
    assert len(seen["processes"]) == 256 and seen["processes"][0]["run"] == f"{id}.1"
    assert all(len(one["name"]) <= 200 for one in (*card["holders"], *seen["processes"]))
    console.post("/api/v1/cancel", {"ids": [id], "now": True})
    console.instance.end(id)


def test_however_many_wait_everything_else_is_answered(console):
    reader = console.instance.ok("web", "--token", "--read-only").strip()
    id = console.instance.add("--hold", "--", "true")
    with contextlib.ExitStack() as ends:
        waiting = [http.client.HTTPConnection("127.0.0.1", console.port, timeout=PATIENCE) for _ in range(60)]
        for one in waiting:
            ends.callback(one.close)
            one.request("GET", f"/api/v1/wait?ids={id}&within=50", headers={"Authorization": f"Bearer {reader}"})
        for path in ("/api/health", "/api/auth/check", "/ui/gpu", "/favicon.ico"):
            assert console.ask("GET", path).status in (200, 404)
        assert console.get(f"/api/v1/ps?id={id}")["jobs"][0]["state"] == "queued"
        assert not select.select([one.sock for one in waiting], [], [], 0)[0]  # they wait yet
        console.post("/api/v1/cancel", {"ids": [id]})
        told = [one.getresponse().read() for one in waiting]
    assert set(told) == {f'{{"schema":1,"over":true,"ok":false,"jobs":{{"{id}":"cancelled"}}}}'.encode()}


def test_so_many_calls_that_take_long_go_on_at_once_and_one_more_is_told_to_ask_again(tmp_path):
    visit = Visit(Site(Wanted(home=str(tmp_path))), Caller("all", "a test"), "en")
    with contextlib.ExitStack() as under_way:
        for _ in range(LENGTHY):
            under_way.enter_context(visit.lengthy())
        with pytest.raises(Busy, match="ask again") as refused:
            perform(visit, "doctor", {})
        assert status_of(refused.value, "/api/v1/doctor") == 503
    assert perform(visit, "doctor", {})["checks"]


def test_who_may_only_look_cannot_take_the_last_places_from_who_may_do_everything(tmp_path):
    site = Site(Wanted(home=str(tmp_path)))
    owner, reader = (Visit(site, Caller(rights, "a test"), "en") for rights in ("all", "read"))
    with contextlib.ExitStack() as under_way:
        with pytest.raises(Busy):
            for _ in range(LENGTHY):
                under_way.enter_context(reader.lengthy())
        assert perform(owner, "doctor", {})["checks"]
        with pytest.raises(Busy, match="ask again"):
            perform(reader, "doctor", {})
    assert perform(reader, "doctor", {})["checks"]


def opened_at_once(console, token, n):
    """The answers to so many streams that are asked for before any is answered, and their connections."""
    asked = b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n"
    opened = [socket.create_connection(("127.0.0.1", console.port), timeout=PATIENCE) for _ in range(n)]
    for one in opened:
        one.sendall(asked)
    return [int(one.recv(12)[9:]) for one in opened], opened


def test_of_streams_that_are_asked_for_together_no_more_are_opened_than_there_is_room_for(console):
    reader = console.instance.ok("web", "--token", "--read-only").strip()
    readers, opened = opened_at_once(console, reader, STREAMS + 10)
    try:
        assert readers.count(200) == STREAMS - KEPT_PLACES and readers.count(503) == KEPT_PLACES + 10
        owners, more = opened_at_once(console, console.token, KEPT_PLACES + 5)
        opened += more
        assert owners.count(200) == KEPT_PLACES and owners.count(503) == 5
    finally:
        for one in opened:
            one.close()
    until(lambda: console.script("GET", "/api/v1/wait?ids=all&within=0").status == 200, "a place is free again")
