"""An engine on a host without GPUs hands its jobs over to a cluster on a bad line: real store, real decisions, time as a number.

Queue order, retries and cancelling are the engine's, on every backend. Nothing is lost or doubled, whatever answers are late,
lost or repeated, and whenever the engine dies.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_cluster import PREFIX, Cluster, ClusterBackend
from tests.engine.fakes import Host

from jostle import failpoint
from jostle.core.model import LOCAL, Exit
from jostle.core.reasons import Hold
from jostle.engine.loop import Loop
from jostle.engine.service import Service
from jostle.port import Backend
from jostle.session import Session
from jostle.store import jobs, runs
from jostle.views.listing import listing
from jostle.views.waits import Waits
from jostle.views.why import explained

TARGET = "cluster"
SEEDS = range(4)
CRASHES = {
    "engine.before_spawn": "engine.before_spawn=crash@1",
    "engine.after_spawn": "engine.after_spawn=crash@1",
    "engine.recovered": "engine.after_spawn=crash@1,engine.recovered=crash@1",
    "engine.ends_recorded": "engine.ends_recorded=crash@1",
    "store.after_commit": "store.after_commit=crash@2",
}


class LoginNode(Host):
    """Without GPUs; `cluster` goes on whatever becomes of the engine."""

    def __init__(self, home: str, seed: int, *, bad_line: bool = True, most: int | None = None) -> None:
        self.seed, self.bad_line, self.most, self.reached = seed, bad_line, most, True
        self.cluster: Cluster | None = None
        self.overlaps: list[str] = []
        super().__init__(home, gpus=0)

    def backends(self) -> dict[str, Backend]:
        self.cluster = self.cluster or Cluster(self.clock, self.seed, bad_line=self.bad_line)
        self.handing = ClusterBackend(self.cluster, self.most)
        return {"local": self.backend, **({TARGET: self.handing} if self.reached else {})}

    def submit(self, *given: dict[str, Any], **more: Any) -> list[int]:
        return super().submit(*({"on": [TARGET], **job} for job in given), **more)

    def step(self, seconds: float = 0.0) -> None:
        super().step(seconds)
        self.there.step()
        begun: dict[int, int] = {}
        for job in self.there.jobs.values():
            if job.running and job.ends > self.clock.at:
                begun[self.job_of(job.uni_id)] = begun.get(self.job_of(job.uni_id), 0) + 1
        self.overlaps += [f"job {job} at {self.clock.at}" for job, n in begun.items() if n > 1]

    @property
    def there(self) -> Cluster:
        assert self.cluster is not None
        return self.cluster

    def job_of(self, uni_id: str) -> int:
        return int(self.store.db.execute("SELECT job FROM run WHERE uni_id = ?", (uni_id,)).fetchone()[0])

    def runs_of(self, id: int) -> list[dict[str, Any]]:
        cursor = self.store.db.execute("SELECT * FROM run WHERE job = ? ORDER BY n", (id,))
        return [dict(zip([d[0] for d in cursor.description], row, strict=True)) for row in cursor.fetchall()]

    def ends_with(self, id: int, seconds: float, code: int) -> None:
        """However often it is tried."""
        self.durations = {**getattr(self, "durations", {}), id: (seconds, code)}
        self.there.lasts = Lasts(self)  # type: ignore[assignment]


class Lasts(dict[str, tuple[float, int]]):
    """By uni_id, from what is planned for the job."""

    def __init__(self, host: LoginNode) -> None:
        self.host = host

    def get(self, uni_id: str, default: Any = None) -> Any:
        return self.host.durations.get(self.host.job_of(uni_id), default)


class Person(Session):
    """Beside the engine: what they ask comes to it as over its socket."""

    def __init__(self, host: LoginNode) -> None:
        super().__init__()
        self._home, self._answers = host.home, Service(host.engine, Loop(), permanent=True).answers

    def engine_if_any(self) -> Any:
        return self

    def call(self, name: str, **request: Any) -> Any:
        answer = self._answers.why(request) if name == "why" else self._answers.reasons()
        return json.loads(json.dumps(answer))

    def close(self) -> None:
        """The line; the reader goes with the test."""


def reasons_shown(host: LoginNode, id: int) -> list[Any]:
    """The reason of a job as `why` and `show` have it, and as `ps` and the page list it."""
    person = Person(host)
    (row,) = listing(person).rows
    return [explained(person, id).job["reason"], row["reason"]]


@pytest.fixture(params=SEEDS)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LoginNode]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    yield LoginNode(str(home), request.param)
    failpoint.arm("")


def nothing_doubled(host: LoginNode) -> None:
    assert host.overlaps == []
    assert all(count == 1 for count in host.there.ran.values()), host.there.ran
    for id in host.states():
        ended = [run for run in host.runs_of(id) if run["outcome"] == "succeeded"]
        assert len(ended) <= 1


def test_jobs_run_in_the_order_of_their_queue_and_each_once(host: LoginNode) -> None:
    ids = host.submit(*[{"queue": "q"}] * 4)
    host.settle()
    assert set(host.states().values()) == {"succeeded"}
    nothing_doubled(host)
    began = {host.job_of(job.uni_id): (job.begins, job.ends) for job in host.there.jobs.values() if job.running}
    assert list(began) == ids and all(began[a][1] <= began[b][0] for a, b in itertools.pairwise(ids))
    for row in (row for id in ids for row in host.runs_of(id)):
        assert (row["backend"], row["node"]) == (TARGET, "")
        assert not row["handle"] or host.there.jobs[int(row["handle"])].name == PREFIX + row["uni_id"], "some answers never came"


def test_the_number_that_the_cluster_gave_a_run_is_recorded_as_its_handle(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    host = LoginNode(str(tmp_path / "home"), 0, bad_line=False)
    (id,) = host.submit({})
    host.step(1.0)
    host.step(1.0)
    (row,) = host.runs_of(id)
    assert host.there.jobs[int(row["handle"])].name == PREFIX + row["uni_id"]


def test_what_failed_is_tried_again_as_a_new_run(host: LoginNode) -> None:
    (id,) = host.submit({"retry": {"max": 2, "backoff": 1.0}})
    host.ends_with(id, 5.0, 3)
    host.settle()
    assert host.states() == {id: "failed"} and host.job(id)["exit_code"] == 3
    tries = host.runs_of(id)
    assert len(tries) == 3 and len({run["uni_id"] for run in tries}) == 3
    nothing_doubled(host)


def test_what_is_cancelled_ends_wherever_it_was(host: LoginNode) -> None:
    running, waiting = host.submit({"queue": "a"}, {"queue": "b"})
    host.ends_with(running, 10_000.0, 0)
    while host.job(running)["state"] != "running":
        host.step(1.0)
    late = host.submit({"queue": "c"})[0]
    host.step()
    for id in (running, waiting, late):
        host.cancel(id)
    host.settle()
    assert host.job(running)["state"] == "cancelled"
    assert {host.job(id)["state"] for id in (waiting, late)} <= {"cancelled", "succeeded"}
    nothing_doubled(host)


@pytest.mark.parametrize("place", CRASHES)
def test_an_engine_that_dies_anywhere_loses_and_doubles_nothing(host: LoginNode, place: str) -> None:
    ids = host.submit({"queue": "q"}, {"queue": "q"}, {}, {"retry": {"max": 1, "backoff": 0.0}})
    host.ends_with(ids[3], 5.0, 1)
    for n in itertools.count():
        if not any(state not in ("succeeded", "failed") for state in host.states().values()):
            break
        assert n < 3000, host.states()
        if n % 7 == 0 and host.crashes < 12:
            failpoint.arm(CRASHES[place])
        host.step(1.0)
    failpoint.arm("")
    assert host.crashes > 0
    assert [host.states()[id] for id in ids] == ["succeeded"] * 3 + ["failed"]
    nothing_doubled(host)


def test_no_more_runs_are_in_flight_than_the_target_takes(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    host = LoginNode(str(tmp_path / "home"), 1, most=2)
    ids = host.submit(*[{}] * 5)
    host.step(1.0)
    assert sum(state != "queued" for state in host.states().values()) == 2
    assert host.why(ids[4]) == "no_room"
    host.settle()
    assert set(host.states().values()) == {"succeeded"}


@pytest.mark.parametrize("trouble", [Hold("gpu_quota", "none left"), Hold("quota", "none left", gpus_only=True)])
def test_whom_a_trouble_holds_up_is_what_the_target_says_and_not_how_its_code_begins(tmp_path: Path, trouble: Hold) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    host = LoginNode(str(tmp_path / "home"), 1)
    host.handing.trouble = trouble
    card, none = host.submit({}, {"gpus": [0, 0]})
    host.step(1.0)
    assert (host.why(card), host.job(none)["attempt"]) == ("on_hold", int(trouble.gpus_only))


def test_of_a_cancelled_run_on_a_target_that_is_gone_it_is_not_said_that_it_ends(host: LoginNode) -> None:
    (id,) = host.submit({})
    host.ends_with(id, 5000.0, 0)
    while host.job(id)["state"] != "running":
        host.step(1.0)
    host.crash()
    host.reached = False
    host.boot()
    host.cancel(id)
    host.step(1.0)
    service = Service(host.engine, Loop(), permanent=True)
    assert service.answers.why({"id": id})["reason"]["code"] == "target_absent"
    rows = [service.answers.why({"id": id})["job"]]
    Waits(rows, json.loads(json.dumps(service.answers.reasons()))).fill(rows)
    assert rows[0]["reason"]["code"] == "target_absent"


def test_an_engine_that_is_to_stop_all_does_not_wait_for_a_target_that_is_gone(host: LoginNode) -> None:
    away, here = host.submit({}, {"on": [LOCAL], "gpus": [0, 0]})
    host.ends_with(away, 5000.0, 0)
    host.disk.durations[here] = (5000.0, 0, "")
    while set(host.states().values()) != {"running"}:
        host.step(1.0)
    host.crash()
    host.reached = False
    host.boot()
    service = Service(host.engine, Loop(), permanent=True)
    answer = service.down(None, {"stop_jobs": True})  # type: ignore[arg-type]
    assert (answer["runs"], answer["absent"]) == (2, 1)
    while not service.finished(host.clock.now()):
        host.step(1.0)
    assert host.states() == {away: "stopping", here: "cancelled"}
    host.crash()
    host.reached = True
    host.boot()
    host.settle()
    assert host.states()[away] == "cancelled", "it was asked when it was back"


def test_a_run_on_a_target_that_is_gone_is_neither_lost_nor_failed(host: LoginNode) -> None:
    (id,) = host.submit({})
    host.ends_with(id, 50.0, 4)
    while host.job(id)["state"] != "running":
        host.step(1.0)
    host.crash()
    host.reached = False
    host.boot()
    for _ in range(100):
        host.step(1.0)
    assert host.job(id)["state"] == "running" and host.engine.remarks()[id].code == "target_absent"
    host.cancel(id)
    host.step(1.0)
    assert host.job(id)["state"] == "stopping"
    host.crash()
    host.reached = True
    host.boot()
    host.settle()
    assert host.job(id)["exit_code"] == 4 and host.runs_of(id)[0]["outcome"] is not None
    nothing_doubled(host)


def test_why_a_cluster_keeps_a_run_waiting_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    host = LoginNode(str(tmp_path / "home"), 0, bad_line=False)
    host.there.queue_for = 100.0
    (id,) = host.submit({})
    host.step(1.0)
    host.step(1.0)
    remark = host.engine.remarks()[id]
    assert (remark.code, remark.params) == ("waits_there", {"target": TARGET, "why": "Priority"})
    reason = {"code": "waits_there", "params": {"target": TARGET, "why": "Priority"}, "gpus": []}
    assert host.job(id)["state"] == "starting" and reasons_shown(host, id) == [reason, reason]
    host.settle()
    assert host.engine.remarks() == {} and host.job(id)["state"] == "succeeded"


def test_of_a_run_that_has_not_begun_on_a_target_that_is_gone_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    host = LoginNode(str(tmp_path / "home"), 0, bad_line=False)
    host.there.queue_for = 100.0
    (id,) = host.submit({})
    host.step(1.0)
    host.crash()
    host.reached = False
    host.boot()
    reason = {"code": "target_absent", "params": {"target": TARGET}, "gpus": []}
    assert host.job(id)["state"] == "starting" and reasons_shown(host, id) == [reason, reason]


def test_an_end_that_is_told_again_after_a_restart_is_one_end(host: LoginNode) -> None:
    (id,) = host.submit({})
    while not host.there.ran:
        host.step(1.0)
    host.clock.at += 100.0
    host.there.step()
    (row,) = runs.open_runs(host.store)
    assert isinstance(host.there.spool[row["uni_id"]], Exit)
    host.crash()
    host.boot()
    host.settle()
    assert host.job(id)["attempt"] == 1
    nothing_doubled(host)


def test_a_job_that_needs_no_gpu_runs_here_and_one_that_may_go_to_several_goes_where_it_can(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    host = LoginNode(str(tmp_path / "home"), 0, bad_line=False)
    here, either, never = host.submit(
        {"on": ["local"], "gpus": [0, 0]}, {"on": ["local", TARGET]}, {"on": ["local"]}
    )
    while jobs.unfinished(host.store) != [never]:
        host.step(1.0)
    assert [host.runs_of(id)[0]["backend"] for id in (here, either)] == ["local", TARGET]
    assert host.job(never)["attempt"] == 0 and host.why(never) == "gpus_unknown"
