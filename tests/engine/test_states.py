"""The table of states is true: the store takes no way that it lacks, and every way that it has is gone."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path

import pytest

from jostle.core.states import ALL, TRANSITIONS
from tests.engine.fakes import FOREVER, Host

WAYS = {(state, to) for state, ways in TRANSITIONS.items() for to in ways}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    tmp_path.chmod(0o700)
    return Host(str(tmp_path), gpus=2)


def test_the_store_takes_the_ways_of_the_table_and_no_other(host: Host) -> None:
    (id,) = host.submit({})
    db, taken = host.store.db, set()
    db.execute("CREATE TEMP TABLE other AS SELECT * FROM job WHERE id = ?", (id,))
    for state, to in itertools.permutations(ALL, 2):
        id += 1
        db.execute("UPDATE other SET id = ?, state = ?", (id, state))
        db.execute("INSERT INTO job SELECT * FROM other")
        try:
            db.execute("UPDATE job SET state = ? WHERE id = ?", (to, id))
            taken.add((state, to))
        except sqlite3.IntegrityError as e:
            assert "cannot go" in str(e)
    assert taken == WAYS


def test_every_way_of_the_table_is_gone(host: Host) -> None:
    gone: set[tuple[str, str]] = set()
    host.store.db.create_function("seen", 2, lambda *way: gone.add(way))
    host.store.db.execute(
        "CREATE TEMP TRIGGER seen AFTER UPDATE OF state ON main.job WHEN OLD.state <> NEW.state "
        "BEGIN SELECT seen(OLD.state, NEW.state); END"
    )

    def begun(seconds: float = FOREVER, code: int = 0, **job: object) -> int:
        """A job whose run has been started, and not been heard of yet."""
        (id,) = host.submit({"gpus": [0, 0], **job})
        host.disk.durations[id] = (seconds, code, "")
        host.engine.tick()
        assert host.states()[id] == "starting"
        return id

    def running(*given: float | int, **job: object) -> int:
        id = begun(*given, **job)
        host.step()
        host.step(1.0)  # nobody waits for this news, so it may be recorded a little later
        assert host.states()[id] == "running"
        return id

    again = {"retry": {"max": 1, "backoff_after": 1, "backoff": FOREVER}}
    (queued,) = host.submit({"gpus": [0, 0], "intent": "hold"})
    host.submit({"gpus": [0, 0], "needs": [["job", queued, False]]})
    host.cancel(queued)  # and what comes after it is skipped
    host.submit({"gpus": [3, 3]}, policy={"max_wait": 1.0})
    host.step(2.0)
    host.step(2.0)
    for code in (0, 1):
        begun(0.0, code)
        host.step()  # ended before anybody heard that it runs
        running(5.0, code)
        host.step(5.0)
    begun(0.0, 1, **again)
    host.step()
    running(5.0, 1, **again)
    host.step(5.0)
    for start in (begun, running):
        host.cancel(start())
        host.engine.tick()
        host.step(1.0)  # asked to end, and gone
        id = start(3.0, 1)
        host.clock.at += 3.0
        host.cancel(id)
        host.step()  # the end and the cancel are heard at once
    id = running(3.0)
    host.clock.at += 3.0
    host.cancel(id)
    host.engine.tick()  # asked to end, while it has ended well by itself
    host.step()
    assert gone == WAYS
