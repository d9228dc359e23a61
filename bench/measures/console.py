"""What does the console cost those who do not look at it, and how late does it tell those who do?

Hand-over: one engine, tasks of 200 ms, in turn with a page and five more streams open and without a console. Crowd: 8
jobs a second with 100 streams and 50 followers of logs, beside the same without anybody; from the submit until the task
runs, and from an event until it was heard.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from audience import Audience, console
from figures import Row, Series, below, hold_against
from lab import Lab
from peers.base import Peer
from peers.ours import Jostle
from scene import cpu_seconds, until
from tasks import Sheet, Task, gaps_ms, quantile

GROUP = "console: what it costs (floor: jostle without it)"
SLOTS = 4
STREAMS, FOLLOWERS, RATE = 100, 50, 8.0
PRINTS = "exec 9<> <(:); until [ -e {stop} ]; do echo epoch $((k+=1)) loss 0.123; read -rt 0.5 -u 9; done"
OPEN, CLOSED = "open", "closed"


def measure(lab: Lab) -> list[Row]:
    if not lab.named("jostle"):
        return []
    return [*handover(lab), *crowd(lab)]


def handover(lab: Lab) -> list[Row]:
    figures = {"median": Series(), "p95": Series(), "engine per job": Series()}
    lab.attempt("console, hand-over", Jostle, SLOTS, False, lambda peer: in_turn(lab, peer, figures))
    what = f"hand-over, {SLOTS} slots, a page open"
    rows = [
        series.row(GROUP, f"{what}, {name}", "ms CPU" if "engine" in name else "ms", ours=OPEN, floor=CLOSED)
        for name, series in figures.items()
    ]
    hold_against(rows[0], "<= 1.10x", below(rows[0].ratio, 1.10))
    return rows


def in_turn(lab: Lab, peer: Peer, figures: dict[str, Series]) -> None:
    """Both in each repetition, each time beginning with the other."""
    assert isinstance(peer, Jostle)
    count = lab.size(100, 40)
    for rep in range(2 * lab.reps):
        for who in (OPEN, CLOSED) if rep % 2 else (CLOSED, OPEN):
            lab.say(f"console, hand-over, {who}, {rep + 1}/{2 * lab.reps}")
            with ExitStack() as stage:
                if who == OPEN:
                    stage.enter_context(Audience(stage.enter_context(console(peer)), pages=1, streams=5))
                sheet = Sheet(peer.scene.path(f"sheet-{who}-{rep}"))
                before = cpu_seconds(peer.pid)
                peer.submit(sheet.tasks(count, ms=200.0))
                gaps = gaps_ms(sheet.wait(count, 60.0), SLOTS)
                used = (cpu_seconds(peer.pid) - before) / count * 1e3
            for series, value in zip(figures.values(), (quantile(gaps, 0.5), quantile(gaps, 0.95), used), strict=True):
                series.add(who, rep, value)


def crowd(lab: Lab) -> list[Row]:
    names = ("submit to start, median", "submit to start, p95", "tick, mean", "engine per job")
    figures = {name: Series() for name in names}
    heard = {name: Series() for name in ("event until it is heard, median", "event until it is heard, p95")}
    share = Series()
    for rep in range(lab.reps):
        what = f"console, crowd, {rep + 1}/{lab.reps}"
        found = lab.attempt(what, Jostle, 8, False, lambda p, rep=rep: crowded(lab, p, rep))
        for who, (waits, tick, cpu, late, web) in (found or {}).items():
            for name, value in zip(figures, (quantile(waits, 0.5), quantile(waits, 0.95), tick, cpu), strict=True):
                figures[name].add(who, rep, value)
            if late:
                heard["event until it is heard, median"].add(who, rep, quantile(late, 0.5) * 1e3)
                heard["event until it is heard, p95"].add(who, rep, quantile(late, 0.95) * 1e3)
                share.add(who, rep, web)
    group = f"console: {STREAMS} streams, {FOLLOWERS} followers, {RATE:g} jobs/s (floor: without anybody)"
    rows = [
        series.row(group, name, "ms CPU" if "engine" in name else "ms", ours=OPEN, floor=CLOSED)
        for name, series in figures.items()
    ]
    rows += [series.row(group, name, "ms", ours=OPEN) for name, series in heard.items()]
    return [*rows, share.row(group, "web process", "% of a core", ours=OPEN)]


Found = tuple[list[float], float, float, list[float], float]
"""Waits until tasks run (ms), a tick (ms), engine's processor time per job (ms), lateness (s), the web's share (%)."""


def crowded(lab: Lab, peer: Peer, rep: int) -> dict[str, Found]:
    assert isinstance(peer, Jostle)
    found: dict[str, Found] = {}
    logs = printing(peer, stop := peer.scene.path("stop"))
    for who in (OPEN, CLOSED) if rep % 2 else (CLOSED, OPEN):
        with ExitStack() as stage:
            late: list[float] = []
            web = stage.enter_context(console(peer)) if who == OPEN else None
            if web:
                audience = stage.enter_context(Audience(web, streams=STREAMS, logs=logs))
                late = audience.late
            sheet = Sheet(peer.scene.path(f"sheet-{who}"))
            pids = [peer.pid, *([web.pid] if web else [])]
            before, ticked, began = [cpu_seconds(pid) for pid in pids], peer.ticks(), time.monotonic()
            waits = paced(peer, sheet, lab.size(160, 64))
            used = [cpu_seconds(pid) - was for pid, was in zip(pids, before, strict=True)]
            took, ticking = time.monotonic() - began, peer.ticks()
            tick = (ticking[1] - ticked[1]) / (ticking[0] - ticked[0]) * 1e3
            if web:
                seq = peer.ask({"op": "hello"})["seq"]
                until(lambda seq=seq, audience=audience: audience.heard(seq), 60.0, "all have heard it")
            found[who] = (waits, tick, used[0] / len(waits) * 1e3, late, 100 * used[1] / took if web else 0.0)
    open(stop, "w").close()
    return found


def printing(peer: Jostle, stop: str) -> tuple[int, ...]:
    """Jobs that print two lines a second and need no card."""
    task = Task(number=0, out="")
    request = peer.request([task] * FOLLOWERS)
    for job in request["jobs"]:
        job.update(commands=[PRINTS.format(stop=stop)], gpus=[0, 0])
    first, last = peer.ask(request)["ids"]
    until(lambda: peer.ask({"op": "hello"})["counts"].get("running") == FOLLOWERS, 60.0, "all that print run")
    return tuple(range(first, last + 1))


def paced(peer: Jostle, sheet: Sheet, count: int) -> list[float]:
    """So many short tasks, one after the other at the same pace; ms from each submit until it ran."""
    sent, began = {}, time.monotonic()
    for task in sheet.tasks(count, ms=20.0):
        time.sleep(max(0.0, began + task.number / RATE - time.monotonic()))
        sent[task.number] = time.monotonic()
        peer.submit([task])
    return [(record.began - sent[record.number]) * 1e3 for record in sheet.wait(count, 60.0)]
