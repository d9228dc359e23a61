"""What the manager's status tells (SPEC C9), as values: nodes with their cards, who holds what where, what runs and waits."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.core.states import OPEN, UNFINISHED
from jostle.manage.names import bare, managed
from jostle.store import allocationreads
from jostle.views.cards import cards

if TYPE_CHECKING:
    from jostle.formats.managerfile import ManagerConfig
    from jostle.session import Session

TASK = "task"  # the tag of a program that is a task itself
FREE_FOR_ALL = frozenset({"over_limit", "left", "out_of_range", "kept", "excluded", "idle"})
"""Refusals of cards that nobody uses: it is our own rules that leave them alone."""


@dataclass(frozen=True, slots=True)
class NodeSummary:
    name: str
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class Task:
    """A name with cards, or that waits for them."""

    name: str
    id: int
    gpus: int
    node: str | None  # None: it waits
    priority: int = 0
    place: int | None = None  # among all that wait, from 1
    allocation: bool = True  # else a job with a managed prefix


@dataclass(frozen=True, slots=True)
class ManagerBoard:
    nodes: tuple[NodeSummary, ...]
    tasks: tuple[Task, ...]
    running: int = 0  # cards of own jobs and allocations
    pending: int = 0  # … that those ask for which wait
    error: str = ""  # why the cards cannot be read


def board(session: Session, config: ManagerConfig) -> ManagerBoard:
    view = cards(session)
    rows = session.reader.jobs(states=UNFINISHED)
    held = {uuid for row in rows if row["state"] in OPEN for uuid in row["gpu_uuids"]}
    pending = sum(row["gpu_request"][0] for row in rows if row["state"] == "queued")
    tasks = [_task(session, row, config) for row in rows if is_task(row, config)]
    return ManagerBoard(_nodes(view.gpus), tuple(tasks), len(held), pending, view.error)


def is_task(row: Mapping[str, Any], config: ManagerConfig) -> bool:
    """Allocations, programs that took the place of one, and jobs that are adopted: those whose names have a managed prefix."""
    own = not row["commands"] or TASK in row["tags"]
    return own or (row["inside"] is None and managed(row["name"], config.managed_job_prefixes or (config.job_prefix,)))


def _task(session: Session, row: Mapping[str, Any], config: ManagerConfig) -> Task:
    waits = row["state"] == "queued"
    return Task(
        bare(row["name"], config.job_prefix), row["id"], row["gpu_request"][0] if waits else len(row["gpus"]),
        None if waits else _node(session, row), row["priority"],
        allocationreads.place(session.reader, row["id"], row["priority"]) if waits else None, not row["commands"],
    )  # fmt: skip


def _node(session: Session, row: Mapping[str, Any]) -> str:
    name = allocationreads.node(session.reader, row["id"], row["attempt"])
    return socket.gethostname() if name in ("local", "") else name


def _nodes(gpus: Sequence[Mapping[str, Any]]) -> tuple[NodeSummary, ...]:
    whole = [gpu for gpu in gpus if gpu["state"] != "mig"]
    free = sum(gpu["state"] == "ok" and _is_free(gpu) for gpu in whole)
    return (NodeSummary(socket.gethostname(), len(whole), free),) if whole else ()


def _is_free(gpu: Mapping[str, Any]) -> bool:
    refusal = gpu["refusal"]
    return (refusal is None and not gpu["holders"]) or (refusal is not None and refusal["code"] in FREE_FOR_ALL)
