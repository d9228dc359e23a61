"""Wishes that come at the worst moment, and jobs that write without end (F45, F47)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.instance import FINAL, Instance, alive, until
from tests.engine.fakes import Host

PLACES = {
    "around the record of a start": "engine.reserved=sleep:0.02,engine.before_spawn=sleep:0.02",
    "around the claim of a run": "shim.before_claim=sleep:0.02,shim.after_claim=sleep:0.02",
}


@pytest.fixture(params=PLACES)
def slowed(request: pytest.FixtureRequest, instance: Instance) -> Iterator[Instance]:
    instance.up("sim:4x24", env={"JOSTLE_FAILPOINTS": PLACES[request.param]})
    yield instance


def wait_for(seconds: float) -> None:
    """A moment of the race, not a condition: any length of it must be right."""
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end)


def test_a_cancel_that_races_with_start_end_or_retry_gives_one_end_and_no_later_start(slowed: Instance) -> None:
    """Each job says that it starts; no try of it is begun after a cancel that was answered."""
    script = 'touch "began-$JOSTLE_JOB_ID-$JOSTLE_ATTEMPT"; sleep 0.02; exit $((JOSTLE_JOB_ID % 2))'
    retry = {"max": 2, "backoff_after": 1, "backoff": 0.01}
    answered: set[int] = set()
    ids: list[int] = []
    for k in range(10):
        (id,) = slowed.submit({"commands": [script], "retry": retry})
        ids.append(id)
        wait_for(0.01 * k)
        answer = slowed.call("intent", ids=[id], do="cancel", now=bool(k % 3))
        if answer["done"]:
            answered.add(id)
    slowed.end(*ids)
    rows = slowed.jobs()
    for id in ids:
        ends = [e["kind"] for kind in FINAL for e in slowed.events(kind, id)]
        assert ends == [rows[id]["state"]], "exactly one end"
        if id in answered:
            wish = (slowed.events("cancel_wanted", id) or slowed.events("cancelled", id))[0]["seq"]
            # one that had been handed to its shim may begin and is then stopped; a new try never begins
            before = {e["run"] for e in slowed.events("starting", id) if e["seq"] < wish}
            assert {int(path.name.split("-")[2]) for path in slowed.work.glob(f"began-{id}-*")} <= before
            assert rows[id]["state"] == "cancelled" or rows[id]["exit_code"] == 0
    assert any(rows[id]["state"] == "cancelled" for id in ids)


def test_a_cancel_of_a_queued_job_that_was_answered_means_that_it_never_runs(instance: Instance) -> None:
    instance.up("sim:1x24")
    for _ in range(6):
        ids = instance.submit(*[{"commands": ['touch "ran-$JOSTLE_JOB_ID"'], "queue": "q"}] * 4)
        instance.call("intent", ids=ids[1:], do="cancel")
        states = dict(zip(ids, instance.end(*ids), strict=True))
        for id, state in states.items():
            assert (instance.work / f"ran-{id}").exists() or state == "cancelled"
            if instance.job(id)["attempt"] == 0:
                assert not (instance.work / f"ran-{id}").exists()


def test_an_end_that_is_found_while_stopping_is_taken_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    host = Host(str(home))
    (id,) = host.submit({})
    host.step()
    host.step(1)
    host.cancel(id)
    host.disk.processes[(id, 1)].ends = host.clock.at  # by itself, before the stop reaches it
    host.engine.tick()
    assert host.engine.carried.runs[(id, 1)].over, "the backend says it once"
    host.step(0.02)
    assert host.job(id)["state"] == "succeeded"
    host.store.close()


def rss_mib(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def test_a_flood_of_output_is_capped_and_costs_neither_the_engine_nor_others_anything(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("log_cap_mib: 1\n")
    instance.up("sim:2x24")
    engine = instance.engine
    before = rss_mib(engine)
    flood, line, other = instance.submit(
        {"commands": ["echo first; yes 'the same again' | head -c 30000000; sleep 2.3; echo last"], "name": "lines"},
        {"commands": ["head -c 30000000 /dev/zero; head -c 100 /dev/urandom"], "name": "one long line that is no text"},
        {"gpus": [0, 0]},
    )
    assert instance.end(other) == ["succeeded"]
    assert instance.end(flood, line) == ["succeeded", "succeeded"]
    log = instance.home / "runs" / f"{flood}.1" / "log"
    assert log.stat().st_blocks * 512 <= 1 << 20, "most of it was dropped"
    text = log.read_bytes()
    assert text.startswith(b"first\n") and text.endswith(b"last\n")
    assert b" MiB of this log were dropped here to keep it under 1 MiB]" in text
    assert rss_mib(engine) - before < 50
    assert len(instance.ok("logs", str(flood), "-n", "3").splitlines()) == 3
    assert alive(engine)
