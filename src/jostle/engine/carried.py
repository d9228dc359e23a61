"""The open runs, and the backends that carry them: what is heard of runs, and what backends are told.

There is no recovery code: what is known of a run comes from its backend's report each time; a restart is a long tick. Silence is
never bad news: a run whose backend says nothing of it, or is not there, is neither lost nor failed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from jostle.core.model import Exit, RunId
from jostle.core.reasons import ABSENT, Reason
from jostle.engine.cards import KnownCards
from jostle.engine.journal import Journal
from jostle.engine.open import Open, of_row
from jostle.engine.ports import Timer
from jostle.errors import Unwritten
from jostle.failpoint import failpoint
from jostle.port import Adopted, Backend, Claimed, Launch, Phase, RunReport, Void, is_placing
from jostle.store import legs, runs
from jostle.store.store import Store

SWEEP = 5.0  # all open runs are looked at this often, whatever was heard
UNSUPERVISED = 1.0  # … and this often, while nobody will tell of the end of one
LAZY = 0.2  # how long news that nobody waits for may wait for company in a commit
VANISHED_EVERY = 600.0  # s between two notes that claims of a user on a card were removed
AWAIT_LOOK = 0.01  # how long an end waits for the reading that lets its cards be used again

NO_NEWS_IF_BLIND = (Phase.NOT_STARTED, Phase.VOIDED, Phase.GONE)


class Carried:
    def __init__(
        self, *, store: Store, clock: Timer, cards: KnownCards, journal: Journal, soon: Callable[[float], None]
    ) -> None:
        self._store, self._clock, self._cards, self._journal, self._soon = store, clock, cards, journal, soon
        self.backends: dict[str, Backend] = {}
        self.runs: dict[RunId, Open] = {}
        self.neighbours = False  # whether the last look showed claims of others
        self._vanished: dict[tuple[int, str], float] = {}  # uid and card of claims whose files are gone -> when that was noted
        self._unconfirmed: list[Open] = []  # ended in the store, their backends not told yet
        self._sweep_at = 0.0
        self.due_at = 0.0  # when to call tick

    def open(self, backends: Mapping[str, Backend], grace_of: Callable[[float | None], float]) -> None:
        """Takes up what the store says may be alive."""
        self.backends = dict(backends)
        rows: dict[str, list[Adopted]] = {name: [] for name in backends}
        for row in runs.open_runs(self._store):
            run = of_row(row, legs.newest(self._store, (row["job"], row["n"])), grace_of)
            run.tried = self._cards.tried(run.id[0]) if run.failures or run.excused else ()
            self.add(run)
            if run.backend in rows:
                order = 0 if run.elasticity is None else run.elasticity.order
                rows[run.backend].append(Adopted(run.id, run.uni_id, run.handle, run.state != "starting", order))
            failpoint("engine.adopting")
        for name, backend in backends.items():
            backend.open(rows[name], self)

    def used(self) -> set[int]:
        """Allocations that are not only held."""
        alive = [run for run in self.runs.values() if not run.over]
        return {run.inside for run in alive if run.inside is not None} | {run.id[0] for run in alive if run.used}

    def close(self) -> None:
        for backend in self.backends.values():
            backend.close()

    def add(self, run: Open) -> None:
        self.runs[run.id] = run
        self._cards.run_opened(run)

    # --- what backends tell

    def changed(self, run: RunId) -> None:
        if run in self.runs:
            self.poll([run])

    def about_to_end(self, run: RunId) -> None:
        """The look that will be needed is asked for first, so that probe and engine work at the same time."""
        if run in self.runs and self.runs[run].leases:
            self.runs[run].look = self._cards.look()

    def wake(self) -> None:
        self.due_at = 0.0
        self._soon(0.0)

    def noted(self, run: RunId, kind: str, data: Mapping[str, Any]) -> None:
        if run in self.runs:
            self._journal.of_run(kind, self.runs[run], **data)

    def poll(self, ids: Collection[RunId] | None = None) -> None:
        """Asks what has become of these runs, or of all."""
        for name, backend in self.backends.items():
            asked = [id for id in (self.runs if ids is None else ids) if self.runs[id].backend == name and not self.runs[id].over]
            for report in backend.reports(asked) if asked else ():
                if report.run in self.runs and not self.runs[report.run].over:
                    self._hear(self.runs[report.run], report)

    def _hear(self, run: Open, report: RunReport) -> None:
        if (report.kind in NO_NEWS_IF_BLIND or not report.supervised) and not self._store.in_place():
            return  # what there is of it may lie where our state lies, and that is not to be seen
        if report.session is not None and report.session != run.session:
            run.session = report.session
            self._cards.run_has_session(run)
        if report.handle is not None and report.handle != run.handle:
            run.handle, run.handle_changed = report.handle, True
            self._soon(LAZY)
        if report.kind is Phase.NOT_STARTED:
            self._void(run)
        elif report.kind is Phase.VOIDED:
            run.voided = True
        elif report.kind is Phase.ENDED:
            run.exit = report.exit
        elif report.kind is Phase.GONE:
            run.exit = Exit(lost=report.cause or "exit_unknown")
        else:
            self._living(run, report)
        if run.over:
            self._ended(run)

    def _void(self, run: Open) -> None:
        """Recorded, but nobody is about to begin it. It is never started twice: it is made impossible, then queued again."""
        failpoint("engine.before_void")
        if self.backends[run.backend].void(run.id) is Void.NEVER:
            run.voided = True
        else:
            self._soon(LAZY)

    def _living(self, run: Open, report: RunReport) -> None:
        run.look = 0
        run.waits_there = report.why
        if report.kind is Phase.ALIVE and run.state == "starting" and not run.claimed:
            run.claimed = True
            self._soon(LAZY)
        if run.supervised and not report.supervised and run.paused:
            self._soon(0.0)  # it is not to stand still for ever
        run.supervised = report.supervised
        if run.stillness is not None:
            run.stillness.still = report.still
        if report.footing is not None and run.elasticity is not None and run.elasticity.hear(report.footing):
            self._soon(0.0)
        if not run.supervised:
            self.sweep_within(UNSUPERVISED)  # nobody will tell us of its end
            if report.pids:
                self._journal.once("unsupervised", run, pids=list(report.pids))
        elif report.pids:
            self._background(run, report.pids)

    def _background(self, run: Open, pids: tuple[int, ...]) -> None:
        """It runs on though its commands have ended: said once, and kept as its reason until it ends."""
        if self._journal.is_new(run.id, "background"):
            with contextlib.suppress(Unwritten), self._store.transaction():
                runs.background(self._store, run.id, run.batch, pids, self._clock.wall())
            self._journal.committed()

    def _ended(self, run: Open) -> None:
        now = self._clock.now()
        self._cards.run_left(run.leases, run.look, now)
        self._soon(AWAIT_LOOK if run.leases and self._cards.fresh(now) else 0.0)

    # --- claims on cards

    def claims(self, uuids: Collection[str]) -> list[Claimed]:
        """Every live claim on these cards, anybody's."""
        claims: list[Claimed] = []
        for backend in self.backends.values():
            if is_placing(backend):
                claims += backend.claims(uuids)
        return claims

    def see_neighbours(self, claims: Sequence[Claimed]) -> None:
        """Says of claims of others that their files were removed while they were held; they count all the same. Now and then of
        each user and card: who removes his own may do so all day, and the disk is ours."""
        now = self._clock.now()
        self.neighbours = any(not c.ours for c in claims)
        for c in claims:
            who = c.uid, c.uuid
            if not c.vanished or c.ours or now - self._vanished.get(who, -VANISHED_EVERY) < VANISHED_EVERY:
                continue
            self._vanished[who] = now
            print(f"the claim of uid {c.uid} on {who[1]} was removed while it was held; the card counts as held", file=sys.stderr)
            self._journal.event("vanished", uid=c.uid, gpu=self._cards.index(who[1]), uuid=who[1], claim=c.name)

    # --- what backends are told

    def start(self, recorded: Sequence[tuple[Open, Mapping[str, Any]]]) -> None:
        """Each with what it is given."""
        for name, backend in self.backends.items():
            launches = [Launch(run.id, run.handle, spec) for run, spec in recorded if run.backend == name]
            if launches:
                failpoint("engine.before_spawn")
                backend.start(launches)
                failpoint("engine.after_spawn")
        for run, _ in recorded:
            self.add(run)

    def stop(self, run: Open, *, kill: bool) -> None:
        """One that nobody has claimed yet is made impossible; one that lives is asked to end."""
        self.poll([run.id])  # it may have ended by itself, and a backend tells of each end once
        backend = self.backends.get(run.backend)
        if not run.over and backend is not None:
            backend.stop([run.id], kill=kill)
            run.kill_at = self._clock.now() + run.grace
            self.sweep_within(UNSUPERVISED)

    def longest_grace(self) -> float:
        return max((run.grace for run in self.runs.values()), default=0.0)

    def pause(self, run: Open) -> None:
        """Stands still or goes on, as is recorded of it; said again at each sweep, as a stop is."""
        backend = self.backends.get(run.backend)
        if run.stillness is None or run.over or run.told_to_stop or run.yielding or backend is None or not is_placing(backend):
            return
        backend.pause(run.id, paused=run.stillness.now)
        if run.stillness.now and not run.stillness.still:
            self.sweep_within(UNSUPERVISED)  # until it is seen

    def forget(self, run: Open, now: float) -> None:
        """Its end is recorded, and will be on the disk when it is confirmed."""
        del self.runs[run.id]
        if run.allocation:
            self._evict(run)
        self._cards.run_ended(run.id, now)
        self._journal.forget(run.id)
        self._unconfirmed.append(run)

    def _evict(self, allocation: Open) -> None:
        """What runs inside one that was released ends with it; one that was lost takes nothing with it."""
        if allocation.exit is not None and allocation.exit.lost:
            return
        for run in self.runs.values():
            if run.inside == allocation.id[0]:
                run.evicted = True
                self._soon(0.0)

    def clear(self, uuids: Collection[str]) -> None:
        """Failures on these cards until now are not held against them."""
        for run in self.runs.values():
            if run.tried:
                run.tried = tuple(t for t in run.tried if t[0] not in uuids)

    def confirm(self) -> None:
        """The disk has what was recorded."""
        ended, self._unconfirmed = self._unconfirmed, []
        for name, backend in self.backends.items():
            if ids := [run.id for run in ended if run.backend == name]:
                backend.forget(ids)

    # --- between ticks

    def sweep_within(self, seconds: float) -> None:
        self._sweep_at = min(self._sweep_at, self._clock.now() + seconds)
        self.due_at = min(self.due_at, self._sweep_at)

    def tick(self, now: float) -> bool:
        """What time alone brings about; whether all runs were looked at."""
        self.due_at = now + SWEEP
        due = [at for backend in self.backends.values() if (at := backend.tick(now)) is not None]
        swept = now >= self._sweep_at
        if swept:
            self._sweep(now)
        self.due_at = min(self.due_at, self._sweep_at, *due)
        return swept

    def _sweep(self, now: float) -> None:
        orphans = any(not run.supervised for run in self.runs.values())
        self._sweep_at = now + (UNSUPERVISED if orphans else SWEEP)
        self.poll()
        for name, backend in self.backends.items():
            ending = [r for r in self.runs.values() if r.told_to_stop or r.yielding]
            stopping = [r for r in ending if r.backend == name and not r.over]
            # said again: the first may have come before the run could hear it, or an earlier engine died before it said so
            supervised = [run for run in stopping if run.supervised]
            patience_lost = [run for run in stopping if not run.supervised and run.kill_at is not None and now >= run.kill_at]
            for run in stopping:
                if not run.supervised and run.kill_at is None:
                    self.stop(run, kill=False)  # an earlier engine told it, and nobody sees to its end any more
            for kill in (False, True):
                if ids := [run.id for run in supervised if (run.intent == "kill") is kill]:
                    backend.stop(ids, kill=kill)
            if patience_lost:
                backend.stop([run.id for run in patience_lost], kill=True)
        for run in self.runs.values():
            self.pause(run)

    # --- what people are told

    def allocation(self, job: int) -> Open | None:
        return next((run for run in self.runs.values() if run.id[0] == job and run.allocation), None)

    def on_card(self, uuid: str) -> list[Open]:
        return [run for run in self.runs.values() if any(lease.uuid == uuid for lease in run.leases)]

    def idle(self, now: float) -> dict[int, float]:
        """By allocation, for how many seconds nothing of ours is on its cards."""
        return {run.id[0]: now - run.idle_since for run in self.runs.values() if run.idle_since is not None}

    def absent(self) -> frozenset[RunId]:
        """Runs on targets that this engine does not have: it cannot stop them, nor learn of their ends."""
        return frozenset(run.id for run in self.runs.values() if run.backend not in self.backends)

    def remarks(self) -> dict[int, Reason]:
        """By job, what is remarkable of a run: where it was handed to keeps it waiting, or nobody here knows that place."""
        reasons: dict[int, Reason] = {}
        absent = self.absent()
        for run in self.runs.values():
            if run.id in absent:
                reasons[run.id[0]] = Reason(code=ABSENT, params={"target": run.backend})
            elif run.waits_there:
                reasons[run.id[0]] = Reason(code="waits_there", params={"target": run.backend, "why": run.waits_there})
        return reasons
