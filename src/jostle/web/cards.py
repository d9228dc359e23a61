"""`/api/gpu`: the cards as the page of the source system knows them (SPEC A36). What nobody can tell is null, never zero."""

from __future__ import annotations

import os
import platform
import time
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends

from jostle.core.states import READ
from jostle.errors import JostleError
from jostle.views.cards import cards
from jostle.views.host import host, process_facts
from jostle.web import hidden
from jostle.web.site import Visit, visit
from jostle.wording.reasons import trouble

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

routes = APIRouter(prefix="/api/gpu")
Visiting = Annotated[Visit, Depends(visit)]
MIB = 1 << 20
TEXT = 200  # characters of what strangers may choose: names and command lines
ROWS = 256  # processes of one card


@routes.get("")
def overview(visit: Visiting) -> dict[str, Any]:
    try:
        gpus, driver = seen(visit)
    except JostleError as e:
        error = hidden.words(str(e)) if visit.caller.reads_only else str(e)
        return {"available": False, "error": error, "gpu_count": 0, "gpus": [], "host": about_host(visit), "timestamp": now()}
    good = [gpu for gpu in gpus if "error" not in gpu]
    total, used = (sum(gpu["memory"][key] for gpu in good) for key in ("total", "used"))
    users = sorted({process["username"] for gpu in good for process in gpu["processes"]})
    return {
        "available": True, "gpu_count": len(gpus), "total_memory": total, "used_memory": used, "total_memory_human": human(total),
        "used_memory_human": human(used), "memory_percent": percent(used, total),
        "total_processes": sum(len(gpu["processes"]) for gpu in good), "active_users": users, "active_user_count": len(users),
        "driver_version": driver, "gpus": gpus, "host": about_host(visit), "timestamp": now(),
    }  # fmt: skip


@routes.get("/processes")
def processes(visit: Visiting) -> dict[str, Any]:
    try:
        gpus, _ = seen(visit)
    except JostleError:
        return {"processes": [], "count": 0}
    rows = [
        {"gpu_index": gpu["index"], "gpu_name": gpu["name"], **process} for gpu in gpus for process in gpu.get("processes") or ()
    ]  # fmt: skip
    return {"processes": rows, "count": len(rows)}


@routes.get("/status")
@routes.get("/state")
def status(visit: Visiting) -> dict[str, Any]:
    try:
        seen(visit)
        good = True
    except JostleError:
        good = False
    return {"available": good, "nvitop_available": good, "timestamp": now()}


def seen(visit: Visit) -> tuple[list[dict[str, Any]], str | None]:
    """Every card, and the driver's version; JostleError if there is none to be seen."""
    client = visit.client(start=False)
    try:
        driver = client.call("hello", counts=False).get("driver") or None
    finally:
        client.close()
    looked = cards(visit)
    if looked.error and not looked.read:
        raise JostleError(trouble(looked.error, visit.language))
    return [card(dict(gpu), driver, visit.caller.reads_only) for gpu in looked.gpus], driver


def card(gpu: dict[str, Any], driver: str | None, reads_only: bool) -> dict[str, Any]:
    if gpu["state"] not in READ:
        return {"index": gpu["index"], "name": gpu["name"], "uuid": gpu["uuid"], "error": gpu["error"] or gpu["state"]}
    sizes = {key: gpu[f"{key}_mib"] * MIB for key in ("total", "used", "free")}
    memory = {**sizes, "percent": percent(sizes["used"], sizes["total"]), **{f"{k}_human": human(v) for k, v in sizes.items()}}
    draw, limit = gpu["power_w"], gpu.get("power_limit_w")
    clocks = {"sm": gpu.get("sm_mhz"), "memory": gpu.get("memory_mhz")}
    return {
        "index": gpu["index"], "name": gpu["name"], "uuid": gpu["uuid"], "memory": memory,
        "utilization": {"gpu": gpu["utilization"], "memory": None}, "temperature": gpu["temperature"],
        "fan_speed": gpu.get("fan"),
        "power": {"draw": draw, "limit": limit, "draw_human": watts(draw), "limit_human": watts(limit)},
        "clocks": clocks if any(clocks.values()) else None, "driver_version": driver,
        "processes": [holder(process, sizes["total"], reads_only) for process in foremost(gpu["holders"])],
    }  # fmt: skip


def foremost(holders: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As many as an answer has room for: our own first, then the largest, so that nobody hides them behind small ones."""
    if len(holders) > ROWS:
        holders = sorted(holders, key=lambda one: (one["run"] is None, -(one["used_mib"] or 0)))[:ROWS]
    return [{**one, **{key: one[key][:TEXT] for key in ("user", "name", "exe")}} for one in holders]


def holder(process: dict[str, Any], total: int, reads_only: bool) -> dict[str, Any]:
    used = process["used_mib"] * MIB if process["used_mib"] is not None else None
    about = process_facts(process["pid"])
    return {
        "pid": process["pid"], "name": process["name"], "username": process["user"], "gpu_memory": used,
        "gpu_memory_human": human(used), "gpu_memory_percent": percent(used, total), "gpu_sm_utilization": process.get("sm"),
        "cpu_percent": about.cpu_percent, "memory_percent": about.memory_percent, "running_time": about.seconds, "type": "C",
        "command": "" if reads_only else about.command[:TEXT], "run": process["run"],
    }  # fmt: skip


def about_host(visit: Visit) -> dict[str, Any]:
    facts = host(visit.site.processor)
    visit.site.processor = facts.ticks
    return {
        "hostname": os.uname().nodename, "platform": platform.platform(),
        "cpu": {"count": facts.cores, "percent": facts.cpu_percent}, "memory": sized(facts.memory), "swap": sized(facts.swap),
    }  # fmt: skip


def sized(pair: tuple[int, int]) -> dict[str, Any]:
    total, used = pair
    return {
        "total": total, "used": used, "free": total - used, "percent": percent(used, total), "total_human": human(total),
        "used_human": human(used),
    }  # fmt: skip


def human(size: int | None) -> str | None:
    if size is None:
        return None
    for unit, step in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", MIB)):
        if size >= step:
            return f"{size / step:.1f}{unit}"
    return f"{size / 1024:.0f}KiB"


def watts(power: float | None) -> str | None:
    return f"{power:.0f}W" if power is not None else None


def percent(part: int | None, whole: int) -> float | None:
    return round(100 * part / whole, 1) if part is not None and whole else None


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S")
