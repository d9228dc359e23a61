"""Which cards fit a request, why the others do not, and which of those that fit are taken.

Rules: a card that is not read as ok is never given. Whoever asks for no memory gets a card nobody else is on. Checks go from what
nobody can change now (range, state, taken) to what changes by itself (memory, load, idling), and the first that holds is the
refusal. What is not known is never taken for free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.core import courtesy, health
from jostle.core.ledger import Card, offer_mib, takes_whole
from jostle.core.limits import Budget
from jostle.core.model import Holder, Policy, Promise, RunId
from jostle.core.reasons import Refusal

IN_TIME = frozenset({"idle", "newcomer"})  # refusals that time alone ends
QUIET_PERCENT = 5  # a card at or below this carries no load
IDLE_S = 300.0  # who holds a card for so long without a process on it is told of
PASSING = frozenset({"taken", "taken_elsewhere", "leaving", "unknown"})
"""Refusals that end by themselves: our own runs leave, and the next reading comes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What a policy says of cards, whatever a job asks for: alike for many shapes."""

    policy: Policy
    share: bool
    range: frozenset[str]
    left: frozenset[str]
    live: frozenset[RunId]
    suspects: bool = False  # also those that only the failures of jobs speak against


def no(card: Card, code: str, **params: Any) -> Refusal:
    return Refusal(code=code, uuid=card.gpu.uuid, index=card.gpu.index, params=params)


def general_refusal(card: Card, terms: Terms) -> Refusal | None:
    """Why this card is not given on these terms to anyone; None: it depends on the request."""
    return _out(card, terms) or closed(card, terms.suspects) or _ours(card, terms) or _others(card, terms.policy)


def refusal(card: Card, policy: Policy, memory_mib: int | None, avoid: frozenset[str]) -> Refusal | None:
    """Why this card, against which there is no general one, is not given for this request; None: it fits."""
    if avoid and card.gpu.uuid in avoid:
        return no(card, "avoided")
    return _room(card, policy, memory_mib) or _load(card, policy)


def several(card: Card, count: int) -> Refusal | None:
    """A program sees one MIG slice, and no card beside it."""
    return no(card, "slice") if count > 1 and card.gpu.mig_slice else None


def together(cards: list[Card], most: int) -> list[Card]:
    """Of the cards in their order, those that one program can use together: whole ones, or else one slice."""
    if most <= 1 or not any(c.gpu.mig_slice for c in cards):
        return cards
    return [c for c in cards if not c.gpu.mig_slice] or cards[:1]


def _out(card: Card, terms: Terms) -> Refusal | None:
    uuid = card.gpu.uuid
    if uuid not in terms.range and card.gpu.state != "mig":
        return no(card, "out_of_range")
    return no(card, "left", left=terms.policy.gpu_left) if uuid in terms.left else None


def closed(card: Card, suspects: bool = False) -> Refusal | None:
    """What keeps a card from everyone."""
    if (unsound := unfit(card, suspects)) is not None:
        return unsound
    if card.taken is not None:
        return taken(card, card.taken)
    return no(card, "exclusive") if card.gpu.compute_mode == "exclusive_process" and _computed_on(card) else None


def unfit(card: Card, suspects: bool = False) -> Refusal | None:
    """What keeps a card from everyone, also from who holds it."""
    gpu = card.gpu
    if gpu.excluded:
        return no(card, "excluded")
    if gpu.silent_for and gpu.state in ("starting", "unreadable", "lost"):
        code = "starting" if gpu.state == "starting" else "silent"
        return no(card, code, silent_s=gpu.silent_for, error=gpu.error)
    if gpu.state != "ok":
        return no(card, gpu.state if gpu.state in ("lost", "unreadable", "mig") else "unknown", error=gpu.error)
    if gpu.faulty is not None and not (suspects and health.suspect(gpu)):
        return no(card, gpu.faulty.code, **gpu.faulty.params)
    if gpu.compute_mode == "prohibited":
        return no(card, "prohibited")
    if gpu.quarantine:
        return no(card, "quarantined", processes=list(map(list, gpu.quarantine)))
    return None


def _computed_on(card: Card) -> bool:
    """Whether anybody has a process that computes there, or was promised the card for one."""
    return bool(card.promises) or any(h.kind == "compute" for h in card.gpu.holders)


def taken(card: Card, promise: Promise) -> Refusal:
    if promise.run is not None:
        return no(card, "taken", job=promise.run[0], run=promise.run[1])
    if promise.uid == card.uid:
        return no(card, "taken_elsewhere", sid=promise.sid)
    theirs = [h for h in card.gpu.holders if h.uid == promise.uid]
    user = next((h.user for h in theirs if h.user), f"uid {promise.uid}")
    if not theirs and not promise.used_mib and (promise.automatic or promise.held_s >= IDLE_S):
        return no(card, "neighbour_idle", uid=promise.uid, user=user, held_s=promise.held_s)
    return no(card, "neighbour", uid=promise.uid, user=user)


def _ours(card: Card, terms: Terms) -> Refusal | None:
    if terms.share:
        return None
    if card.mine is not None:
        return taken(card, card.mine)
    return _strayed(card, terms) or _own_process(card, terms.policy) if card.gpu.holders else None


def _strayed(card: Card, terms: Terms) -> Refusal | None:
    """A process of a run of ours that was given other cards."""
    for h in card.holders("strayed"):
        if h.run is not None and h.run in terms.live:
            return no(card, "misplaced", job=h.run[0], pid=h.pid)
    return None


def _own_process(card: Card, policy: Policy) -> Refusal | None:
    if policy.own_processes == "ignore":
        return None
    for h in courtesy.by_hand(policy, card):
        return no(card, "own_process", pid=h.pid, name=h.name or "unnamed", used_mib=h.used_mib or 0)
    return None


def _others(card: Card, policy: Policy) -> Refusal | None:
    if policy.strangers == "share":
        return None
    for promise in card.promises:
        if promise.uid != card.uid:
            return taken(card, promise)
    return _stranger(card, policy) or _unexplained(card, policy) or _newcomer(card, policy)


def _stranger(card: Card, policy: Policy) -> Refusal | None:
    people = card.holders("stranger") if card.gpu.holders else []
    if not people:
        return None
    used = sum(policy.small_mib if h.used_mib is None else h.used_mib for h in people)
    if used < policy.small_mib and quiet(card):
        return None
    return _named(card, max(people, key=lambda h: h.used_mib or 0), used)


def _newcomer(card: Card, policy: Policy) -> Refusal | None:
    """Who is just starting looks small and idle, too."""
    new = min(_computing(card), key=lambda h: h.small_for, default=None) if card.gpu.holders else None
    if new is None or new.small_for >= policy.small_for:
        return None
    left = policy.small_for - new.small_for
    return no(card, "newcomer", user=_who(new), pid=new.pid, used_mib=new.used_mib or 0, left_s=left, idle_for_s=policy.small_for)


def _named(card: Card, holder: Holder, used: int) -> Refusal:
    return no(card, "stranger", user=_who(holder), pid=holder.pid, used_mib=used)


def _who(holder: Holder) -> str:
    return holder.user or ("unknown" if holder.uid is None else f"uid {holder.uid}")


def quiet(card: Card) -> bool:
    load = utilization(card)
    return load is not None and load <= QUIET_PERCENT


def utilization(card: Card) -> int | None:
    readings = [u for u in (card.gpu.utilization, card.gpu.mean_utilization) if u is not None]
    return max(readings) if readings else None


def _unexplained(card: Card, policy: Policy) -> Refusal | None:
    """Memory of the system's users, of processes hidden from us, or of none: containers, dead drivers."""
    if card.gpu.used_mib < policy.small_mib and not card.gpu.holders:
        return None
    used = card.unexplained_mib
    if used < policy.small_mib:
        return None
    hidden = [h for h in card.holders("anonymous") if h.used_mib is None or h.used_mib >= policy.small_mib]
    if hidden:
        return _named(card, hidden[0], used)
    numbers = {"utilization": card.gpu.utilization} if card.gpu.utilization is not None else {}
    return no(card, "unexplained", used_mib=used, card_mib=card.gpu.used_mib, **numbers)


def _room(card: Card, policy: Policy, memory_mib: int | None) -> Refusal | None:
    if memory_mib is None or takes_whole(offer_mib(card.gpu), memory_mib):
        return _not_empty(card, policy) or _min_free(card, policy)
    available = card.available_mib - policy.margin_mib
    if available < memory_mib:
        params = {"available_mib": max(0, available), "needed_mib": memory_mib}
        return Refusal(code="memory", uuid=card.gpu.uuid, index=card.gpu.index, params=params)
    return _min_free(card, policy)


def _not_empty(card: Card, policy: Policy) -> Refusal | None:
    """A whole card was asked for: nobody else may be on it."""
    if card.promises:
        return taken(card, card.promises[0])
    used = max(card.gpu.used_mib, sum(h.used_mib or 0 for h in card.gpu.holders))
    if used < policy.small_mib:
        return None
    for h in card.holders("strayed"):
        if h.run is not None:
            return no(card, "leaving", job=h.run[0], pid=h.pid, used_mib=used)
    return no(card, "not_empty", used_mib=used)


def _min_free(card: Card, policy: Policy) -> Refusal | None:
    if policy.min_free_mib <= 0:
        return None
    available = card.available_mib - policy.margin_mib
    if available >= policy.min_free_mib:
        return None
    return no(card, "min_free", available_mib=max(0, available), needed_mib=policy.min_free_mib)


def _load(card: Card, policy: Policy) -> Refusal | None:
    if policy.max_utilization is not None:
        load = utilization(card)
        if load is None:
            return no(card, "utilization_unknown", most=policy.max_utilization)
        if load > policy.max_utilization:
            return no(card, "utilization", utilization=load, most=policy.max_utilization)
    left = policy.idle_for - card.gpu.idle_for
    if left <= 0 or card.mine is not None:  # beside a run of ours it is our own load that keeps the card from idling
        return None
    return no(card, "idle", left_s=left, idle_for_s=policy.idle_for)


def _free(card: Card) -> int:
    return card.gpu.mean_free_mib - card.owed_mib


def _used(card: Card) -> int:
    return card.gpu.mean_used_mib + card.owed_mib


def _mean_load(card: Card) -> int:
    load = card.gpu.mean_utilization if card.gpu.mean_utilization is not None else card.gpu.utilization
    return 101 if load is None else load


def _source_score(card: Card) -> float:
    """used/total × free, lowest first: an empty card scores 0 and is taken first, as SPEC A18 says of the source."""
    return _used(card) / max(1, card.gpu.total_mib) * _free(card)


# Each gives a card's rank; the lowest is taken first, then the lowest index. Averages over 3 s, less what is promised.
CHOICES: dict[str, Callable[[Card], float]] = {
    "best-fit": _free,
    "least-used": _used,
    "most-free": lambda card: -_free(card),
    "lowest-utilization": _mean_load,
    "round-robin": lambda card: card.given_at,
    "first-fit": lambda card: 0,
    "source-score": _source_score,
}


def ranked(cards: list[Card], policy: Policy) -> list[Card]:
    """Cards on which other people compute come last, whatever the choice, and those that may be faulty after them."""
    rank = CHOICES[policy.choice]
    if len(cards) < 2:
        return cards
    return sorted(cards, key=lambda c: (c.gpu.faulty is not None, peopled(c, policy), rank(c), c.gpu.index))


def peopled(card: Card, policy: Policy) -> bool:
    """Whether somebody else computes there, as far as can be seen."""
    if any(p.uid != card.uid for p in card.promises):
        return True
    if card.gpu.used_mib < policy.small_mib and not card.gpu.holders:
        return False
    return bool(_computing(card)) or card.unexplained_mib >= policy.small_mib


def _computing(card: Card) -> list[Holder]:
    """Foreign compute processes; one without a name may be that of a promise whose use nobody measured (containers)."""
    kinds = ("stranger",) if any(p.used_mib == 0 for p in card.promises) else ("stranger", "anonymous")
    return [h for kind in kinds for h in card.holders(kind) if h.kind == "compute"]


def chosen(cards: list[Card], most: int, budgets: Sequence[Budget]) -> list[Card]:
    """The best cards that are allowed: at most so many, and of those not held yet at most each budget."""
    return list(_within(cards, budgets))[:most] if budgets else cards[:most]


def _within(cards: list[Card], budgets: Sequence[Budget]) -> Iterator[Card]:
    left = [budget.more for budget in budgets]
    for card in cards:
        new = [k for k, budget in enumerate(budgets) if card.gpu.uuid not in budget.holding]
        if all(left[k] > 0 for k in new):
            for k in new:
                left[k] -= 1
            yield card
