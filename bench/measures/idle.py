"""What does waiting cost? 8 GPUs, 1,000 jobs that cannot run: processor time and memory of all processes that wait.

All participants wait side by side. PSS shares pages among those who map them: on a machine with other Python processes
the figure of a Python program is a little smaller than alone.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from figures import Row, Series, below, hold_against
from lab import Lab
from measures.submit import on_stages
from peers.base import Peer
from scene import command, cpu_seconds, pss_mib
from tasks import Task

GROUP = "idle: 8 GPUs, 1,000 jobs that wait"


def measure(lab: Lab) -> list[Row]:
    window, settle = lab.size(30, 8), lab.size(8, 5)
    lab.say(f"idle: all side by side, {window + settle} s")
    with ExitStack() as stage:
        staged = on_stages(lab, stage, lab.with_skills("hold"))
        peers = [peer for peer, sheet in staged if fill(lab, peer, sheet.tasks(1000))]
        time.sleep(settle)
        before = {peer: spent(peer) for peer in peers}
        began = time.monotonic()
        time.sleep(window)
        took = time.monotonic() - began
        cpu, memory, count = Series(), Series(), Series()
        for peer in peers:
            after = spent(peer)
            used = sum(after[pid] - before[peer].get(pid, 0.0) for pid in after)
            cpu.add(peer.name, 0, 100 * used / took)
            memory.add(peer.name, 0, sum(pss_mib(pid) for pid in after))
            count.add(peer.name, 0, len(after))
            if peer.name == "jostle":
                lab.notes.append(f"idle: {anatomy(after, before[peer], took)}")
    rows = [cpu.row(GROUP, "processor", "% of a core"), memory.row(GROUP, "memory, PSS", "MiB")]
    hold_against(rows[0], "<= 0.5 %", below(rows[0].ours, 0.5))
    hold_against(rows[1], "<= 50 MiB", below(rows[1].ours, 50.0))
    return [*rows, count.row(GROUP, "processes", "")]


def fill(lab: Lab, peer: Peer, tasks: list[Task]) -> bool:
    try:
        peer.submit(tasks[: peer.most_queued])
    except Exception as e:
        lab.fault("idle", peer.name, e)
        return False
    return True


def spent(peer: Peer) -> dict[int, float]:
    return {pid: cpu_seconds(pid) for pid in peer.processes()}


def anatomy(after: dict[int, float], before: dict[int, float], took: float) -> str:
    """Who of ours uses what."""
    parts = []
    for pid, seconds in after.items():
        words = command(pid).split()
        name = next((w for w in words if w.startswith("jostle.")), " ".join(w.rpartition("/")[2] for w in words[:3]))
        parts.append(f"{name} {pss_mib(pid):.1f} MiB {100 * (seconds - before.get(pid, 0.0)) / took:.2f} %")
    return "; ".join(parts)
