"""One command about very many jobs: `cancel all`, and `compete --status` of a large workspace.

The floor of the cancel changes as many rows of a plain table and adds as many to another, in one durable commit: no
store that keeps an end and an event of each job can leave that out. While the engine cancels it answers nobody else, so
the longest that another client waited is told, too. The floor of the status is the start of Python.
"""

from __future__ import annotations

import os
import threading
import time

from figures import Row, Series, below, hold_against
from lab import Lab
from measures.submit import PYTHON_START, bare_database
from peers.base import Peer
from peers.ours import Jostle
from scene import until
from tasks import Sheet

GROUP = "one command about many jobs"
QUEUES = 100
ROUNDS = 5


def measure(lab: Lab) -> list[Row]:
    jobs, tasks = lab.size(100_000, 20_000), lab.size(10_000, 2_000)
    cancel, deaf, status = Series(), Series(), Series()
    for rep, kind in lab.turns(lab.named("jostle")):
        turn = f"{rep + 1}/{lab.reps}"
        lab.attempt(f"cancel all, {turn}", kind, 8, True, lambda p, r=rep: cancelled(cancel, deaf, p, r, jobs))
        lab.attempt(f"compete --status, {turn}", kind, 8, False, lambda p, r=rep: told(status, p, r, tasks))
    rows = [
        cancel.row(GROUP, f"cancel all of {jobs:,}, by CLI", "s", floor="plain tables"),
        deaf.row(GROUP, "  longest that another waited meanwhile", "s"),
        status.row(GROUP, f"compete --status with {tasks:,} tasks", "ms", floor="python start"),
    ]
    hold_against(rows[0], "<= 2 s with 100,000", below(rows[0].ours, 2.0))
    hold_against(rows[2], "<= 1 s with 10,000", below(rows[2].ours, 1e3))
    return rows


def cancelled(series: Series, deaf: Series, peer: Peer, rep: int, count: int) -> None:
    assert isinstance(peer, Jostle)
    peer.submit(Sheet(peer.scene.path("sheet")).tasks(count))
    over, waited = threading.Event(), [0.0]

    def another() -> None:
        while not over.wait(0.02):
            began = time.perf_counter()
            peer.ask({"op": "hello"})
            waited.append(time.perf_counter() - began)

    client = threading.Thread(target=another)
    client.start()
    try:
        took = peer.scene.timed([*peer.program, "cancel", "all"])
    finally:
        over.set()
        client.join()
    left = peer.queued()
    if left:
        raise RuntimeError(f"{left} of {count} jobs are still queued")
    series.add("jostle", rep, took)
    series.add("plain tables", rep, plain_tables(count))
    deaf.add("jostle", rep, max(waited))


def plain_tables(count: int) -> float:
    """Seconds to give as many rows of a bare table an end, and each a row of a bare journal, durably."""
    job = "job(id INTEGER PRIMARY KEY, command TEXT, state TEXT, ended_at REAL)"
    with bare_database(job, "event(seq INTEGER PRIMARY KEY, at REAL, kind TEXT, job INTEGER)") as db:
        commands = ((f"task {n}" * 20,) for n in range(count))
        db.execute("BEGIN")
        db.executemany("INSERT INTO job(command, state) VALUES (?, 'queued')", commands)
        db.execute("COMMIT")
        began = time.perf_counter()
        db.execute("BEGIN")
        db.execute("UPDATE job SET state = 'cancelled', ended_at = 1.0 WHERE state = 'queued'")
        db.execute("INSERT INTO event(at, kind, job) SELECT 1.0, 'cancelled', id FROM job")
        db.execute("COMMIT")
        return time.perf_counter() - began


def told(series: Series, peer: Peer, rep: int, count: int) -> None:
    """Some tasks run, all others wait in their queues."""
    assert isinstance(peer, Jostle)
    workspace = peer.scene.path("workspace")
    os.makedirs(os.path.join(workspace, "command"))
    with open(os.path.join(workspace, "command", "command_gpu.txt"), "w") as f:
        f.writelines(f"sleep 600 # {n}\n{n % QUEUES + 1},10\n\n" for n in range(count))
    scheduler = peer.scene.start([*peer.program, "compete", workspace])
    states = os.path.join(workspace, "logs", "state")
    until(lambda: os.path.isdir(states) and os.listdir(states), 60.0, "the start of the scheduler")
    until(lambda: peer.queued() == count - peer.slots, 60.0, "the start of the first tasks")
    for turn in range(ROUNDS * rep, ROUNDS * (rep + 1)):
        series.add("python start", turn, peer.scene.timed(PYTHON_START) * 1e3)
        series.add("jostle", turn, peer.scene.timed([*peer.program, "compete", "--status", workspace]) * 1e3)
    scheduler.kill()  # else it would look for an engine after this one has gone
    scheduler.wait()
