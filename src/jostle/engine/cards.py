"""The cards of this host as the engine knows them: readings asked for and heard, and what they tell of its runs.

Unknown is never good news. After the end of a run its cards count as unknown until a look that began later, and what the run
still shows on them for a moment is looked at again, soon and then ever less often.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from jostle.core.model import Gpu, Lease, Policy, Promise, RunId
from jostle.core.plan import Decision
from jostle.core.reasons import DRIVER_STARTING, UNREADABLE, Hold, Reason, as_text
from jostle.engine import allocations
from jostle.engine.health import Health, Tried
from jostle.engine.journal import Journal
from jostle.engine.observe import Observer, promises
from jostle.engine.open import Open
from jostle.engine.ports import Probe, Timer
from jostle.errors import Unwritten
from jostle.port import Claimed
from jostle.store import runs
from jostle.store.store import Store

STARTING_AFTER = 2.0  # s without a word of a fresh probe: then its driver is starting
LIVELY_FOR = 3.0  # s after a start or an end in which cards are looked at often
WATCH, WATCH_AGAIN = 20.0, 5.0  # s for which processes are watched after somebody looked, and after which that is said anew
LEFT_MIB = 64  # what a card may show more than before a run, when nothing is left of it


class KnownCards:
    probe: Probe

    def __init__(self, *, store: Store, clock: Timer, journal: Journal) -> None:
        self._store, self._clock, self._journal = store, clock, journal
        self.observer = Observer(os.getuid())
        self.observer.excluded = set(store.get("excluded", []))
        self.observer.health = Health.of(store)
        self._lively_until = 0.0
        self._vacated: dict[str, int] = {}  # cards an ended run may still show on -> their use before it
        self._relook = 0.0  # pause between looks at those: short at first
        self.relook_at: float | None = None
        self._watched_at = -WATCH_AGAIN
        self._after_look: list[Callable[[], None]] = []  # who waits for the next reading, once
        self._kept: dict[str, Any] = store.get("cards") or {"gpus": [], "read_at": None}
        self._reads = False  # whether the last snapshot has a card that could be read
        self._read_at: float | None = None  # when one last could

    @property
    def uid(self) -> int:
        return self.observer.uid

    @property
    def doubts(self) -> Mapping[str, tuple[int, ...]]:
        return self.observer.health.doubts

    def small_mib(self, *policies: Policy) -> None:
        """What these rules call small is watched for."""
        self.observer.small_mib = max(p.small_mib for p in policies)

    def close(self) -> None:
        self._keep_read_at()
        self.probe.close()

    # --- readings

    def heard(self, line: bytes, open_runs: Mapping[RunId, Open]) -> bool:
        """Takes a snapshot of the GPUs in; whether it is worth a decision."""
        now, observer = self._clock.now(), self.observer
        before = observer.snapshot
        waited = bool(observer.distrusted) or not observer.fresh(now)
        worth = observer.hear(line, now) or waited
        if observer.snapshot is not before:
            self._note_errors()
            self._see_use(open_runs)
            self._know()
        if self._reads:
            self._read_at = self._clock.wall()
        intruders = observer.intruders()
        allocations.look(open_runs.values(), observer, intruders, now)
        for kind, pairs in (("misplaced", observer.misplaced()), ("intruded", intruders)):
            for run, uuid, pid in pairs:
                if run in open_runs:
                    self._journal.once(kind, open_runs[run], gpu=observer.index(uuid), uuid=uuid, pid=pid)
        self._see_who_left(open_runs)
        self.answer_waiting()
        return worth

    def _know(self) -> None:
        """Which cards there are is kept for whoever looks when none of them can be read, and then also when one last could."""
        gpus = self.observer.snapshot["gpus"]
        self._reads = any(g["state"] == "ok" for g in gpus)
        if not self._reads:
            self._keep_read_at()
            return
        before = {card["uuid"]: card for card in self._kept["gpus"]}
        known = [_known(g) if g["state"] == "ok" else before.get(g["uuid"], _known(g)) for g in gpus if g["state"] != "mig"]
        self._keep({"gpus": known, "read_at": None})

    def _keep_read_at(self) -> None:
        if self._read_at is not None:
            self._keep({**self._kept, "read_at": self._read_at})

    def _keep(self, known: dict[str, Any]) -> None:
        if known != self._kept:
            try:
                with self._store.transaction(durable=False):
                    self._store.put("cards", known)
                self._kept = known
            except Unwritten:
                pass  # it is tried again when they change

    def _note_errors(self) -> None:
        """A rise is seen only from a count that is known, also by the next engine."""
        health = self.observer.health.seen(self.observer.snapshot["gpus"])
        if health is not None:
            self.observer.health = health
            try:
                with self._store.transaction(durable=False):
                    health.keep(self._store)
            except Unwritten:
                pass  # kept with what is recorded next

    def _see_use(self, open_runs: Mapping[RunId, Open]) -> None:
        """Which runs use more of a card than their jobs asked for: an event once, and shown for as long as it lasts."""
        for run in open_runs.values():
            run.beyond = {}
            for lease in run.leases:
                uuid, asked = lease.uuid, lease.mib
                used = self.observer.used_by_run(uuid, run.id) if asked is not None else 0
                if asked is not None and used > asked:
                    run.beyond[uuid] = {"used_mib": used, "asked_mib": asked}
                    self._journal.once("beyond", run, (uuid,), gpu=lease.index, uuid=uuid, used_mib=used, asked_mib=asked)

    def _see_who_left(self, open_runs: Mapping[RunId, Open]) -> None:
        """Forgets the cards that show no more of an ended run, or are in use again."""
        if self._vacated:
            used = self.observer.used_mib()
            taken = {lease.uuid for r in open_runs.values() if r.exit is None for lease in r.leases}
            shows = {uuid for uuid, before in self._vacated.items() if used.get(uuid, 0) > before + LEFT_MIB}
            self._vacated = {uuid: before for uuid, before in self._vacated.items() if uuid in shows - taken}

    def after_next_look(self, callback: Callable[[], None]) -> None:
        self._after_look.append(callback)

    def answer_waiting(self) -> None:
        waiting, self._after_look = self._after_look, []
        for callback in waiting:
            callback()

    # --- looks

    def look(self) -> int:
        return self.probe.look(self._clock.now())

    def watch(self) -> None:
        """Somebody looks: what each process does is read for a while, too."""
        if self._clock.now() - self._watched_at >= WATCH_AGAIN:
            self._watched_at = self._clock.now()
            self.probe.watch(WATCH)

    def pace(self, now: float, *, waiting: bool, running: bool) -> None:
        """How often to look from now on."""
        if waiting and not self.fresh(now) and self.probe.owed_since is None:
            self.probe.look(now)
        self.probe.rate(0.1 if waiting and now < self._lively_until else 0.5 if waiting else 1.0 if running else 10.0)

    def look_again(self, now: float, *, waiting: bool) -> float | None:
        """A card may show an ended run's memory for a moment: look soon, then less and less often; the next time."""
        if self.relook_at is not None and now >= self.relook_at:
            self.relook_at = None
            if self._vacated and waiting and now < self._lively_until:
                if self.probe.owed_since is None:
                    self.probe.look(now)
                self._relook = min(self._relook * 2, 0.1)
                self.relook_at = now + self._relook
        return self.relook_at

    def starting(self) -> Hold | None:
        """That the driver has not answered a fresh probe yet; None: it has, or still may in a moment."""
        since, now = self.probe.opening_since, self._clock.now()
        if since is None or now - since <= STARTING_AFTER:
            return None
        return Hold(DRIVER_STARTING, f"{now - since:.0f}", gpus_only=True)

    def hold(self) -> Hold | None:
        """Why nothing that needs a card may start."""
        snapshot = self.observer.snapshot
        code, error = snapshot["hold"], None if snapshot["gpus"] else snapshot["error"]
        unread = Hold(code, gpus_only=True) if code else Hold(UNREADABLE, error, gpus_only=True) if error else None
        return self.starting() or unread

    def trouble(self) -> str:
        """Why the cards cannot be read, if that is known: the text of a hold, or words of the driver."""
        return as_text(self.starting() or self.probe.trouble) or self.observer.snapshot["error"] or ""

    def owed_for(self) -> float:
        """How long an answer of the probe is due; an engine at rest looks rarely, and is owed none."""
        since = self.probe.owed_since
        return 0.0 if since is None else self._clock.now() - since

    # --- what is known

    def gpus(self, now: float) -> tuple[Gpu, ...]:
        return self.observer.gpus(now)

    def fresh(self, now: float) -> bool:
        return self.observer.fresh(now)

    def age(self, now: float) -> float | None:
        """Of the last reading; None: there was none."""
        return now - self.observer.read_at if self.observer.looked_once else None

    def promises(self, claims: Iterable[Claimed], open_runs: Iterable[Open]) -> tuple[Promise, ...]:
        held = {run.id: run.leases for run in open_runs}
        inside = {run.id: run.inside for run in open_runs if run.inside is not None}
        return promises(self.observer, claims, held, inside, self._clock.wall())

    def index(self, uuid: str) -> int | None:
        return self.observer.index(uuid)

    def read_at(self, g: Mapping[str, Any]) -> float:
        return self.observer.card_read_at(g)

    def run_of(self, p: Mapping[str, Any], uuid: str) -> RunId | None:
        """Which run of ours a process on a card is of."""
        return self.observer.run_of(p, uuid)

    def used_by(self, run: Open) -> int:
        """What a run uses of its cards."""
        return sum(self.observer.used_by_run(lease.uuid, run.id) for lease in run.leases)

    def peak_mib(self, run: RunId) -> int:
        return self.observer.peaks.get(run, 0)

    def beyond(self, open_runs: Iterable[Open]) -> dict[int, Reason]:
        """By job, why a run is remarkable: it uses more than was asked for."""
        return {
            run.id[0]: Reason(code="beyond", params={"gpu": self.observer.index(uuid), **use})
            for run in open_runs
            for uuid, use in run.beyond.items()
        }

    # --- runs come and go

    def run_opened(self, run: Open) -> None:
        uuids = [lease.uuid for lease in run.leases]
        self.observer.run_opened(run.id, run.uni_id, run.session, uuids, allocation=run.allocation)

    def run_has_session(self, run: Open) -> None:
        if run.session is not None:
            self.observer.sessions[run.session] = run.id

    def run_ended(self, run: RunId, now: float) -> None:
        self.observer.run_ended(run, now)

    def run_started(self, run: Open, now: float) -> None:
        self.observer.given_at.update((lease.uuid, now) for lease in run.leases)
        self._lively_until = now + LIVELY_FOR

    def run_resized(self, run: Open, more: Collection[str], now: float) -> None:
        """It holds other cards now; `more` are new to it."""
        self.observer.run_resized(run.id, [lease.uuid for lease in run.leases], more)
        self.observer.given_at.update(dict.fromkeys(more, now))
        self._lively_until = now + LIVELY_FOR

    def intruded(self, run: RunId, policy: Policy) -> list[str]:
        """The cards of a run that somebody else has come onto, with more than a little."""
        return self.observer.intruded(run, policy.small_mib, shares=policy.strangers == "share")

    def run_left(self, leases: Sequence[Lease], look: int, now: float) -> None:
        """A run has ended; `look` is the number of a look that began when its cards were given back, 0: none was asked for."""
        self._lively_until = now + LIVELY_FOR
        if leases:
            self.observer.distrust([lease.uuid for lease in leases], look or self.probe.look(now), now)
            self._vacated.update({lease.uuid: lease.used_at_start_mib for lease in leases})
            self._relook = 0.002
            self.relook_at = now + self._relook

    # --- what is held against them

    def tried(self, job: int) -> Tried:
        return self.observer.health.held(runs.tried(self._store, job))

    def verdicts_recorded(self, decisions: Iterable[Decision], gpus: Iterable[Gpu], at: float) -> Health:
        """What is held against cards as these decisions make it; it counts when the open transaction is committed."""
        return self.observer.health.recorded(self._store, decisions, gpus, at)

    def pardon(self, uuids: Collection[str], at: float) -> Health:
        """A person takes cards back: recorded, and counts when the open transaction is committed."""
        health = self.observer.health.pardon([g for g in self.gpus(self._clock.now()) if g.uuid in uuids], at)
        health.keep(self._store)
        return health

    def judge(self, health: Health) -> None:
        self.observer.health = health

    # --- what people ask for, and about

    def facts(self) -> Sequence[Mapping[str, Any]]:
        """Of the last reading, by card: see CARD in observe.py."""
        return self.observer.snapshot["gpus"]  # type: ignore[no-any-return]

    @property
    def driver(self) -> str | None:
        return self.observer.snapshot["driver"]  # type: ignore[no-any-return]

    @property
    def excluded(self) -> Collection[str]:
        return self.observer.excluded

    def exclude(self, uuids: Collection[str]) -> None:
        """From now on these, and no others."""
        self.observer.excluded = set(uuids)

    @property
    def faulty(self) -> Collection[str]:
        return self.observer.health.faulty


def _known(g: Mapping[str, Any]) -> dict[str, Any]:
    return {"index": g["index"], "uuid": g["uuid"], "name": g["name"] or "", "total_mib": g["total_mib"]}
