"""The engine, its allocations and its cards, in their plain form: see views.types."""

from __future__ import annotations

from typing import TypedDict

from jostle.views.types import Reason


class Program(TypedDict):
    """A job inside an allocation that has not ended."""

    id: int
    name: str
    state: str
    gpus: list[int]


class Allocation(TypedDict):
    name: str
    id: int
    state: str
    intent: str
    gpu_request: list[int]
    memory_mib: int | None
    gpus: list[int]
    gpu_uuids: list[str]
    node: str | None
    priority: int
    since: float | None
    until: float | None
    idle_s: float | None
    idle_release: float | None
    tied_to: int | None
    programs: list[Program]
    reason: Reason | None


class NodeCards(TypedDict):
    """The cards of a host: those that may be taken, and those that our allocations and runs hold."""

    name: str
    total: int
    free: int
    allocated: int


class Paths(TypedDict):
    home: str
    database: str
    socket: str
    log: str
    runs: str
    config: str
    leases: str | None
    sim: str | None


class Console(TypedDict):
    pid: int
    port: int
    bind: str | None
    workspace: str | None
    socket: str | None


class Amount(TypedDict):
    total: int
    free: int


class Resources(TypedDict):
    """What jobs take besides cards: of this host, and of counters."""

    cpus: Amount
    host_memory_mib: Amount
    counters: dict[str, Amount]


class Held(TypedDict, total=False):
    hold_text: str  # of `hold`


class Status(Held):
    running: bool
    pid: int | None
    version: str
    uptime_s: float | None
    gpus_spec: str | None
    permanent: bool | None
    hold: str
    probe: str
    counts: dict[str, int]
    resources: Resources | None
    consoles: list[Console]
    paths: Paths


class Overview(Status):
    """And who holds what where."""

    nodes: list[NodeCards]
    allocations: list[Allocation]
