"""The engine: observe → decide → commit → act, at once when something happened and otherwise when a deadline says so.

Commit, then act, then tell: a run is in the store before its shim hears of it, and a reservation that could not be committed is
withdrawn. The end of one run and the start of the next are one commit. A card does not wait for the disk, people and shims do:
they are told when the disk has it (`settle`).
"""

from __future__ import annotations

import os
import random
import secrets
import sys
from collections.abc import Sequence
from typing import Any

from jostle.core.decide import decide
from jostle.core.fields import SETTINGS
from jostle.core.health import clears, set_aside
from jostle.core.model import Exit, Gpu, Lease, Policy, RunId, World
from jostle.core.plan import Fail, Finish, Plan, Requeue, Start, Stop
from jostle.core.reasons import GPU_HOLDS, kept
from jostle.engine import checks, launch
from jostle.engine.observe import here, promises
from jostle.engine.open import Open, retry_of
from jostle.engine.ports import Claimed, Reservation, Timer
from jostle.engine.watch import SPARES_BUSY, Watch
from jostle.errors import Unwritten
from jostle.failpoint import failpoint
from jostle.store import ends, jobs, readiness, runs
from jostle.store.store import Store

DEPTH = 8  # jobs of one shape that a single decision looks at


class Engine(Watch):
    """Decides on what is watched, records it, and does it."""

    def __init__(self, *, home: str, spec: str, lease_dir: str, store: Store, clock: Timer, settings: dict[str, Any]) -> None:
        super().__init__(store=store, clock=clock, settings=settings)
        self.home, self.spec, self.lease_dir = home, spec, lease_dir
        self.policy: Policy = checks.policy(settings.get("policy") or {})
        self.observer.small_mib = self.policy.small_mib
        self.policies: dict[int, Policy] = {}
        self.lanes_at = -1  # the store's generation that `lanes` is of
        self.wake: tuple[int, float | None] = (-1, None)  # the store's generation, and when a job comes to its time by it
        self.contexts: dict[int, dict[str, Any]] = {}  # what submits captured, the latest used
        self.kept_for: tuple[int, ...] = ()
        self.last_start: dict[int, float] = {}
        self.last_end: dict[int, float] = {}  # by batch; from when it is first seen here, for nobody looked before that
        self.turn = 0
        self.stuck: tuple[str, float] | None = None  # why nothing can be started, and until when it is not tried again
        self.disk_pause = 0.0  # s between tries while nothing can be recorded
        self.unconfirmed: list[RunId] = []  # ended in the store, their shims not told yet
        self.settle_at: float | None = 0.0  # when what was committed is to be on the disk
        self.ending = False  # its jobs are being stopped: no other is started meanwhile

    # --- the world as it is

    def world(
        self,
        now: float,
        gpus: tuple[Gpu, ...],
        claims: Sequence[Claimed],
        *,
        without: frozenset[RunId] = frozenset(),
        ends_only: bool = False,
    ) -> World:
        if ends_only:
            self._learn_policies()  # they say what follows an end
        elif self.lanes_at != self.store.generation or self.store.db.in_transaction:
            self.lanes = self.store.lanes.read(DEPTH)
            self.lanes_at = -1 if self.store.db.in_transaction else self.store.generation
            self._learn_policies()
        live = {id: r for id, r in self.open_runs.items() if id not in without}
        held = {} if ends_only else {id: r.leases for id, r in live.items() if not r.over}
        hold = self.hold()
        return World(
            now=now,
            uid=self.observer.uid,
            targets=(here(gpus, hold),),
            promises=promises(self.observer, claims, held),
            runs=tuple(r.value(self.observer.peaks.get(id, 0)) for id, r in live.items()),
            lanes=() if ends_only else self.lanes,
            policies=self.policies,
            policy=self.policy,
            last_start=self.last_start,
            last_end=self.last_end,
            doubts=self.observer.health.doubts,
            turn=self.turn,
            hold="" if hold.startswith(GPU_HOLDS) else hold,
        )

    def hold(self) -> str:
        if self.stuck is not None:
            return self.stuck[0]
        if self.ending:
            return "ending"
        seen = self.observer.snapshot
        return self.starting() or seen["hold"] or (f"gpus: {seen['error']}" if seen["error"] and not seen["gpus"] else "")

    def reload(self, settings: dict[str, Any], policy: Policy) -> None:
        self.settings, self.policy = settings, policy
        self.observer.small_mib = policy.small_mib
        self.policies.clear()
        self.lanes_at = -1

    def _learn_policies(self) -> None:
        missing = {lane[0].batch for lane in self.lanes} | {r.batch for r in self.open_runs.values()}
        missing -= self.policies.keys()
        if missing:
            given = self.settings.get("policy") or {}
            for batch, values in jobs.policies(self.store, missing).items():
                self.policies[batch] = checks.policy({**given, **values})
                self.last_end.setdefault(batch, self.clock.now())
            self.observer.small_mib = max(p.small_mib for p in (self.policy, *self.policies.values()))

    # --- one tick

    def tick(self) -> None:
        self.tick_at = None
        now = self.clock.now()
        if self.stuck is not None and now >= self.stuck[1]:
            self.stuck = None  # this tick tells whether it is over
        if self.stuck is None and self.store.holed:
            self.settle()  # nothing is begun on a journal that may have a hole
        if (wake := self._next_wake()) is not None and wake <= now and not self._promote(now):
            return
        gpus = self.observer.gpus(now)
        claims = self.backend.claims({g.uuid for g in gpus})
        self.neighbours = any(not c.ours for c in claims)
        self._see_vanished(claims)
        # what an end makes ready is seen only when it is recorded: then there is a second decision in the same transaction
        ended = any(r.over for r in self.open_runs.values())
        plan = decide(self.world(now, gpus, () if ended else claims, ends_only=ended))
        if plan.decisions or any(r.claimed and r.state == "starting" for r in self.open_runs.values()):
            plan = self._commit(plan, now, gpus, claims)
        self.waits, self.kept_for = dict(plan.waits), plan.kept_for
        self._next_tick(plan, now)

    def _next_wake(self) -> float | None:
        """When the next job comes to its time."""
        if self.wake[0] != self.store.generation:
            self.wake = (self.store.generation, readiness.next_wake(self.store))
        return self.wake[1]

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

    def _commit(self, plan: Plan, now: float, gpus: tuple[Gpu, ...], claims: Sequence[Claimed]) -> Plan:
        """Everything decided, in one transaction; then, and only then, it is done."""
        at = self.clock.wall()
        started: list[tuple[Reservation, Open, dict[str, Any]]] = []
        try:
            with self.store.transaction(durable=False):
                ended = self._record_ends(plan, at, now)
                health = self.observer.health.recorded(self.store, plan.decisions, gpus, at)
                if ended:
                    gpus = set_aside(gpus, plan.decisions)
                    plan = decide(self.world(now, gpus, claims, without=ended))
                self._record_states(plan, at)
                known = frozenset(c.name for c in claims)
                for start in plan.decisions:
                    if isinstance(start, Start) and not self._record_start(start, gpus, known, started, at, now):
                        break
                failpoint("engine.reserved")
        except BaseException as e:
            for reservation, _, _ in started:
                self.backend.withdraw(reservation)
            if not isinstance(e, Unwritten):
                raise
            self._not_recorded(now, e)
            return plan
        self.lanes_at = -1
        self.observer.health = health
        self._act(plan, started, now)  # first of all: a card waits for it
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
        ended, self.unconfirmed = self.unconfirmed, []
        for id in ended:
            self.backend.forget(id)
        self.committed()

    def _record_ends(self, plan: Plan, at: float, now: float) -> frozenset[RunId]:
        ended = set()
        for d in plan.decisions:
            if isinstance(d, Finish | Requeue):
                run = self.open_runs[d.run]
                peak = self.observer.peaks.get(d.run, 0)
                exit = run.exit or Exit()
                reason = kept(d.reason) if d.reason else None
                if isinstance(d, Finish):
                    runs.finish(
                        self.store, d.run, batch=run.batch, state=d.state, exit=exit, error_type=d.error_type, reason=reason,
                        closes_queue=d.closes_queue, peak_mib=peak, at=at, now=now,
                    )  # fmt: skip
                else:
                    outcome = "voided" if run.voided or exit.unable else "lost" if exit.lost else "failed"
                    runs.requeue(
                        self.store,
                        d.run,
                        outcome=outcome,
                        exit=exit,
                        counts=d.counts,
                        excused=d.excused,
                        not_before=d.not_before,
                        error_type=d.error_type,
                        memory_mib=d.memory_mib,
                        avoid=d.avoid,
                        reason=reason,
                        peak_mib=peak,
                        at=at,
                        now=now,
                    )
                ended.add(d.run)
                self.last_end[run.batch] = now
            elif isinstance(d, Fail):
                self.last_end[d.batch] = now
                ends.end_queued(self.store, d.job, "failed", kept(d.reason), at=at, now=now, error_type=d.error_type)
                if d.closes_queue:
                    ends.close_queue(self.store, d.job, at=at, now=now)
        if ended:
            failpoint("engine.ends_recorded")
        return frozenset(ended)

    def _record_states(self, plan: Plan, at: float) -> None:
        for run in self.open_runs.values():
            if run.claimed and run.state == "starting" and run.exit is None:
                runs.running(self.store, run.id, run.batch, at)
        for d in plan.decisions:
            if isinstance(d, Stop) and self.open_runs[d.run].state != "stopping":
                runs.stopping(self.store, d.run, self.open_runs[d.run].batch, at)

    def _record_start(
        self, start: Start, gpus: tuple[Gpu, ...], known: frozenset[str], started: list[Any], at: float, now: float
    ) -> bool:
        """Reserves the cards and records the run; False if no more can be started now."""
        if not self.store.in_place():
            self.stuck = ("home_moved", now + 5.0)
            self.soon()
            return False  # a run of ours in another's home would be taken for one of its own
        if self.backend.spares == 0:
            self.backend.want(SPARES_BUSY)
            return False  # the next spare brings the next tick
        cards = [g for uuid in start.uuids for g in gpus if g.uuid == uuid]
        job = runs.job_to_start(self.store, start.job)
        id = (start.job, job["attempt"] + 1)
        while os.path.lexists(launch.directory(self.home, id)):
            id = (start.job, id[1] + 1)  # of a database that was put back: that run's end must not be taken for this one's
        wants = [(g.uuid, start.mib_on(g.uuid)) for g in cards]
        reservation = self.backend.reserve(id, wants, known, alone=not start.share)
        if reservation is None:
            if self.backend.trouble:
                self.stuck = (self.backend.trouble, now + 5.0)
                self.soon()  # so that those who wait are told
                return False
            self.soon(random.uniform(0.01, 0.1))  # a neighbour was quicker: the cards are looked at again, not at once
            return True
        failpoint("engine.after_reserve")
        uni_id = secrets.token_hex(8)
        leases = [Lease(uuid=g.uuid, index=g.index, mib=start.mib_on(g.uuid), used_at_start_mib=g.used_mib) for g in cards]
        run = Open(
            id=id,
            batch=job["batch"],
            uni_id=uni_id,
            state="starting",
            boot=self.clock.boot,
            shim=(reservation.pid, reservation.ticks),
            memory_mib=start.memory_mib,
            share=start.share,
            clock_at=now,
            time_limit=job["time_limit"],
            failures=job["retries"],
            excused=job["excused"],
            tried=self._tried(start.job) if job["retries"] or job["excused"] else (),
            retry=retry_of(job["retry"]),
            leases=leases,
        )
        paths = [os.path.join(self.lease_dir, name) for name in reservation.names]
        spec = launch.spec(
            self.home, job, self._context(job["context"]), id, uni_id, self.clock.boot, cards, gpus, paths, self.settings,
            self.policies.get(job["batch"], self.policy),
        )
        started.append((reservation, run, spec))
        runs.begin(
            self.store,
            id,
            batch=run.batch,
            uni_id=uni_id,
            boot=run.boot,
            shim=(reservation.pid, reservation.ticks),
            memory_mib=start.memory_mib,
            share=start.share,
            log=spec["log"],
            leases=leases,
            at=at,
            now=now,
        )
        return True

    def _context(self, id: int) -> dict[str, Any]:
        if id not in self.contexts:
            if len(self.contexts) >= 64:
                self.contexts.clear()
            self.contexts[id] = runs.context(self.store, id)
        return self.contexts[id]

    def _act(self, plan: Plan, started: list[tuple[Reservation, Open, dict[str, Any]]], now: float) -> None:
        for reservation, run, spec in started:
            failpoint("engine.before_spawn")
            self.backend.start(reservation, spec)
            failpoint("engine.after_spawn")
            self._adopt(run)
            self.observer.given_at.update((lease.uuid, now) for lease in run.leases)
            self.last_start[run.batch] = now
            self.turn = run.batch
            self.lively_until = now + 3.0
        for run in self.open_runs.values():
            if run.claimed and run.state == "starting":
                run.state = "running"
        for d in plan.decisions:
            if isinstance(d, Stop):
                run = self.open_runs[d.run]
                first = not run.told_to_stop
                run.state, run.told_to_stop = "stopping", True
                if first or d.kill:
                    failpoint("engine.before_stop")
                    self._stop(run, d.kill)

    def _stop(self, run: Open, kill: bool) -> None:
        """One that nobody has claimed yet is made impossible; one that lives is asked to end."""
        if self.backend.poll(run.id).kind == "not_started" and self.backend.void(run.id):
            run.voided = True
            self._ended(run)
            return
        self._poll(run.id)  # it may have ended by itself, and the backend tells each end once
        if not run.over:
            self.backend.signal(run.id, kill=kill)
            now = self.clock.now()
            run.kill_at = now + self.settings.get("grace", SETTINGS["grace"].default)
            self.sweep_at = min(self.sweep_at, now + 1.0)

    def _forget(self, id: RunId, now: float) -> None:
        run = self.open_runs.pop(id)
        if clears(run.value(0), now):
            self.cleared([lease.uuid for lease in run.leases])
        self.observer.run_ended(id, now)
        self.unconfirmed.append(id)
        self.told = {key for key in self.told if key[1] != run.id}

    def _not_recorded(self, now: float, e: Unwritten) -> None:
        """Said once, and tried ever more rarely: a log line for each try would fill the disk yet more."""
        if not self.disk_pause:
            print(f"{e}", file=sys.stderr, flush=True)
        self.disk_pause = min(max(1.0, self.disk_pause * 2), 15.0)
        self.stuck = (e.code, now + self.disk_pause)
        self.soon(self.disk_pause)

    def _recorded(self) -> None:
        if self.disk_pause:
            print("the disk takes what is written again", file=sys.stderr, flush=True)
            self.disk_pause = 0.0

    def _next_tick(self, plan: Plan, now: float) -> None:
        for at in (plan.wake_at, self._next_wake(), self.stuck and self.stuck[1]):
            if at is not None and at > now:
                self.soon(at - now)
        waiting = bool(self.waits) or bool(self.lanes)
        if waiting and not self.observer.fresh(now) and self.probe.owed_since is None:
            self.probe.look(now)
        lively = now < self.lively_until
        self.probe.rate(0.1 if waiting and lively else 0.5 if waiting else 5.0 if self.open_runs else 10.0)
