"""GPUs that show use late, are taken behind our back, hold memory of nobody, or keep what a run left (F7, F9, F40-F42, F44)."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.engine.fakes import FakeProbe, Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return Host(str(home), gpus=2)


class LateProbe(FakeProbe):
    """Memory of a run shows only some time after its start."""

    late = 0.0

    def line(self) -> bytes:
        hidden = {id: p for id, p in self.disk.processes.items() if p.began + self.late > self.clock.at}
        shown = {id: p for id, p in self.disk.processes.items() if id not in hidden}
        self.disk.processes, everything = shown, self.disk.processes
        try:
            return super().line()
        finally:
            self.disk.processes = everything


@pytest.mark.parametrize("late", [0.0, 0.5, 3.0, 30.0, 120.0])
@pytest.mark.parametrize("freed_late", [0.0, 30.0])
def test_no_card_is_promised_beyond_its_memory_however_late_use_shows(host: Host, late: float, freed_late: float) -> None:
    host.disk.lag = freed_late
    host.probe.__class__ = LateProbe
    host.probe.late = late  # type: ignore[attr-defined]
    shared = [{"memory_mib": 10_000, "share": True}] * 8
    ids = host.submit(*shared, {"gpus": [2, 2]}, {}, policy={"share": False})
    for id in ids:
        host.disk.durations[id] = (20.0, 0, "")
    host.step()
    host.step(0.1)
    at_once = len(host.disk.alive(host.clock.at))
    host.settle(step=1.0)
    assert host.disk.overlaps == []
    assert set(host.states().values()) == {"succeeded"}
    assert at_once == 4, "two on each card start at once: nobody waits for use to show"


def test_many_starts_need_no_pause_between_them(host: Host) -> None:
    host.disk.gpus = 64
    host.probe.__class__ = LateProbe
    host.probe.late = 120.0  # type: ignore[attr-defined]
    host.probe.look(host.clock.at)
    host.submit(*[{}] * 64)
    for _ in range(20):
        host.step(0.05)
    assert len(host.disk.processes) == 64, "64 starts within a second"
    assert host.disk.overlaps == []


def readings(host: Host, change: Any) -> None:
    """Changes each reading of the cards on its way to the engine."""
    plain = type(host.probe).line

    def line(self: FakeProbe) -> bytes:
        data = json.loads(plain(self))
        change(data["gpus"])
        return json.dumps(data).encode()

    host.probe.__class__ = type("Changed", (type(host.probe),), {"line": line})


def holder(mib: int, **more: Any) -> dict[str, Any]:
    return {"pid": 77, "used_mib": mib, "uid": os.getuid(), "sid": None, "user": "me", "name": "x", "mark": None, **more}


def test_memory_without_a_visible_process_is_not_idle(host: Host) -> None:
    def hidden(gpus: list[Any]) -> None:
        gpus[0].update(used_mib=9000, free_mib=gpus[0]["total_mib"] - 9000)

    readings(host, hidden)
    (both, one) = host.submit({"gpus": [2, 2]}, {})
    host.step(0.1)
    host.step(0.1)
    reason = host.engine.waits[host.job(both)["shape"]]
    assert [r.code for r in reason.gpus if r.index == 0] == ["unexplained"]
    assert [p.uuids for p in host.disk.processes.values()] == [("GPU-1",)], one


def test_a_stranger_who_took_the_card_at_the_same_moment_is_told_of_and_left_alone(host: Host) -> None:
    host.disk.gpus = 1
    (id,) = host.submit({})
    host.step(0.1)
    assert host.job(id)["state"] in ("starting", "running")
    host.disk.strangers = {"GPU-0": 3000}
    host.step(0.1)
    events = host.store.db.execute("SELECT job, data FROM event WHERE kind = 'intruded'").fetchall()
    assert [(job, json.loads(data)["pid"]) for job, data in events] == [(id, 2)], "within one reading"
    for _ in range(3):
        host.step(0.1)
    assert len(host.store.db.execute("SELECT * FROM event WHERE kind = 'intruded'").fetchall()) == 1, "and once"
    host.settle()
    assert host.job(id)["state"] == "succeeded", "the run is kept"
    assert host.disk.strangers == {"GPU-0": 3000}


def test_a_card_on_which_something_of_an_ended_run_lives_is_set_aside_until_it_is_empty(host: Host) -> None:
    host.disk.gpus = 1
    left: list[str] = []

    def stuck(gpus: list[Any]) -> None:
        if left:
            gpus[0]["procs"].append(holder(5000, mark=left[0]))
            gpus[0].update(used_mib=5000, free_mib=gpus[0]["total_mib"] - 5000)

    readings(host, stuck)
    first, second = host.submit({"queue": "q"}, {"queue": "q"})
    host.step()
    left.append(host.store.db.execute("SELECT uni_id FROM run").fetchone()[0])
    for _ in range(8):
        host.step(1)
    assert host.job(first)["state"] == "succeeded"
    assert host.job(second)["state"] == "queued"
    (refusal,) = host.engine.waits[host.job(second)["shape"]].gpus
    assert refusal.code == "quarantined"
    assert refusal.params["processes"] == [[77, first, 1]], "it names the process, and the run it was of"
    left.clear()
    host.settle()
    assert host.job(second)["state"] == "succeeded"


def test_a_process_of_ours_on_a_card_it_was_not_given_is_told_once(host: Host) -> None:
    mark: list[str] = []
    readings(host, lambda gpus: mark and gpus[1]["procs"].append(holder(500, mark=mark[0])))
    (id,) = host.submit({})
    host.step()
    mark.append(host.store.db.execute("SELECT uni_id FROM run").fetchone()[0])
    for _ in range(3):
        host.step(0.1)
    events = host.store.db.execute("SELECT job, data FROM event WHERE kind = 'misplaced'").fetchall()
    assert [job for job, _ in events] == [id]
    assert json.loads(events[0][1]) == {"gpu": 1, "uuid": "GPU-1", "pid": 77}


def test_use_beyond_what_was_asked_for_is_told_once_and_marked_while_it_lasts(host: Host) -> None:
    uses, mark = [4000], [""]
    readings(host, lambda gpus: mark[0] and gpus[0].update(procs=[holder(uses[0], mark=mark[0])]))
    (id,) = host.submit({"memory_mib": 4096})
    host.disk.durations[id] = (100.0, 0, "")
    host.step()
    mark[0] = host.store.db.execute("SELECT uni_id FROM run").fetchone()[0]
    host.step(0.1)
    assert host.engine.remarks() == {}
    for uses[0] in (4097, 9000):
        host.step(0.1)
        reason = host.engine.remarks()[id]
        assert (reason.code, dict(reason.params)) == ("beyond", {"gpu": 0, "used_mib": uses[0], "asked_mib": 4096})
    uses[0] = 4096
    host.step(0.1)
    assert host.engine.remarks() == {}
    uses[0] = 8000
    host.step(0.1)
    events = host.store.db.execute("SELECT job, data FROM event WHERE kind = 'beyond'").fetchall()
    told = {"gpu": 0, "uuid": "GPU-0", "used_mib": 4097, "asked_mib": 4096}
    assert [(job, json.loads(data)) for job, data in events] == [(id, told)]


def test_who_asked_for_a_whole_card_cannot_use_more_than_that(host: Host) -> None:
    mark = [""]
    readings(host, lambda gpus: mark[0] and gpus[0]["procs"].append(holder(24000, mark=mark[0])))
    host.submit({})
    host.step()
    mark[0] = host.store.db.execute("SELECT uni_id FROM run").fetchone()[0]
    host.step(0.1)
    assert host.engine.remarks() == {} and host.engine.cards.observer.peaks


def test_a_command_that_fails_at_once_for_hours_starts_rarely_and_leaves_little_behind(host: Host) -> None:
    (id,) = host.submit({"retry": {"max": None, "backoff_after": 1000, "backoff": 1.0}})
    host.disk.durations[id] = (0.01, 1, "")
    until = host.clock.at + 2 * 3600
    while host.clock.at < until:
        host.step(4.0)
    starts = len(host.disk.processes)
    assert 80 <= starts <= 2 * 60 + 20, f"{starts} starts in two hours: about one a minute"
    began = [p.began for p in host.disk.processes.values()][10:]
    gaps = [second - first for first, second in itertools.pairwise(began)]
    assert len({round(gap) for gap in gaps}) > 3, "not in step with others of the kind"
    events = host.store.db.execute("SELECT count(*) FROM event").fetchone()[0]
    assert events <= 4 * starts + 10
    assert host.job(id)["retries"] >= starts - 1
