"""A home of an older version, with jobs that run, taken up by this one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from jostle import client
from jostle.errors import Invalid
from jostle.store.file import database
from jostle.store.salvage import TABLES
from jostle.store.store import MIGRATIONS, script
from jostle.views.status import arrival
from tests.e2e.instance import Instance, alive

WAITING = "echo $$ > {0}; until [ -e {0}.go ]; do sleep 0.02; done; exit {1}"
SHIM = {"shim_pid": "pid", "shim_ticks": "ticks", "boot": "boot"}  # columns of a run up to version 4 -> keys of its handle


def put_back(home: Path, version: int) -> None:
    """The database of a home that nobody uses, as an engine of that version would have written it."""
    path = database(str(home))
    with contextlib.closing(sqlite3.connect(path)) as now, contextlib.closing(sqlite3.connect(f"{path}.older")) as old:
        for name in MIGRATIONS[:version]:
            old.executescript(script(name))
        for table in TABLES:
            has, had = ([row[1] for row in db.execute(f"PRAGMA table_info({table})")] for db in (now, old))
            if not had:
                continue  # there was no such thing
            source = {name: name for name in had if name in has}
            if table == "run":
                source |= {name: f"json_extract(handle, '$.{key}')" for name, key in SHIM.items()}
            rows = now.execute(f"SELECT {', '.join(source.values())} FROM {table}")
            old.executemany(f"INSERT INTO {table} ({', '.join(source)}) VALUES ({', '.join('?' * len(source))})", rows)
        old.execute(f"PRAGMA user_version = {version}")
        old.commit()
    os.chmod(f"{path}.older", 0o600)
    for rest in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + rest)
    os.replace(f"{path}.older", path)


def test_a_run_of_a_version_that_knew_one_backend_only_goes_on(make_instance: Callable[..., Instance]) -> None:
    instance = make_instance()
    instance.up("sim:2x24")
    ended, lives, dies, waits = instance.submit(
        {"commands": ["exit 3"], "queue": "a"}, {"commands": [WAITING.format("lives", 5)]},
        {"commands": [WAITING.format("dies", 0)]}, {"queue": "b", "needs": [["index", 1, True]]},
    )  # fmt: skip
    instance.end(ended)
    pids = [instance.pid_in("lives"), instance.pid_in("dies")]
    instance.reach(lives, "running")
    instance.reach(dies, "running")
    before = {id: instance.runs(id)[0] for id in (ended, lives, dies)}
    instance.kill_engine(signal.SIGKILL)
    put_back(instance.home, 4)
    os.kill(before[dies]["shim_pid"], signal.SIGKILL)
    os.kill(pids[1], signal.SIGKILL)
    instance.up(None)
    instance.reach(lives, "running")
    assert alive(pids[0])
    (instance.work / "lives.go").touch()
    assert instance.end(lives, dies, waits) == ["failed", "failed", "succeeded"]
    assert (instance.job(lives)["exit_code"], instance.job(lives)["attempt"]) == (5, 1)
    assert instance.job(dies)["reason"]["code"] == "exit_unknown"
    for id, run in before.items():
        after = instance.runs(id)[0]
        assert (after["shim_pid"], after["uni_id"], after["log"]) == (run["shim_pid"], run["uni_id"], run["log"])
    with contextlib.closing(sqlite3.connect(database(str(instance.home)))) as db:
        rows = db.execute("SELECT job, backend, node, handle FROM run WHERE n = 1 AND job <> ?", (waits,)).fetchall()
    assert [(job, backend, node, json.loads(handle)["pid"]) for job, backend, node, handle in rows] == [
        (id, "local", "local", run["shim_pid"]) for id, run in before.items()
    ]


def test_an_engine_with_another_database_makes_way_though_it_has_the_same_version(
    make_instance: Callable[..., Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = make_instance()
    instance.up("sim:2x24")
    same, stays = client.up(str(instance.home))
    assert same["pid"] == stays["pid"]
    monkeypatch.setattr("jostle.store.store.MIGRATIONS", (*MIGRATIONS, "schema_of_tomorrow.sql"))
    before, now = client.up(str(instance.home))
    assert before["pid"] == same["pid"] != now["pid"]
    assert arrival(before, {**now, "store_version": len(MIGRATIONS) + 1})[0] == "engine_replaced"


def test_who_is_refused_by_an_engine_of_another_version_is_told_so(
    make_instance: Callable[..., Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = make_instance()
    instance.up("sim:2x24")
    with contextlib.closing(client.connect(str(instance.home))) as engine:
        request = {"jobs": [{"commands": ["true"], "workdir": "/", "of_tomorrow": 1}]}
        with pytest.raises(Invalid, match="of_tomorrow") as refused:
            engine.call("submit", **request)
        assert "another version" not in str(refused.value)
        monkeypatch.setattr("jostle.store.store.MIGRATIONS", (*MIGRATIONS, "schema_of_tomorrow.sql"))
        with pytest.raises(Invalid, match=r"of_tomorrow[^\n]*\n.*another version: `jostle up`"):
            engine.call("submit", **request)
