"""What is known of runs and cards, and what is heard of them: the observing half of the engine.

There is no recovery code: what is known of a run is derived anew from its directory (backend.poll); a restart is a long tick.
Unknown is never good news, silence is never bad news. After an end its cards count as unknown until a look that began later.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from jostle import proc
from jostle.core.model import Exit, Lane, RunId
from jostle.core.reasons import Reason
from jostle.engine.health import Health, Tried
from jostle.engine.observe import Observer
from jostle.engine.open import Open, of_row
from jostle.engine.ports import Backend, Claimed, Probe, Report, Timer
from jostle.errors import Unwritten
from jostle.failpoint import failpoint
from jostle.store import runs
from jostle.store.store import Store

SWEEP = 5.0  # all open runs are looked at this often, whatever was heard
SPARES, SPARES_BUSY = 2, 6  # shims kept waiting for a run: at rest, and while runs follow fast on each other
LAZY = 0.2  # how long news that nobody waits for may wait for company in a commit
VANISHED_EVERY = 600.0  # s between two notes that claims of a user on a card were removed
STARTING_AFTER = 2.0  # s without a word of a fresh probe: then its driver is starting
AWAIT_LOOK = 0.01  # how long an end waits for the reading that lets its cards be used again


class Watch:
    backend: Backend
    probe: Probe

    def __init__(self, *, store: Store, clock: Timer, settings: dict[str, Any]) -> None:
        self.store, self.clock, self.settings = store, clock, settings
        self.observer = Observer(os.getuid())
        self.observer.excluded = set(store.get("excluded", []))
        self.observer.health = Health.of(store)
        self.open_runs: dict[RunId, Open] = {}
        self.lanes: tuple[Lane, ...] = ()  # what is ready to start, as of the last decision
        self.waits: dict[int, Reason] = {}  # why it does not, by shape
        self.neighbours = False  # whether the last look showed claims of others
        self.vanished: dict[tuple[int, str], float] = {}  # uid and card of claims whose files are gone -> when that was told
        self.unclaimed_pause = SWEEP  # between tries to publish claims that were removed
        self.tick_at: float | None = 0.0  # when to decide next
        self.sweep_at = 0.0
        self.lively_until = 0.0
        self.vacated: dict[str, int] = {}  # cards an ended run may still show on -> their use before it
        self.relook = 0.0  # pause between looks at those: short at first
        self.relook_at: float | None = None
        self.told: set[tuple[Any, ...]] = set()  # events given once per run
        self.after_commit: list[Callable[[], None]] = []  # who wants to know of each commit
        self.after_look: list[Callable[[], None]] = []  # who waits for the next reading, once

    def open(self, backend: Backend, probe: Probe) -> None:
        """Takes up what the store says may be alive. The backend reports to `changed`, the probe to `heard`."""
        self.backend, self.probe = backend, probe
        backend.spare_arrived, backend.ending, backend.disturbed = self.soon, self._ending, self._disturbed
        for row in runs.open_runs(self.store):
            run = of_row(row)
            run.tried = self._tried(run.id[0]) if run.failures or run.excused else ()
            self._adopt(run)
            self.backend.adopt(run.id, *run.shim)
            failpoint("engine.adopting")
        self.backend.open()
        self.probe.open(self.clock.now())
        for id in list(self.open_runs):
            self._poll(id)
        failpoint("engine.recovered")

    def _adopt(self, run: Open) -> None:
        self.open_runs[run.id] = run
        self.observer.run_opened(run.id, run.uni_id, run.shim[0], [lease.uuid for lease in run.leases])

    def _tried(self, job: int) -> Tried:
        return self.observer.health.held(runs.tried(self.store, job))

    def pardoned(self, health: Health, uuids: Collection[str]) -> None:
        """A person has taken cards back."""
        self.observer.health = health
        self.cleared(uuids)

    def cleared(self, uuids: Collection[str]) -> None:
        """Failures on these cards until now are not held against them."""
        for run in self.open_runs.values():
            if run.tried:
                run.tried = tuple(t for t in run.tried if t[0] not in uuids)

    def close(self) -> None:
        self.backend.close()
        self.probe.close()

    # --- facts arrive

    def soon(self, delay: float = 0.0) -> None:
        at = self.clock.now() + delay if delay else 0.0
        if self.tick_at is None or at < self.tick_at:
            self.tick_at = at

    def _ending(self, id: RunId) -> None:
        """The look that will be needed is asked for first, so that probe and engine work at the same time."""
        if id in self.open_runs and self.open_runs[id].leases:
            self.open_runs[id].look = self.probe.look(self.clock.now())

    def _disturbed(self) -> None:
        """Somebody removed a claim, or the directory of all claims, while it was held."""
        self.unclaimed_pause = LAZY / 4
        for run in list(self.open_runs.values()):
            self._republish(run)
        self.soon()

    def _republish(self, run: Open) -> None:
        names = self.backend.republish(run.id)
        if names:
            print(f"claims of run {run.id[0]}.{run.id[1]} were removed while it runs, and are published again", file=sys.stderr)
            self.journal("republished", batch=run.batch, job=run.id[0], run=run.id[1], claims=list(names))
        if self.backend.missing_claims(run.id):  # a directory that is made again is not ready at once
            self.unclaimed_pause = min(self.unclaimed_pause * 2, SWEEP)
            self.sweep_at = min(self.sweep_at, self.clock.now() + self.unclaimed_pause)

    def _see_vanished(self, claims: Sequence[Claimed]) -> None:
        """Says of claims of others that their files were removed while they were held; they count all the same. Now and then of
        each user and card: who removes his own may do so all day, and the disk is ours."""
        now = self.clock.now()
        for c in claims:
            who = c.uid, c.claim.uuid
            if not c.vanished or c.ours or now - self.vanished.get(who, -VANISHED_EVERY) < VANISHED_EVERY:
                continue
            self.vanished[who] = now
            print(f"the claim of uid {c.uid} on {who[1]} was removed while it was held; the card counts as held", file=sys.stderr)
            self.journal("vanished", uid=c.uid, gpu=self.observer.index(who[1]), uuid=who[1], claim=c.name)

    def changed(self, id: RunId) -> None:
        """The backend heard something of a run."""
        if id in self.open_runs:
            self._poll(id)

    def _poll(self, id: RunId) -> None:
        run = self.open_runs[id]
        if run.over:
            return
        report = self.backend.poll(id)
        if report.kind in ("not_started", "voided", "gone") and not self.store.in_place():
            return  # its directory is not to be seen: no news
        if report.kind == "not_started":
            self._unclaimed(run)
        elif report.kind == "voided":
            run.voided = True
        elif report.kind == "ended":
            run.exit = report.exit
        elif report.kind == "gone":
            run.exit = Exit(lost="host_rebooted" if "reboot" in report.why else "exit_unknown")
        else:
            self._living(run, report)
        if run.over:
            self._ended(run)

    def _unclaimed(self, run: Open) -> None:
        """Recorded, but no shim has claimed it. It is never started twice: it is made impossible, then queued again."""
        pid, ticks = run.shim
        if run.boot != self.clock.boot:
            run.exit = Exit(lost="host_rebooted")  # the claim may have been lost with the page cache
        elif pid is None or ticks is None or not proc.alive(pid, ticks):
            failpoint("engine.before_void")
            if run.claimed or run.state == "running":
                self._unrecorded(run)
            elif self.backend.void(run.id):
                run.voided = True
            else:
                self.soon(LAZY)

    def _unrecorded(self, run: Open) -> None:
        """It has run, as we know ourselves: somebody removed its directory, and how it ends will not be known."""
        run.unsupervised = tuple(pid for pid in proc.pids() if proc.uid(pid) == os.geteuid() and proc.mark(pid) == run.uni_id)
        if not run.unsupervised:
            run.exit = Exit(lost="exit_unknown")
            return
        self.sweep_at = min(self.sweep_at, self.clock.now() + 1.0)
        self._once("unsupervised", run, pids=list(run.unsupervised))

    def _living(self, run: Open, report: Report) -> None:
        run.look = 0
        if run.state == "starting" and not run.claimed:
            run.claimed = report.claimed
            if run.claimed:
                self.soon(LAZY)
        run.unsupervised = report.pids if report.kind == "unsupervised" else ()
        if report.kind == "alive" and report.pids:
            self._background(run, report.pids)
        if run.unsupervised:
            self.sweep_at = min(self.sweep_at, self.clock.now() + 1.0)  # nobody will tell us of its end
            self._once("unsupervised", run, pids=list(report.pids))

    def _background(self, run: Open, pids: tuple[int, ...]) -> None:
        """It runs on though its commands have ended: said once, and kept as its reason until it ends."""
        if ("background", run.id) not in self.told:
            self.told.add(("background", run.id))
            with contextlib.suppress(Unwritten), self.store.transaction():
                runs.background(self.store, run.id, run.batch, pids, self.clock.wall())
            self.committed()

    def _ended(self, run: Open) -> None:
        now = self.clock.now()
        cards = [lease.uuid for lease in run.leases]
        self.lively_until = now + 3.0
        if cards:
            self.observer.distrust(cards, run.look or self.probe.look(now), now)
            self.vacated.update({lease.uuid: lease.used_at_start_mib for lease in run.leases})
            self.relook = 0.002
            self.relook_at = now + self.relook
        self.soon(AWAIT_LOOK if cards and self.observer.fresh(now) else 0.0)

    def heard(self, line: bytes) -> None:
        """A snapshot of the GPUs."""
        now = self.clock.now()
        before = self.observer.snapshot
        waited = bool(self.observer.distrusted) or not self.observer.fresh(now)
        # another's claim may go without anything to be seen on the cards, so who waits for one looks again
        if self.observer.hear(line, now) or waited or (self.waits and self.neighbours):
            self.soon()
        if self.observer.snapshot is not before:
            self._note_errors()
            self._see_use()
        for kind, found in (("misplaced", self.observer.misplaced()), ("intruded", self.observer.intruders())):
            for run, uuid, pid in found:
                if run in self.open_runs:
                    self._once(kind, self.open_runs[run], gpu=self.observer.index(uuid), uuid=uuid, pid=pid)
        self._see_who_left()
        waiting, self.after_look = self.after_look, []
        for callback in waiting:
            callback()

    def _note_errors(self) -> None:
        """A rise is seen only from a count that is known, also by the next engine."""
        health = self.observer.health.seen(self.observer.snapshot["gpus"])
        if health is not None:
            self.observer.health = health
            try:
                with self.store.transaction(durable=False):
                    health.keep(self.store)
            except Unwritten:
                pass  # kept with what is recorded next

    def _see_use(self) -> None:
        """Which runs use more of a card than their jobs asked for: told once, and shown for as long as it lasts."""
        for run in self.open_runs.values():
            run.beyond = {}
            for lease in run.leases:
                uuid, asked = lease.uuid, lease.mib
                used = self.observer.used_by_run(uuid, run.id) if asked is not None else 0
                if asked is not None and used > asked:
                    run.beyond[uuid] = {"used_mib": used, "asked_mib": asked}
                    self._once("beyond", run, (uuid,), gpu=lease.index, uuid=uuid, used_mib=used, asked_mib=asked)

    def beyond(self) -> dict[int, Reason]:
        """By job, why a run is remarkable: it uses more than was asked for."""
        return {
            run.id[0]: Reason(code="beyond", params={"gpu": self.observer.index(uuid), **use})
            for run in self.open_runs.values()
            for uuid, use in run.beyond.items()
        }

    def _see_who_left(self) -> None:
        """Forgets the cards that show no more of an ended run, or are in use again."""
        if self.vacated:
            used = self.observer.used_mib()
            taken = {lease.uuid for r in self.open_runs.values() if r.exit is None for lease in r.leases}
            self.vacated = {
                uuid: before for uuid, before in self.vacated.items() if uuid not in taken and used.get(uuid, 0) > before + 64
            }

    def _once(self, kind: str, run: Open, about: tuple[str, ...] | None = None, **data: Any) -> None:
        """An event of a run, unless it was told before: the same data, or the same that it is `about`."""
        key = (kind, run.id, *(map(str, data.values()) if about is None else about))
        if key not in self.told:
            self.told.add(key)
            self.journal(kind, batch=run.batch, job=run.id[0], run=run.id[1], **data)

    def journal(self, kind: str, **data: Any) -> None:
        """An event of its own, where nothing else is committed."""
        try:
            with self.store.transaction():
                self.store.event(self.clock.wall(), kind, **data)
        except Unwritten:
            pass  # it is told on the engine's log; the disk will be told of elsewhere
        self.committed()

    def committed(self) -> None:
        for callback in self.after_commit:
            callback()

    def starting(self) -> str:
        """That the driver has not answered a fresh probe yet, as a hold; "" if it has, or still may in a moment."""
        since, now = self.probe.opening_since, self.clock.now()
        return f"driver_starting {now - since:.0f}" if since is not None and now - since > STARTING_AFTER else ""

    def trouble(self) -> str:
        """Why the cards cannot be read, if that is known: a hold, or words of the driver."""
        return self.starting() or self.probe.trouble or self.observer.snapshot["error"] or ""

    # --- between ticks

    def housekeeping(self, now: float) -> float:
        """What time alone brings about; when to come again."""
        due = [self.sweep_at, self.probe.tick(now), self.backend.tick(now), self._look_again(now)]
        if now >= self.sweep_at:
            orphans = any(r.unsupervised for r in self.open_runs.values())
            self.sweep_at = now + (1.0 if orphans or not hasattr(os, "pidfd_open") else SWEEP)
            for run in list(self.open_runs.values()):
                self._republish(run)
                self._poll(run.id)
                if run.told_to_stop and not run.over and not run.unsupervised:
                    # said again: a shim that has just been given this run may have taken it for one meant for its last
                    self.backend.signal(run.id, kill=run.intent == "kill")
                if run.unsupervised and run.kill_at is not None and now >= run.kill_at:
                    self.backend.signal(run.id, kill=True)
            if (self.waits or self.lanes) and not self.observer.fresh(now):
                self.soon()  # nothing is heard, and who asks why a job waits is to be told that
            if now > self.lively_until:
                self.backend.want(SPARES)
            self.store.checkpoint()
            gc.collect()
            due[0] = self.sweep_at
        return min(d for d in due if d is not None)

    def _look_again(self, now: float) -> float | None:
        """A card may show an ended run's memory for a moment: look soon, then less and less often; the next time."""
        if self.relook_at is not None and now >= self.relook_at:
            self.relook_at = None
            if self.vacated and self.lanes and now < self.lively_until:
                if self.probe.owed_since is None:
                    self.probe.look(now)
                self.relook = min(self.relook * 2, 0.1)
                self.relook_at = now + self.relook
        return self.relook_at
