"""The limits of a person (SPEC C3): how many cards they may hold in all, automatically, by hand, and for one task.

Rules. They stand above the rules of every batch, and count over all homes: every card that a live claim of this user names, once.
Automatic is what a batch under `automatic: true` has (the floor of `monitor --manage`); all else, jobs and allocations alike, was
asked for by hand. Of several who set a limit the strictest holds; what a file only has by default gives way to whoever says
anything. A card that is held already may be shared: that takes no further one. What is held above a limit that came later stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from jostle.core.fields import LIMITS
from jostle.core.ledger import allocated
from jostle.core.model import UNLIMITED, Cap, Limits, Policy, Run, RunId, World
from jostle.core.reasons import Reason

SOURCES = ("own", "config", "lab", "manager", "manager_default")
"""Who may set them: the person (`jostle limits`), config.yaml, the lab's file, the manager's file, by word or by default."""

OWN, MANAGER = "limits", "limits_manager"
"""Under which names the store keeps what the person says, and what the manager's file said."""


Says = tuple[str, Mapping[str, int | None]]  # a source, and what it says


def strictest(sources: Iterable[Says], defaults: tuple[str, Mapping[str, int]] = ("", {})) -> Limits:
    """What holds, by what each source says; `defaults` are those of a source that does not say these itself."""
    caps: dict[str, Cap] = {}
    for source, values in sources:
        for name, most in values.items():
            if most is not None and name in LIMITS and (name not in caps or most < caps[name].most):
                caps[name] = Cap(most, source)
    source, values = defaults
    for name, most in values.items():
        caps.setdefault(name, Cap(most, source))
    return Limits(**caps) if caps else UNLIMITED


def of_kind(limits: Limits, *, automatic: bool) -> list[tuple[str, Cap]]:
    """Those that hold for what is held by hand, or automatically."""
    kind = "max_reserved_gpus" if automatic else "max_manual_gpus"
    named = (("max_total_gpus", limits.max_total_gpus), (kind, limits.max_reserved_gpus if automatic else limits.max_manual_gpus))
    return [(name, cap) for name, cap in named if cap is not None]


def of_one(limits: Limits, *, automatic: bool) -> list[tuple[str, Cap]]:
    """Those that a single task can never go above."""
    per_task = limits.max_gpus_per_task
    return [*([("max_gpus_per_task", per_task)] if per_task is not None else []), *of_kind(limits, automatic=automatic)]


class Budget(NamedTuple):
    """How many more cards may be taken beside those that are held, by one rule."""

    more: int
    holding: AbstractSet[str]


class Bound(NamedTuple):
    """A limit and what counts against it."""

    name: str
    cap: Cap
    held: AbstractSet[str]

    @property
    def budget(self) -> Budget:
        return Budget(max(0, self.cap.most - len(self.held)), self.held)

    def reason(self, needed: int) -> Reason:
        params = {"limit": self.name, "most": self.cap.most, "held": len(self.held), "needed": needed, "source": self.cap.source}
        return Reason(code="user_limit", params=params)


BY_HAND = Policy()


class Account:
    """The cards that the person holds while a plan is made, wherever they are."""

    def __init__(self, world: World, runs: Mapping[RunId, Run], *, shown: bool = False) -> None:
        self._world = world
        self.counts = shown or (world.limits is not UNLIMITED and world.limits != UNLIMITED)
        self.manual: set[str] = set()
        self.automatic: set[str] = set()
        if not self.counts:
            return
        dead = {run.id for run in world.runs if run.id not in runs}
        held = allocated(world, runs)
        used = {run.inside for run in runs.values()} | {run.id[0] for run in runs.values() if run.used}
        for promise in world.promises:
            if promise.uid == world.uid and promise.run not in dead and (promise.inside, promise.uuid) not in held:
                of_run = runs.get(promise.run) if promise.run is not None else None
                automatic = promise.automatic if of_run is None else self._world.policy_of(of_run.batch).automatic
                self.enter(promise.uuid, automatic=automatic and (of_run is None or of_run.id[0] not in used))

    def enter(self, uuid: str, *, automatic: bool) -> None:
        """Held both ways it is held by hand: what an automatic allocation has is the person's as soon as they use it."""
        if not automatic:
            self.manual.add(uuid)
            self.automatic.discard(uuid)
        elif uuid not in self.manual:
            self.automatic.add(uuid)

    def over_by_use(self, uuids: AbstractSet[str]) -> Reason | None:
        """The limit that forbids to use these cards, which are held already, perhaps automatically."""
        for bound in self.bounds(BY_HAND):
            more = (self.automatic & uuids) - bound.held
            if len(more) > bound.budget.more:
                return bound.reason(len(more))
        return None

    def bounds(self, policy: Policy, beside: AbstractSet[str] = frozenset()) -> list[Bound]:
        """What holds for a start under these rules; `beside` are cards that are as good as held."""
        if not self.counts:
            return []
        kind = self.automatic if policy.automatic else self.manual
        held = {"max_total_gpus": self.manual | self.automatic | beside}
        return [
            Bound(name, cap, held.get(name, kind | beside))
            for name, cap in of_kind(self._world.limits, automatic=policy.automatic)
        ]


def impossible(count: int, caps: Iterable[tuple[str, Cap]]) -> Reason | None:
    """Why so many cards can never be held by one task."""
    for name, cap in caps:
        if count > cap.most:
            params = {"limit": name, "most": cap.most, "needed": count, "source": cap.source}
            return Reason(code="impossible_user_limit", params=params)
    return None
