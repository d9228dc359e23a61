"""What is held against cards, as the store keeps it: those set aside, doubts, and which facts of the driver are accounted for.

A value that changes by making another: it counts only when the commit that has it is made. What follows from it is core.health's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jostle.core.model import Gpu
from jostle.core.plan import Decision, Doubt, Quarantine
from jostle.core.reasons import Reason
from jostle.store.store import Store

Tried = tuple[tuple[str, float, str], ...]


@dataclass(frozen=True, slots=True)
class Health:
    faulty: Mapping[str, Reason] = field(default_factory=dict)
    index: Mapping[str, int] = field(default_factory=dict)  # of those, when they were set aside; for showing without a probe
    doubts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)  # of its memory, that are accounted for
    rows: frozenset[str] = frozenset()  # cards whose broken rows are
    pardoned: Mapping[str, float] = field(default_factory=dict)  # when a person took it back: what failed before is forgotten

    @classmethod
    def of(cls, store: Store) -> Health:
        kept = store.get("health") or {}
        aside = kept.get("faulty", {})
        return cls(
            faulty={uuid: Reason(code=f["code"], params=f["params"]) for uuid, f in aside.items()},
            index={uuid: f["index"] for uuid, f in aside.items()},
            doubts={uuid: tuple(jobs) for uuid, jobs in kept.get("doubts", {}).items()},
            errors=kept.get("errors", {}),
            rows=frozenset(kept.get("rows", ())),
            pardoned=kept.get("pardoned", {}),
        )

    def keep(self, store: Store) -> None:
        faulty = {u: {"index": self.index[u], "code": r.code, "params": dict(r.params)} for u, r in self.faulty.items()}
        doubts = {uuid: jobs for uuid, jobs in self.doubts.items() if jobs}
        kept = {"faulty": faulty, "doubts": doubts, "errors": self.errors, "rows": sorted(self.rows), "pardoned": self.pardoned}
        store.put("health", kept)

    # --- readings

    def new_errors(self, g: Mapping[str, Any]) -> int:
        count = g.get("ecc_uncorrected")
        return 0 if count is None else max(0, count - self.errors.get(g["uuid"], count))

    def new_row(self, g: Mapping[str, Any]) -> bool:
        return bool(g.get("remap_failed")) and g["uuid"] not in self.rows

    def seen(self, gpus: Iterable[Mapping[str, Any]]) -> Health | None:
        """With the counts of cards seen for the first time, or that began anew with the driver; None: there are none."""
        counts = {g["uuid"]: g["ecc_uncorrected"] for g in gpus if g.get("ecc_uncorrected") is not None}
        first = {uuid: n for uuid, n in counts.items() if n < self.errors.get(uuid, n + 1)}
        return replace(self, errors={**self.errors, **first}) if first else None

    # --- decisions

    def recorded(self, store: Store, decisions: Iterable[Decision], gpus: Iterable[Gpu], at: float) -> Health:
        """As these decisions make it, kept and told by the transaction that is open."""
        aside = [d for d in decisions if isinstance(d, Quarantine)]
        doubts = {d.uuid: d.jobs for d in decisions if isinstance(d, Doubt)}
        if not aside and not doubts:
            return self
        gone: dict[str, tuple[int, ...]] = {d.uuid: () for d in aside}
        health = replace(
            self._accounted([g for g in gpus if g.uuid in gone]),
            faulty={**self.faulty, **{d.uuid: d.reason for d in aside}},
            index={**self.index, **{d.uuid: d.index for d in aside}},
            doubts={**self.doubts, **doubts, **gone},
        )
        health.keep(store)
        for d in aside:
            job, run = d.run or (None, None)
            reason = {"code": d.reason.code, "params": dict(d.reason.params)}
            store.event(at, "quarantined", batch=d.batch, job=job, run=run, gpu=d.index, uuid=d.uuid, reason=reason)
        return health

    def _accounted(self, gpus: list[Gpu]) -> Health:
        errors = {g.uuid: self.errors.get(g.uuid, 0) + g.new_errors for g in gpus if g.new_errors}
        return replace(self, errors={**self.errors, **errors}, rows=self.rows | {g.uuid for g in gpus if g.remap_failed})

    def pardon(self, gpus: list[Gpu], at: float) -> Health:
        """A person takes cards back: nothing that is known of them by now is held against them any more."""
        gone = {g.uuid for g in gpus}
        return replace(
            self._accounted(gpus),
            faulty={uuid: r for uuid, r in self.faulty.items() if uuid not in gone},
            index={uuid: i for uuid, i in self.index.items() if uuid not in gone},
            doubts={uuid: jobs for uuid, jobs in self.doubts.items() if uuid not in gone},
            pardoned={**self.pardoned, **dict.fromkeys(gone, at)},
        )

    def held(self, tries: Iterable[tuple[str, float, str, float]]) -> Tried:
        """Of a job's earlier failed runs (card, seconds, kind, when it ended) those that may still count."""
        return tuple((uuid, took, kind) for uuid, took, kind, at in tries if at > self.pardoned.get(uuid, 0.0))
