"""One card as clients are told of it: docs/json.md, without the words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.core.model import Gpu
from jostle.core.reasons import Refusal, kept
from jostle.engine.open import Open


def gpu(g: Gpu, available_mib: int, refusal: Refusal | None, ours: Sequence[Open], idle_s: float | None) -> dict[str, Any]:
    beyond = [{"run": f"{r.id[0]}.{r.id[1]}", **r.beyond[g.uuid]} for r in ours if g.uuid in r.beyond]
    return {
        "index": g.index, "uuid": g.uuid, "name": g.name, "pci": g.pci, "total_mib": g.total_mib, "used_mib": g.used_mib,
        "free_mib": g.free_mib, "reserved_mib": g.reserved_mib, "available_mib": available_mib, "utilization": g.utilization,
        "temperature": g.temperature, "power_w": g.power_w, "power_limit_w": g.power_limit_w, "fan": g.fan, "sm_mhz": g.sm_mhz,
        "memory_mhz": g.memory_mhz, "state": g.state, "error": g.error, "excluded": g.excluded,
        "quarantine": [list(process) for process in g.quarantine] or None, "faulty": g.faulty and kept(g.faulty),
        "runs": [f"{r.id[0]}.{r.id[1]}" for r in ours], "paused": [f"{r.id[0]}.{r.id[1]}" for r in ours if r.paused],
        "beyond": beyond, "idle_s": idle_s,
        "refusal": refusal and {"code": refusal.code, "params": dict(refusal.params)},
        "holders": [{"pid": h.pid, "user": h.user, "used_mib": h.used_mib, "name": h.name, "exe": h.exe, "sm": h.sm,
                     "run": f"{h.run[0]}.{h.run[1]}" if h.run else None} for h in g.holders],
    }  # fmt: skip
