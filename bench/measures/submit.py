"""What does it cost to hand in jobs, into a queue that cannot run yet?

Many: 10,000 in one message to the engine (from the first byte to the answer, so parsing, storing and the durable
commit), and 10,000 in one file by the command line. One: the command line once per job.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from figures import Row, Series, below, hold_against
from lab import Lab
from peers.base import Peer, on_stage
from peers.gflow import Gflow
from peers.ours import Jostle, job_file
from scene import PLACE, Scene
from tasks import Sheet

GROUP = "submit"
PYTHON_START = [sys.executable, "-I", "-S", "-c", "import socket,json"]


def measure(lab: Lab) -> list[Row]:
    return [in_the_engine(lab), one_file(lab), one_by_one(lab)]


def in_the_engine(lab: Lab) -> Row:
    count, series = 10_000, Series()
    for rep, kind in lab.turns(lab.named("jostle")):
        what = f"submit to the engine, {rep + 1}/{lab.reps}"
        lab.attempt(what, kind, 8, True, lambda p, r=rep: engine_once(series, p, r, count))
    row = series.row(GROUP, f"{count:,} in one message, in the engine", "µs/job", floor="json+sqlite")
    return hold_against(row, "<= 40 µs", below(row.ours, 40.0))


def engine_once(series: Series, peer: Peer, rep: int, count: int) -> None:
    assert isinstance(peer, Jostle)
    tasks = Sheet(peer.scene.path("sheet")).tasks(count)
    line = json.dumps(peer.request(tasks)).encode() + b"\n"
    began = time.perf_counter()
    peer.ask_raw(line)
    series.add("jostle", rep, (time.perf_counter() - began) / count * 1e6)
    series.add("json+sqlite", rep, bare_store(line) / count * 1e6)


def bare_store(line: bytes) -> float:
    """Seconds to parse the same message and to commit its jobs durably into one plain table."""
    with bare_database("job(id INTEGER PRIMARY KEY, name TEXT, commands TEXT, gpus INTEGER, workdir TEXT)") as db:
        began = time.perf_counter()
        jobs = json.loads(line)["jobs"]
        rows = ((job["name"], json.dumps(job["commands"]), job["gpus"][0], job["workdir"]) for job in jobs)
        db.execute("BEGIN")
        db.executemany("INSERT INTO job(name, commands, gpus, workdir) VALUES (?, ?, ?, ?)", rows)
        db.execute("COMMIT")
        return time.perf_counter() - began


@contextmanager
def bare_database(*tables: str) -> Iterator[sqlite3.Connection]:
    """With these tables, as durable as ours."""
    with tempfile.TemporaryDirectory(prefix="jb-", dir=os.environ.get("TMPDIR") or PLACE) as place:
        db = sqlite3.connect(os.path.join(place, "bare.db"), isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        for table in tables:
            db.execute(f"CREATE TABLE {table}")
        yield db
        db.close()


def one_file(lab: Lab) -> Row:
    count, series = 10_000, Series()
    for rep, kind in lab.turns(lab.named("jostle", "gflow")):
        many = count if kind is Jostle else lab.size(count, 2_000)
        took = lab.attempt(f"submit a file, {rep + 1}/{lab.reps}", kind, 8, True, lambda p, n=many: file_once(p, n))
        if took is not None:
            series.add(kind.name, rep, took * count / many)
    row = series.row(GROUP, f"{count:,} in one file, by CLI", "s")
    return hold_against(row, "<= 1.5 s in all", below(row.ours, 1.5))


def file_once(peer: Peer, count: int) -> float:
    tasks = Sheet(peer.scene.path("sheet")).tasks(count)
    if isinstance(peer, Jostle):
        path = peer.scene.path("jobs.yaml")
        job_file(path, tasks)
        return peer.scene.timed(peer.file_argv(path))
    assert isinstance(peer, Gflow)
    began = time.perf_counter()
    peer.submit(tasks)
    return time.perf_counter() - began


def one_by_one(lab: Lab) -> Row:
    """All on stage, their commands in turn, so that each round has the same neighbours."""
    series, rounds = Series(), lab.size(30, 10)
    lab.say("submit one by CLI: all in turn")
    with ExitStack() as stage:
        bare = Scene("python")
        stage.callback(bare.close)
        peers = on_stages(lab, stage, lab.with_skills("hold", "one"))
        for turn in range(rounds):
            series.add("python start", turn, bare.timed(PYTHON_START) * 1e3)
            for peer, sheet in peers:
                series.add(peer.name, turn, peer.scene.timed(peer.one_argv(sheet.tasks(1)[0])) * 1e3)
    row = series.row(GROUP, "one, by CLI", "ms", floor="python start")
    return hold_against(row, "<= 2.5x python -I -S + socket, json", below(row.ratio, 2.5))


def on_stages(lab: Lab, stage: ExitStack, kinds: list[type[Peer]]) -> list[tuple[Peer, Sheet]]:
    peers = []
    for kind in kinds:
        try:
            peer = stage.enter_context(on_stage(kind, 8, held=True))
            peers.append((peer, Sheet(peer.scene.path("sheet"))))
        except Exception as e:
            lab.fault("start", kind.name, e)
    return peers
