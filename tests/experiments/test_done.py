"""What the store says was done: the last run decides, and whoever wrote the log last owns it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from jostle.core.model import Exit
from jostle.engine import checks
from jostle.experiments import skip
from jostle.store import jobs, runs
from jostle.store.reads import Reader
from jostle.store.store import Store


class History:
    """Runs, one after another."""

    def __init__(self, home: str) -> None:
        self.home, self.store, self.clock = home, Store(home), count(100)

    def ran(self, fingerprint: str, outcome: str, log: str | None, **more: Any) -> int:
        job = {"commands": ["true"], "workdir": "/", "fingerprint": fingerprint, "log": log, **more}
        at = float(next(self.clock))
        with self.store.transaction():
            answer = jobs.submit(self.store, checks.request({"jobs": [job]}), at=at, now=at, rank=lambda: 0.5)
            id = int(answer["ids"][0])
            runs.begin(self.store, (id, 1), batch=answer["batch"], uni_id=f"u{id}", memory_mib=None,
                       share=False, log=log or f"/runs/{id}.1/log", leases=[], at=at, now=at)  # fmt: skip
            if outcome:
                runs.finish(self.store, (id, 1), batch=answer["batch"], state=outcome, exit=Exit(code=0),
                            error_type=None, reason=None, peak_mib=0, at=at, now=at)  # fmt: skip
        return id

    def done(self, *fingerprints: str) -> dict[str, list[tuple[int, str]]]:
        """The jobs that succeeded when they last ran, and their logs."""
        reader = Reader(self.home)
        try:
            found = reader.last_runs(fingerprints)
        finally:
            if reader.db is not None:
                reader.db.close()
        good = {key: [(run.job, run.log) for run in kept if run.outcome == "succeeded"] for key, kept in found.items()}
        return {key: kept for key, kept in good.items() if kept}

    def verdict(self, fingerprint: str, log: str | None) -> str:
        reader = Reader(self.home)
        try:
            job = {"name": "x", "fingerprint": fingerprint, "log": log, "needs": []}
            return skip.judged([job], skip.Rule(), reader.last_runs([fingerprint]), exists=lambda path: True)[0].what
        finally:
            if reader.db is not None:
                reader.db.close()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(str(tmp_path))
    yield made
    made.store.close()


@pytest.mark.parametrize("later", ["failed", "cancelled", ""])
def test_b7_a_success_that_was_followed_by_another_try_is_no_longer_one(history: History, later: str) -> None:
    history.ran("f", "succeeded", "/a.log")
    history.ran("f", later, "/a.log")
    assert history.done("f") == {}, "its log is that of the later run, which did not succeed"
    again = history.ran("f", "succeeded", "/a.log")
    assert history.done("f") == {"f": [(again, "/a.log")]}


def test_b7_a_log_that_another_job_has_written_since_is_not_that_of_the_success(history: History) -> None:
    one = history.ran("lr 1", "succeeded", "/a.log")
    two = history.ran("other", "succeeded", "/b.log")
    assert history.done("lr 1", "other") == {"lr 1": [(one, "/a.log")], "other": [(two, "/b.log")]}
    changed = history.ran("lr 2", "succeeded", "/a.log")
    assert history.done("lr 1", "lr 2", "other") == {"lr 2": [(changed, "/a.log")], "other": [(two, "/b.log")]}


def test_b7_equal_work_under_another_log_is_not_done(history: History) -> None:
    history.ran("f", "succeeded", "/a.log")
    assert (history.verdict("f", "/a.log"), history.verdict("f", "/b.log")) == ("done", "run")
    history.ran("f", "succeeded", "/b.log")
    assert (history.verdict("f", "/a.log"), history.verdict("f", "/b.log")) == ("done", "done"), "each has its own"
    history.ran("f", "failed", "/b.log")
    assert (history.verdict("f", "/a.log"), history.verdict("f", "/b.log")) == ("done", "run")


def test_b7_a_job_that_names_no_log_is_done_by_whatever_did_it_unless_its_own_last_run_failed(history: History) -> None:
    assert history.verdict("f", None) == "run"
    history.ran("f", "succeeded", "/a.log")
    assert history.verdict("f", None) == "done"
    history.ran("f", "failed", None)
    assert (history.verdict("f", None), history.verdict("f", "/a.log")) == ("run", "done")
    history.ran("f", "succeeded", None)
    assert (history.verdict("f", None), history.verdict("f", "/c.log")) == ("done", "run")


def test_b7_one_log_by_two_paths_is_one_log(history: History, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    history.ran("f", "succeeded", f"{tmp_path}/real/a.log")
    assert history.verdict("f", f"{tmp_path}/link/a.log") == "done"
    history.ran("g", "succeeded", f"{tmp_path}/link/a.log")
    assert history.verdict("f", f"{tmp_path}/real/a.log") == "run", "another has written it since"
