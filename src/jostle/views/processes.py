"""The processes of a run that lives on this host: what /proc shows of each, and what the engine has seen of it on cards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle import proc
from jostle.backends.local import outside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jostle.views.types import Process, Run

MOST = 256  # the largest on cards first, then those that compute most
MIB = 1 << 20


def processes(run: Run, on_cards: Sequence[Mapping[str, Any]]) -> list[Process]:
    seen = {one["pid"]: one for one in on_cards}
    pids = dict.fromkeys([*seen, *outside.members(run["shim_pid"], run["uni_id"])])
    shown = [_process(pid, seen.get(pid, {})) for pid in pids]
    return sorted(shown, key=lambda p: (-(p["gpu_mib"] or 0), -(p["cpu_s"] or 0.0), p["pid"]))[:MOST]


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
