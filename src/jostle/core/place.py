"""The table: what is still to be handed out while one plan is made, and placing one job on it.

Rules: everything handed out is entered at once, so that two starts of one plan never overlap. What a policy and a request have in
common is worked out once: refusals are kept per request and worked out again only for cards that were given away meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from jostle.core import courtesy, fit, health, reserve
from jostle.core.ledger import Card, alive, cards_of, offer_mib, whole, without_ours
from jostle.core.model import Gpu, Job, Policy, Promise, World
from jostle.core.order import ORDERS
from jostle.core.plan import Start
from jostle.core.reasons import GPU_HOLDS, Reason, Refusal
from jostle.core.view import Refusals, View

AVOID_S = 600.0  # a card on which a job failed is tried again after so long, if no other could be had
NO_CARD: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """What one policy means on this table."""

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


def _large_enough(offer: int, job: Job, policy: Policy) -> bool:
    """Whether a card that offers so much when it is empty could carry the job."""
    least = 0 if whole(offer, job.memory_mib) else job.memory_mib or 0
    return offer >= max(least, policy.min_free_mib) + (policy.margin_mib if least or policy.min_free_mib else 0)


class Table:
    def __init__(self, world: World) -> None:
        self.world = world
        self.runs = alive(world)
        self.cards = cards_of(world, self.runs)
        self.blind = not any(g.state == "ok" for g in world.gpus)
        self.kept: reserve.Kept | None = None
        self._to_come: dict[tuple[Any, ...], list[tuple[float, str]]] = {}  # by request: when cards will be there
        self._unkept: dict[int, dict[str, int]] = {}  # by shape: why a job may keep cards and cannot
        self.wake_at: float | None = None
        self.easiest_mib = reserve.easiest_mib(world)
        self._last_start = dict(world.last_start)
        self._running: dict[int, int] = {}
        for run in self.runs.values():
            self._running[run.batch] = self._running.get(run.batch, 0) + 1
        self._changed: list[int] = []  # positions of cards given away, in order
        self._scopes: dict[Policy, Scope] = {}
        self._by_batch: dict[int, Scope] = {}
        self._views: dict[tuple[Any, ...], View] = {}
        self._live = frozenset(self.runs)

    def place(self, job: Job) -> Start | Reason:
        """Start a job now, or say why not."""
        scope = self.scope(job.batch)
        reason = self.gate(job, scope.policy)
        if reason is not None:
            return reason
        if job.gpus_max == 0:
            return self._start(job, scope, [])
        answer = self._on_cards(job, scope)
        if isinstance(answer, Reason) and job.shape in self._unkept:
            return answer._replace(params={**answer.params, **self._unkept[job.shape]})
        return answer

    def wake(self, at: float) -> None:
        if self.wake_at is None or at < self.wake_at:
            self.wake_at = at

    # What holds a job back whatever cards there are.

    def gate(self, job: Job, policy: Policy) -> Reason | None:
        reason = self._hold(job) if self.world.hold or self.blind else None
        if reason is None and policy.max_concurrent is not None:
            reason = self._too_many(job, policy.max_concurrent)
        if reason is None and policy.start_interval > 0:
            reason = self._too_soon(job, policy.start_interval)
        return reason

    def _hold(self, job: Job) -> Reason | None:
        hold, cpu = self.world.hold, job.gpus_max == 0
        if hold and not (cpu and hold.startswith(GPU_HOLDS)):
            return Reason(code="on_hold", params={"hold": hold})
        if self.blind and not cpu:
            refused = tuple(r for r in map(fit.closed, self.cards) if r is not None)
            return Reason(code="gpus_unknown", params={"total": len(self.cards)}, gpus=refused)
        return None

    def _too_many(self, job: Job, most: int) -> Reason | None:
        running = self._running.get(job.batch, 0)
        promised = self.kept is not None and self.kept.job.batch == job.batch and self.kept.binds(job)
        if running + promised < most:
            return None
        return Reason(code="max_concurrent", params={"running": running, "most": most})

    def _too_soon(self, job: Job, interval: float) -> Reason | None:
        next_at = self._last_start.get(job.batch, -math.inf) + interval
        if self.world.now >= next_at:
            return None
        self.wake(next_at)
        return Reason(code="start_interval", params={"left_s": next_at - self.world.now, "interval_s": interval})

    # Which cards a job gets.

    def _on_cards(self, job: Job, scope: Scope) -> Start | Reason:
        view = self.view(job, scope)
        refusals = view.refusals
        fitting = [c for c, r in zip(self.cards, refusals, strict=True) if r is None]
        closed = self._closed(job)
        open_ = [c for c in fitting if c.gpu.uuid not in closed] if closed else fitting
        if open_ or not job.gpus_min:
            holding = self.holding(job, scope)
            budget = courtesy.budget(scope.policy, scope.roomy, holding)
            ranked = fit.together(fit.ranked(open_, scope.policy), job.gpus_max)
            cards = fit.chosen(ranked, job.gpus_max, budget, holding)
            if len(cards) >= job.gpus_min:
                return self._start(job, scope, cards)
            if len(open_) >= job.gpus_min and budget is not None:
                return self.impossible(job, scope) or self._over_limit(job, scope, refusals, holding, budget)
        return self._misfit(job, scope, view, len(open_), closed)

    def _closed(self, job: Job) -> AbstractSet[str]:
        kept = self.kept
        if kept is None or not kept.binds(job) or not kept.closed_to(job, self.world.now):
            return frozenset()
        return kept.uuids

    def holding(self, job: Job, scope: Scope) -> set[str]:
        """The cards that count against the user's limit: held, or kept for a job that comes before this one."""
        if not courtesy.limited(scope.policy):
            return set()
        held = {c.gpu.uuid for c in self.cards if c.mine is not None} | scope.by_hand
        return held | self.kept.uuids if self.kept is not None and self.kept.binds(job) else held

    def _start(self, job: Job, scope: Scope, cards: list[Card]) -> Start:
        share = job.share or scope.policy.share
        given_whole = {c.gpu.uuid for c in cards if job.memory_mib is not None and whole(offer_mib(c.gpu), job.memory_mib)}
        for card in cards:
            self._give(card, job, share, None if card.gpu.uuid in given_whole else job.memory_mib)
        self._running[job.batch] = self._running.get(job.batch, 0) + 1
        self._last_start[job.batch] = self.world.now
        if self.kept is not None and self.kept.job.id == job.id:
            self.kept = None
        uuids = tuple(c.gpu.uuid for c in sorted(cards, key=lambda c: c.gpu.index))
        alone = tuple(uuid for uuid in uuids if uuid in given_whole)
        return Start(job=job.id, uuids=uuids, memory_mib=job.memory_mib, share=share, whole=alone)

    def _give(self, card: Card, job: Job, share: bool, mib: int | None) -> None:
        promise = Promise(uuid=card.gpu.uuid, mib=mib, uid=self.world.uid, run=(job.id, 0))
        card.enter(promise, alone=not share)
        self._changed.append(self.cards.index(card))
        card.given_at = self.world.now + len(self._changed) * 1e-6  # later than any before it in this plan

    # Why not.

    def _over_limit(self, job: Job, scope: Scope, refusals: Refusals, holding: set[str], budget: int) -> Reason:
        policy = scope.policy
        available = len(scope.roomy | holding)
        params = {
            "limit": courtesy.limit(policy, available),
            "held": len(holding),
            "more": budget,
            "needed": job.gpus_min,
            "available": available,
            "left": policy.gpu_left,
            "least": courtesy.DEFAULT_MIN if policy.min_gpu is None else policy.min_gpu,
            "most": courtesy.DEFAULT_MAX if policy.max_gpu is None else policy.max_gpu,
        }
        pairs = zip(self.cards, refusals, strict=True)
        return Reason(code="limit", params=params, gpus=tuple(r or fit.no(c, "over_limit") for c, r in pairs))

    def _misfit(self, job: Job, scope: Scope, view: View, fitting: int, closed: AbstractSet[str]) -> Reason:
        reason = self.impossible(job, scope) or view.reasons.get((job.gpus_min, closed))
        if reason is None:
            self._wake_for_time(view.refusals)
            reason = view.reasons[job.gpus_min, closed] = self._gpus(job, view.refusals, fitting, closed)
        return reason

    def _gpus(self, job: Job, refusals: Refusals, fitting: int, closed: AbstractSet[str]) -> Reason:
        params = {"needed": job.gpus_min, "fit": fitting, "total": len(self.cards)}
        refused = list(refusals)
        for at, card in enumerate(self.cards):
            if refused[at] is None and card.gpu.uuid in closed and self.kept is not None:
                refused[at] = fit.no(card, "kept", job=self.kept.job.id)
        return Reason(code="gpus", params=params, gpus=tuple(r for r in refused if r is not None))

    def impossible(self, job: Job, scope: Scope) -> Reason | None:
        """Why no rearrangement of today's cards could ever fit the job."""
        count, policy = job.gpus_min, scope.policy
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
        able = sum(_large_enough(size, job, policy) for size in sizes)
        if able >= count:
            return None
        params = {"needed": count, "needed_mib": need, "able": able, "largest_mib": max(sizes, default=0)}
        return Reason(code="impossible" if able < len(sizes) else "impossible_count", params={**params, "cards": len(sizes)})

    def _wake_for_time(self, refusals: Refusals) -> None:
        for refusal in refusals:
            if refusal is not None and refusal.code in fit.IN_TIME:
                self.wake(self.world.now + refusal.params["left_s"])

    # Worked out once.

    def scope(self, batch: int) -> Scope:
        scope = self._by_batch.get(batch)
        if scope is None:
            policy = self.world.policies.get(batch, self.world.policy)
            scope = self._scopes.get(policy)
            if scope is None:
                scope = self._scopes[policy] = self._scope(policy)
            self._by_batch[batch] = scope
        return scope

    def _scope(self, policy: Policy) -> Scope:
        gpus = self.world.gpus
        known = courtesy.in_range(policy, gpus)
        left = courtesy.left_for_others(policy, gpus)
        usable = [g for g in known if g.uuid not in left]
        limited = courtesy.limited(policy)
        return Scope(
            policy=policy,
            range=frozenset(g.uuid for g in known),
            left=left,
            roomy=courtesy.roomy(policy, gpus) if limited else frozenset(),
            by_hand=frozenset(c.gpu.uuid for c in self.cards if courtesy.by_hand(policy, c)) if limited else frozenset(),
            most=courtesy.limit(policy, len(known)) if limited else math.inf,
            readable=all(g.state == "ok" for g in usable),
            sizes=sorted(map(offer_mib, usable), reverse=True),
            unsliced=sorted((offer_mib(g) for g in usable if not g.mig_slice), reverse=True),
            sound=[g for g in usable if health.usable(g)] if any(map(health.suspect, usable)) else None,
        )

    def view(self, job: Job, scope: Scope) -> View:
        """Why each card does not fit the job; None where it does."""
        key = self._request(job, scope)
        view = self._views.get(key)
        if view is None:
            standing = self._standing(job, scope)
            view = self._views[key] = standing if standing.hopeless else self._view(job, scope, standing)
        return view

    def _request(self, job: Job, scope: Scope) -> tuple[Any, ...]:
        """What jobs have in common that fit the same cards."""
        several = job.gpus_min > 1 and len(scope.unsliced) < len(scope.sizes)  # of slices one is all that a program sees
        avoids = (job.avoid, job.gpus_min, self._patient(job)) if job.avoid else ()
        return id(scope), job.share or scope.policy.share, job.memory_mib, several, self._desperate(job, scope), *avoids

    def _desperate(self, job: Job, scope: Scope) -> bool:
        """Whether the job could never start without cards that only the failures of other jobs speak against."""
        if scope.sound is None:
            return False
        able = (g for g in scope.sound if job.gpus_min < 2 or not g.mig_slice)
        return sum(_large_enough(offer_mib(g), job, scope.policy) for g in able) < job.gpus_min

    def _view(self, job: Job, scope: Scope, standing: View) -> View:
        known, cards = standing.refusals, self.cards
        policy, memory, avoid, count = scope.policy, job.memory_mib, self._avoid(job, scope.policy, known), job.gpus_min

        def answer(at: int) -> Refusal | None:
            return known[at] or fit.several(cards[at], count) or fit.refusal(cards[at], policy, memory, avoid)

        return View(len(cards), self._changed, answer, standing)

    def _standing(self, job: Job, scope: Scope) -> View:
        terms = self._terms(job, scope)
        key = id(scope), terms.share, terms.suspects
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = View(len(self.cards), self._changed, lambda at: fit.standing(self.cards[at], terms))
        return view

    def _terms(self, job: Job, scope: Scope) -> fit.Terms:
        share, suspects = job.share or scope.policy.share, self._desperate(job, scope)
        return fit.Terms(
            policy=scope.policy, share=share, range=scope.range, left=scope.left, live=self._live, suspects=suspects
        )

    def _avoid(self, job: Job, policy: Policy, known: Refusals) -> frozenset[str]:
        """The cards to avoid, as long as others are free; for a while also if our own runs will leave others."""
        if not job.avoid:
            return job.avoid
        others = [(c, no) for c, no in zip(self.cards, known, strict=True) if c.gpu.uuid not in job.avoid]
        free = [c for c, no in others if no is None and fit.refusal(c, policy, job.memory_mib, NO_CARD) is None]
        if len(free) >= job.gpus_min or not self._patient(job):
            return job.avoid if len(free) >= job.gpus_min else NO_CARD
        passing = [c for c, no in others if (c.mine is not None if no is None else no.code in fit.PASSING) and c not in free]
        if len(free) + sum(_large_enough(offer_mib(c.gpu), job, Policy()) for c in passing) < job.gpus_min:
            return NO_CARD
        self.wake(job.ready_at + AVOID_S)
        return job.avoid

    def _patient(self, job: Job) -> bool:
        return self.world.now < job.ready_at + AVOID_S

    # Cards for big jobs.

    def keep_cards(self) -> None:
        """Choose the big job that cards are kept for: the first in line for which enough will be there."""
        if self.world.hold or self.blind:
            return
        for job, late in reserve.waiting(self.world, self.easiest_mib):
            scope = self.scope(job.batch)
            if self.impossible(job, scope) is None:
                self.kept = self._keep(job, late, scope)
                if self.kept is not None:
                    return

    def _keep(self, job: Job, late: bool, scope: Scope) -> reserve.Kept | None:
        policy = scope.policy
        served = any(r.batch == job.batch and len(r.uuids) >= job.gpus_min for r in self.runs.values())
        kept = reserve.Kept(job=job, late=late, rank=ORDERS[policy.order], served=served, running=self._running)
        if policy.max_concurrent is not None and self._too_many(job, policy.max_concurrent) is not None:
            return kept
        coming = self._coming(job, scope)[: job.gpus_min]
        if len(coming) < job.gpus_min:
            self._unkept[job.shape] = {"coming": len(coming)}
            return None
        uuids, until = frozenset(uuid for _, uuid in coming), coming[-1][0]
        staying = {c.gpu.uuid for c in self.cards if any(p.uid == c.uid and p.run is None for p in c.promises)} | scope.by_hand
        allowed = self._allowed(scope)
        if allowed is not None and len(staying | uuids) > allowed:
            self._unkept[job.shape] = {"allowed": max(0, allowed - len(staying - uuids))}
            return None
        return replace(kept, uuids=uuids, until=until)

    def _coming(self, job: Job, scope: Scope) -> list[tuple[float, str]]:
        """The cards that fit or will, in the order in which they are kept; the same for all who ask for the same."""
        key = self._request(job, scope)
        if key not in self._to_come:
            pairs = list(zip(self.cards, self.view(job, scope).refusals, strict=True))
            fitting = fit.ranked([c for c, r in pairs if r is None], scope.policy)
            later = [(c, r) for c, r in pairs if r is not None and self._comes(c, r, job, scope)]
            self._to_come[key] = reserve.in_turn(self.world.now, fitting, later, self.runs)
        return self._to_come[key]

    def _comes(self, card: Card, refusal: Refusal, job: Job, scope: Scope) -> bool:
        """Whether a card will fit when our own runs have left it, or a while has gone by."""
        if fit.several(card, job.gpus_min):
            return False
        if refusal.code in ("idle", "unknown"):  # a card is not read for a moment after each end
            return True
        leaves_at = card.gpu.left_at + reserve.LEAVES_WITHIN
        if refusal.code in reserve.LEAVING and self.world.now < leaves_at:
            self.wake(leaves_at)
            return True
        rest = without_ours(card)
        if rest is None:
            return False
        policy = scope.policy
        left = fit.standing(rest, self._terms(job, scope))
        left = left or fit.refusal(rest, policy, job.memory_mib, self._avoid(job, policy, self._standing(job, scope).refusals))
        return left is None or left.code == "idle"

    def _allowed(self, scope: Scope) -> int | None:
        """How many cards the user may hold when our own runs have left theirs, which will be roomy then; None: no limit."""
        if not courtesy.limited(scope.policy):
            return None
        held = {c.gpu.uuid for c in self.cards if c.mine is not None} | scope.by_hand
        return courtesy.limit(scope.policy, len(scope.roomy | held))
