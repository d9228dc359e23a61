"""The ledger: what each card still has to give, counting what was promised but is not yet used.

Rules: available = measured free − what living runs were promised and do not use yet, and never more than the card has beside
all promises. A promise of a run that has ended no longer counts; its memory does, until the driver stops showing it. A card is
taken by a whole-card promise, or by a run of ours that does not share. Each Start of a plan is entered at once. What runs inside
an allocation is promised a part of what that has: it is counted with it, and never beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from jostle.core.model import Gpu, Holder, Promise, Run, RunId, World

ORDINARY_UID = 1000  # people; below are the system's own users
SLACK = 1.05
"""A request up to this much above what an empty card offers means all of it: people ask for 24 GB of a "24 GB" card."""


def offer_mib(gpu: Gpu) -> int:
    """What an empty card has to give."""
    return gpu.total_mib - gpu.reserved_mib


def takes_whole(offer_mib: int, memory_mib: int | None) -> bool:
    """Whether a request means the whole card, alone, on a card that offers so much."""
    return memory_mib is None or offer_mib < memory_mib <= SLACK * offer_mib


@dataclass(slots=True)
class Card:
    """One GPU while a plan is made: what was read, and who was promised what."""

    gpu: Gpu
    uid: int
    promises: list[Promise] = field(default_factory=list)
    nested: list[Promise] = field(default_factory=list)  # parts of those: of what runs inside allocations
    mine: Promise | None = None  # a promise of this user on it, by whichever home
    taken: Promise | None = None  # has the card for itself
    owed_mib: int = 0  # promised and not used yet
    promised_mib: int = 0
    silent_mib: int = 0  # use without a name that promises explain (containers)
    given_at: float = 0.0
    kinds: dict[str, list[Holder]] | None = None  # the processes on it, sorted when first asked for

    @property
    def available_mib(self) -> int:
        if self.taken is not None:
            return 0
        gpu = self.gpu
        return min(gpu.free_mib - self.owed_mib, gpu.total_mib - self.promised_mib)

    def enter(self, promise: Promise, alone: bool) -> None:
        self.promises.append(promise)
        if alone or promise.mib is None:
            self.taken = promise
        if promise.uid == self.uid:
            self.mine = self.mine or promise
        self.promised_mib += promise.mib or 0
        self.owed_mib += promise.mib or 0

    def settle(self) -> None:
        """Subtract from what is owed what the runs already use."""
        self.silent_mib = silent_use(self)
        used = sum(min(p.used_mib, p.mib) for p in self.promises if p.mib is not None)
        self.owed_mib = self.promised_mib - used - self.silent_mib

    def holders(self, kind: str) -> list[Holder]:
        """Processes of one kind: promised, strayed, own, stranger or anonymous."""
        if self.kinds is None:
            self.kinds = {}
            for holder in self.gpu.holders:
                self.kinds.setdefault(self._kind(holder), []).append(holder)
        return self.kinds.get(kind, [])

    def _kind(self, holder: Holder) -> str:
        if self._promised(holder):
            return "promised"
        if holder.run is not None:
            return "strayed"  # of a run of ours that has no lease here: leaving, or on the wrong card
        if holder.uid == self.uid:
            return "own"
        return "stranger" if holder.uid is not None and holder.uid >= ORDINARY_UID else "anonymous"

    def _promised(self, holder: Holder) -> bool:
        for promise in (*self.promises, *self.nested):
            if promise.run is not None and promise.run == holder.run:
                return True
            if promise.sid and promise.sid == holder.sid:
                return True
        return False

    @property
    def anonymous_mib(self) -> int:
        """Use by the system, by processes we cannot see, or by nobody at all."""
        shown = sum(h.used_mib or 0 for h in self.holders("anonymous"))
        named = sum(h.used_mib or 0 for h in self.gpu.holders) - shown
        return max(self.gpu.used_mib - named, shown)

    @property
    def unexplained_mib(self) -> int:
        return self.anonymous_mib - self.silent_mib


def silent_use(card: Card) -> int:
    """Of the use without a name, what promises without measured use explain; at most what came since they began."""
    silent = [p for p in card.promises if p.mib is not None and p.used_mib == 0]
    if not silent:
        return 0
    used = card.gpu.used_mib
    since = used - min(p.used_at_start_mib for p in silent)
    each = sum(min(p.mib or 0, max(0, used - p.used_at_start_mib)) for p in silent)
    return max(0, min(each, since, card.anonymous_mib))


def without_ours(card: Card) -> Card | None:
    """The card when the runs of ours have left it; None: none is there."""
    ours = [p for p in card.promises if p.run is not None]
    theirs = [h for h in card.gpu.holders if h.run is not None]
    if not ours and not theirs:
        return None
    if any(not p.used_mib for p in ours):
        theirs += card.holders("own")  # a run of which nothing else is seen: they hide where they come from
    rest = [h for h in card.gpu.holders if h not in theirs]
    freed = sum(h.used_mib or 0 for h in theirs)
    if nameless := _nameless(card, ours):
        freed += nameless
        rest = [h for h in rest if h not in card.holders("anonymous")]
    freed = min(freed, card.gpu.used_mib)
    load = None if card.gpu.utilization is None else 0
    used, free = card.gpu.used_mib - freed, card.gpu.free_mib + freed
    gpu = replace(card.gpu, holders=tuple(rest), used_mib=used, free_mib=free, utilization=load, mean_utilization=load)
    left = Card(gpu, card.uid)
    for promise in card.promises:
        if promise.run is None:
            left.enter(promise, alone=promise.mib is None)
    left.settle()
    return left


def _nameless(card: Card, ours: list[Promise]) -> int:
    """Use without a name that is taken for that of our runs (containers)."""
    whole_card = [p for p in ours if p.mib is None and not p.used_mib]
    if whole_card:
        return min(card.anonymous_mib, max(0, card.gpu.used_mib - whole_card[0].used_at_start_mib))
    return card.silent_mib if ours else 0


def alone(promise: Promise, runs: dict[RunId, Run]) -> bool:
    run = runs.get(promise.run) if promise.run is not None else None
    return promise.mib is None or (run is not None and not run.share)


def cards_of(world: World, gpus: Iterable[Gpu], runs: dict[RunId, Run]) -> list[Card]:
    """The cards of a node by index, with every living promise entered; `runs` are ours that are alive."""
    cards = {g.uuid: Card(g, world.uid, given_at=g.given_at) for g in sorted(gpus, key=lambda g: g.index)}
    dead = {r.id for r in world.runs if r.id not in runs}
    held = allocated(world, runs)
    for promise in world.promises:
        card = cards.get(promise.uuid)
        if card is None or promise.run in dead:
            continue
        if (promise.inside, promise.uuid) in held:
            card.nested.append(promise)
        else:
            card.enter(promise, alone(promise, runs))
    for card in cards.values():
        if card.nested:
            card.promises = [_with_parts(promise, card.nested) for promise in card.promises]
        if card.owed_mib:
            card.settle()
    _last_given(cards, runs.values())
    return list(cards.values())


def allocated(world: World, runs: Mapping[RunId, Run]) -> frozenset[tuple[int | None, str]]:
    """The cards that living allocations have, each with its job: what runs inside is a part of that there, and nowhere else."""
    ids = {run.id for run in runs.values() if run.allocation}
    held = [promise for promise in world.promises if promise.run in ids] if ids else []
    return frozenset((promise.run[0], promise.uuid) for promise in held if promise.run is not None)


def _with_parts(promise: Promise, nested: list[Promise]) -> Promise:
    """What an allocation uses is also what the programs inside it use."""
    inside = sum(part.used_mib for part in nested if promise.run is not None and part.inside == promise.run[0])
    return replace(promise, used_mib=promise.used_mib + inside) if inside else promise


def _last_given(cards: dict[str, Card], runs: Iterable[Run]) -> None:
    for run in runs:
        for uuid in run.uuids:
            if uuid in cards:
                cards[uuid].given_at = max(cards[uuid].given_at, run.started_at)


def alive(world: World) -> dict[RunId, Run]:
    return {r.id: r for r in world.runs if r.ended is None and not r.voided}


def available_mib(world: World) -> dict[str, int]:
    """By UUID, for showing: what could still be promised; 0 where nothing is known."""
    cards = cards_of(world, world.gpus, alive(world))
    return {c.gpu.uuid: max(0, c.available_mib) if c.gpu.state == "ok" else 0 for c in cards}
