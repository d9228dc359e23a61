"""What cards showed and who was on them is kept: seconds in memory, means in a file that nothing depends on. Time is a number."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jostle import failpoint
from jostle.engine import history as engine_history
from jostle.engine.history import HistoryWriter
from jostle.engine.observe import Observer
from jostle.store import history as store_history
from jostle.store.history import DAY, MONTH, CardPage, HistoryFile, Mean, Stay
from jostle.store.historyreads import HistoryReader
from jostle.store.store import Store
from tests.e2e.instance import SOURCE
from tests.engine.fakes import FakeClock

ME, BOB = 1000, 1001
U = "GPU-0"


class Kept:
    """A history and what it hears, in a home of its own."""

    def __init__(self, home: Path) -> None:
        home.mkdir(mode=0o700, exist_ok=True)
        self.home, self.store, self.clock = str(home), Store(str(home)), FakeClock()
        self.begin()

    def begin(self) -> None:
        """Another engine."""
        self.seen = Observer(ME)
        self.history = HistoryWriter(home=self.home, store=self.store, clock=self.clock)

    def read(
        self, seconds: float, *, load: int | None = 0, used: int = 0, every: float = 1.0, who: Any = (), cards: int = 1
    ) -> None:  # fmt: skip
        """Time passes, and the cards are read."""
        procs = [
            {"pid": pid, "used_mib": 300, "uid": BOB, "sid": None, "user": user, "name": "python", "mark": None, "ticks": 5}
            for user, pid in who
        ]
        until = self.clock.at + seconds
        while self.clock.at + every <= until:
            self.clock.at += every
            gpus = [
                {"uuid": f"GPU-{k}", "index": k, "name": "A100", "state": "ok", "total_mib": 24576, "used_mib": used,
                 "free_mib": 24576 - used, "utilization": load, "temperature": 40, "power_w": 61.5, "procs": procs}
                for k in range(cards)
            ]  # fmt: skip
            self.seen.hear(json.dumps({"gpus": gpus}).encode(), self.clock.at)
            self.history.heard(self.seen, {})
            self.history.step(self.clock.at)

    def looked_up(self) -> HistoryReader:
        reader = HistoryReader(self.home)
        readers.append(reader)
        return reader

    def means(self, step: int = 10, uuid: str = U) -> list[Mean]:
        reader = self.looked_up()
        ids = [card.id for card in reader.cards(0) if card.uuid == uuid]
        return reader.means(ids[0], 0, 1 << 40, step) if ids else []

    def held(self) -> list[tuple[str, int | None, float]]:
        """Who, with which process, how long."""
        reader = self.looked_up()
        stays = [held for card in reader.cards(0) for held in reader.held(card.id, 0)]
        return [(held.who, held.pid, round(held.seen - held.began)) for held in stays]


readers: list[HistoryReader] = []


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / "home")
    yield made
    failpoint.arm("")
    made.history.close()
    made.store.close()
    while readers:
        readers.pop().close()


def test_what_was_read_is_kept_as_means_of_ten_seconds_by_the_time_they_stand_for(kept: Kept) -> None:
    kept.read(20, load=100, used=1000)
    kept.read(20, load=0, used=3000)
    kept.read(30, load=None, used=3000)
    kept.read(60, every=10.0, load=40)
    kept.history.close()
    means = kept.means()
    assert [mean.load for mean in means] == [100, 100, 0, 0, None, None, None, *[40] * 6]
    assert [mean.used_mib for mean in means] == [1000, 1000, *[3000] * 5, *[0] * 6]
    assert [mean.at - means[0].at for mean in means] == [*range(0, 130, 10)] and means[0].at % 10 == 0
    assert {(mean.covered, mean.temperature, mean.power_w) for mean in means} == {(10.0, 40.0, 61.5)}


def test_however_often_it_is_read_a_second_counts_once_and_time_without_a_look_for_nothing(kept: Kept) -> None:
    kept.read(10, every=0.125, load=80)
    kept.clock.at += 100  # nobody looks
    kept.read(10, load=20)
    kept.history.close()
    covered = {load: sum(mean.covered for mean in kept.means() if mean.load == load) for load in (80, 20)}
    assert covered == {80: pytest.approx(10, abs=1), 20: 10.0}


def test_seconds_are_at_hand_at_once_and_bounded(kept: Kept) -> None:
    kept.read(400, load=7, used=5)
    (card,) = kept.history.tail(seconds=True)
    assert len(card["recent"]) == 300 and card["recent"][-1] == (kept.clock.wall(), 7, 5)
    assert kept.history.tail(seconds=False)[0]["recent"] == []
    newest = card["means"][-1]
    assert (newest.load, newest.at) == (7, kept.clock.wall() // 10 * 10 - 10)


def test_an_engine_that_goes_on_after_another_completes_its_last_mean(kept: Kept) -> None:
    kept.read(4, load=100)
    kept.history.close()
    kept.begin()
    kept.read(6, load=0)
    kept.history.close()
    ((mean),) = kept.means()
    assert (mean.load, mean.covered) == (pytest.approx(40, abs=0.1), 10.0)


def test_a_day_is_kept_in_tens_of_seconds_a_month_in_minutes_and_no_more(kept: Kept) -> None:
    file, began, last = HistoryFile(kept.home), 3600 * 138_888, 33 * 24
    for hour in [*range(0, last - 48, 24), *range(last - 48, last)]:  # one hour a day, and the last two days in full
        at = began + 3600 * hour
        means = [Mean(at + k, 10.0, float(k % 300), 10.0, None, None) for k in range(0, 3600, 10)]
        file.write([CardPage(U, 0, "A100", 24576, means, [Stay(at, "bob", 7, at + 1800)])])
        for _ in range(8):
            file.prune(at + 3600)
    file.close()
    now, fine, coarse = began + 3600 * last, kept.means(), kept.means(300)
    assert now - DAY <= fine[0].at <= now - DAY + 10 and len(fine) == 8640
    assert now - MONTH <= coarse[0].at <= now - MONTH + DAY and len(coarse) == 12 * (28 + 48)
    assert {(mean.load, mean.covered) for mean in coarse} == {(145.0, 300.0)}
    assert now - MONTH - DAY <= min(held.began for held in kept.looked_up().held(1, 0)) <= now - MONTH + DAY
    assert os.path.getsize(file.path) < 2 << 20


def test_a_card_that_has_gone_is_forgotten_after_a_month(kept: Kept) -> None:
    file = HistoryFile(kept.home)
    page = CardPage(U, 0, "A100", 24576, [Mean(1000, 10.0, 1.0, 1.0, None, None)], [])
    file.write([page])
    file.prune(1000 + MONTH + 400)
    file.prune(1000 + MONTH + 400)
    file.close()
    assert kept.looked_up().cards(0) == []


def test_who_else_was_on_a_card_and_how_long(kept: Kept) -> None:
    kept.read(100, who=[("bob", 7)])
    kept.read(20)  # it loads something
    kept.read(80, who=[("bob", 8), ("eve", 9)])
    kept.read(100)
    kept.read(50, who=[("bob", 8)])
    kept.history.close()
    assert kept.held() == [("bob", 8, 199), ("eve", 9, 79), ("bob", 8, 49)]


def test_memory_that_nobody_can_be_seen_to_use_is_somebodys(kept: Kept) -> None:
    kept.read(30, used=600)
    kept.read(60, used=500)
    kept.history.close()
    assert kept.held() == [("", None, 29)]


def test_our_runs_and_the_systems_own_processes_are_no_strangers(kept: Kept) -> None:
    kept.seen.run_opened((1, 1), "mark", 99, [U])
    for uid, sid, mark in ((ME, 99, None), (ME, None, "mark"), (0, None, None)):
        procs = [{"pid": 3, "used_mib": 900, "uid": uid, "sid": sid, "user": "x", "name": "", "mark": mark}]
        g = {"uuid": U, "procs": procs, "used_mib": 900}
        assert engine_history.others(g, kept.seen, ours=True) == {}
    mine = {"uuid": U, "procs": [{**procs[0], "uid": ME, "sid": None, "mark": None, "user": "me"}], "used_mib": 900}
    assert engine_history.others(mine, kept.seen, ours=False) == {"me": 3}, "what its owner runs beside jostle"


def test_a_restart_does_not_cut_a_stay_in_two_unless_it_may_have_ended(kept: Kept) -> None:
    kept.read(100, who=[("bob", 7), ("eve", 9)])
    kept.history.close()
    kept.clock.at += 300
    kept.begin()
    kept.read(100, who=[("bob", 7), ("eve", 10)])
    kept.history.close()
    assert sorted(kept.held()) == [("bob", 7, 499), ("eve", 9, 99), ("eve", 10, 99)]


def test_many_cards_are_written_a_few_at_a_time(kept: Kept) -> None:
    kept.read(60, cards=40)
    kept.clock.at += 60
    before = kept.history.tail(seconds=False)
    left = [sum(bool(card["means"]) for card in before)]
    while left[-1]:
        due = kept.history.step(kept.clock.at)
        assert due is not None
        kept.clock.at = due
        left.append(sum(bool(card["means"]) for card in kept.history.tail(seconds=False)))
    assert [a - b for a, b in itertools.pairwise(left)] == [8, 8, 8, 8, 8]


# --- what may befall the file


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if "history" in line]


def test_a_history_that_another_program_keeps_locked_is_not_waited_for_and_nothing_is_lost(kept: Kept, capsys: Any) -> None:
    kept.read(70, load=10)
    other = sqlite3.connect(f"{kept.home}/history.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    db = kept.history._file._db
    assert db is not None and db.execute("PRAGMA busy_timeout").fetchone() == (0,)
    kept.read(180, load=10)
    assert len(lines(capsys)) == 1
    other.execute("ROLLBACK")
    other.close()
    kept.read(70, load=10)
    kept.history.close()
    assert sum(mean.covered for mean in kept.means()) == pytest.approx(320) and lines(capsys) == []


def test_one_that_stays_locked_is_given_up_and_begun_anew(kept: Kept, capsys: Any) -> None:
    kept.read(70, load=10)
    other = sqlite3.connect(f"{kept.home}/history.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    kept.read(1000, load=10)
    assert any("begun anew" in line for line in lines(capsys))
    kept.history.close()
    assert 600 <= sum(mean.covered for mean in kept.means()) < 1070, "what was in memory is there, and it is bounded"
    other.close()


@pytest.mark.parametrize("how", ["removed", "garbage", "torn", "newer", "another"])
def test_a_history_that_is_spoilt_is_begun_anew_and_says_so(kept: Kept, capsys: Any, how: str) -> None:
    kept.read(130, load=10)
    path = Path(kept.home) / "history.db"
    if how == "removed":
        path.unlink()
    else:
        kept.history.close()
        kept.begin()
        if how == "garbage":
            path.write_bytes(b"no database" * 1000)
        elif how == "torn":
            whole = path.read_bytes()
            path.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
        else:
            path.unlink()
            with sqlite3.connect(path) as db:
                db.execute("PRAGMA user_version = 9" if how == "newer" else "CREATE TABLE fine (x)")
            db.close()
    kept.read(200, load=30)
    assert [line for line in lines(capsys) if "begun anew" in line]
    kept.history.close()
    loads = {mean.load for mean in kept.means()}
    assert 30 in loads and loads <= {10, 30} and (path.stat().st_mode & 0o777) == 0o600


@pytest.mark.parametrize("what", ["directory", "link"])
def test_what_lies_in_its_place_is_not_written_into(kept: Kept, capsys: Any, tmp_path: Path, what: str) -> None:
    path, precious = Path(kept.home) / "history.db", tmp_path / "precious"
    precious.write_text("mine")
    path.mkdir() if what == "directory" else path.symlink_to(precious)
    kept.read(400, load=30)
    assert len(lines(capsys)) in (1, 2) and precious.read_text() == "mine"
    kept.history.close()
    assert path.is_dir() if what == "directory" else {mean.load for mean in kept.means()} == {30}


@pytest.mark.parametrize("suffix", store_history.FILES)
def test_a_pipe_in_the_place_of_one_of_its_files_is_not_opened(kept: Kept, capsys: Any, tmp_path: Path, suffix: str) -> None:
    """Who opened it would wait for good: a child tries it first, in another home."""
    kept.read(70, load=10)
    kept.history.close()
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(f"{kept.home}/history.db", other)
    (other / f"history.db{suffix}").unlink(missing_ok=True)
    os.mkfifo(other / f"history.db{suffix}")
    code = f"import sys; sys.path.insert(0, {SOURCE!r})\n" + PIPED
    child = subprocess.run([sys.executable, "-c", code, str(other)], capture_output=True, text=True, timeout=60)
    named = f"history.db{suffix} is no file of ours"
    assert child.stdout.splitlines() == [named, f"Spoilt {named}"], child.stderr
    (other / f"history.db{suffix}").replace(f"{kept.home}/history.db{suffix}")
    kept.begin()
    kept.read(200, load=30)
    assert [line for line in lines(capsys) if "begun anew" in line and named in line]
    kept.history.close()
    assert {mean.load for mean in kept.means()} == {30}


PIPED = """
from jostle.store.history import HistoryFile, Spoilt
from jostle.store.historyreads import HistoryReader
reader = HistoryReader(sys.argv[1])
reader.cards(0)
print(reader.error)
try:
    HistoryFile(sys.argv[1]).prune(0)
except Spoilt as e:
    print("Spoilt", e)
"""


def test_a_stay_that_is_none_ends_no_engine(kept: Kept) -> None:
    kept.read(70, who=[("bob", 7)])
    kept.history.close()
    with sqlite3.connect(f"{kept.home}/history.db") as db:
        db.execute("UPDATE held SET seen = 'x'")
        db.execute("INSERT INTO held SELECT card, 'x', who, pid, ? FROM held", (kept.clock.wall(),))
    db.close()
    kept.begin()
    kept.read(70, who=[("bob", 7)])
    assert kept.history.tail(seconds=False)[0]["held"]


def test_while_nothing_can_be_written_what_waits_is_bounded(kept: Kept) -> None:
    failpoint.arm("history.before_commit=EIO")
    for k in range(engine_history.LEFT + 50):
        kept.read(60, every=20.0, who=[(f"user{k}", 7)])
    (card,) = kept.history.tail(seconds=False)
    assert engine_history.LEFT <= len(card["held"]) <= engine_history.LEFT + 5
    assert card["held"][-1].who == f"user{k}", "the newest are kept"


def test_who_leaves_while_the_clock_is_set_back_has_left(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.read(20, who=[("bob", 7), ("eve", 8)])
    back = kept.clock.wall
    monkeypatch.setattr(kept.clock, "wall", lambda: back() - 3600)
    kept.read(5, who=[("eve", 8)])
    (track,) = kept.history._tracks.values()
    assert set(track.held) == {"eve"} and {held.who for held in track.left} == {"bob", "eve"}


@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EDQUOT"])
def test_a_full_or_failing_disk_costs_at_most_what_was_not_written(kept: Kept, capsys: Any, error: str) -> None:
    kept.read(130, load=10)
    failpoint.arm(f"history.before_commit={error}")
    kept.read(180, load=10)
    assert len(lines(capsys)) == 1
    failpoint.arm("")
    kept.read(70, load=10)
    kept.history.close()
    assert sum(mean.covered for mean in kept.means()) == pytest.approx(380)


def test_its_size_is_bounded(kept: Kept, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_history, "PAGES", 50)
    for _ in range(60):
        kept.read(60, every=10.0, who=[(f"user{kept.clock.at}", 1)], cards=16)
    kept.history.close()
    assert [line for line in lines(capsys) if "begun anew" in line and "MiB" in line]
    assert os.path.getsize(f"{kept.home}/history.db") <= 50 * 4096


def test_nothing_is_written_where_the_home_is_not_ours_any_more(kept: Kept, tmp_path: Path) -> None:
    Path(kept.home).rename(tmp_path / "moved")
    Path(kept.home).mkdir()
    kept.read(200)
    kept.history.close()
    assert os.listdir(kept.home) == []
    Path(kept.home).rmdir()
    (tmp_path / "moved").rename(kept.home)


def test_a_large_history_is_checked_after_a_reboot_and_not_at_each_start(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check reads all of it, and nobody is to wait for that."""
    kept.read(130, load=10)
    kept.history.close()
    path = Path(kept.home) / "history.db"
    with sqlite3.connect(path) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'held'").fetchone()
    db.close()
    whole = bytearray(path.read_bytes())
    whole[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096  # a page that no write comes across
    path.write_bytes(whole)
    monkeypatch.setattr(store_history, "CHECK_BELOW", 0)
    file = HistoryFile(kept.home)
    file.keep_open({})
    file.close()
    monkeypatch.setenv("JOSTLE_TEST_BOOT_ID", "the next boot")
    with pytest.raises(store_history.Spoilt):
        HistoryFile(kept.home).keep_open({})


NONE = float("nan")
ODD = [{"used_mib": 10**400}, {"total_mib": 1 << 70}, {"power_w": NONE}, {"temperature": float("inf")}, {"index": 1 << 80}]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: next(iter(odd)))
def test_a_reading_that_no_file_can_keep_is_none(kept: Kept, odd: dict[str, Any]) -> None:
    kept.read(20, load=10)
    card = {**kept.seen.snapshot["gpus"][0], **odd}
    kept.clock.at += 1
    kept.seen.hear(json.dumps({"gpus": [card]}).encode(), kept.clock.at)
    kept.history.heard(kept.seen, {})
    kept.read(100, load=10)
    kept.history.close()
    assert {mean.load for mean in kept.means()} == {10}


def test_a_name_that_is_no_text_is_kept_as_one(kept: Kept) -> None:
    kept.read(20, who=[("b\udcffb", 7)])
    kept.history.close()
    assert [who for who, _, _ in kept.held()] == ["b?b"]
