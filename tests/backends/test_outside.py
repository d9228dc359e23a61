"""What is seen of runs without an engine: of this host's, and of those that another backend carries."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jostle.backends.local.outside import is_over, runs_of

HANDLE = json.dumps({"pid": os.getpid(), "ticks": 7, "boot": "x"})


class Rows:
    """A store with one run."""

    def __init__(self, home: Path, **run: Any) -> None:
        self.path = str(home / "jostle.db")
        self.run = {"n": 1, "backend": "local", "handle": HANDLE, "ended_at": None, "log": str(home / "out.log"), **run}

    def runs(self, id: int) -> list[dict[str, Any]]:
        return [dict(self.run)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Another run has written to the path since, so the file of this one was put aside."""
    (tmp_path / "runs" / "7.1").mkdir(parents=True)
    (tmp_path / "out.log").write_text("newer\n")
    ours = tmp_path / "out.log.1"
    ours.write_text("ours\n")
    identity = [ours.stat().st_dev, ours.stat().st_ino]
    (tmp_path / "runs" / "7.1" / "exit").write_text(json.dumps({"log_id": identity}))
    return tmp_path


def test_a_run_of_this_host_is_shown_with_its_shim_and_with_its_log_where_that_lies_now(place: Path) -> None:
    (run,) = runs_of(Rows(place), 7)
    assert list(run) == ["n", "shim_pid", "ended_at", "log"], "in the place of its handle"
    assert (run["shim_pid"], run["log"]) == (os.getpid(), str(place / "out.log.1"))


def test_of_a_run_that_another_backend_carries_nothing_is_made_of_its_handle_or_of_a_directory_here(place: Path) -> None:
    (run,) = runs_of(Rows(place, backend="cluster"), 7)
    assert (run["shim_pid"], run["log"]) == (None, str(place / "out.log"))


@pytest.mark.parametrize("handle", ["", "4711", "{}", "[1]", '{"pid": 1e400, "ticks": 1, "boot": ""}', '{"pid": 4711}'])
def test_a_handle_that_cannot_be_read_names_no_shim(place: Path, handle: str) -> None:
    assert runs_of(Rows(place, handle=handle), 7)[0]["shim_pid"] is None


def test_a_run_whose_shim_lives_and_that_left_no_record_is_not_over(place: Path) -> None:
    (run,) = runs_of(Rows(place), 7)
    assert is_over(str(place), 7, run) and not is_over(str(place), 8, run)
