"""Starts, up to the moment in which they are recorded: cards are reserved and the run is written down; nothing has begun yet.

What was reserved for a commit that could not be made is given back.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.core.limits import of_kind
from jostle.core.model import Gpu, Lease, Limits, Policy, RunId
from jostle.core.plan import Plan, Start
from jostle.core.reasons import Hold
from jostle.engine import elasticity, launch, stillness
from jostle.engine.cards import KnownCards
from jostle.engine.carried import Carried
from jostle.engine.open import Open, more_than_cards, retry_of
from jostle.engine.rules import Rules
from jostle.failpoint import failpoint
from jostle.port import Backend, Denied, Reserved, Tenure, is_placing
from jostle.store import runs
from jostle.store.allocations import NO_COMMANDS
from jostle.store.store import Store

CONTEXTS = 64  # that are kept at hand
PATIENT = 50  # times the first pause: who is refused again and again asks ever more rarely


def tenure(limits: Limits, policy: Policy) -> Tenure:
    """How a run holds its cards: automatically or not, and how many of this user's may be held so."""
    caps = dict(of_kind(limits, automatic=policy.automatic))
    total = caps.pop("max_total_gpus", None)
    alike = next(iter(caps.values()), None)
    return Tenure(policy.automatic, total.most if total else None, alike.most if alike else None)


Recorded = tuple[Open, Mapping[str, Any]]
"""A run, and what it will be given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Postponed:
    """A start that cannot be made now."""

    hold: Hold | None = None  # why none can be, which people should know; it is tried again after a pause
    target: str = ""  # … there; "": anywhere
    after: float | None = None  # a neighbour was quicker: the cards are looked at again, but not at once, and others may start


class Starting:
    def __init__(self, *, store: Store, cards: KnownCards, carried: Carried) -> None:
        self._store, self._cards, self._carried = store, cards, carried
        self._contexts: dict[int, dict[str, Any]] = {}  # what submits captured, the latest used
        self._refused: dict[int, int] = {}  # by job: how often its cards could not be reserved since it was last started

    def record_all(
        self, plan: Plan, started: list[Recorded], *, gpus: Sequence[Gpu], claim_names: frozenset[str], rules: Rules, at: float,
        now: float,
    ) -> Iterator[Postponed]:  # fmt: skip
        """Adds to `started` what could be; gives what could not. A target that takes no more is not asked again."""
        closed: set[str] = set()
        for start in plan.decisions:
            if not isinstance(start, Start) or not closed.isdisjoint(("", start.target)):
                continue
            answer = self.record(start, gpus=gpus, claim_names=claim_names, rules=rules, at=at, now=now)
            if not isinstance(answer, Postponed):
                started.append(answer)
                continue
            if answer.after is None:
                closed.add(answer.target)
            yield answer

    def record(
        self, start: Start, *, gpus: Sequence[Gpu], claim_names: frozenset[str], rules: Rules, at: float, now: float,
    ) -> Recorded | Postponed:  # fmt: skip
        """Inside the caller's transaction."""
        if not self._store.in_place():
            return Postponed(hold=Hold("home_moved"))  # a run of ours in another's home would be taken for one of its own
        backend = self._carried.backends[start.target]
        cards = [g for uuid in start.uuids for g in gpus if g.uuid == uuid]
        job = runs.job_to_start(self._store, start.job)
        policy = rules.of(job["batch"])
        terms = tenure(rules.limits, policy) if job["inside"] is None else self._as_its_allocation(job["inside"], rules)
        id, reserved = self._reserve(backend, start, job["attempt"] + 1, cards, claim_names, terms)
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
            retry=retry_of(job["retry"]), leases=leases, on=tuple(json.loads(job["targets"])), **more_than_cards(job),
            grace=rules.grace_of(job["grace"]),
            allocation=job["commands"] == NO_COMMANDS, idle_release=job["idle_release"], inside=job["inside"],
            elasticity=elasticity.of_job(job, start.uuids, now) if backend.places else None,
            yields=job["when_stranger"] == "requeue", yielded=job["yielded"], yielded_lately=job["yielded_lately"],
            stillness=stillness.of_job(job) if backend.places else None,
        )  # fmt: skip
        how = None if run.elasticity is None else run.elasticity.how
        try:
            context = self._context(job["context"])
            spec = launch.spec(
                job, context, id, uni_id, log, cards, gpus, rules.settings, policy, grace=run.grace, placed=backend.places,
                resize=how,
            )  # fmt: skip
            runs.begin(
                self._store, id, batch=run.batch, uni_id=uni_id, backend=run.backend, node=run.node, handle=run.handle,
                memory_mib=start.memory_mib, share=start.share, log=log, leases=leases, at=at, now=now,
            )  # fmt: skip
        except BaseException:
            self.withdraw([(run, {})])
            raise
        return run, spec

    def _as_its_allocation(self, allocation: int, rules: Rules) -> Tenure:
        """Its cards are held and counted already; but what was held automatically is used by hand from now on."""
        runs = self._carried.runs.values()
        if not any(rules.of(run.batch).automatic for run in runs if run.id[0] == allocation):
            return Tenure()
        manual = rules.limits.max_manual_gpus
        used = any(run.inside == allocation or (run.id[0] == allocation and run.used) for run in runs)
        return Tenure(alike=None if used or manual is None else manual.most)

    def _reserve(
        self, backend: Backend, start: Start, n: int, cards: Sequence[Gpu], claim_names: frozenset[str], tenure: Tenure
    ) -> tuple[RunId, Reserved | Postponed]:
        if not is_placing(backend):
            return (start.job, n), Reserved(handle="")
        wants = [(g.uuid, start.mib_on(g.uuid)) for g in cards]
        while (
            answer := backend.reserve((start.job, n), start.node, wants, claim_names, alone=not start.share, tenure=tenure)
        ) is Denied.TAKEN:
            n += 1  # of a database that was put back: that run's end must not be taken for this one's
        if answer is Denied.ASKED:
            return (start.job, n), Postponed(target=start.target)  # the backend wakes us
        if answer is Denied.REFUSED and backend.trouble:
            return (start.job, n), Postponed(target=start.target, hold=backend.trouble)
        if answer is Denied.REFUSED:
            again = self._refused.pop(start.job, 0) + 1
            if len(self._refused) >= CONTEXTS:
                self._refused.clear()  # of jobs that were given up, perhaps
            self._refused[start.job] = again
            return (start.job, n), Postponed(target=start.target, after=random.uniform(0.01, 0.1) * min(again, PATIENT))
        assert isinstance(answer, Reserved)
        self._refused.pop(start.job, None)
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
