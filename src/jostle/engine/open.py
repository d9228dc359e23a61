"""A run that may be alive, as the engine keeps it between ticks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.core.fields import SETTINGS
from jostle.core.model import Amounts, Exit, Lease, Retry, Run, RunId
from jostle.core.states import TO_END
from jostle.engine import elasticity, stillness
from jostle.engine.elasticity import Elasticity
from jostle.engine.stillness import Stillness
from jostle.store.allocations import NO_COMMANDS


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
    cpus: int | None = None
    host_memory_mib: int | None = None
    counters: Amounts = ()
    grace: float = SETTINGS["grace"].default  # s between SIGTERM and SIGKILL
    allocation: bool = False  # it has no commands, and holds its cards
    idle_release: float | None = None
    inside: int | None = None  # the allocation that it runs in
    evicted: bool = False  # … which has been released
    idle_since: float | None = None  # an allocation: since when nothing of ours is on its cards or runs inside
    used: bool = False  # … and whether a process is there that its person started by hand
    visitor: dict[str, Any] | None = None  # an allocation: a stranger who came onto its cards
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
    idle: dict[str, float] = field(default_factory=dict)  # by card: how long it has stood idle, if that is long
    told_to_stop: bool = False  # by this engine: an earlier one may have died between the record and the signal
    to_stop: bool = False  # an earlier engine has decided and recorded that it ends
    elasticity: Elasticity | None = None  # of one that may get other cards
    yields: bool = False  # it leaves when somebody else comes onto its cards …
    yielding: bool = False  # … and was told to: that is recorded
    yielded: int = 0  # how often its job has before, in all, and without much time in between
    yielded_lately: int = 0
    stillness: Stillness | None = None  # of one that stands still while somebody else is on its cards
    intruded_since: dict[str, float] = field(default_factory=dict)  # by card, since when somebody else is there
    intruded: tuple[str, ...] = ()  # … and stays

    def value(self, peak: int, now: float = 0.0) -> Run:
        state = "running" if self.state == "stopping" and not self.told_to_stop else self.state
        return Run(
            id=self.id,
            batch=self.batch,
            state=state,
            cancel=self.intent in TO_END or self.to_stop,
            kill=self.intent == "kill",
            uuids=tuple(lease.uuid for lease in self.leases),
            target=self.backend,
            node=self.node,
            on=self.on,
            cpus=self.cpus,
            host_memory_mib=self.host_memory_mib,
            counters=self.counters,
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
            allocation=self.allocation,
            idle_since=self.idle_since,
            idle_release=self.idle_release,
            used=self.used,
            inside=self.inside,
            evicted=self.evicted,
            elastic=None if self.elasticity is None else self.elasticity.value(self.leases, supervised=self.supervised, now=now),
            intruded=self.intruded,
            yields=self.yields,
            yielding=self.yielding,
            yielded=self.yielded,
            yielded_lately=self.yielded_lately,
            pausing=None if self.stillness is None else self.stillness.value(supervised=self.supervised),
        )

    @property
    def paused(self) -> bool:
        return self.stillness is not None and self.stillness.now

    @property
    def unrecorded(self) -> bool:
        """Whether its backend has said what the store does not have."""
        return self.handle_changed or (self.claimed and self.state == "starting")

    @property
    def over(self) -> bool:
        return self.exit is not None or self.voided


def of_row(row: dict[str, Any], orders: Sequence[Mapping[str, Any]], grace_of: Callable[[float | None], float]) -> Open:
    """From what the store says of an open run, and of the orders to it, the newest first."""
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
        **more_than_cards(row),
        grace=grace_of(row["grace"]),
        intent=row["intent"],
        to_stop=row["state"] == "stopping",
        allocation=row["commands"] == NO_COMMANDS,
        idle_release=row["idle_release"],
        inside=row["inside"],
        evicted=bool(row["evicted"]),
        elasticity=elasticity.of_row(row, orders),
        yields=row["when_stranger"] == "requeue",
        yielding=row["yielding"] is not None,
        yielded=row["yielded"],
        yielded_lately=row["yielded_lately"],
        stillness=stillness.of_row(row),
    )


def more_than_cards(job: Mapping[str, Any]) -> dict[str, Any]:
    """What a run takes besides cards, from the row of its job."""
    counters = tuple(sorted(json.loads(job["counters"]).items()))
    return {"cpus": job["cpus"], "host_memory_mib": job["host_memory_mib"], "counters": counters}


def retry_of(text: str | None) -> Retry | None:
    return Retry(**json.loads(text)) if text else None
