"""How cards stand for jobs that are not there yet: for a plain one, what `jostle gpus` shows; and for whom they can never do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from jostle.core import courtesy, fit
from jostle.core.ledger import available_mib
from jostle.core.limits import Bound
from jostle.core.model import Amounts, Job, Policy, World
from jostle.core.place import Places, nowhere
from jostle.core.reasons import Reason, Refusal


class Asked(NamedTuple):
    gpus: int
    memory_mib: int | None  # of each card
    on: tuple[str, ...]  # where
    cpus: int | None = None
    host_memory_mib: int | None = None
    counters: Amounts = ()


def survey(world: World) -> dict[str, tuple[int, Refusal | None]]:
    """By UUID: the memory that is neither used nor promised, and why the card is not to be had (None: it is)."""
    plain, answers = Job(id=0), {}
    for table in Places(world).tables:
        view = table.view(plain, table.scope(0))
        answers.update({card.gpu.uuid: no for card, no in zip(table.cards, view.refusals, strict=True)})
        answer = table.hold(plain) or table.place(plain)  # a card that fits may still be one too many
        if isinstance(answer, Reason) and not world.hold:
            answers.update({refusal.uuid: refusal for refusal in answer.gpus})
    return {uuid: (mib, answers[uuid]) for uuid, mib in available_mib(world).items()}


def leeway(world: World, job: Job) -> tuple[dict[str, Refusal | None], frozenset[str], int | None]:
    """For one job that is ready: what each card says to it (None: it would do), which cards its user holds, and how many the
    rules let them hold now (None: any number)."""
    answers: dict[str, Refusal | None] = {}
    held: set[str] = set()
    most = []
    for table in Places(world).tables:
        if table.target in job.on:
            scope = table.scope(job.batch)
            answers.update({card.gpu.uuid: no for card, no in zip(table.cards, table.view(job, scope).refusals, strict=True)})
            own = {c.gpu.uuid for c in table.cards if c.mine is not None or courtesy.by_hand(scope.policy, c)}
            held |= own
            if courtesy.limited(scope.policy):
                most.append(courtesy.limit(scope.policy, len(scope.roomy | own)))
            most += [len(own) + bound.budget.more for bound in table.account.bounds(scope.policy)]
    return answers, frozenset(held), min(most) if most else None


class Courtesy(NamedTuple):
    """What rules mean for the cards that there are now, by UUID."""

    range: frozenset[str]  # that they speak of
    available: frozenset[str]  # of these, with room or held
    left: frozenset[str]  # that they never use
    held: frozenset[str]  # by this user, wherever
    limits: tuple[int, int] | None  # the least and the most of them; None: not set, and all but those left may be held
    limit: int  # how many may be held
    bounds: tuple[Bound, ...] = ()  # limits of the person, which stand above all rules

    def indices(self, world: World) -> dict[str, Any]:
        """As people know the cards."""
        index = {g.uuid: g.index for g in world.gpus}
        sets = {name: sorted(index[uuid] for uuid in getattr(self, name)) for name in ("range", "available", "left", "held")}
        more = min([max(0, self.limit - len(self.held)), *(bound.budget.more for bound in self.bounds)])
        bounds = [{"name": bound.name, "most": bound.cap.most, "held": len(bound.held)} for bound in self.bounds]
        return {**sets, "limits": self.limits, "limit": self.limit, "more": more, "bounds": bounds}


def courtesy_of(world: World, policy: Policy) -> Courtesy:
    """Counted as it is when a job is placed under these rules."""
    every: list[Courtesy] = []
    for table in Places(world).tables:
        gpus = [card.gpu for card in table.cards]
        in_range = frozenset(g.uuid for g in courtesy.in_range(policy, gpus))
        left, roomy = courtesy.left_for_others(policy, gpus), courtesy.roomy(policy, gpus)
        held = frozenset(c.gpu.uuid for c in table.cards if c.mine is not None or courtesy.by_hand(policy, c))
        limits = courtesy.least_and_most(policy) if courtesy.limited(policy) else None
        limit = len(in_range - left) if limits is None else courtesy.limit(policy, len(roomy | held))
        bounds = tuple(table.account.bounds(policy))
        every.append(Courtesy(in_range, roomy | held, left, held, limits, limit, bounds))
    nobody: frozenset[str] = frozenset()
    return every[0] if every else Courtesy(nobody, nobody, nobody, nobody, None, 0)


UNSURE = frozenset({"unknown", "starting", "silent", "leaving"})
"""Refusals of cards that the next reading may find free."""


class Room(NamedTuple):
    """How the person stands under some rules."""

    held: int  # cards that they hold, by any of their jostles or by hand
    may: int | None  # … and may hold now, where only cards without people are available; None: any number
    may_keep: int | None  # … were all cards free that cannot be read for a moment
    free: int  # cards that a plain job would be given, were it not for how many are held
    crowded: frozenset[str]  # cards that they hold, and others compute on


def room(world: World, policy: Policy) -> Room:
    """For who asks before anything is queued, as the floor does. It is more courteous than SPEC A13, by which a card that
    somebody uses is available as long as 1 GB of it is free: who only keeps cards in store leaves really free ones to others."""
    batch = -1
    world = replace(world, policies={**world.policies, batch: policy})
    refusals, held, may = leeway(world, Job(id=0, batch=batch))
    crowded = frozenset(
        card.gpu.uuid
        for table in Places(world).tables
        for card in table.cards
        if card.mine is not None and fit.peopled(card, policy)
    )
    free = sum(no is None for no in refusals.values())
    unsure = sum(no is not None and no.code in UNSURE for no in refusals.values())
    keep = may
    if courtesy.limited(policy):
        now, then = (courtesy.limit(policy, len(held) + n) for n in (free, free + unsure))
        may, keep = (now, then) if may is None else (min(may, now), min(may, then))
    return Room(len(held), may, keep, free, crowded)


def never(world: World, asked: Iterable[Asked]) -> dict[Asked, Reason]:
    """Of what is asked for, what no rearrangement of these cards could ever give, nor of what else there is."""
    places, never_of = Places(world), {}
    for request in asked:
        count, mib, on, cpus, memory, counters = request
        job = Job(
            id=0, gpus_min=count, gpus_max=count, memory_mib=mib, on=on, cpus=cpus, host_memory_mib=memory, counters=counters
        )
        if counters and (reason := places.counters.impossible(job)) is not None:
            never_of[request] = reason
            continue
        reasons = {place: reason for place in places.of(job) if (reason := place.never(job)) is not None}
        if len(reasons) == len(places.of(job)):
            never_of[request] = nowhere(reasons)
    return never_of
