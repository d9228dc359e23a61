"""What the rules of a batch mean on the cards of one node: which it may use, how many of them, and what can never fit there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.core import courtesy, health, limits
from jostle.core.ledger import Card, offer_mib, takes_whole
from jostle.core.model import UNLIMITED, Cap, Gpu, Job, Limits, Policy
from jostle.core.reasons import Reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    policy: Policy
    range: frozenset[str]
    left: frozenset[str]
    roomy: frozenset[str]
    by_hand: frozenset[str]
    most: float  # the most cards it ever lets the user hold
    readable: bool  # every card it may use
    sizes: list[int]  # of the cards it may use, the largest first
    unsliced: list[int]  # of those that are no slices
    sound: list[Gpu] | None  # of those that could be given, the ones that nothing speaks against; None: all
    caps: list[tuple[str, Cap]]  # the person's limits that one task can never go above
    per_task: float  # … and the most cards by them that it is given

    def most_of(self, job: Job) -> int:
        """The most cards that a job is given."""
        return job.gpus_max if job.gpus_max <= self.per_task else int(self.per_task)


def scope_of(policy: Policy, cards: Sequence[Card], person: Limits = UNLIMITED) -> Scope:
    gpus = [card.gpu for card in cards]
    in_range = courtesy.in_range(policy, gpus)
    left = courtesy.left_for_others(policy, gpus)
    usable = [g for g in in_range if g.uuid not in left]
    limited = courtesy.limited(policy)
    caps = limits.of_one(person, automatic=policy.automatic)
    return Scope(
        policy=policy,
        range=frozenset(g.uuid for g in in_range),
        left=left,
        roomy=courtesy.roomy(policy, gpus) if limited else frozenset(),
        by_hand=frozenset(c.gpu.uuid for c in cards if courtesy.by_hand(policy, c)) if limited else frozenset(),
        most=courtesy.limit(policy, len(in_range)) if limited else math.inf,
        readable=all(g.state == "ok" for g in usable),
        sizes=sorted(map(offer_mib, usable), reverse=True),
        unsliced=sorted((offer_mib(g) for g in usable if not g.mig_slice), reverse=True),
        sound=[g for g in usable if health.usable(g)] if any(map(health.suspect, usable)) else None,
        caps=caps,
        per_task=min((cap.most for _, cap in caps), default=math.inf),
    )


def large_enough(offer: int, job: Job, policy: Policy) -> bool:
    """Whether a card that offers so much when it is empty could carry the job."""
    least = 0 if takes_whole(offer, job.memory_mib) else job.memory_mib or 0
    return offer >= max(least, policy.min_free_mib) + (policy.margin_mib if least or policy.min_free_mib else 0)


def desperate(job: Job, scope: Scope) -> bool:
    """Whether the job could never start without cards that only the failures of other jobs speak against."""
    if scope.sound is None:
        return False
    able = (g for g in scope.sound if job.gpus_min < 2 or not g.mig_slice)
    return sum(large_enough(offer_mib(g), job, scope.policy) for g in able) < job.gpus_min


def impossible(job: Job, scope: Scope) -> Reason | None:
    """Why no rearrangement of today's cards could ever fit the job."""
    count, policy = job.gpus_min, scope.policy
    if count > scope.per_task:
        return limits.impossible(count, scope.caps)
    if count > scope.most:
        return Reason(code="impossible_limit", params={"needed": count, "limit": scope.most})
    need = max(job.memory_mib or 0, policy.min_free_mib) + policy.margin_mib
    sizes = scope.sizes if count == 1 else scope.unsliced
    if scope.readable and len(sizes) < count <= len(scope.sizes):
        slices = len(scope.sizes) - len(sizes)
        return Reason(code="impossible_slices", params={"needed": count, "slices": slices, "cards": len(sizes)})
    if len(scope.sizes) < count <= len(scope.range):  # there are cards, but they are left for others
        return Reason(code="impossible_limit", params={"needed": count, "limit": len(sizes)})
    if not scope.readable or not count or (count <= len(sizes) and sizes[count - 1] >= need):
        return None
    able = sum(large_enough(size, job, policy) for size in sizes)
    if able >= count:
        return None
    params = {"needed": count, "needed_mib": need, "able": able, "largest_mib": max(sizes, default=0)}
    return Reason(code="impossible" if able < len(sizes) else "impossible_count", params={**params, "cards": len(sizes)})
