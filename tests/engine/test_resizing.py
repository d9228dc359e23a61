"""Runs that get other cards while they live, and jobs that give way, on a fake host: real SQLite, time as a number."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jostle import failpoint
from jostle.core.reasons import Reason
from jostle.engine import elasticity
from jostle.port import Claimed
from jostle.store import legs
from tests.engine.fakes import FOREVER, Host

RESIZES = ("resizing", "grown", "shrunk", "resized", "not_resized")  # kinds of events

INTERVAL = 60.0
ELASTIC: dict[str, Any] = {"gpus": [1, 3], "resize": "restart"}
POINTS = [
    "resize.reserved", "resize.recorded", "resize.committed", "resize.before_order", "resize.ordered", "resize.seen",
    "engine.reserved", "store.before_commit", "store.after_commit", "store.before_sync", "engine.adopting", "engine.recovered",
]  # fmt: skip


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    yield Host(str(home))
    failpoint.arm("")


def forever(host: Host, *jobs: dict[str, Any], **more: Any) -> list[int]:
    ids = host.submit(*jobs, **more)
    host.disk.durations.update(dict.fromkeys(ids, (FOREVER, 0, "")))
    return ids


def elastic(host: Host, **more: Any) -> int:
    """One that runs, on all the cards that it may have at its start."""
    (id,) = forever(host, {**ELASTIC, **more})
    host.step()
    host.step(0.5)
    assert host.job(id)["state"] == "running"
    return id


def cards(host: Host, id: int) -> list[str]:
    """By the record."""
    its = "SELECT uuid FROM lease JOIN job ON id = job AND n = attempt WHERE id = ? ORDER BY idx"
    return [row[0] for row in host.store.db.execute(its, (id,))]


def held(host: Host, id: int) -> list[str]:
    """By what the host shows."""
    return sorted(uuid for p in host.disk.alive(host.clock.at) if p.run[0] == id for uuid in p.uuids)


def events(host: Host, id: int) -> list[str]:
    rows = host.store.db.execute("SELECT kind FROM event WHERE job = ? ORDER BY seq", (id,)).fetchall()
    return [kind for (kind,) in rows if kind in RESIZES]


def wait(host: Host, seconds: float, step: float = 1.0) -> None:
    until = host.clock.at + seconds
    while host.clock.at < until:
        host.step(step)


def until(host: Host, condition: Callable[[], object], within: float = 300.0) -> None:
    end = host.clock.at + within
    while not condition():
        assert host.clock.at < end, host.states()
        host.step(2.0)


def set_gpus(host: Host, id: int, low: int, high: int) -> Reason | None:
    from jostle.store import intents

    def act() -> Reason | None:
        return intents.change(host.store, id, {"gpus": [low, high]}, at=host.clock.wall(), now=host.clock.now())

    answer: Reason | None = host.request(act)
    if answer is None:
        host.engine.resizer.asked(id, low, high)
    return answer


def test_c7_it_grows_when_cards_fall_free(host: Host) -> None:
    blockers = host.submit(*[{}] * 3)  # of 5 s each
    id = elastic(host, gpus=[1, 4])
    assert len(cards(host, id)) == 1
    wait(host, 30)
    assert len(cards(host, id)) == 1, "not so soon"
    wait(host, INTERVAL)
    assert cards(host, id) == host.disk.uuids() == held(host, id)
    assert events(host, id) == ["resizing", "grown"] and host.states()[blockers[0]] == "succeeded"


def test_c7_it_gives_back_what_a_job_needs_and_gets_it_again_later(host: Host) -> None:
    id = elastic(host, gpus=[1, 4])
    assert len(cards(host, id)) == 4
    (other,) = host.submit({"gpus": [2, 2]})
    wait(host, 3)
    assert host.job(other)["state"] == "running" and len(cards(host, id)) == 2
    assert sorted(cards(host, id) + cards(host, other)) == host.disk.uuids()
    wait(host, 3 * INTERVAL)
    assert len(cards(host, id)) == 4 and events(host, id) == ["resizing", "shrunk", "resizing", "grown"]
    past = host.store.db.execute("SELECT uuid, ended_at - began_at FROM lease_past WHERE job = ?", (id,)).fetchall()
    assert len(past) == 2 and all(0 < seconds < 10 for _, seconds in past), "what was held when is remembered"


def test_c8_a_program_that_nobody_hears_keeps_what_it_has(host: Host) -> None:
    id = elastic(host, gpus=[1, 4], resize="signal")
    host.disk.deaf.add(id)
    (other,) = host.submit({})
    wait(host, 300)
    assert len(cards(host, id)) == len(held(host, id)) == 4 and host.job(other)["state"] == "queued"
    tries = events(host, id)
    assert tries == ["resizing", "not_resized"] * elasticity.TOLD_OF
    host.disk.deaf.clear()
    wait(host, elasticity.MOST_PAUSE)
    assert host.job(other)["state"] == "succeeded"


def test_a_program_that_never_listens_is_asked_ever_more_rarely_and_fills_no_history(host: Host) -> None:
    """300 events a day were written of one that had no handler."""
    (other,) = forever(host, {"gpus": [3, 3]})
    id = elastic(host, gpus=[1, 4], resize="signal")
    host.disk.deaf.add(id)
    host.cancel(other)
    orders = "SELECT count(*) FROM leg WHERE job = ?"
    wait(host, 86400.0, step=30.0)
    asked = host.store.db.execute(orders, (id,)).fetchone()[0]
    host.crash()
    host.boot()
    wait(host, 86400.0, step=30.0)
    assert events(host, id) == ["resizing", "not_resized"] * elasticity.TOLD_OF, "also by the next engine"
    assert 20 <= asked <= 40 and host.store.db.execute(orders, (id,)).fetchone()[0] - asked <= 40, "about once an hour"
    remark = host.engine.remarks()[id]
    assert (remark.code, remark.params["why"]) == ("resize_failed", "no_listener"), "and it is said all the time"
    host.disk.deaf.clear()
    assert set_gpus(host, id, 1, 2) is None
    wait(host, 10)
    assert len(cards(host, id)) == 2, "what a person asks for is tried at once"


def test_what_comes_about_after_tries_that_nobody_was_told_of_says_why(host: Host) -> None:
    (other,) = forever(host, {"gpus": [3, 3]})
    id = elastic(host, gpus=[1, 4], resize="signal")
    host.disk.deaf.add(id)
    host.cancel(other)
    wait(host, 600.0)
    host.disk.deaf.clear()
    until(host, lambda: len(cards(host, id)) == 4, within=7200.0)
    wait(host, 4)
    kind, data = host.store.db.execute("SELECT kind, data FROM event WHERE job = ? ORDER BY seq DESC LIMIT 1", (id,)).fetchone()
    assert (kind, json.loads(data)["reason"]["code"]) == ("grown", "free_cards")


def test_c8_a_card_is_given_up_when_nobody_of_the_run_is_on_it(host: Host) -> None:
    id = elastic(host, gpus=[1, 4], resize="signal")
    host.disk.clinging.add("GPU-3")
    (other,) = host.submit({})
    wait(host, 120)
    assert host.job(other)["state"] == "queued", "it is told, and does not leave"
    assert len(cards(host, id)) == len(held(host, id)) == 4
    remark = host.engine.keeps[id, 1]
    assert remark.code == "not_left" and remark.params["gpus"] == [3]
    host.disk.clinging.clear()
    wait(host, 5)
    assert host.job(other)["state"] == "running" and len(held(host, id)) == 3


def test_c7_a_stranger_takes_a_card_and_gives_it_back(host: Host) -> None:
    id = elastic(host)
    mine = cards(host, id)
    host.disk.strangers[mine[1]] = 9000
    wait(host, 4)
    assert cards(host, id) == mine, "who looks in for a moment has not come"
    wait(host, 4)
    assert cards(host, id) == [mine[0], mine[2]] == held(host, id)
    assert events(host, id) == ["resizing", "shrunk"]
    del host.disk.strangers[mine[1]]
    wait(host, 3 * INTERVAL + 3)
    assert len(cards(host, id)) == 3


def test_at_its_least_it_moves(host: Host) -> None:
    id = elastic(host, gpus=[1, 1])
    wait(host, INTERVAL)
    host.disk.strangers[cards(host, id)[0]] = 9000
    before = cards(host, id)
    wait(host, 8)
    assert len(cards(host, id)) == 1 and cards(host, id) != before and events(host, id) == ["resizing", "resized"]


def test_no_flapping_with_an_adversary_who_comes_and_goes(host: Host) -> None:
    """He comes onto a card of ours as soon as we have it for ten seconds, and leaves as soon as we have left it."""
    id = elastic(host, gpus=[1, 4])
    for second in range(3600):
        mine = held(host, id)
        there = [uuid for uuid in host.disk.strangers if uuid not in mine]
        for uuid in there:
            del host.disk.strangers[uuid]
        if not host.disk.strangers and second % 10 == 0 and len(mine) > 1:
            host.disk.strangers[mine[-1]] = 9000
        host.step(1.0)
    changes = [at for at, run, _, _ in host.disk.resizes if run[0] == id]
    assert 4 <= len(changes) <= 16, changes
    assert host.disk.overlaps == [] and host.job(id)["state"] == "running"


def test_c7_load_decides_where_the_rules_say_so(host: Host) -> None:
    """At least 80 % over a minute to get more, below 30 % to give one back, with readings that never change."""
    (blocker,) = forever(host, {"gpus": [3, 3]})
    (id,) = forever(host, {"gpus": [1, 4], "resize": "restart"}, policy={"scale_up": 80, "scale_down": 30})
    host.step()
    host.step(0.5)
    assert len(cards(host, id)) == 1
    host.cancel(blocker)
    host.disk.loads = dict.fromkeys(host.disk.uuids(), 50)
    wait(host, 3 * INTERVAL)
    assert len(cards(host, id)) == 1 and host.engine.keeps[id, 1].code == "load_too_low"
    host.disk.loads = dict.fromkeys(host.disk.uuids(), 95)
    wait(host, 70, 0.5)  # so often that a reading without news is no reason to decide
    assert len(cards(host, id)) == 4
    host.disk.loads = dict.fromkeys(host.disk.uuids(), 10)
    wait(host, 5 * INTERVAL)
    assert len(cards(host, id)) == 1, "one after the other, down to its least"
    reasons = [json.loads(row[0])["code"] for row in host.store.db.execute("SELECT reason FROM leg ORDER BY leg")]
    assert reasons == ["free_cards", "low_load", "low_load", "low_load"]


def test_it_grows_when_a_neighbours_claim_goes_though_no_card_shows_it(host: Host) -> None:
    id = elastic(host, gpus=[1, 3])
    wait(host, INTERVAL)
    claims, away = host.backend.claims, []
    theirs = Claimed(uuid="GPU-3", mib=None, run=(5, 1), session=77, name="theirs", uid=4321, ours=False)
    host.backend.claims = lambda uuids: [*claims(uuids), *([] if away else [theirs])]  # type: ignore[method-assign]
    set_gpus(host, id, 1, 4)
    wait(host, 10, 0.5)  # so often that a reading without news is no reason to decide
    assert len(cards(host, id)) == 3
    away.append(True)
    wait(host, 2 * INTERVAL, 0.5)
    assert len(cards(host, id)) == 4


def test_a_person_asks_for_more_or_fewer(host: Host) -> None:
    id = elastic(host)
    assert set_gpus(host, id, 1, 1) is None
    wait(host, 3)
    assert len(cards(host, id)) == 1
    assert set_gpus(host, id, 4, 4) is None
    wait(host, 3)
    assert len(cards(host, id)) == 4, "at once, though it was resized a moment ago"


def test_none_is_not_to_be_had_and_others_are_not_asked(host: Host) -> None:
    id = elastic(host)
    assert set_gpus(host, id, 0, 0) == Reason("resize_needs_card", {"job": id})
    assert set_gpus(host, id, 0, 2) == Reason("resize_needs_card", {"job": id})
    (plain,) = forever(host, {})
    host.step()
    host.step(0.5)
    refused = set_gpus(host, plain, 2, 2)
    assert refused is not None and refused.code == "cannot_change"
    assert len(cards(host, id)) == 3


def test_the_next_engine_knows_everything(host: Host) -> None:
    id = elastic(host)
    host.disk.strangers[cards(host, id)[2]] = 9000
    wait(host, 10)
    known = host.engine.carried.runs[id, 1].elasticity
    assert known is not None and known.order == 2
    host.crash()
    host.boot()
    again = host.engine.carried.runs[id, 1].elasticity
    assert again is not None
    for name in ("how", "least", "most", "listed", "order", "settled", "why", "before"):
        assert getattr(again, name) == getattr(known, name), name
    assert len(again.lost_at) == 1 and abs(again.resized_at - known.resized_at) < 5
    wait(host, 30)
    assert events(host, id) == ["resizing", "shrunk"]


def test_f67_a_card_on_its_way_when_the_engine_dies_is_given_up_and_grown_again(host: Host) -> None:
    """Recorded, not sent: meanwhile another takes the card. It is never the run's, and limits count it once."""
    host.submit({})
    id = elastic(host, gpus=[1, 4])
    failpoint.arm("resize.before_order=crash@1")
    wait(host, 3 * INTERVAL)
    failpoint.arm("")
    assert host.crashes == 1 and events(host, id)[:2] == ["resizing", "not_resized"]
    host.step(0.0)
    assert cards(host, id) == held(host, id)
    wait(host, 3 * INTERVAL)
    assert len(held(host, id)) == 4 and events(host, id) == ["resizing", "not_resized", "resizing", "grown"]


@pytest.mark.parametrize("how", ["restart", "signal"])
def test_f69_a_crash_at_every_step_of_a_resize_loses_and_doubles_nothing(tmp_path: Path, how: str) -> None:
    """Growth, loss to a job, loss to a stranger, a person's wish: with a crash at each place on the way, the first few times."""
    reached = set()
    for point in POINTS:
        for nth in (1, 2, 3):
            home = tmp_path / f"{point}-{nth}"
            home.mkdir(mode=0o700)
            host = Host(str(home))
            failpoint.arm(f"{point}=crash@{nth}" if "engine.a" not in point and "engine.rec" not in point else
                          f"resize.ordered=crash@1,{point}=crash@{nth}")  # fmt: skip
            story(host, how)
            failpoint.arm("")
            reached |= {point} if host.crashes else set()
            assert host.disk.overlaps == [] and host.disk.doubled == [], (point, nth)
            host.let_go()
            host.store.db.close()
    assert reached == set(POINTS)


def leg(host: Host, id: int) -> int:
    """As `ps` and `show` have it."""
    return int(host.store.db.execute("SELECT leg FROM run WHERE job = ? ORDER BY n DESC", (id,)).fetchone()[0])


@pytest.mark.parametrize("crash", [False, True])
def test_orders_that_were_refused_are_no_legs(host: Host, crash: bool) -> None:
    (first,) = forever(host, {"gpus": [2, 2]})
    id = elastic(host, gpus=[1, 4], resize="signal")
    host.disk.deaf.add(id)
    host.cancel(first)
    until(host, lambda: events(host, id).count("not_resized") >= 2, within=3600.0)
    assert leg(host, id) == 1
    if crash:
        host.crash()
        host.boot()
    host.disk.deaf.clear()
    until(host, lambda: len(held(host, id)) == 4, within=3600.0)
    wait(host, 4)
    assert leg(host, id) == 2
    assert host.store.db.execute("SELECT max(leg) FROM leg WHERE job = ?", (id,)).fetchone()[0] > 3, "there were more orders"
    host.disk.clinging.update(held(host, id))
    set_gpus(host, id, 1, 1)
    wait(host, 4)
    assert len(held(host, id)) == 4 and leg(host, id) == 3, "the list is in effect, though the cards are not left yet"
    remark = host.engine.remarks()[id]
    assert (remark.code, remark.params["leg"]) == ("not_left", 3)


def story(host: Host, how: str) -> None:
    (first,) = host.submit({"gpus": [2, 2]})
    (id,) = forever(host, {"gpus": [1, 4], "resize": how})
    until(host, lambda: host.states()[first] == "succeeded" and len(held(host, id)) == 4)
    (second,) = host.submit({})
    until(host, lambda: host.states()[second] == "succeeded")
    lost = held(host, id)[0]
    host.disk.strangers[lost] = 9000
    until(host, lambda: lost not in held(host, id))
    host.disk.strangers.clear()
    set_gpus(host, id, 1, 1)
    until(host, lambda: cards(host, id) == held(host, id) and len(held(host, id)) == 1)
    wait(host, 4)
    orders = host.store.db.execute("SELECT leg, outcome FROM leg ORDER BY leg").fetchall()
    assert all(outcome is not None for _, outcome in orders) and len(orders) >= 3
    began = [order for _, _, order, _ in host.disk.resizes]
    assert began == sorted(set(began)), "an order is obeyed at most once"
    host.cancel(id)
    host.settle(100.0)


def test_a_resize_that_cannot_be_recorded_takes_no_card(host: Host) -> None:
    host.submit({})
    id = elastic(host, gpus=[1, 4])
    before = cards(host, id)
    failpoint.arm("resize.recorded=ENOSPC@1")
    until(host, lambda: failpoint._hits.get("resize.recorded"))
    assert host.backend.more == {}
    failpoint.arm("")
    wait(host, 30)
    assert len(cards(host, id)) == 4 > len(before)


def test_another_who_is_quicker_is_waited_out(host: Host) -> None:
    host.submit({})
    id = elastic(host, gpus=[1, 4])
    host.backend.conflicts = set(host.disk.uuids())
    wait(host, 3 * INTERVAL)
    assert len(cards(host, id)) == 3 and events(host, id) == []
    host.backend.conflicts = set()
    wait(host, 60)
    assert len(cards(host, id)) == 4


def test_a_claim_on_a_card_that_its_run_should_not_have_counts_all_the_same(host: Host) -> None:
    """Whatever the record says: what is provably held is not given to another."""
    (id,) = forever(host, {})
    host.step()
    host.step(0.5)
    host.disk.processes[id, 1].uuids = tuple(host.disk.uuids())
    others = host.submit(*[{}] * 3)
    host.step()
    assert [host.states()[other] for other in others] == ["queued"] * 3


# --- jobs that give way


def low(host: Host) -> int:
    return elastic(host, gpus=[1, 1], resize=None, when_stranger="requeue")


def test_a_job_that_says_so_gives_way_without_a_try_and_comes_back(host: Host) -> None:
    host.disk.gpus = 1
    id = low(host)
    (other,) = forever(host, {"gpus": [0, 0]})
    host.disk.strangers["GPU-0"] = 9000
    wait(host, 8)
    assert host.job(id)["state"] == "queued" and host.job(other)["state"] == "running"
    job = host.job(id)
    assert (job["retries"], job["yielded"], json.loads(job["reason"])["code"]) == (0, 1, "yielded")
    (outcome,) = host.store.db.execute("SELECT outcome FROM run WHERE job = ? AND n = 1", (id,)).fetchone()
    assert outcome == "yielded"
    wait(host, 60)
    assert host.job(id)["state"] == "queued", "he is still there"
    del host.disk.strangers["GPU-0"]
    wait(host, 10)
    assert host.job(id)["state"] == "running" and host.job(id)["attempt"] == 2


def test_it_stays_away_longer_each_time(host: Host) -> None:
    host.disk.gpus = 1
    id = low(host)
    starts = []
    for _ in range(1200):
        if host.job(id)["state"] == "running":
            host.disk.strangers["GPU-0"] = 9000
        else:
            host.disk.strangers.clear()
        host.step(1.0)
        starts = [row[0] for row in host.store.db.execute("SELECT clock_at FROM run WHERE job = ?", (id,))]
    gaps = [b - a for a, b in itertools.pairwise(starts)]
    assert 4 <= len(starts) <= 8 and gaps == sorted(gaps), gaps


def test_an_engine_that_dies_before_the_signal_is_said_by_the_next_one(host: Host) -> None:
    host.disk.gpus = 1
    id = low(host)
    host.disk.strangers["GPU-0"] = 9000
    failpoint.arm("engine.before_stop=crash@1")
    wait(host, 30)
    assert host.crashes == 1 and host.job(id)["state"] == "queued" and host.job(id)["retries"] == 0


def test_every_place_of_a_resize_where_a_crash_could_hurt_is_swept(tmp_path: Path) -> None:
    """Those of the engine: what is in shims is swept with real ones, in tests/torture."""
    source = Path(legs.__file__).parents[1]
    named = {name for file in source.rglob("*.py") for name in re.findall(r'failpoint\("(resize\.\w+)"\)', file.read_text())}
    assert named - {"resize.before_give_up"} <= set(POINTS)
