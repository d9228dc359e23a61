"""Allocations in the engine, where time is a number: what is said of idle ones, and when they go."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jostle import proc
from jostle.store import intents
from tests.engine.fakes import Host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    made = Host(str(home))
    yield made
    made.store.close()


def allocate(host: Host, **more: Any) -> int:
    (id,) = host.submit({"commands": [], "name": "train", **more})
    while host.job(id)["state"] != "running":
        host.step(0.1)
    return id


def said(host: Host, id: int) -> tuple[str, dict[str, Any]]:
    reason = host.engine.remarks().get(id)
    return (reason.code, dict(reason.params)) if reason else ("", {})


def pass_(host: Host, seconds: int) -> None:
    for _ in range(seconds):
        host.step(1.0)


def test_an_idle_allocation_says_so_after_a_minute_and_not_before(host: Host) -> None:
    id = allocate(host)
    pass_(host, 50)
    assert said(host, id) == ("", {})
    pass_(host, 3600)
    code, numbers = said(host, id)
    assert code == "held_idle" and 3600 <= numbers["idle_s"] <= 3660 and host.job(id)["state"] == "running"


def test_one_that_waits_for_more_cards_says_what_it_lacks_however_long_nothing_is_on_it(host: Host) -> None:
    id = allocate(host, gpus=[2, 2])
    allocate(host, name="other", gpus=[2, 2])
    at, now = host.clock.wall(), host.clock.now()
    assert host.request(lambda: intents.change(host.store, id, {"gpus": [3, 3]}, at=at, now=now)) is None
    host.engine.resizer.asked(id, 3, 3)
    pass_(host, 300)
    assert said(host, id) == ("", {}), "not that it could be given back"
    why = host.engine.resizer.keeps(id, host.engine.keeps)
    assert why is not None and (why.code, why.params["has"], why.params["least"]) == ("keeps_cards", 2, 3)


def test_of_one_that_has_what_was_asked_for_there_is_nothing_to_explain(host: Host) -> None:
    fixed, ranged = allocate(host, gpus=[1, 1]), allocate(host, name="ranged", gpus=[1, 2])
    pass_(host, 5)
    assert host.engine.resizer.keeps(fixed, host.engine.keeps) is None
    assert host.engine.resizer.keeps(ranged, host.engine.keeps) is not None


def test_one_that_is_to_go_says_when_and_goes_then(host: Host) -> None:
    id = allocate(host, idle_release=600.0)
    pass_(host, 300)
    code, numbers = said(host, id)
    assert code == "held_idle_until" and 295 <= numbers["left_s"] <= 305
    pass_(host, 310)
    assert (host.job(id)["state"], json.loads(host.job(id)["reason"])["code"]) == ("succeeded", "released_idle")


def test_what_runs_inside_keeps_it_from_being_idle_and_counts_from_its_end(host: Host) -> None:
    id = allocate(host, idle_release=600.0)
    pass_(host, 500)
    host.disk.durations[id + 1] = (2000.0, 0, "")
    (inside,) = host.submit({"inside": id})
    pass_(host, 1500)
    assert host.job(inside)["state"] == "running" and not said(host, id)[0].startswith("held_idle")
    pass_(host, 1000)
    assert host.job(inside)["state"] == "succeeded" and host.job(id)["state"] == "running"
    pass_(host, 150)
    assert host.job(id)["state"] == "succeeded"


def test_a_stranger_on_its_cards_is_told_while_nothing_was_started(host: Host) -> None:
    id = allocate(host)
    pass_(host, 5)
    host.disk.strangers[host.disk.uuids()[0]] = 9000
    pass_(host, 5)
    assert said(host, id) == ("visited", {"gpu": 0, "user": "bob", "pid": 2})
    host.disk.durations[id + 1] = (1e6, 0, "")
    host.submit({"inside": id})
    pass_(host, 5)
    assert said(host, id)[0] != "visited"


def test_a_release_waits_for_what_runs_inside_and_says_for_whom(host: Host) -> None:
    id = allocate(host)
    host.disk.durations[id + 1] = (1e6, 0, "")
    (inside,) = host.submit({"inside": id})
    pass_(host, 3)
    host.cancel(id)
    host.engine.tick()
    assert (host.job(inside)["state"], host.job(id)["state"]) == ("stopping", "running")
    assert said(host, id) == ("releasing", {"job": inside})
    pass_(host, 10)
    assert (host.job(inside)["state"], host.job(id)["state"]) == ("cancelled", "succeeded")


def test_the_next_engine_begins_to_count_anew_and_lets_nobody_go_too_soon(host: Host) -> None:
    id = allocate(host, idle_release=600.0)
    pass_(host, 500)
    host.crash()
    host.boot()
    pass_(host, 200)
    assert host.job(id)["state"] == "running"
    pass_(host, 420)
    assert host.job(id)["state"] == "succeeded"


# --- the processes that it hangs on


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as child:
        yield child
        child.kill()


def known(child: subprocess.Popen[bytes]) -> list[int]:
    stat = proc.stat(child.pid)
    assert stat is not None
    return [stat.pid, stat.ticks]


def test_one_that_waits_goes_within_seconds_after_its_process_wherever_it_stands_in_line(
    host: Host, sleeper: subprocess.Popen[bytes]
) -> None:
    first = allocate(host, gpus=[4, 4])
    ids = [host.submit({"commands": [], "name": f"n{k}", "gpus": [4, 4]})[0] for k in range(20)]
    (last,) = host.submit({"commands": [], "name": "last", "gpus": [4, 4], "tied_to": known(sleeper)})
    pass_(host, 5)
    assert host.job(last)["state"] == "queued"
    sleeper.kill()
    sleeper.wait()
    pass_(host, 3)
    assert (host.job(last)["state"], json.loads(host.job(last)["reason"])["code"]) == ("cancelled", "tied_ended")
    assert [host.job(id)["state"] for id in ids] == ["queued"] * 20 and host.job(first)["state"] == "running"


def test_cards_that_come_as_their_waiter_dies_go_to_the_next(host: Host, sleeper: subprocess.Popen[bytes]) -> None:
    first = allocate(host, gpus=[4, 4])
    (dead,) = host.submit({"commands": [], "name": "dead", "gpus": [4, 4], "awaited_by": known(sleeper)})
    (next_,) = host.submit({"commands": [], "name": "next", "gpus": [4, 4]})
    pass_(host, 3)
    sleeper.kill()
    sleeper.wait()
    host.cancel(first)
    pass_(host, 5)
    assert host.job(dead)["state"] == "cancelled" and (dead, 1) not in host.disk.processes, "it never had them"
    assert host.job(next_)["state"] == "running"


@pytest.mark.parametrize("crash", [False, True])
def test_a_waiter_who_was_not_told_gives_cards_back_and_one_who_was_keeps_them(
    host: Host, sleeper: subprocess.Popen[bytes], crash: bool
) -> None:
    told = allocate(host, name="told", awaited_by=known(sleeper))
    untold = allocate(host, name="untold", awaited_by=known(sleeper), idle_release=1e6)
    with host.store.transaction():
        assert intents.keep(host.store, told) is None
    pass_(host, 3)
    assert [host.job(id)["state"] for id in (told, untold)] == ["running", "running"]
    if crash:
        host.crash()
    sleeper.kill()
    sleeper.wait()
    if crash:
        host.boot()
    pass_(host, 5)
    assert host.job(told)["state"] == "running"
    assert (host.job(untold)["state"], json.loads(host.job(untold)["reason"])["code"]) == ("succeeded", "waiter_ended")
    with host.store.transaction():
        refused = intents.keep(host.store, untold)
    assert refused is not None and refused.code == "ended_already"


def test_who_starts_something_inside_knows_of_it(host: Host, sleeper: subprocess.Popen[bytes]) -> None:
    id = allocate(host, awaited_by=known(sleeper))
    (inside,) = host.submit({"inside": id})
    sleeper.kill()
    sleeper.wait()
    pass_(host, 30)
    assert (host.job(inside)["state"], host.job(id)["state"]) == ("succeeded", "running")


def test_a_process_that_cannot_be_looked_at_is_not_dead(
    host: Host, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine without descriptors reads nothing of anybody."""
    allocate(host, gpus=[4, 4])
    (id,) = host.submit({"commands": [], "name": "tied", "tied_to": known(sleeper)})
    monkeypatch.setattr(proc, "stat", lambda pid: None)
    pass_(host, 5)
    assert host.job(id)["state"] == "queued"
    sleeper.kill()
    sleeper.wait()
    pass_(host, 3)
    assert host.job(id)["state"] == "cancelled"
