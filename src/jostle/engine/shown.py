"""One card as clients are told of it (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jostle.core.model import Gpu
from jostle.core.reasons import Refusal
from jostle.engine.open import Open
from jostle.wording.reasons import refusal_text


def gpu(g: Gpu, available_mib: int, refusal: Refusal | None, runs: Iterable[Open], lang: str) -> dict[str, Any]:
    ours = [r for r in runs if any(lease[0] == g.uuid for lease in r.leases)]
    sick = refusal_text(Refusal(g.faulty.code, g.uuid, g.index, g.faulty.params), lang) if g.faulty else ""
    no = refusal and {"code": refusal.code, "text": refusal_text(refusal, lang), "params": dict(refusal.params)}
    beyond = [{"run": f"{r.id[0]}.{r.id[1]}", **r.beyond[g.uuid]} for r in ours if g.uuid in r.beyond]
    return {
        "index": g.index, "uuid": g.uuid, "name": g.name, "total_mib": g.total_mib, "used_mib": g.used_mib,
        "free_mib": g.free_mib, "reserved_mib": g.reserved_mib, "available_mib": available_mib, "utilization": g.utilization,
        "temperature": g.temperature, "power_w": g.power_w, "state": g.state, "error": g.error, "excluded": g.excluded,
        "quarantine": g.quarantine or sick or None, "runs": [f"{r.id[0]}.{r.id[1]}" for r in ours], "beyond": beyond,
        "refusal": no,
        "holders": [{"pid": h.pid, "user": h.user, "used_mib": h.used_mib, "name": h.name, "exe": h.exe,
                     "run": f"{h.run[0]}.{h.run[1]}" if h.run else None} for h in g.holders],
    }  # fmt: skip
