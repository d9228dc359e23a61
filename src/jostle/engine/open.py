"""A run that may be alive, as the engine keeps it between ticks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from jostle.core.model import Exit, Lease, Retry, Run, RunId


@dataclass(slots=True)
class Open:
    """A run that may be alive, and what became known of it since the last commit."""

    id: RunId
    batch: int
    uni_id: str
    state: str
    backend: str
    node: str
    handle: str  # what its backend knows it by
    memory_mib: int | None
    share: bool
    clock_at: float
    time_limit: float | None
    failures: int
    retry: Retry | None
    leases: list[Lease]
    on: tuple[str, ...]  # the targets that may have its job
    excused: int = 0
    tried: tuple[tuple[str, float, str], ...] = ()
    intent: str = "run"
    exit: Exit | None = None
    voided: bool = False
    claimed: bool = False  # it has begun, as its backend says
    handle_changed: bool = False  # … and that is not recorded yet
    session: int | None = None  # of its processes on this host
    waits_there: str = ""  # why a cluster that it was handed to keeps it waiting, in its own word
    supervised: bool = True  # somebody will tell of its end
    kill_at: float | None = None  # stopping, and nobody sees to its end: when we lose patience
    look: int = 0  # the number of a look at its cards that began when they were given back; 0: none was asked for
    beyond: dict[str, dict[str, int]] = field(default_factory=dict)  # by card: what it uses now, and the less that it asked for
    told_to_stop: bool = False  # by this engine: an earlier one may have died between the record and the signal

    def value(self, peak: int) -> Run:
        state = "running" if self.state == "stopping" and not self.told_to_stop else self.state
        return Run(
            id=self.id,
            batch=self.batch,
            state=state,
            cancel=self.intent in ("cancel", "kill"),
            kill=self.intent == "kill",
            uuids=tuple(lease.uuid for lease in self.leases),
            target=self.backend,
            on=self.on,
            memory_mib=self.memory_mib,
            share=self.share,
            started_at=self.clock_at,
            time_limit=self.time_limit,
            failures=self.failures,
            excused=self.excused,
            tried=self.tried,
            retry=self.retry,
            peak_mib=peak,
            uni_id=self.uni_id,
            ended=self.exit,
            voided=self.voided,
        )

    @property
    def over(self) -> bool:
        return self.exit is not None or self.voided


def of_row(row: dict[str, Any]) -> Open:
    """From what the store says of an open run."""
    return Open(
        id=(row["job"], row["n"]),
        batch=row["batch"],
        uni_id=row["uni_id"],
        state=row["state"],
        backend=row["backend"],
        node=row["node"],
        handle=row["handle"],
        memory_mib=row["memory_mib"],
        share=bool(row["share"]),
        clock_at=row["clock_at"],
        time_limit=row["time_limit"],
        failures=row["retries"],
        excused=row["excused"],
        retry=retry_of(row["retry"]),
        leases=row["leases"],
        on=tuple(json.loads(row["targets"])),
        intent=row["intent"],
    )


def retry_of(text: str | None) -> Retry | None:
    return Retry(**json.loads(text)) if text else None
