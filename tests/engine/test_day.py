"""What is really free is used, whoever comes and goes (simulated time)."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.engine import observe
from tests.engine.day import WAITING, Day
from tests.engine.elastic_day import ElasticDay


@pytest.fixture
def home(tmp_path: Path) -> str:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return str(path)


def test_of_what_strangers_leave_free_next_to_nothing_stands_idle(home: str) -> None:
    day = Day(home, seed=4)
    tally = day.live(3600.0)
    assert tally.strangers >= 5 and tally.jobs > WAITING + 10
    assert tally.lost <= 0.01 * tally.free
    assert day.host.disk.overlaps == [] and day.host.disk.doubled == []


def test_the_tally_shows_caution(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that takes no reading for fresh enough leaves everything unused."""
    monkeypatch.setattr(observe, "FRESH_FOR", -1.0)
    tally = Day(home, seed=4).live(60.0)
    assert tally.lost == tally.free == 8 * 60.0


def test_c7_a_program_that_grows_uses_most_of_what_strangers_leave_free(tmp_path: Path) -> None:
    """More than with any fixed number of cards, with few changes, and never beside another of ours."""

    def lived(name: str, **job: object) -> ElasticDay:
        path = tmp_path / name
        path.mkdir(mode=0o700)
        day = ElasticDay(str(path), seed=4, **job)
        day.live(3600.0)
        return day

    elastic = lived("elastic", gpus=[1, 8], resize="restart")
    assert elastic.used.strangers >= 3 and elastic.host.disk.overlaps == []
    assert elastic.used.share > 0.85 and elastic.used.changes <= 16
    assert elastic.used.share > lived("fixed", gpus=[4, 4]).used.share
