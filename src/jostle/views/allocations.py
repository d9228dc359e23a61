"""Allocations that have not ended: who holds what where, since when, whether it is used, and what runs inside; and the nodes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.store import allocationreads
from jostle.views.listing import engine_reasons
from jostle.views.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jostle.session import Session
    from jostle.views.statustypes import Allocation, NodeCards


def allocations(session: Session) -> list[Allocation]:
    """By number. Without an engine nobody knows whether they are idle."""
    rows = allocationreads.allocations(session.reader)
    answer = engine_reasons(session) if rows else {}
    Waits(rows, answer, session.reader.needs).fill(rows)
    idle: Mapping[str, float] = (answer or {}).get("idle") or {}
    return [_allocation(row, session, idle.get(str(row["id"]))) for row in rows]


def _allocation(row: dict[str, Any], session: Session, idle_s: float | None) -> Allocation:
    holds = row["state"] != "queued"
    since = row["started_at"] if holds else None
    programs = allocationreads.inside(session.reader, row["id"])
    return {
        "name": row["name"], "id": row["id"], "state": row["state"], "intent": row["intent"], "gpu_request": row["gpu_request"],
        "memory_mib": row["memory_mib"], "gpus": row["gpus"] if holds else [], "gpu_uuids": row["gpu_uuids"] if holds else [],
        "node": _node(session, row) if holds else None, "priority": row["priority"], "since": since,
        "until": None if since is None or row["time_limit"] is None else since + row["time_limit"],
        "idle_s": idle_s, "idle_release": row["idle_release"], "tied_to": row["tied_to"],
        "programs": [{key: program[key] for key in ("id", "name", "state", "gpus")} for program in programs],  # type: ignore[misc]
        "reason": row["reason"],
    }  # fmt: skip


def _node(session: Session, row: Mapping[str, Any]) -> str:
    """The host, as people call it."""
    node = allocationreads.node(session.reader, row["id"], row["attempt"])
    return os.uname().nodename if node == "local" else node


def nodes(cards: Iterable[Mapping[str, Any]]) -> list[NodeCards]:
    """The hosts whose cards we read: this one. `cards` as the engine tells of them."""
    whole = [card for card in cards if card["state"] != "mig"]
    free = sum(card["refusal"] is None and card["state"] == "ok" for card in whole)
    held = sum(bool(card["runs"]) for card in whole)
    return [{"name": os.uname().nodename, "total": len(whole), "free": free, "allocated": held}] if whole else []
