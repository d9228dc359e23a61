"""The engine itself: whether it runs, what keeps it from starting jobs, how many jobs there are, its consoles, where all lies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.address import LOG, SOCKET

if TYPE_CHECKING:
    from jostle.session import Session
    from jostle.views.statustypes import Console, Overview, Status


def of_itself(session: Session, *, resources: bool = False) -> dict[str, Any]:
    """What the engine says of itself; nothing where none runs."""
    client = session.engine_if_any()
    if client is None:
        return {}
    try:
        return client.call("hello", counts=False, resources=resources)
    finally:
        client.close()


def simulated_world(session: Session) -> str | None:
    """The one that this process lives in, if it does."""
    directory = os.environ.get("JOSTLE_SIM_DIR")
    return (of_itself(session).get("sim_dir") if directory is None else directory) or None


def status(session: Session, consoles: list[Console]) -> Status:
    """`hold` and `probe` are codes, or words of the driver. An engine that does not answer is neither up nor down: an error."""
    from jostle import __version__
    from jostle.store.file import database

    hello = of_itself(session, resources=True)
    home = session.home
    return {
        "running": bool(hello), "pid": hello.get("pid"), "version": hello.get("version") or __version__,
        "uptime_s": hello.get("uptime_s"), "gpus_spec": hello.get("gpus_spec"), "permanent": hello.get("permanent"),
        "hold": hello.get("hold") or "", "probe": hello.get("probe") or "",
        "counts": hello.get("counts") or session.reader.counts(), "resources": hello.get("resources"), "consoles": consoles,
        "paths": {
            "home": home, "database": database(home), "socket": os.path.join(home, SOCKET),
            "log": os.path.join(home, LOG), "runs": os.path.join(home, "runs"),
            "config": os.path.join(home, "config.yaml"), "leases": hello.get("lease_dir"), "sim": hello.get("sim_dir"),
        },
    }  # fmt: skip


def overview(session: Session, consoles: list[Console]) -> Overview:
    """The same, with the nodes, their cards and what is allocated."""
    from jostle.views.allocations import allocations, nodes
    from jostle.views.cards import seen_by_engine

    engine = status(session, consoles)
    cards = seen_by_engine(session) if engine["running"] else None
    return {**engine, "nodes": nodes(cards or ()), "allocations": allocations(session)}


def arrival(before: dict[str, Any], now: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What has become of the engine that ran, if one did: a message."""
    facts = {"facts": ("engine_facts", {"pid": now["pid"], "gpus": now["gpus_spec"]})}
    if not before:
        return "engine_up", facts
    if before["pid"] == now["pid"]:
        return "engine_runs", facts
    if (before["version"], before.get("store_version")) != (now["version"], now["store_version"]):
        return "engine_replaced", {**facts, "version": before["version"]}
    return "engine_took_over", {**facts, "gpus": before["gpus_spec"]}
