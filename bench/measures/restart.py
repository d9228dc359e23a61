"""How long is nobody there after the engine was killed with a long queue, and is everything still there?"""

from __future__ import annotations

import time

from figures import Row, Series, below, hold_against
from lab import Lab
from peers.base import Peer
from peers.ours import Jostle
from tasks import Sheet

GROUP = "restart after kill -9"


def measure(lab: Lab) -> list[Row]:
    size, series = lab.size(100_000, 20_000), Series()
    for rep, kind in lab.turns(lab.named("jostle")):
        took = lab.attempt(f"restart, {rep + 1}/{lab.reps}", kind, 8, True, lambda p: restarted(p, size))
        if took is not None:
            series.add(kind.name, rep, took)
    row = series.row(GROUP, f"{size:,} queued, until it answers", "s")
    return [hold_against(row, "<= 1 s, nothing lost", below(row.ours, 1.0))]


def restarted(peer: Peer, size: int) -> float:
    assert isinstance(peer, Jostle)
    peer.submit(Sheet(peer.scene.path("sheet")).tasks(size))
    peer.crash()
    began = time.perf_counter()
    peer.up()
    took = time.perf_counter() - began
    there = sum(peer.ask({"op": "hello"})["counts"].values())
    if there != size:
        raise RuntimeError(f"{size} jobs were queued, {there} are known after the restart")
    return took
