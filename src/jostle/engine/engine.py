"""The engine: observe → decide → commit → act, at once when something happened and otherwise when a deadline says so.

Commit, then act, then tell: a run is in the store before its backend hears of it, and a reservation that could not be committed
is withdrawn. The end of one run and the start of the next are one commit. A card does not wait for the disk, people and backends
do: they are told when the disk has it (`settle`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jostle.core.decide import decide
from jostle.core.health import clears, set_aside
from jostle.core.model import LOCAL, Gpu, Lane, Policy, Run, RunId, Target, World
from jostle.core.plan import Fail, Plan
from jostle.core.reasons import Hold, Reason
from jostle.engine import allocations, record, telling
from jostle.engine.capacity import Capacity
from jostle.engine.cards import KnownCards
from jostle.engine.carried import Carried
from jostle.engine.health import Health
from jostle.engine.history import HistoryWriter
from jostle.engine.idleness import Idleness
from jostle.engine.journal import Journal
from jostle.engine.observe import here
from jostle.engine.ports import Probe, Timer
from jostle.engine.resizing import Ordered, Resizer
from jostle.engine.rules import Rules
from jostle.engine.starting import Recorded, Starting
from jostle.engine.tally import Tally
from jostle.engine.ties import Ties
from jostle.errors import Unwritten
from jostle.failpoint import failpoint
from jostle.port import Backend, Claimed
from jostle.store import readiness
from jostle.store.store import Store

ALL = ""  # in place of a target
WORKS = (None, 0.0)  # in place of why one is stuck
PAUSE = 5.0  # s until it is tried again, where nothing can be started at all
DEPTH = 8  # jobs of one shape that a single decision looks at


class Engine:
    """Decides on what is known of cards and runs, records it, and does it."""

    def __init__(self, *, home: str, devices: str, store: Store, clock: Timer, settings: dict[str, Any]) -> None:
        self.home, self.devices = home, devices
        self.store, self.clock = store, clock
        self.rules = Rules(store=store, settings=settings)
        self.journal = Journal(store, clock)
        self.cards = KnownCards(store=store, clock=clock, journal=self.journal)
        self.carried = Carried(store=store, clock=clock, cards=self.cards, journal=self.journal, soon=self.soon)
        self.history = HistoryWriter(home=home, store=store, clock=clock)
        self.idleness = Idleness(history=self.history, store=store, clock=clock, journal=self.journal)
        self._starting = Starting(store=store, cards=self.cards, carried=self.carried)
        self.resizer = Resizer(store=store, clock=clock, cards=self.cards, carried=self.carried, rules=self.rules, soon=self.soon)
        self.tally, self._capacity, self._ties = Tally(), Capacity(), Ties(store)
        self.cards.small_mib(*self.rules.all())
        self.lanes: tuple[Lane, ...] = ()  # what is ready to start, as of the last decision
        self.lanes_at = -1  # the store's generation that `lanes` is of
        self.waits: dict[int, Reason] = {}  # why it does not, by shape
        self.wake_at: tuple[int, float | None] = (-1, None)  # the store's generation, and when a job comes to its time by it
        self.kept_for: tuple[int, ...] = ()
        self.keeps: Mapping[RunId, Reason] = {}  # why runs that may get other cards keep theirs
        self.last_start: dict[int, float] = {}
        self.last_end: dict[int, float] = {}  # by batch; from when it is first seen here, for nobody looked before that
        self.turn = 0
        self.stuck: dict[str, tuple[Hold, float]] = {}  # by target: why nothing starts, and until when it is not tried again
        self.disk_pause = 0.0  # s between tries while nothing can be recorded
        self.tick_at: float | None = 0.0  # when to decide next
        self.housekeeping_at = 0.0
        self.settle_at: float | None = 0.0  # when what was committed is to be on the disk
        self.to_remember = False  # whether cards were read since
        self.stops_all = False  # its jobs are being stopped: no other is started meanwhile

    def open(self, backends: Mapping[str, Backend], probe: Probe) -> None:
        """Takes up what the store says may be alive; the probe reports to `heard`."""
        self.cards.probe = probe
        self.carried.open(backends, self.rules.grace_of)
        self.history.adopt(self.carried.runs, self.cards.observer)
        self.idleness.adopt(self.carried.runs)
        probe.open(self.clock.now())
        self.carried.poll()
        failpoint("engine.recovered")

    def close(self) -> None:
        self.history.close()
        self.carried.close()
        self.cards.close()

    def soon(self, delay: float = 0.0) -> None:
        at = self.clock.now() + delay if delay else 0.0
        if self.tick_at is None or at < self.tick_at:
            self.tick_at = at

    def heard(self, line: bytes) -> None:
        """A snapshot of the GPUs."""
        worth = self.cards.heard(line, self.carried.runs)
        self.resizer.heard(self.clock.now())
        self.to_remember = True
        # another's claim may go without anything to be seen on the cards, so who waits for one looks again
        if worth or ((self.waits or self.keeps) and self.carried.neighbours):
            self.soon()

    # --- the world as it is

    def world(
        self, now: float, gpus: tuple[Gpu, ...], claims: Sequence[Claimed], *, runs: tuple[Run, ...] | None = None,
        ends_only: bool = False, depth: int = DEPTH,
    ) -> World:  # fmt: skip
        """`runs`: those that are there, from an earlier one of this instant; `ends_only`: without what waits."""
        if ends_only:
            self._learn_policies()  # they say what follows an end
        elif self.lanes_at != self.store.generation or self.store.db.in_transaction:
            self.lanes = self.store.lanes.read(depth)
            self.lanes_at = -1 if self.store.db.in_transaction else self.store.generation
            self._learn_policies()
        return World(
            now=now,
            uid=self.cards.uid,
            targets=self.targets(gpus),
            promises=self.cards.promises(claims, [] if ends_only else [r for r in self.carried.runs.values() if not r.over]),
            runs=tuple(r.value(self.cards.peak_mib(r.id), now) for r in self.carried.runs.values()) if runs is None else runs,
            lanes=() if ends_only else self.lanes,
            policies=self.rules.of_batch,
            policy=self.rules.default,
            limits=self.rules.limits,
            last_start=self.last_start,
            last_end=self.last_end,
            doubts=self.cards.doubts,
            counters=self.rules.settings.get("counters") or {},
            orphans=self._ties.orphans(),
            turn=self.turn,
            hold=self._hold_on_all(),
        )

    def targets(self, gpus: tuple[Gpu, ...]) -> tuple[Target, ...]:
        """Where runs can go: to this host, and wherever they can be handed over."""
        handed = {name: backend for name, backend in self.carried.backends.items() if not backend.places}
        others = tuple(Target(name=name, places=False, room=b.capacity(), hold=b.trouble) for name, b in handed.items())
        more = self._capacity.here(self.rules.settings, self.clock.now())
        return others if LOCAL in handed else (here(gpus, self._hold_here(), **more), *others)

    def hold(self) -> Hold | None:
        """Why nothing starts on this host."""
        return self._hold_on_all() or self._hold_here()

    def _hold_on_all(self) -> Hold | None:
        return self.stuck.get(ALL, WORKS)[0] or (Hold("ending") if self.stops_all else None)

    def _hold_here(self) -> Hold | None:
        return self.stuck.get(LOCAL, WORKS)[0] or self.cards.hold() or self.rules.hold

    def reload(self, settings: dict[str, Any], policy: Policy) -> None:
        self.rules.reload(settings, policy)
        self.cards.small_mib(policy)
        self.lanes_at = -1

    def _learn_policies(self) -> None:
        new = self.rules.learn({lane[0].batch for lane in self.lanes} | {r.batch for r in self.carried.runs.values()})
        for batch in new:
            self.last_end.setdefault(batch, self.clock.now())
        if new:
            self.cards.small_mib(*self.rules.all())

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """What is learned inside is forgotten: of jobs that do not stay, for one."""
        lanes, lanes_at, last_end = self.lanes, self.lanes_at, dict(self.last_end)
        try:
            with self.rules.unchanged():
                yield
        finally:
            self.lanes, self.lanes_at, self.last_end = lanes, lanes_at, last_end
            self.cards.small_mib(*self.rules.all())

    # --- one tick

    def tick(self) -> None:
        self.tick_at = None
        now = self.clock.now()
        self.rules.look(now)
        self.stuck = {at: stuck for at, stuck in self.stuck.items() if now < stuck[1]}  # this tick tells whether it is over
        if ALL not in self.stuck and self.store.holed:
            self.settle()  # nothing is begun on a journal that may have a hole
        if (wake := self._next_wake()) is not None and wake <= now and not self._promote(now):
            return
        if self.resizer.news():
            self.resizer.see()
        gpus = self.cards.gpus(now)
        claims = self.carried.claims({g.uuid for g in gpus})
        self.carried.see_neighbours(claims)
        # what an end makes ready is seen only when it is recorded: then there is a second decision in the same transaction
        ended = any(r.over for r in self.carried.runs.values())
        world = self.world(now, gpus, () if ended else claims, ends_only=ended)
        plan = decide(world)
        if plan.decisions or any(r.unrecorded for r in self.carried.runs.values()):
            plan = self._commit(plan, world, gpus, claims)
        self.waits, self.kept_for, self.keeps = dict(plan.waits), plan.kept_for, plan.keeps
        self.resizer.decided(plan.keeps, now)
        self._next_tick(plan, now)

    def _next_wake(self) -> float | None:
        """When the next job comes to its time."""
        if self.wake_at[0] != self.store.generation:
            self.wake_at = (self.store.generation, readiness.next_wake(self.store))
        return self.wake_at[1]

    def _promote(self, now: float) -> bool:
        """Whether those whose time has come could be marked ready."""
        try:
            with self.store.transaction():
                readiness.promote(self.store, now)
        except Unwritten as e:
            self._not_recorded(now, e)
            return False
        self._recorded()
        return True

    def _commit(self, plan: Plan, world: World, gpus: tuple[Gpu, ...], claims: Sequence[Claimed]) -> Plan:
        """Everything decided, in one transaction; then, and only then, it is done."""
        now, at = world.now, self.clock.wall()
        started: list[Recorded] = []
        resized: list[Ordered] = []
        try:
            with self.store.transaction(durable=False):
                ended = record.ends(self.store, plan, self.carried.runs, self.cards, at, now)
                health = self.cards.verdicts_recorded(plan.decisions, gpus, at)
                self.last_end.update(dict.fromkeys(record.batches_left(plan, self.carried.runs), now))
                if ended:
                    gpus = set_aside(gpus, plan.decisions)
                    plan = decide(self.world(now, gpus, claims, runs=tuple(run for run in world.runs if run.id not in ended)))
                record.states(self.store, plan, self.carried.runs, at, now)
                names = frozenset(c.name for c in claims)
                self._record_starts(plan, gpus, names, started, at, now)
                resized += self.resizer.record(plan, gpus=gpus, claim_names=names, at=at, now=now)
                if started or resized:
                    failpoint("engine.reserved")
        except BaseException as e:
            self._starting.withdraw(started)
            self.resizer.withdraw(resized)
            if not isinstance(e, Unwritten):
                raise
            self._not_recorded(now, e)
            return plan
        self.lanes_at = -1
        self.cards.judge(health)
        self._act(plan, started, now)  # first of all: a card waits for it
        self.resizer.act(resized, now)
        self.tally.recorded(len(started), ended.values())
        for id in ended:
            self._forget(id, now)
        if ended and self.lanes:
            self.soon(1.0)  # by then what is still on their cards is seen as left behind, and said so
        if len(started) >= DEPTH or any(isinstance(d, Fail) for d in plan.decisions):
            self.soon()  # there may be more of them than one look takes; and who comes after one that was given up is next now
        if self.settle_at is None:
            self.settle_at = now
        return plan

    def settle(self) -> None:
        """The disk has what was done; now others may know of it."""
        try:
            self.store.sync()
        except Unwritten as e:
            now = self.clock.now()
            self._not_recorded(now, e)
            self.settle_at = now + self.disk_pause
            return
        self.settle_at = None
        self._recorded()
        self.carried.confirm()
        self.journal.committed()

    def _record_starts(
        self, plan: Plan, gpus: tuple[Gpu, ...], claim_names: frozenset[str], started: list[Recorded], at: float, now: float
    ) -> None:
        for postponed in self._starting.record_all(
            plan, started, gpus=gpus, claim_names=claim_names, rules=self.rules, at=at, now=now
        ):
            if postponed.after is not None:
                self.soon(postponed.after)
            elif postponed.hold is not None:
                self.stuck[postponed.target] = (postponed.hold, now + PAUSE)
                self.soon()  # so that those who wait are told

    def _act(self, plan: Plan, started: list[Recorded], now: float) -> None:
        self.carried.start(started)
        for run, _ in started:
            self.cards.run_started(run, now)
            self.last_start[run.batch] = now
            self.turn = run.batch
        for run in self.carried.runs.values():
            run.handle_changed = False
            if run.claimed and run.state == "starting":
                run.state = "running"
        telling.tell(plan, self.carried, now)

    def _forget(self, id: RunId, now: float) -> None:
        run = self.carried.runs[id]
        if not run.voided:
            self.housekeeping_at = min(self.housekeeping_at, self.history.run_ended(run, now))
        if clears(run.value(0), now):
            self.carried.clear([lease.uuid for lease in run.leases])
        self.carried.forget(run, now)

    def _not_recorded(self, now: float, e: Unwritten) -> None:
        """Said once, and tried ever more rarely: a log line for each try would fill the disk yet more."""
        if not self.disk_pause:
            print(f"{e}", file=sys.stderr, flush=True)
        self.disk_pause = min(max(1.0, self.disk_pause * 2), 15.0)
        self.stuck[ALL] = (Hold(e.code), now + self.disk_pause)
        self.soon(self.disk_pause)

    def _recorded(self) -> None:
        if self.disk_pause:
            print("the disk takes what is written again", file=sys.stderr, flush=True)
            self.disk_pause = 0.0

    def _next_tick(self, plan: Plan, now: float) -> None:
        for at in (plan.wake_at, self._next_wake(), self._ties.look_at(now), *(until for _, until in self.stuck.values())):
            if at is not None and at > now:
                self.soon(at - now)
        waiting = bool(self.waits) or bool(self.lanes)
        self.cards.pace(now, waiting=waiting, running=bool(self.carried.runs))

    # --- what people ask for, and about

    def people_want(self, intents: Mapping[int, str]) -> None:
        """Cancels that are recorded, by job: its runs learn of it."""
        for run in self.carried.runs.values():
            if run.id[0] in intents and run.intent != "kill":
                run.intent = intents[run.id[0]]

    def pardoned(self, health: Health, uuids: Collection[str]) -> None:
        """A person has taken cards back."""
        self.cards.judge(health)
        self.carried.clear(uuids)

    def rules_changed(self, batch: int) -> None:
        self.rules.forget(batch)

    def forget_contexts(self) -> None:
        self._starting.forget_contexts()

    def stop_all(self) -> None:
        self.stops_all = True
        self.soon()

    def open_ids(self) -> frozenset[RunId]:
        return frozenset(self.carried.runs)

    def remarks(self) -> dict[int, Reason]:
        """By job, why a run is remarkable."""
        runs = self.carried.runs.values()
        held = {**allocations.remarks(runs, self.clock), **self.resizer.remarks(self.keeps)}
        return {**self.idleness.remarks(runs), **self.cards.beyond(runs), **held, **self.carried.remarks()}

    # --- between ticks

    def step(self, now: float) -> None:
        """Whatever is due."""
        if self.tick_at is not None and self.tick_at <= now:
            began = self.clock.now()
            self.tick()
            self.tally.ticked(self.clock.now() - began)
        self._remember()
        if now >= self.housekeeping_at or any(at is not None and now >= at for at in (self.cards.relook_at, self.carried.due_at)):
            self.housekeeping_at = self.housekeeping(now)

    def _remember(self) -> None:
        """What the last reading adds to the history: after the tick, for no card waits for it."""
        if self.to_remember:
            self.to_remember = False
            self.history.heard(self.cards.observer, self.carried.runs)
            self.idleness.heard(self.carried.runs, self.rules.settings)

    def next_at(self) -> float:
        """When the next step is due."""
        due = (self.housekeeping_at, self.tick_at, self.settle_at, self.cards.relook_at, self.carried.due_at)
        return min(at for at in due if at is not None)

    def housekeeping(self, now: float) -> float:
        """What time alone brings about; when to come again."""
        self._remember()
        if self.rules.look(now):
            self.soon()
        if self.carried.tick(now):
            if (self.waits or self.lanes) and not self.cards.fresh(now):
                self.soon()  # nothing is heard, and who asks why a job waits is to be told that
            self.store.checkpoint()
            gc.collect()
        due = [self.carried.due_at, self.cards.probe.tick(now), self.cards.look_again(now, waiting=bool(self.lanes))]
        due.append(self.history.step(now))
        return min(at for at in due if at is not None)
