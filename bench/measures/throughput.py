"""How many no-op jobs per second, with 8 slots? From the first start to the last end, the queue being full."""

from __future__ import annotations

from figures import Row, Series, above, hold_against
from lab import Lab
from peers.base import Peer
from tasks import Record, Sheet, rate

GROUP = "throughput of no-op jobs"
SLOTS = 8


def measure(lab: Lab) -> list[Row]:
    series = Series()
    for rep, kind in lab.turns(lab.kinds):
        what, held = f"throughput, {rep + 1}/{lab.reps}", "hold" in kind.can
        records = lab.attempt(what, kind, SLOTS, held, lambda p: drained(lab, p))
        if records:
            series.add(kind.name, rep, rate(records))
    row = series.row(GROUP, f"{SLOTS} slots", "jobs/s", floor="floor-py")
    ahead = above(row.ours, row.peers.get("sgs"))
    return [hold_against(row, ">= 0.4x floor-py, ahead of sgs", above(row.ratio, 0.4), ahead)]


def drained(lab: Lab, peer: Peer) -> list[Record]:
    count = min(lab.size(3000, 800), peer.most_queued)
    if peer.seconds_per_task > 0.1:
        count = 2 * SLOTS
    sheet = Sheet(peer.scene.path("sheet"))
    peer.submit(sheet.tasks(count))
    if "hold" in peer.can:  # otherwise giving the list was the start
        peer.release()
    return sheet.wait(count, 30 + count * (0.03 + peer.seconds_per_task))
