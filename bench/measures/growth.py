"""Does a long queue, or a long history, make anything slower?

With N queued: jobs/s over the first completions once released; the engine's processor time for each of them, free of
the noise of neighbours, and the mean of its ticks meanwhile; its processor time while all of them wait; one more job by
the socket. In 1,000 batches it should be the same: who has the same rules and asks for the same needs one look.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median

from figures import Row, Series, above, below, hold_against
from lab import Lab
from peers.base import Peer
from peers.ours import Jostle
from scene import command, cpu_seconds, until
from tasks import Sheet, Task, rate

GROUP = "growth with the length of the queue (floor: jostle itself with 1,000)"
PAST = "growth with finished jobs (floor: jostle itself without any)"
FIRST = 400  # completions looked at
Found = dict[str, float]
Way = Callable[[Jostle, list[Task]], None]

UNITS = {
    "jobs/s": "jobs/s",
    "engine per job": "ms CPU",
    "tick": "ms",
    "while waiting": "% of a core",
    "one more": "ms",
}


def measure(lab: Lab) -> list[Row]:
    sizes = (1_000, 20_000) if lab.quick else (1_000, 10_000, 100_000)
    ways: dict[str, Way] = {f"{size:,}": lambda p, tasks: p.submit(tasks) for size in sizes}
    ways["added"] = lambda p, tasks: p.add(tasks)
    ways["batches"] = one_by_one
    series = measured(lab, ways)
    rows = [row for size in sizes[1:] for row in judged(series, GROUP, f"{size:,} queued", f"{size:,}", "1,000")]
    rows += judged(series, GROUP, "1,000 added one by one", "added", "1,000")
    rows += judged(series, GROUP, "1,000 batches of one", "batches", "1,000")
    return rows + history(lab)


def measured(lab: Lab, ways: dict[str, Way]) -> dict[str, Series]:
    series: dict[str, Series] = defaultdict(Series)
    reps = 1 if lab.quick else lab.reps
    for kind in lab.named("jostle"):
        for rep in range(reps):
            for who, way in ways.items():
                size = int(who.replace(",", "")) if who[0].isdigit() else 1_000
                what = f"growth, {who} queued, {rep + 1}/{reps}"
                found = lab.attempt(what, kind, 8, True, lambda p, way=way, size=size: with_queue(lab, p, size, way))
                note(series, found, who, rep)
    return series


def one_by_one(peer: Jostle, tasks: list[Task]) -> None:
    for task in tasks:
        peer.submit([task])


def note(series: dict[str, Series], found: Found | None, who: str, rep: int) -> None:
    for figure, value in (found or {}).items():
        series[figure].add(who, rep, value)


def with_queue(lab: Lab, peer: Peer, size: int, way: Way) -> Found:
    assert isinstance(peer, Jostle)
    sheet = Sheet(peer.scene.path("sheet"))
    way(peer, sheet.tasks(size))
    waiting = {} if lab.quick else {"while waiting": share_of_core(peer.pid, 4.0)}
    one = median(one_more(peer, sheet) for _ in range(7))
    return {**released(peer, sheet), **waiting, "one more": one * 1e3}


def one_more(peer: Jostle, sheet: Sheet) -> float:
    began = time.perf_counter()
    peer.add([Task(number=0, out=sheet.path)])
    return time.perf_counter() - began


def share_of_core(pid: int, seconds: float) -> float:
    time.sleep(3.5)  # what happened just now keeps the probe awake for 3 s
    before, began = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - began)


def released(peer: Jostle, sheet: Sheet) -> Found:
    before, (ticks, ticking) = cpu_seconds(peer.pid), peer.ticks()
    peer.release()
    sheet.wait(FIRST, 60.0)
    used, done = cpu_seconds(peer.pid) - before, sheet.count()
    made, took = peer.ticks()
    first = sorted(sheet.records(), key=lambda r: r.ended)[:FIRST]
    tick = (took - ticking) / (made - ticks) * 1e3
    return {"jobs/s": rate(first), "engine per job": used / done * 1e3, "tick": tick}


def judged(series: dict[str, Series], group: str, what: str, who: str, base: str) -> list[Row]:
    rows = []
    for figure, unit in UNITS.items():
        row = series[figure].row(group, f"{what}: {figure}", unit, ours=who, floor=base)
        row.peers = {}
        row.floor_name = ""
        if figure == "jobs/s":
            hold_against(row, ">= 0.8x", above(row.ratio, 0.8))
        elif figure == "engine per job":
            hold_against(row, "<= 1.25x", below(row.ratio, 1.25))
        if row.ours is not None:
            rows.append(row)
    return rows


def history(lab: Lab) -> list[Row]:
    finished, series = lab.size(1_000_000, 100_000), defaultdict(Series)
    for kind in lab.named("jostle"):
        for rep in range(1 if lab.quick else max(1, lab.reps - 1)):
            for past in (0, finished):
                found = lab.attempt(f"growth, {past:,} finished", kind, 8, True, lambda p, n=past: with_past(lab, p, n))
                note(series, found, f"{past:,}", rep)
    return judged(series, PAST, f"{finished:,} finished", f"{finished:,}", "0")


def with_past(lab: Lab, peer: Peer, finished: int) -> Found:
    """A past is made by copying one finished job, with its run and events, while the engine is down."""
    assert isinstance(peer, Jostle)
    first = Sheet(peer.scene.path("first"))
    peer.release()
    peer.submit(first.tasks(1))
    first.wait(1, 10.0)
    until(lambda: peer.ask({"op": "hello"})["counts"].get("succeeded"), 10.0, "the end of the first job")
    peer.ask({"op": "down", "stop_jobs": False, "now": False})
    until(lambda: not command(peer.pid), 10.0, "down")
    multiply(os.path.join(peer.home, "jostle.db"), finished)
    peer.up()
    peer.exclude(True)
    sheet = Sheet(peer.scene.path("sheet"))
    peer.submit(sheet.tasks(1_000))
    waiting = {} if lab.quick else {"while waiting": share_of_core(peer.pid, 4.0)}
    return {**released(peer, sheet), **waiting}


def multiply(path: str, times: int) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous=OFF")
    db.execute("BEGIN")
    for table, key in (("job", "id"), ("run", "job"), ("event", "job")):
        copy_rows(db, table, key, times)
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def copy_rows(db: sqlite3.Connection, table: str, key: str, times: int) -> None:
    """Repeats what belongs to job 1 for the jobs 2 … times."""
    names = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})") if name != "seq"]  # which counts itself
    fresh = {key: "copy", "uni_id": "uni_id || '-' || copy"}
    values = ", ".join(fresh.get(name, name) for name in names)
    db.execute(
        f"WITH RECURSIVE copies(copy) AS (SELECT 2 UNION ALL SELECT copy + 1 FROM copies WHERE copy < ?) "
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table}, copies WHERE {table}.{key} = 1",
        (times,),
    )
