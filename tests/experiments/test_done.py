"""What the store says was done: the last run decides, and whoever wrote the log last owns it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from jostle.core.model import Exit
from jostle.engine import checks
from jostle.store import jobs, runs
from jostle.store.reads import Reader
from jostle.store.store import Store


class History:
    """Runs, one after another."""

    def __init__(self, home: str) -> None:
        self.home, self.store, self.clock = home, Store(home), count(100)

    def ran(self, fingerprint: str, outcome: str, log: str, **more: Any) -> int:
        job = {"commands": ["true"], "workdir": "/", "fingerprint": fingerprint, "log": log, **more}
        at = float(next(self.clock))
        with self.store.transaction():
            answer = jobs.submit(self.store, checks.request({"jobs": [job]}), at=at, now=at, rank=lambda: 0.5)
            id = int(answer["ids"][0])
            runs.begin(self.store, (id, 1), batch=answer["batch"], uni_id=f"u{id}", boot="b", shim=(1, 1), memory_mib=None,
                       share=False, log=log, leases=[], at=at, now=at)  # fmt: skip
            if outcome:
                runs.finish(self.store, (id, 1), batch=answer["batch"], queue=None, state=outcome, exit=Exit(code=0),
                            error_type=None, reason=None, peak_mib=0, at=at, now=at)  # fmt: skip
        return id

    def done(self, *fingerprints: str) -> dict[str, tuple[int, int, str]]:
        reader = Reader(self.home)
        try:
            return reader.done(fingerprints)
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
    assert history.done("f") == {"f": (again, 1, "/a.log")}


def test_b7_a_log_that_another_job_has_written_since_is_not_that_of_the_success(history: History) -> None:
    one = history.ran("lr 1", "succeeded", "/a.log")
    two = history.ran("other", "succeeded", "/b.log")
    assert history.done("lr 1", "other") == {"lr 1": (one, 1, "/a.log"), "other": (two, 1, "/b.log")}
    changed = history.ran("lr 2", "succeeded", "/a.log")
    assert history.done("lr 1", "lr 2", "other") == {"lr 2": (changed, 1, "/a.log"), "other": (two, 1, "/b.log")}
