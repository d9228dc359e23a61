"""The processes of a run that lives on this host: what /proc shows of each, and what the engine has seen of it on cards.

A run's processes are the descendants of its shim, which is known by the run's mark in one of them (a number alone may be
another's by now); where the shim is gone, those that carry the mark.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle import proc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jostle.views.types import Process, Run

MOST = 256  # the largest on cards first, then those that compute most
MIB = 1 << 20


def processes(run: Run, on_cards: Sequence[Mapping[str, Any]]) -> list[Process]:
    seen = {one["pid"]: one for one in on_cards}
    pids = dict.fromkeys([*seen, *members(run["shim_pid"], run["uni_id"])])
    shown = [_process(pid, seen.get(pid, {})) for pid in pids]
    return sorted(shown, key=lambda p: (-(p["gpu_mib"] or 0), -(p["cpu_s"] or 0.0), p["pid"]))[:MOST]


def members(shim: int | None, uni_id: str) -> list[int]:
    if shim is not None:
        tree = proc.tree(shim)
        if any(proc.mark(pid) == uni_id for pid in tree):
            return list(filter(_lives, tree))
    me = os.geteuid()
    return [pid for pid in proc.pids() if proc.uid(pid) == me and proc.mark(pid) == uni_id and _lives(pid)]


def _lives(pid: int) -> bool:
    stat = proc.stat(pid)
    return stat is not None and stat.state not in "ZX"


def _process(pid: int, on_cards: Mapping[str, Any]) -> Process:
    usage = proc.usage(pid)
    cpu = round(100 * usage.processor_s / usage.age_s, 1) if usage is not None and usage.age_s > 0 else None
    return {
        "pid": pid, "command": proc.command_line(pid) or proc.exe(pid), "cpu_percent": cpu,
        "cpu_s": None if usage is None else round(usage.processor_s, 2),
        "rss_mib": None if usage is None else round(usage.rss / MIB), "gpus": list(on_cards.get("gpus") or ()),
        "gpu_mib": on_cards.get("gpu_mib"), "sm": on_cards.get("sm"), "gpu_peak_mib": on_cards.get("gpu_peak_mib"),
        "ran_s": None if usage is None else round(usage.age_s, 1),
    }  # fmt: skip
