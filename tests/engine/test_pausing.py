"""Runs that stand still while somebody else is on their cards, on a fake host: real SQLite, time as a number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jostle import failpoint
from jostle.core.model import Policy
from jostle.core.pausing import quiet_s
from jostle.store import legs
from tests.engine.fakes import Host, Process
from tests.engine.test_resizing import cards, elastic, forever, until, wait

QUIET = quiet_s(Policy())
POINTS = [
    "pause.before_order", "pause.ordered", "store.before_commit", "store.after_commit", "store.before_sync", "engine.adopting",
    "engine.recovered",
]  # fmt: skip


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    yield Host(str(home), gpus=1)
    failpoint.arm("")


def polite(host: Host, **more: Any) -> int:
    return elastic(host, **{"gpus": [1, 1], "resize": None, "when_stranger": "pause", **more})


def cards_there(host: Host, n: int) -> None:
    host.disk.gpus = n
    host.step(1.0)


def come(host: Host, uuid: str = "GPU-0") -> None:
    host.disk.strangers[uuid] = 9000


def process(host: Host, id: int) -> Process:
    return host.disk.processes[id, 1]


def still(host: Host, id: int) -> bool:
    return process(host, id).still


def events(host: Host, id: int) -> list[str]:
    rows = host.store.db.execute("SELECT kind FROM event WHERE job = ? ORDER BY seq", (id,)).fetchall()
    return [kind for (kind,) in rows if kind in ("paused", "continued")]


def remark(host: Host, id: int) -> tuple[str, dict[str, Any]]:
    reason = host.engine.remarks()[id]
    return reason.code, dict(reason.params)


def test_it_stands_still_and_goes_on_as_the_same_run(host: Host) -> None:
    id = polite(host)
    (other,) = forever(host, {"gpus": [0, 0]})
    come(host)
    wait(host, 4)
    assert not still(host, id), "who looks in for a moment has not come"
    wait(host, 4)
    assert still(host, id) and not still(host, other) and host.job(id)["state"] == "running"
    assert cards(host, id) == ["GPU-0"], "it keeps its card"
    wait(host, 600)
    assert still(host, id), "he is still there"
    host.disk.strangers.clear()
    wait(host, QUIET - 2)
    assert still(host, id)
    wait(host, 4)
    assert not still(host, id) and events(host, id) == ["paused", "continued"]
    assert (host.job(id)["attempt"], host.job(id)["retries"]) == (1, 0)
    (paused_s,) = host.store.db.execute("SELECT paused_s FROM run WHERE job = ?", (id,)).fetchone()
    (left, came) = (at for at, _, _ in reversed(host.disk.pauses))
    assert abs(paused_s - (left - came)) < 2


def test_it_is_said_for_whom_it_stands_still_and_what_it_holds(host: Host) -> None:
    id = polite(host)
    come(host)
    until(host, lambda: still(host, id))
    wait(host, 2)
    code, params = remark(host, id)
    assert code == "paused" and (params["gpu"], params["user"], params["held_mib"]) == (0, "bob", host.disk.total - 512)
    host.disk.strangers.clear()
    wait(host, 5)
    code, params = remark(host, id)
    assert code == "paused_until" and 0 < params["left_s"] < QUIET
    wait(host, QUIET)
    assert id not in host.engine.remarks()


def test_until_it_is_seen_to_stand_still_that_is_not_said(host: Host) -> None:
    id = polite(host)
    pause, host.backend.pause = host.backend.pause, lambda run, *, paused: None  # type: ignore[method-assign]
    come(host)
    wait(host, 20)
    assert not still(host, id) and remark(host, id)[0] == "pausing" and events(host, id) == ["paused"]
    host.backend.pause = pause  # type: ignore[method-assign]
    wait(host, 10)
    assert still(host, id) and remark(host, id)[0] == "paused", "it is said again"


def test_no_flapping_with_a_stranger_who_comes_and_goes(host: Host) -> None:
    """He is there for six seconds of each ten: not often enough to be gone."""
    id = polite(host)
    for second in range(3600):
        host.disk.strangers = {"GPU-0": 9000} if second % 10 < 6 else {}
        host.step(1.0)
    assert events(host, id) == ["paused"] and still(host, id)


def test_no_flapping_with_an_adversary_who_comes_as_soon_as_it_goes_on(host: Host) -> None:
    id = polite(host)
    for _ in range(4 * 3600):
        host.disk.strangers = {} if still(host, id) else {"GPU-0": 9000}
        host.step(1.0)
    stood = [b - a for (a, _, paused), (b, _, _) in pairwise(host.disk.pauses) if paused]
    assert 4 <= len(stood) <= 12 and stood == sorted(stood), stood
    assert host.job(id)["attempt"] == 1


def test_work_in_peace_makes_it_come_back_soon_again(host: Host) -> None:
    id = polite(host)
    for _ in range(5):
        come(host)
        until(host, lambda: still(host, id))
        host.disk.strangers.clear()
        until(host, lambda: not still(host, id), 3600)
    wait(host, 1900, 10.0)
    come(host)
    until(host, lambda: still(host, id))
    host.disk.strangers.clear()
    until(host, lambda: not still(host, id), QUIET + 10)


def test_two_strangers_must_both_be_gone(host: Host) -> None:
    cards_there(host, 4)
    id = polite(host, gpus=[4, 4])
    come(host, "GPU-1")
    until(host, lambda: still(host, id))
    come(host, "GPU-3")
    del host.disk.strangers["GPU-1"]
    wait(host, 2 * QUIET)
    assert still(host, id)
    host.disk.strangers.clear()
    wait(host, QUIET + 4)
    assert not still(host, id)


def test_a_card_that_cannot_be_read_is_no_stranger_and_no_quiet(host: Host) -> None:
    id = polite(host)
    come(host)
    wait(host, 2)
    host.disk.unread.add("GPU-0")  # he has just come, and nobody knows whether he stays
    wait(host, 60)
    assert not still(host, id), "silence stops nobody"
    host.disk.unread.clear()
    wait(host, 10)
    assert still(host, id)
    host.disk.strangers.clear()
    host.disk.unread.add("GPU-0")
    wait(host, 10 * QUIET)
    assert still(host, id), "and continues nobody"
    host.disk.unread.clear()
    wait(host, QUIET - 3)
    assert still(host, id), "what was not seen was not quiet"
    wait(host, 6)
    assert not still(host, id)


def test_a_card_as_it_was_last_seen_says_nothing_of_now(host: Host) -> None:
    """One that is late shows what it showed: he who was there a moment ago may be gone, and has not stayed by that."""
    id = polite(host)
    come(host)
    wait(host, 2)
    (card,) = json.loads(host.probe.line())["gpus"]
    host.disk.late["GPU-0"] = {**card, "read_at": host.clock.at}
    host.disk.strangers.clear()
    wait(host, 20)
    host.disk.late.clear()
    wait(host, 20)
    assert host.disk.pauses == [] and not still(host, id)


def test_a_card_that_answers_every_other_time_can_be_quiet(host: Host) -> None:
    """A slow driver: it is read often enough to know."""
    id = polite(host)
    come(host)
    until(host, lambda: still(host, id))
    host.disk.strangers.clear()
    for second in range(int(QUIET) + 20):
        host.disk.unread = {"GPU-0"} if second % 2 else set()
        host.step(1.0)
    assert not still(host, id)


def test_nor_is_a_probe_that_says_nothing(host: Host) -> None:
    id = polite(host)
    come(host)
    until(host, lambda: still(host, id))
    host.disk.strangers.clear()
    wait(host, QUIET - 5)
    host.probe.silent = True
    wait(host, 10 * QUIET)
    assert still(host, id)
    host.probe.silent = False
    wait(host, QUIET - 3)
    assert still(host, id), "the time in which nobody looked does not count"
    wait(host, 6)
    assert not still(host, id)


def test_the_next_engine_knows_that_it_stands_still_and_continues_it(host: Host) -> None:
    id = polite(host)
    for _ in range(3):
        come(host)
        until(host, lambda: still(host, id))
        host.disk.strangers.clear()
        until(host, lambda: not still(host, id), 3600)
    come(host)
    until(host, lambda: still(host, id))
    known = host.engine.carried.runs[id, 1].stillness
    host.crash()
    host.boot()
    again = host.engine.carried.runs[id, 1].stillness
    assert known is not None and again is not None and again is not known
    for name in ("now", "since", "times", "paused_s", "reason"):
        assert getattr(again, name) == getattr(known, name), name
    wait(host, 30)
    assert still(host, id) and remark(host, id)[0] == "paused"
    host.disk.strangers.clear()
    until(host, lambda: not still(host, id), 3600)
    assert events(host, id) == ["paused", "continued"] * 4


def test_a_cancel_ends_it_at_once(host: Host) -> None:
    id = polite(host)
    come(host)
    until(host, lambda: still(host, id))
    host.cancel(id)
    wait(host, 5)
    assert host.job(id)["state"] == "cancelled" and events(host, id) == ["paused"]


def test_f72_one_whose_shim_dies_while_it_stands_still_goes_on(host: Host) -> None:
    id = polite(host)
    come(host)
    until(host, lambda: still(host, id))
    process(host, id).supervised = False
    wait(host, 3)
    assert not still(host, id) and events(host, id) == ["paused", "continued"]
    wait(host, 60)
    assert not still(host, id) and events(host, id) == ["paused", "continued"], "and is not told again"


def test_f71_a_crash_at_every_step_leaves_it_as_is_recorded(tmp_path: Path) -> None:
    """It stands still while somebody is there, goes on when he has left, and comes to its end."""
    reached = set()
    for point in POINTS:
        for nth in (1, 2, 3, 4):
            home = tmp_path / f"{point}-{nth}"
            home.mkdir(mode=0o700)
            host = Host(str(home), gpus=1)
            id = polite(host)
            crash = f"{point}=crash@{nth}"
            failpoint.arm(f"pause.before_order=crash@1,{crash}" if point in ("engine.adopting", "engine.recovered") else crash)
            for _ in range(2):
                come(host)
                until(host, lambda host=host, id=id: still(host, id))
                host.disk.strangers.clear()
                until(host, lambda host=host, id=id: not still(host, id))
            failpoint.arm("")
            reached |= {point} if host.crashes else set()
            wait(host, 10)
            assert not still(host, id) and events(host, id) == ["paused", "continued"] * 2, (point, nth)
            host.cancel(id)
            host.settle(100.0)
            host.let_go()
            host.store.db.close()
    assert reached == set(POINTS)


def test_every_place_of_a_pause_where_a_crash_could_hurt_is_swept() -> None:
    """Those of the engine: what is in shims is swept with real ones, in tests/backends."""
    source = Path(legs.__file__).parents[1]
    named = {name for file in source.rglob("*.py") for name in re.findall(r'failpoint\("(pause\.\w+)"\)', file.read_text())}
    assert named and named <= set(POINTS)


def test_what_cannot_be_recorded_stops_nobody(host: Host) -> None:
    id = polite(host)
    come(host)
    wait(host, 4)
    failpoint.arm("store.before_commit=ENOSPC")
    wait(host, 20)
    assert not still(host, id) and host.disk.pauses == []
    failpoint.arm("")
    wait(host, 60)
    assert still(host, id)


# --- what else is known of it


def test_one_that_stands_still_is_not_idle_nor_just_after(host: Host) -> None:
    id = polite(host)
    host.disk.loads["GPU-0"] = 50
    wait(host, 5)
    come(host)
    until(host, lambda: still(host, id))
    host.disk.loads["GPU-0"] = 0
    wait(host, 3 * 3600, 5.0)
    host.disk.strangers.clear()
    until(host, lambda: not still(host, id), 3600)
    wait(host, 60)
    kinds = [kind for (kind,) in host.store.db.execute("SELECT kind FROM event WHERE job = ?", (id,))]
    assert "idle" not in kinds
    wait(host, 1900, 5.0)
    kinds = [kind for (kind,) in host.store.db.execute("SELECT kind FROM event WHERE job = ?", (id,))]
    assert kinds.count("idle") == 1, "but one that does nothing afterwards is"


def test_how_it_used_its_cards_is_told_of_the_time_in_which_it_ran(host: Host) -> None:
    id = polite(host)
    host.disk.loads["GPU-0"] = 80
    wait(host, 20)
    come(host)
    until(host, lambda: still(host, id))
    host.disk.loads["GPU-0"] = 0
    wait(host, 600)
    seen = host.engine.history.so_far((id, 1))
    assert seen is not None and seen["profile"]["load_mean"] > 70 and seen["profile"]["observed_s"] < 60, seen


def test_it_does_without_the_card_first_where_it_may(host: Host) -> None:
    cards_there(host, 2)
    id = polite(host, gpus=[1, 2], resize="restart")
    assert cards(host, id) == ["GPU-0", "GPU-1"]
    come(host, "GPU-1")
    wait(host, 30)
    assert cards(host, id) == ["GPU-0"] and not still(host, id) and events(host, id) == []
    come(host, "GPU-0")
    wait(host, 30)
    assert still(host, id) and cards(host, id) == ["GPU-0"]
    del host.disk.strangers["GPU-1"]
    wait(host, 600)
    assert cards(host, id) == ["GPU-0"] and still(host, id), "while it stands still its cards do not change"
    host.disk.strangers.clear()
    wait(host, 600)
    assert not still(host, id) and cards(host, id) == ["GPU-0", "GPU-1"]


def test_a_job_that_gives_way_is_not_ended_while_it_leaves_the_card(host: Host) -> None:
    """when_stranger: requeue with resize: it was told to do without the card, and that takes its time."""
    cards_there(host, 2)
    id = polite(host, gpus=[1, 2], resize="signal", when_stranger="requeue")
    host.disk.clinging.add("GPU-1")
    come(host, "GPU-1")
    wait(host, 30)
    assert host.job(id)["state"] == "running" and host.engine.keeps[id, 1].code == "not_left"
    host.disk.clinging.clear()
    wait(host, 10)
    assert cards(host, id) == ["GPU-0"] and host.job(id)["yielded"] == 0


def test_strangers_that_were_there_before_a_job_that_shares_do_not_stop_it(host: Host) -> None:
    host.disk.strangers["GPU-0"] = 2000
    host.step(1.0)
    (id,) = forever(host, {"memory_mib": 4000, "when_stranger": "pause"}, policy={"strangers": "share"})
    host.step()
    host.step(0.5)
    assert host.job(id)["state"] == "running"
    wait(host, 30)
    assert not still(host, id) and events(host, id) == []


def test_a_program_inside_an_allocation_stands_still_and_the_allocation_stays(host: Host) -> None:
    (held,) = host.submit({"commands": [], "name": "held"})
    host.step()
    host.step(0.5)
    (id,) = forever(host, {"inside": held, "when_stranger": "pause"})
    host.step()
    host.step(0.5)
    assert host.job(id)["state"] == "running"
    come(host)
    wait(host, 10)
    assert still(host, id) and host.job(held)["state"] == "running"
    host.disk.strangers.clear()
    wait(host, QUIET + 5)
    assert not still(host, id)


def test_what_the_store_keeps_of_it_can_be_read(host: Host) -> None:
    id = polite(host)
    come(host)
    until(host, lambda: still(host, id))
    (text,) = host.store.db.execute("SELECT paused FROM run WHERE job = ?", (id,)).fetchone()
    kept = json.loads(text)
    assert (kept["now"], kept["times"], kept["reason"]["code"]) == (True, 1, "stranger_came")
