"""Starts, up to the moment in which they are recorded: cards are reserved and the run is written down; nothing has begun yet.

What was reserved for a commit that could not be made is given back.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.core.model import Gpu, Lease, Policy, RunId
from jostle.core.plan import Start
from jostle.engine import launch
from jostle.engine.cards import Cards
from jostle.engine.carried import Carried
from jostle.engine.open import Open, retry_of
from jostle.failpoint import failpoint
from jostle.port import Backend, Denied, Reserved, is_placing
from jostle.store import runs
from jostle.store.store import Store

CONTEXTS = 64  # that are kept at hand

Recorded = tuple[Open, Mapping[str, Any]]
"""A run, and what it will be given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Postponed:
    """A start that cannot be made now."""

    hold: str = ""  # why none can be, which people should know; it is tried again after a pause
    target: str = ""  # … there; "": anywhere
    after: float | None = None  # a neighbour was quicker: the cards are looked at again, but not at once, and others may start


class Starting:
    def __init__(self, *, store: Store, cards: Cards, carried: Carried) -> None:
        self._store, self._cards, self._carried = store, cards, carried
        self._contexts: dict[int, dict[str, Any]] = {}  # what submits captured, the latest used

    def record(
        self, start: Start, *, gpus: Sequence[Gpu], claim_names: frozenset[str], settings: Mapping[str, Any],
        policy_of: Callable[[int], Policy], at: float, now: float,
    ) -> Recorded | Postponed:  # fmt: skip
        """Inside the caller's transaction."""
        if not self._store.in_place():
            return Postponed(hold="home_moved")  # a run of ours in another's home would be taken for one of its own
        backend = self._carried.backends[start.target]
        cards = [g for uuid in start.uuids for g in gpus if g.uuid == uuid]
        job = runs.job_to_start(self._store, start.job)
        id, reserved = self._reserve(backend, start, job["attempt"] + 1, cards, claim_names)
        if isinstance(reserved, Postponed):
            return reserved
        failpoint("engine.after_reserve")
        uni_id = secrets.token_hex(8)
        log = job["log"] or backend.log_path(id, uni_id)
        leases = [Lease(uuid=g.uuid, index=g.index, mib=start.mib_on(g.uuid), used_at_start_mib=g.used_mib) for g in cards]
        run = Open(
            id=id, batch=job["batch"], uni_id=uni_id, state="starting", backend=start.target, node=start.node,
            handle=reserved.handle, session=reserved.session, memory_mib=start.memory_mib, share=start.share, clock_at=now,
            time_limit=job["time_limit"], failures=job["retries"], excused=job["excused"],
            tried=self._cards.tried(start.job) if job["retries"] or job["excused"] else (),
            retry=retry_of(job["retry"]), leases=leases, on=tuple(json.loads(job["targets"])),
        )  # fmt: skip
        try:
            context, policy = self._context(job["context"]), policy_of(job["batch"])
            spec = launch.spec(job, context, id, uni_id, log, cards, gpus, settings, policy, placed=backend.places)
            runs.begin(
                self._store, id, batch=run.batch, uni_id=uni_id, backend=run.backend, node=run.node, handle=run.handle,
                memory_mib=start.memory_mib, share=start.share, log=log, leases=leases, at=at, now=now,
            )  # fmt: skip
        except BaseException:
            self.withdraw([(run, {})])
            raise
        return run, spec

    def _reserve(
        self, backend: Backend, start: Start, n: int, cards: Sequence[Gpu], claim_names: frozenset[str]
    ) -> tuple[RunId, Reserved | Postponed]:
        if not is_placing(backend):
            return (start.job, n), Reserved(handle="")
        wants = [(g.uuid, start.mib_on(g.uuid)) for g in cards]
        while (answer := backend.reserve((start.job, n), start.node, wants, claim_names, alone=not start.share)) is Denied.TAKEN:
            n += 1  # of a database that was put back: that run's end must not be taken for this one's
        if answer is Denied.ASKED:
            return (start.job, n), Postponed(target=start.target)  # the backend wakes us
        if answer is Denied.REFUSED and backend.trouble:
            return (start.job, n), Postponed(target=start.target, hold=backend.trouble)
        if answer is Denied.REFUSED:
            return (start.job, n), Postponed(target=start.target, after=random.uniform(0.01, 0.1))
        assert isinstance(answer, Reserved)
        return (start.job, n), answer

    def withdraw(self, recorded: Sequence[Recorded]) -> None:
        """They could not be committed."""
        for name, backend in self._carried.backends.items():
            if is_placing(backend):
                backend.withdraw([run.id for run, _ in recorded if run.backend == name])

    def forget_contexts(self) -> None:
        self._contexts.clear()

    def _context(self, id: int) -> dict[str, Any]:
        if id not in self._contexts:
            if len(self._contexts) >= CONTEXTS:
                self._contexts.clear()
            self._contexts[id] = runs.context(self._store, id)
        return self._contexts[id]
