"""How a run used its cards is known when it has ended: what was seen of it, of how much of its time, over restarts as well."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jostle.core.model import Lease
from jostle.engine.history import HistoryWriter
from jostle.engine.observe import Observer
from jostle.engine.open import Open
from jostle.engine.profiles import MOST_PROCESSES, MOST_SHARED, RunUse, share_below
from jostle.store.store import Store
from tests.engine.fakes import FakeClock

ME, BOB = 1000, 1001
RUN = (1, 1)


def opened(*uuids: str, id: tuple[int, int] = RUN, at: float = 1000.0) -> Open:
    leases = [Lease(uuid=uuid, index=k, mib=None) for k, uuid in enumerate(uuids)]
    return Open(
        id=id, batch=1, uni_id=f"mark{id}", state="running", backend="local", node="local", handle="", memory_mib=None,
        share=False, clock_at=at, time_limit=None, failures=0, retry=None, leases=leases, on=("local",),
    )  # fmt: skip


class Watched:
    """Runs whose cards are read each second."""

    def __init__(self, home: Path) -> None:
        home.mkdir(mode=0o700)
        self.home, self.store, self.clock = str(home), Store(str(home)), FakeClock()
        self.runs: dict[tuple[int, int], Open] = {}
        self.begin()

    def begin(self) -> None:
        """Another engine, which takes up what there is."""
        self.seen = Observer(ME)
        self.history = HistoryWriter(home=self.home, store=self.store, clock=self.clock)
        for run in self.runs.values():
            self.seen.run_opened(run.id, run.uni_id, None, [lease.uuid for lease in run.leases])
        self.history.adopt(self.runs, self.seen)

    def start(self, run: Open) -> None:
        self.runs[run.id] = run
        self.seen.run_opened(run.id, run.uni_id, None, [lease.uuid for lease in run.leases])

    def read(self, seconds: int, **cards: Any) -> None:
        """By card: its load, what our runs use of it (by id), and who else is there."""
        for _ in range(seconds):
            self.clock.at += 1.0
            gpus = []
            for k, (uuid, (load, ours, others)) in enumerate(cards.items()):
                mine = [{"pid": 1, "used_mib": mib, "uid": ME, "sid": None, "user": "me", "name": "", "mark": f"mark{id}"}
                        for id, mib in ours.items()]  # fmt: skip
                theirs = [{"pid": 2, "used_mib": 50, "uid": BOB, "sid": None, "user": who, "name": "", "mark": None}
                          for who in others]  # fmt: skip
                gpus.append({
                    "uuid": uuid, "index": k, "name": "A100", "state": "ok", "total_mib": 24576, "used_mib": 100, "free_mib": 1,
                    "utilization": load, "procs": [*mine, *theirs],
                })  # fmt: skip
            self.seen.hear(json.dumps({"gpus": gpus}).encode(), self.clock.at)
            self.history.heard(self.seen, self.runs)
            self.history.step(self.clock.at)

    def end(self, id: tuple[int, int] = RUN) -> dict[str, Any]:
        self.history.run_ended(self.runs.pop(id), self.clock.at)
        (_, use) = self.history._ended.pop()
        return {**use.profile(), "gpu_name": use.gpu_name}


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path / "home")
    yield made
    made.history.close()
    made.store.close()


def test_a_run_that_has_ended_keeps_how_it_used_its_card(watched: Watched) -> None:
    watched.start(opened("a"))
    watched.read(10, a=(0, {RUN: 0}, []))
    watched.read(60, a=(80, {RUN: 9990}, []))
    watched.read(30, a=(100, {RUN: 5000}, ["bob"]))
    assert watched.end() == {
        "observed_s": 100.0, "gpu_name": "A100", "gpu_mib": 24576, "peak_at_s": 11.0, "memory_p50_mib": 10016,
        "memory_p95_mib": 10016, "load_mean": 78.0, "load_p95": 100, "idle_share": 0.1,
        "shared": [{"user": "bob", "job": None, "for_s": 30.0}],
        "curve": {"step_s": 4.0, "mib": [0, 0, 9990, *[9990] * 15, *[5000] * 8]},
    }  # fmt: skip


@pytest.mark.parametrize("later", [0.1, 0.0])
def test_a_reading_from_before_its_start_tells_nothing_of_a_run(watched: Watched, later: float) -> None:
    """It is added to the history after the tick in which the run was started; no clock need have moved between the two."""
    watched.read(1, a=(100, {}, ["bob"]))
    watched.clock.at += later
    watched.start(opened("a", at=watched.clock.at))
    watched.history.heard(watched.seen, watched.runs)
    assert watched.end()["gpu_mib"] is None


def test_of_several_cards_the_fullest_counts_for_memory_and_the_mean_for_load(watched: Watched) -> None:
    watched.start(opened("a", "b"))
    watched.read(10, a=(100, {RUN: 320}, []), b=(0, {RUN: 3200}, []))
    watched.read(5, a=(100, {RUN: 320}, []))  # the other cannot be read: a part tells nothing of the whole
    profile = watched.end()
    assert (profile["memory_p50_mib"], profile["observed_s"]) == (3200, 10.0)
    assert (profile["load_mean"], profile["idle_share"]) == (50.0, 0.0)


def test_what_the_driver_does_not_say_is_not_known(watched: Watched) -> None:
    watched.start(opened("a"))
    watched.read(10, a=(None, {RUN: None}, []))
    profile = watched.end()
    seen = {key: value for key, value in profile.items() if value is not None}
    assert seen == {"observed_s": 10.0, "gpu_name": "A100", "gpu_mib": 24576, "shared": []}


def test_those_who_shared_its_card_are_told_the_longest_first(watched: Watched) -> None:
    other = (7, 2)
    watched.start(opened("a"))
    watched.read(5, a=(9, {RUN: 1}, ["bob", "eve"]))
    watched.start(opened("a", id=other, at=watched.clock.at))
    watched.read(20, a=(9, {RUN: 1, other: 1}, ["eve"]))
    shared = watched.end()["shared"]
    assert [one["user"] or one["job"] for one in shared] == ["eve", 7, "bob"]
    assert [one["for_s"] for one in shared] == [25.0, 20.0, 5.0]


def test_time_in_which_nobody_looked_is_not_observed(watched: Watched) -> None:
    watched.start(opened("a"))
    watched.read(10, a=(50, {RUN: 64}, []))
    watched.clock.at += 300
    watched.read(10, a=(50, {RUN: 64}, []))
    assert watched.end()["observed_s"] == pytest.approx(20, abs=1)


def test_after_a_restart_what_was_seen_before_counts_and_what_was_not_does_not(watched: Watched) -> None:
    watched.start(opened("a"))
    watched.read(30, a=(100, {RUN: 9600}, ["bob"]))
    watched.read(30, a=(0, {RUN: 640}, []))
    watched.history.close()
    watched.clock.at += 1000  # no engine runs
    watched.begin()
    assert watched.seen.peaks == {RUN: 9600}, "the peak was seen, if not by this one"
    watched.read(20, a=(0, {RUN: 640}, []))
    profile = watched.end()
    assert (profile["observed_s"], profile["load_mean"], profile["idle_share"]) == (80.0, pytest.approx(37.5), 0.625)
    assert (profile["memory_p50_mib"], profile["memory_p95_mib"], profile["peak_at_s"]) == (640, 9600, 1.0)
    assert profile["shared"] == [{"user": "bob", "job": None, "for_s": 30.0}]


@pytest.mark.parametrize("lost", ["removed", "spoilt", "other"])
def test_without_the_history_of_before_only_what_was_seen_since_is_told(watched: Watched, lost: str) -> None:
    watched.start(opened("a"))
    watched.read(70, a=(100, {RUN: 9600}, []))
    watched.history.close()
    path = Path(watched.home) / "history.db"
    if lost == "removed":
        path.unlink()
    elif lost == "spoilt":
        path.write_bytes(b"x" * 9000)
    else:
        watched.history._file.keep_open({RUN: {"of": "another version"}})
    watched.begin()
    watched.read(20, a=(0, {RUN: 640}, []))
    profile = watched.end()
    assert (profile["observed_s"], profile["load_mean"], profile["memory_p95_mib"]) == (20.0, 0.0, 640)


GOOD: dict[str, Any] = {
    "observed_s": 50.0, "memory": {"64": 50}, "load": {"7": 50.0}, "idle_s": 0, "peak_mib": 9, "peak_at_s": None,
    "shared": {"bob": 5.0, "#3": 4.0}, "gpu_name": "A100", "gpu_mib": None,
}  # fmt: skip
ODD: list[Any] = [
    {"observed_s": "x"}, {"observed_s": None}, {"observed_s": float("nan")}, {"idle_s": []}, {"idle_s": float("inf")},
    {"memory": []}, {"memory": {"x": 1}}, {"memory": {"64": "1"}}, {"load": {"7": -1}}, {"load": {"1" * 30: 1}},
    {"peak_mib": "9"}, {"peak_mib": 1 << 70}, {"peak_at_s": "x"}, {"shared": None}, {"shared": {"#x": 1}},
    {"shared": {"bob": None}}, {"gpu_name": 7}, {"gpu_mib": "x"}, {"new": 1}, {"curve": None},
    {"curve": {"step_s": 0, "mib": []}}, {"curve": {"step_s": 1.0, "mib": [0.5]}},
    {"curve": {"step_s": 1.0, "mib": [1] * 99}}, {"curve": {"mib": []}},
]  # fmt: skip


def kept_before(watched: Watched, data: str) -> None:
    """An earlier engine, or who knows who, has left this of the run, which lives."""
    watched.start(opened("a"))
    watched.history._file.keep_open({RUN: {}})
    watched.history.close()
    with sqlite3.connect(f"{watched.home}/history.db") as db:
        db.execute("UPDATE open_run SET data = ?", (data,))
    db.close()
    watched.begin()


def test_what_an_earlier_engine_has_seen_is_taken_up(watched: Watched) -> None:
    kept_before(watched, json.dumps(GOOD))
    assert watched.seen.peaks == {RUN: 9}
    profile = watched.end()
    assert (profile["observed_s"], profile["memory_p50_mib"], profile["load_mean"]) == (50.0, 64, 7.0)
    assert profile["gpu_name"] == "A100"
    assert [one["user"] or one["job"] for one in profile["shared"]] == ["bob", 3]


TEXTS = [*(json.dumps({**GOOD, **odd}) for odd in ODD), "[" * 200_000, "[]", "7", "", "{"]


@pytest.mark.parametrize("data", TEXTS, ids=range(len(TEXTS)))
def test_whatever_was_left_of_a_run_the_engine_starts_and_begins_afresh_with_it(watched: Watched, data: str) -> None:
    kept_before(watched, data)
    watched.read(20, a=(10, {RUN: 640}, ["bob"]))
    profile = watched.end()
    assert (profile["observed_s"], profile["load_mean"], profile["memory_p95_mib"]) == (20.0, 10.0, 640)
    assert [one["for_s"] for one in profile["shared"]] == [20.0]


def test_a_name_that_is_no_text_is_taken_up_as_one(watched: Watched) -> None:
    kept_before(watched, json.dumps({**GOOD, "gpu_name": "\ud800", "shared": {"\ud800": 1.0}}))
    profile = watched.end()
    assert (profile["gpu_name"], profile["shared"][0]["user"]) == ("?", "?")


def test_of_very_many_who_share_a_card_those_who_stay_are_remembered() -> None:
    use = RunUse()
    for k in range(10_000):
        use.share("bob", 1.0)
        use.share(f"#{k}", 1.0)
        assert len(use.shared) <= MOST_SHARED
        if k > 9000:
            use.share("eve", 1.0)
    assert [one["user"] for one in use.profile()["shared"][:2]] == ["bob", "eve"], "also who came late"


def test_a_run_too_short_to_be_seen_claims_nothing(watched: Watched) -> None:
    watched.start(opened("a"))
    profile = watched.end()
    assert profile.pop("observed_s") == 0.0 and profile.pop("gpu_name") == "" and profile.pop("shared") == []
    assert set(profile.values()) == {None}


def test_a_share_of_the_time_is_by_seconds_not_by_samples() -> None:
    assert share_below({10: 1.0, 20: 98.0, 30: 1.0}, 0.5) == 20 and share_below({10: 95.0, 20: 5.0}, 0.95) == 10
    assert share_below({}, 0.5) is None and RunUse().profile()["memory_p50_mib"] is None


def test_c13_of_each_process_the_most_that_it_held_on_cards_is_known_by_the_next_engine_too(watched: Watched) -> None:
    watched.start(opened("a", "b"))
    watched.read(5, a=(50, {RUN: 300}, []), b=(50, {RUN: 900}, ["bob"]))
    watched.read(5, a=(50, {RUN: 100}, []), b=(50, {}, ["bob"]))
    now = {"pid": 1, "gpus": [0], "gpu_mib": 100, "sm": None, "gpu_peak_mib": 1200}
    assert watched.history.on_cards(RUN, watched.seen) == [now], "what it held on both cards together"
    watched.history.close()
    watched.begin()
    watched.read(1, a=(50, {RUN: 100}, []), b=(50, {}, ["bob"]))
    assert watched.history.on_cards(RUN, watched.seen) == [now]
    watched.read(1, a=(50, {RUN: None}, []), b=(50, {}, []))
    assert watched.history.on_cards(RUN, watched.seen) == [{**now, "gpu_mib": None}], "the driver does not say"


def test_c13_a_run_of_very_many_processes_is_not_remembered_without_bound() -> None:
    use = RunUse()
    for pid in range(3 * MOST_PROCESSES):
        use.see_processes({f"{pid}.0": 1, "largest.0": 5000})
    assert len(use.processes) <= MOST_PROCESSES and use.processes["largest.0"] == 5000
