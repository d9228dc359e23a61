"""The table of one node: what of its cards is still to be handed out while a plan is made, and placing one job on it.

Rules: everything handed out is entered at once, so that two starts of one plan never overlap. What a policy and a request have in
common is worked out once: refusals are kept per request and worked out again only for cards that were given away meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any

from jostle.core import courtesy, fit, reserve
from jostle.core.ledger import Card, cards_of, offer_mib, takes_whole
from jostle.core.limits import Account, Bound, Budget
from jostle.core.model import Job, Node, Policy, Promise, Run, RunId, Target, World
from jostle.core.plan import Start
from jostle.core.reasons import Reason, Refusal, on_hold
from jostle.core.scope import Scope, desperate, impossible, large_enough, scope_of
from jostle.core.stock import CPUS, HOST_MEMORY, Stock, of_node
from jostle.core.view import Refusals, View

AVOID_S = 600.0  # a card on which a job failed is tried again after so long, if no other could be had
NO_CARD: frozenset[str] = frozenset()


class Table:
    """A place that we choose cards at. What holds for a batch wherever its jobs go, whoever asks has asked before."""

    def __init__(
        self, world: World, target: Target, node: Node, runs: dict[RunId, Run], account: Account, wake: Callable[[float], None]
    ) -> None:
        self.world, self.target, self.node, self.wake = world, target.name, node.name, wake
        self.name = target.name if len(target.nodes) == 1 else f"{target.name}/{node.name}"
        self.runs = runs  # all that are alive, wherever
        self.account = account  # … and what the person holds, wherever
        self.cards = cards_of(world, node.gpus, runs)
        self.asked = False  # whether any job asks for cores or memory of the host
        self._total = {CPUS: node.cpus, HOST_MEMORY: node.host_memory_mib}
        self.held_up = [hold for hold in (target.hold, node.hold) if hold is not None]
        self.blind = not any(g.state == "ok" for g in node.gpus)
        may_come = [lane[0] for lane in world.lanes if target.name in lane[0].on]
        self.heads = [job for job in may_come if job.inside is None]  # of the lanes that may have any card here
        self.easiest_mib = reserve.easiest_mib(self.heads, [run for run in world.runs if run.target == target.name])
        self.kept: reserve.KeptCards | None = None
        self.kept_beside: reserve.KeptCards | None = None  # a big job that wants no card
        self.spoken: dict[str, int] = {}  # cards that are as good as another's: the job, or 0
        self.unkept: dict[int, dict[str, int]] = {}  # by shape: why a job may keep cards and cannot
        self.coming: dict[tuple[Any, ...], list[tuple[float, str]]] = {}  # by request: when cards will be there
        self._changed: list[int] = []  # positions of cards given away, in order
        self._scopes: dict[Policy, Scope] = {}
        self._by_object: dict[int, Scope] = {}
        self._views: dict[tuple[Any, ...], View] = {}
        self._live = frozenset(runs)

    def hold(self, job: Job) -> Reason | None:
        """What keeps a job from here whatever cards there are."""
        with_gpus = job.gpus_max > 0
        for hold in self.held_up:
            if (reason := on_hold(hold, with_gpus=with_gpus)) is not None:
                return reason
        if self.blind and with_gpus:
            refused = tuple(r for r in map(fit.closed, self.cards) if r is not None)
            return Reason(code="gpus_unknown", params={"total": len(self.cards)}, gpus=refused)
        return None

    def place(self, job: Job) -> Start | Reason:
        """Start a job here now, or say why not."""
        scope = self.scope(job.batch)
        if self.asked and (short := self.stock.short(job, self.keepers, self.world.now)) is not None:
            return self.never(job) or short
        if job.gpus_max == 0:
            return self._start(job, scope, [])
        answer = self._on_cards(job, scope)
        if isinstance(answer, Reason) and job.shape in self.unkept:
            return answer._replace(params={**answer.params, **self.unkept[job.shape]})
        return answer

    def never(self, job: Job) -> Reason | None:
        cards = None if self.blind else impossible(job, self.scope(job.batch))
        return cards or (self.stock.impossible(job) if of_node(job) else None)

    def carries(self, run: Run, batch: int) -> bool:
        """Whether a run has a card here that jobs of this batch may have."""
        return not self.scope(batch).range.isdisjoint(run.uuids)

    def holds(self, run: Run) -> bool:
        """Whether the cards of a run are here."""
        return any(card.gpu.uuid in run.uuids for card in self.cards)

    # Cores and memory of the host.

    @cached_property
    def stock(self) -> Stock:
        here = [run for run in self.runs.values() if (run.target, run.node) == (self.target, self.node)]
        return Stock(self._total, of_node, here, self.heads)

    @property
    def keepers(self) -> list[reserve.KeptCards]:
        return [kept for kept in (self.kept, self.kept_beside) if kept is not None]

    # Which cards a job gets.

    def _on_cards(self, job: Job, scope: Scope) -> Start | Reason:
        view = self.view(job, scope)
        refusals = view.refusals
        fitting = [c for c, r in zip(self.cards, refusals, strict=True) if r is None]
        closed = self.closed(job)
        open_ = [c for c in fitting if c.gpu.uuid not in closed] if closed else fitting
        if open_ or not job.gpus_min:
            budgets = self.budgets(job, scope)
            most = min(job.gpus_min, scope.most_of(job)) if job.elastic else scope.most_of(job)
            ranked = fit.together(fit.ranked(open_, scope.policy), most)
            cards = fit.chosen(ranked, most, budgets)
            if len(cards) >= job.gpus_min:
                return self._start(job, scope, cards)
            if len(open_) >= job.gpus_min and budgets:
                return impossible(job, scope) or self._over_limit(job, scope, ranked, refusals)
        return self._misfit(job, scope, view, len(open_), closed)

    def budgets(self, job: Job, scope: Scope) -> list[Budget]:
        """How many more cards a job may take here, by each rule that says so: courtesy, and the person's limits."""
        return self._courtesy(job, scope) + [bound.budget for bound in self._bounds(job, scope)]

    def _courtesy(self, job: Job, scope: Scope) -> list[Budget]:
        if not courtesy.limited(scope.policy):
            return []
        held, kept = {c.gpu.uuid for c in self.cards if c.mine is not None} | scope.by_hand, self._kept_before(job)
        budgets = courtesy.budgets(scope.policy, scope.roomy, held | kept)
        # who may use a kept card for a while holds it then, however many that makes
        return budgets + courtesy.budgets(scope.policy, scope.roomy, held) if kept else budgets

    def _bounds(self, job: Job, scope: Scope) -> list[Bound]:
        if not self.account.counts:
            return []
        kept = self._kept_before(job)
        bounds = self.account.bounds(scope.policy, kept)
        return bounds + self.account.bounds(scope.policy) if kept else bounds

    def _kept_before(self, job: Job) -> AbstractSet[str]:
        """Cards that are kept for a job which comes before this one: as good as held."""
        return self.kept.uuids if self.kept is not None and self.kept.binds(job) else NO_CARD

    def closed(self, job: Job) -> AbstractSet[str]:
        """Cards that a job must leave alone, though they fit."""
        kept = self.kept
        if kept is None or not kept.binds(job) or not kept.closed_to(job, self.world.now):
            return frozenset(self.spoken) if self.spoken else NO_CARD
        return kept.uuids.union(self.spoken) if self.spoken else kept.uuids

    def _start(self, job: Job, scope: Scope, cards: list[Card]) -> Start:
        if self.asked:
            self.stock.take(job)
        share = job.share or scope.policy.share
        given_whole = {c.gpu.uuid for c in cards if job.memory_mib is not None and takes_whole(offer_mib(c.gpu), job.memory_mib)}
        for card in cards:
            self._give(card, job, share, None if card.gpu.uuid in given_whole else job.memory_mib)
            self.account.enter(card.gpu.uuid, automatic=scope.policy.automatic)
        uuids = tuple(c.gpu.uuid for c in sorted(cards, key=lambda c: c.gpu.index))
        alone = tuple(uuid for uuid in uuids if uuid in given_whole)
        return Start(
            job=job.id, uuids=uuids, memory_mib=job.memory_mib, share=share, whole=alone, target=self.target, node=self.node
        )

    def _give(self, card: Card, job: Job, share: bool, mib: int | None) -> None:
        promise = Promise(uuid=card.gpu.uuid, mib=mib, uid=self.world.uid, run=(job.id, 0))
        card.enter(promise, alone=not share)
        self._changed.append(self.cards.index(card))
        card.given_at = self.world.now + len(self._changed) * 1e-6  # later than any before it in this plan

    # Why not.

    def _over_limit(self, job: Job, scope: Scope, ranked: list[Card], refusals: Refusals) -> Reason:
        """Courtesy, or else the first of the person's limits that would not do alone."""
        pairs = zip(self.cards, refusals, strict=True)
        refused = tuple(r or fit.no(c, "over_limit") for c, r in pairs)
        for budget in self._courtesy(job, scope):
            if len(fit.chosen(ranked, job.gpus_min, [budget])) < job.gpus_min:
                return Reason(code="limit", params=self._courtesy_numbers(job, scope, budget), gpus=refused)
        bounds = self._bounds(job, scope)
        short = (b for b in bounds if len(fit.chosen(ranked, job.gpus_min, [b.budget])) < job.gpus_min)
        return next(short, bounds[0]).reason(job.gpus_min)._replace(gpus=refused)

    def _courtesy_numbers(self, job: Job, scope: Scope, budget: Budget) -> dict[str, int]:
        policy = scope.policy
        available = len(scope.roomy | budget.holding)
        return {
            "limit": courtesy.limit(policy, available),
            "held": len(budget.holding),
            "more": budget.more,
            "needed": job.gpus_min,
            "available": available,
            "left": policy.gpu_left,
            "least": courtesy.DEFAULT_MIN if policy.min_gpu is None else policy.min_gpu,
            "most": courtesy.DEFAULT_MAX if policy.max_gpu is None else policy.max_gpu,
        }

    def _misfit(self, job: Job, scope: Scope, view: View, fitting: int, closed: AbstractSet[str]) -> Reason:
        reason = impossible(job, scope) or view.reasons.get((job.gpus_min, closed))
        if reason is None:
            self._wake_for_time(view.refusals)
            reason = view.reasons[job.gpus_min, closed] = self._gpus(job, view.refusals, fitting, closed)
        return reason

    def _gpus(self, job: Job, refusals: Refusals, fitting: int, closed: AbstractSet[str]) -> Reason:
        params = {"needed": job.gpus_min, "fit": fitting, "total": len(self.cards)}
        refused = list(refusals)
        for at, card in enumerate(self.cards):
            uuid = card.gpu.uuid
            if refused[at] is None and uuid in closed:
                big = self.spoken.get(uuid) or (self.kept.job.id if self.kept is not None and uuid in self.kept.uuids else None)
                refused[at] = fit.no(card, "kept", job=big) if big is not None else None
        return Reason(code="gpus", params=params, gpus=tuple(r for r in refused if r is not None))

    def _wake_for_time(self, refusals: Refusals) -> None:
        for refusal in refusals:
            if refusal is not None and refusal.code in fit.IN_TIME:
                self.wake(self.world.now + refusal.params["left_s"])

    # Worked out once.

    def scope(self, batch: int) -> Scope:
        policy = self.world.policy_of(batch)
        scope = self._by_object.get(id(policy))  # equal rules are mostly one object, and to compare all of them takes long
        if scope is None:
            scope = self._scopes.get(policy)
            if scope is None:
                scope = self._scopes[policy] = scope_of(policy, self.cards, self.world.limits)
            self._by_object[id(policy)] = scope
        return scope

    def view(self, job: Job, scope: Scope) -> View:
        """Why each card does not fit the job; None where it does."""
        key = self.request(job, scope)
        view = self._views.get(key)
        if view is None:
            general = self.general_view(job, scope)
            view = self._views[key] = general if general.hopeless else self._view(job, scope, general)
        return view

    def request(self, job: Job, scope: Scope) -> tuple[Any, ...]:
        """What jobs have in common that fit the same cards."""
        several = job.gpus_min > 1 and len(scope.unsliced) < len(scope.sizes)  # of slices one is all that a program sees
        avoids = (job.avoid, job.gpus_min, self._patient(job)) if job.avoid else ()
        return id(scope), job.share or scope.policy.share, job.memory_mib, several, desperate(job, scope), *avoids

    def _view(self, job: Job, scope: Scope, general: View) -> View:
        refusals, cards = general.refusals, self.cards
        policy, memory, avoid, count = scope.policy, job.memory_mib, self.avoid(job, scope.policy, refusals), job.gpus_min

        def answer(at: int) -> Refusal | None:
            return refusals[at] or fit.several(cards[at], count) or fit.refusal(cards[at], policy, memory, avoid)

        return View(len(cards), self._changed, answer, general)

    def general_view(self, job: Job, scope: Scope) -> View:
        terms = self.terms(job, scope)
        key = id(scope), terms.share, terms.suspects
        view = self._views.get(key)
        if view is None:
            cards = self.cards  # and not the table, which has the view: a plan is to be gone when it was carried out
            view = self._views[key] = View(len(cards), self._changed, lambda at: fit.general_refusal(cards[at], terms))
        return view

    def terms(self, job: Job, scope: Scope) -> fit.Terms:
        share, suspects = job.share or scope.policy.share, desperate(job, scope)
        return fit.Terms(
            policy=scope.policy, share=share, range=scope.range, left=scope.left, live=self._live, suspects=suspects
        )

    def avoid(self, job: Job, policy: Policy, refusals: Refusals) -> frozenset[str]:
        """The cards to avoid, as long as others are free; for a while also if our own runs will leave others."""
        if not job.avoid:
            return job.avoid
        others = [(c, no) for c, no in zip(self.cards, refusals, strict=True) if c.gpu.uuid not in job.avoid]
        free = [c for c, no in others if no is None and fit.refusal(c, policy, job.memory_mib, NO_CARD) is None]
        if len(free) >= job.gpus_min or not self._patient(job):
            return job.avoid if len(free) >= job.gpus_min else NO_CARD
        passing = [c for c, no in others if (c.mine is not None if no is None else no.code in fit.PASSING) and c not in free]
        if len(free) + sum(large_enough(offer_mib(c.gpu), job, Policy()) for c in passing) < job.gpus_min:
            return NO_CARD
        self.wake(job.ready_at + AVOID_S)
        return job.avoid

    def _patient(self, job: Job) -> bool:
        return self.world.now < job.ready_at + AVOID_S
