"""Runs that get other cards: an order is reserved for and recorded, then told, and what came of it is recorded when it is seen.

What was reserved for a commit that could not be made is given back. A card that a run is to leave stays its own until the run's
backend says that it is given up; where only we can see whether somebody is still on it, that is asked for then and not before,
and a program that does not leave it keeps it, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.core import pausing
from jostle.core.ledger import ORDINARY_UID
from jostle.core.model import Gpu, Lease, RunId
from jostle.core.plan import Plan, Resize
from jostle.core.reasons import Reason, counted, kept
from jostle.core.resize import HOLD
from jostle.engine import launch
from jostle.engine.cards import LEFT_MIB, KnownCards
from jostle.engine.carried import Carried
from jostle.engine.elasticity import Elasticity
from jostle.engine.open import Open
from jostle.engine.ports import Timer
from jostle.engine.rules import Rules
from jostle.engine.starting import tenure
from jostle.engine.stillness import Stillness
from jostle.errors import Unwritten
from jostle.failpoint import failpoint
from jostle.port import Resizing, is_placing
from jostle.store import legs
from jostle.store.store import Store

SETTLED = 2.0  # s after a list was told before an empty card is believed to be left: who is about to use it must have heard
NOTABLE = frozenset({"resizing", "not_left", "resize_failed", "at_minimum"})
JUST_NOW = 0.9  # s since a card was read
ASK_EVERY = 1.0  # s between two orders to let go of the same cards


@dataclass(frozen=True, kw_only=True, slots=True)
class Ordered:
    """An order that is recorded, and what it brings."""

    run: Open
    order: Resizing
    more: list[Lease]
    why: str


class Resizer:
    def __init__(
        self, *, store: Store, clock: Timer, cards: KnownCards, carried: Carried, rules: Rules, soon: Callable[[float], None]
    ) -> None:
        self._store, self._clock, self._cards, self._carried = store, clock, cards, carried
        self._rules, self._soon = rules, soon

    # --- orders

    def record(
        self, plan: Plan, *, gpus: Sequence[Gpu], claim_names: frozenset[str], at: float, now: float
    ) -> list[Ordered]:
        """Inside the caller's transaction; those that could be had."""
        ordered: list[Ordered] = []
        try:
            for resize in plan.decisions:
                if isinstance(resize, Resize) and (one := self._one(resize, gpus, claim_names, at, now)) is not None:
                    ordered.append(one)
        except BaseException:
            self.withdraw(ordered)
            raise
        return ordered

    def _one(
        self, resize: Resize, gpus: Sequence[Gpu], claim_names: frozenset[str], at: float, now: float
    ) -> Ordered | None:
        run = self._carried.runs[resize.run]
        elasticity, backend = run.elasticity, self._carried.backends[run.backend]
        by_uuid = {gpu.uuid: gpu for gpu in gpus}
        if elasticity is None or not is_placing(backend) or not by_uuid.keys() >= set(resize.uuids) or not self._store.in_place():
            return None
        cards = [by_uuid[uuid] for uuid in resize.uuids]
        held = {lease.uuid for lease in run.leases}
        more = [
            Lease(uuid=g.uuid, index=g.index, mib=resize.mib_on(g.uuid), used_at_start_mib=g.used_mib)
            for g in cards if g.uuid not in held
        ]  # fmt: skip
        terms = tenure(self._rules.limits, self._rules.of(run.batch))
        wants = [(lease.uuid, lease.mib) for lease in more]
        if more and backend.reserve_more(run.id, wants, claim_names, alone=not run.share, tenure=terms) is not None:
            elasticity.in_vain("taken", now)  # another was quicker
            self._soon(elasticity.not_before - now)
            return None
        try:
            legs.ordered(
                self._store, run.id, run.batch, elasticity.order + 1, cards=resize.uuids, before=elasticity.listed, more=more,
                indices=[g.index for g in cards], reason=kept(resize.reason), at=at, now=now, quiet=elasticity.quiet,
            )  # fmt: skip
            failpoint("resize.recorded")
        except BaseException:
            backend.withdraw([run.id])
            raise
        env = launch.card_variables(launch.visible(cards, gpus, self._rules.by_uuid()), cards)
        order = Resizing(run.id, elasticity.order + 1, resize.uuids, env)
        return Ordered(run=run, order=order, more=more, why=resize.reason.code)

    def withdraw(self, ordered: Iterable[Ordered]) -> None:
        """They could not be committed."""
        for one in ordered:
            backend = self._carried.backends[one.run.backend]
            if is_placing(backend):
                backend.withdraw([one.run.id])

    def act(self, ordered: Iterable[Ordered], now: float) -> None:
        for one in ordered:
            run, backend = one.run, self._carried.backends[one.run.backend]
            assert run.elasticity is not None
            run.elasticity.ordered(one.order.cards, one.why)
            run.leases += one.more
            self._cards.run_resized(run, [lease.uuid for lease in one.more], now)
            if is_placing(backend):
                failpoint("resize.committed")
                backend.resize([one.order])

    # --- what came of them

    def news(self) -> bool:
        return any(run.elasticity is not None and run.elasticity.news for run in self._carried.runs.values())

    def see(self) -> None:
        """Records what backends have told since."""
        at, now = self._clock.wall(), self._clock.now()
        runs = [run for run in self._carried.runs.values() if run.elasticity is not None and run.elasticity.news]
        outcomes: list[tuple[Open, str, list[str]]] = []
        try:
            with self._store.transaction(durable=False):
                for run in runs:
                    assert run.elasticity is not None
                    outcomes.append((run, *self._outcome(run, run.elasticity, at)))
                failpoint("resize.seen")
        except Unwritten:
            return  # it is tried again with the next tick
        for run, outcome, gone in outcomes:
            self._apply(run, outcome, gone, now)

    def _outcome(self, run: Open, elasticity: Elasticity, at: float) -> tuple[str, list[str]]:
        """What became of the last order ("": that is not known yet), and the cards that are the run's no more."""
        footing = elasticity.footing
        assert footing is not None
        if footing.order < elasticity.order:
            return "", []  # what it asks for is on its way
        gone = [lease.uuid for lease in run.leases if lease.uuid not in footing.cards]
        outcome = ""
        if not elasticity.settled and not footing.taken:
            outcome = footing.why or "refused"
        elif not elasticity.settled and elasticity.in_effect and set(footing.cards) <= set(elasticity.listed):
            outcome = "done"
        held = [uuid for uuid in gone if uuid in elasticity.before or footing.taken]
        legs.given_back(self._store, run.id, held, at)
        legs.given_back(self._store, run.id, [uuid for uuid in gone if uuid not in held], at, held=False)
        if outcome:
            left = sorted((lease.index, lease.uuid) for lease in run.leases if lease.uuid not in gone)
            more = len(elasticity.listed) - len(elasticity.before)
            kind = "not_resized" if outcome != "done" else "grown" if more > 0 else "shrunk" if more < 0 else "resized"
            legs.settled(
                self._store, run.id, run.batch, elasticity.order, kind=kind, outcome=outcome, indices=[i for i, _ in left],
                uuids=[uuid for _, uuid in left], ended=footing.ended, at=at, quiet=elasticity.quiet,
            )  # fmt: skip
        leaving = elasticity.in_effect and not elasticity.settled and not outcome
        elasticity.leg = legs.counted(self._store, run.id, one_more=leaving)
        return outcome, gone

    def _apply(self, run: Open, outcome: str, gone: list[str], now: float) -> None:
        elasticity = run.elasticity
        assert elasticity is not None
        elasticity.news = False
        if elasticity.in_effect and not elasticity.effective_at:
            elasticity.effective_at = now
        left = [lease for lease in run.leases if lease.uuid in gone]
        run.leases = [lease for lease in run.leases if lease.uuid not in gone]
        if outcome == "done":
            elasticity.done(now)
        elif outcome:
            elasticity.failed(outcome, now)
            self._soon(elasticity.not_before - now)
        if left:
            self._cards.run_resized(run, (), now)
            self._cards.run_left(left, 0, now)
        self._soon(0.0)

    # --- what cards show of them

    def heard(self, now: float) -> None:
        """The cards have been read: how busy such runs are, who has come, and what they have left."""
        runs = [run for run in self._carried.runs.values() if not run.over and
                (run.elasticity is not None or run.yields or run.stillness is not None)]  # fmt: skip
        if not runs:
            return
        read = {g["uuid"]: g for g in self._cards.facts() if g["state"] == "ok"}
        just_now = {uuid for uuid, g in read.items() if now - self._cards.read_at(g) < JUST_NOW}
        for run in runs:
            self._see_strangers(run, just_now, now)
            if run.stillness is not None:
                self._see_quiet(run, run.stillness, just_now, now)
            if run.elasticity is not None:
                if not run.paused:
                    self._see_load(run, run.elasticity, read, now)
                self._let_go(run, run.elasticity, read, now)

    def _see_strangers(self, run: Open, just_now: Collection[str], now: float) -> None:
        """Of a card that was not read just now it stays as it was: nobody has come there by silence, nor left."""
        policy, before, since = self._rules.of(run.batch), run.intruded, run.intruded_since
        there = [uuid for uuid in self._cards.intruded(run.id, policy) if uuid in just_now]
        held = {lease.uuid for lease in run.leases}
        run.intruded_since = {uuid: at for uuid, at in since.items() if uuid not in just_now and uuid in held}
        run.intruded_since |= {uuid: since.get(uuid, now) for uuid in there}
        run.intruded = tuple(
            uuid for uuid, at in run.intruded_since.items()
            if (now - at >= policy.yield_after if uuid in just_now else uuid in before)
        )  # fmt: skip
        waits = [run.intruded_since[uuid] + policy.yield_after - now for uuid in there if uuid not in run.intruded]
        if run.intruded != before or waits:
            self._soon(min(waits, default=0.0) if run.intruded == before else 0.0)

    def _see_quiet(self, run: Open, its: Stillness, just_now: Collection[str], now: float) -> None:
        """How long nobody else has been on its cards: only a reading can end a pause."""
        its.see([lease.uuid for lease in run.leases], just_now, alone=not run.intruded_since, now=now)
        if its.now and self._left_s(run, its, now) == 0.0:
            self._soon(0.0)

    def _left_s(self, run: Open, its: Stillness, now: float) -> float | None:
        return pausing.left_s(self._rules.of(run.batch), its.value(supervised=run.supervised), now)

    def _see_load(self, run: Open, elasticity: Elasticity, read: Mapping[str, Mapping[str, Any]], now: float) -> None:
        """A mean that comes to say something else is worth a decision, though no card shows anything new."""
        elasticity.see_load(read, now)
        policy, load = self._rules.of(run.batch), elasticity.load
        says = None if load is None else (load >= (policy.scale_up or 0), load < (policy.scale_down or 0))
        if says != elasticity.load_says:
            elasticity.load_says = says
            self._soon(0.0)

    def _let_go(self, run: Open, elasticity: Elasticity, read: Mapping[str, Mapping[str, Any]], now: float) -> None:
        """Cards that a run was told to leave, and that nobody of it is on any more."""
        backend = self._carried.backends.get(run.backend)
        if elasticity.settled or not elasticity.in_effect or backend is None or not is_placing(backend):
            return
        if not elasticity.effective_at or now < max(elasticity.effective_at + SETTLED, elasticity.asked_at + ASK_EVERY):
            self._soon(ASK_EVERY)
            return
        leaving = [lease for lease in run.leases if lease.uuid not in elasticity.listed]
        cards = [lease.uuid for lease in leaving if lease.uuid in read and self._is_left(run, lease, read[lease.uuid])]
        if cards and self._cards.fresh(now):
            elasticity.asked_at = now
            backend.give_up(run.id, elasticity.order, cards)

    def _is_left(self, run: Open, lease: Lease, g: Mapping[str, Any]) -> bool:
        """Whether nobody who could be of the run is on the card; what is not explained counts as its own."""
        cards, runs = self._cards, self._carried.runs.values()
        there = [other for other in runs if other is not run and any(held.uuid == lease.uuid for held in other.leases)]
        if any(other.inside == run.id[0] or not run.share for other in there):
            return False  # something of ours runs inside
        whose = [cards.run_of(p, lease.uuid) if p["uid"] in (cards.uid, None) else () for p in g["procs"]]
        if run.id in whose or (None in whose and not run.share):
            return False  # of it, or one of ours of whom nobody knows
        strangers = any(p["uid"] not in (cards.uid, None) and p["uid"] >= ORDINARY_UID for p in g["procs"])
        return strangers or run.share or g["used_mib"] <= lease.used_at_start_mib + LEFT_MIB

    def decided(self, keeps: Mapping[RunId, Reason], now: float) -> None:
        """Since when runs do without cards that they could have."""
        for run in self._carried.runs.values():
            if run.elasticity is not None and run.id in keeps:
                run.elasticity.keeps(keeps[run.id].code, now)

    # --- what people ask for, and about

    def remarks(self, keeps: Mapping[RunId, Reason]) -> dict[int, Reason]:
        """By job, what is remarkable: that a change is under way, or in vain."""
        notable = {id[0]: reason for id, reason in keeps.items() if reason.code in NOTABLE and id in self._carried.runs}
        runs = self._carried.runs.values()
        notable |= {run.id[0]: Reason("gives_way") for run in runs if run.yielding}
        still = [(run, run.stillness) for run in runs if run.stillness is not None and run.paused and run.state == "running"]
        return notable | {run.id[0]: self._paused(run, its) for run, its in still}

    def _paused(self, run: Open, its: Stillness) -> Reason:
        """That it stands still, for whom and until when, and what it holds all the while."""
        params = {**(its.reason or {}).get("params", {}), "times": its.times}
        if not its.still:
            return Reason("pausing", params)
        params["held_mib"] = self._cards.used_by(run) or None
        left = self._left_s(run, its, self._clock.now())
        if left is None:
            return Reason("paused", {**params, "quiet_s": pausing.quiet_s(self._rules.of(run.batch))})
        return Reason("paused_until", {**params, "left_s": left})

    def keeps(self, job: int, keeps: Mapping[RunId, Reason]) -> Reason | None:
        """Why a run that may get other cards has those it has."""
        for run in self._carried.runs.values():
            if run.id[0] == job and run.elasticity is not None and run.id in keeps:
                why, its = keeps[run.id], run.elasticity
                if its.how == HOLD and its.least == its.most == len(run.leases):
                    return None  # it has what was asked for, and that is all there is to say
                because = {"code": why.code, "params": {**why.params, "refused": counted(why.gpus)}}
                numbers = {"has": len(run.leases), "least": its.least, "most": its.most, "leg": its.leg}
                return Reason("keeps_cards", {**numbers, "because": because})
        return None

    def asked(self, job: int, least: int, most: int) -> None:
        for run in self._carried.runs.values():
            if run.id[0] == job and run.elasticity is not None:
                run.elasticity.asked(least, most)
                self._soon(0.0)


