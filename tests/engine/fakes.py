"""A world in which time is a number: a disk that survives the engine, a backend and a probe that live on it."""

from __future__ import annotations

import gc
import json
import os
import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle import failpoint
from jostle.core.model import Exit, RunId
from jostle.core.reasons import Hold, Reason
from jostle.engine import checks
from jostle.engine.engine import Engine
from jostle.port import (
    BY_HAND,
    Adopted,
    Backend,
    Claimed,
    Denied,
    Footing,
    Launch,
    Phase,
    Recipient,
    Reserved,
    Resizing,
    RunReport,
    Tenure,
    Void,
)  # fmt: skip
from jostle.store import intents, jobs
from jostle.store.store import Store

FOREVER = 1e9


@dataclass
class FakeClock:
    at: float = 1000.0
    boot: str = "boot-1"

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.at + 5e8


@dataclass
class Process:
    """What a started run is here: it holds its cards until its end and then has an exit."""

    run: RunId
    uuids: tuple[str, ...]
    mib: int | None
    began: float
    ends: float
    code: int = 0
    tail: str = ""
    signalled: bool = False
    shim: int = 0
    how: str = ""  # it gets other cards so; `uuids` are those that it holds
    effective: int = 1
    order: int = 1  # the last that was taken, or will not be taken any more
    why: str = ""
    listed: tuple[str, ...] = ()
    left: float | None = None  # it stands still, and would have run for so long yet
    supervised: bool = True

    @property
    def still(self) -> bool:
        return self.left is not None


@dataclass
class Disk:
    """Everything that outlives an engine."""

    gpus: int = 4
    total: int = 24576
    processes: dict[RunId, Process] = field(default_factory=dict)
    voided: set[RunId] = field(default_factory=set)
    boot: str = "boot-1"
    overlaps: list[str] = field(default_factory=list)
    doubled: list[RunId] = field(default_factory=list)
    strangers: dict[str, int] = field(default_factory=dict)  # uuid -> MiB of another user
    durations: dict[int, tuple[float, int, str]] = field(default_factory=dict)  # job -> seconds, code, tail
    lag: float = 0.0  # how long memory goes on showing after an end
    errors: dict[str, int] = field(default_factory=dict)  # uuid -> uncorrected errors of its memory
    broken: dict[str, tuple[float, int, str]] = field(default_factory=dict)  # uuid -> how every run ends there
    told_to_end: set[RunId] = field(default_factory=set)  # by somebody outside: their shims say so
    rows: set[str] = field(default_factory=set)  # cards with a row that could not be replaced
    deaf: set[int] = field(default_factory=set)  # jobs whose programs do not listen for other cards
    clinging: set[str] = field(default_factory=set)  # cards that programs do not leave when they are told to
    resizes: list[tuple[float, RunId, int, tuple[str, ...]]] = field(default_factory=list)  # when, whose, order, cards
    loads: dict[str, int] = field(default_factory=dict)  # uuid -> utilisation
    pauses: list[tuple[float, RunId, bool]] = field(default_factory=list)  # when, whose, whether it stands still from then on
    unread: set[str] = field(default_factory=set)  # cards that do not answer
    late: dict[str, dict[str, Any]] = field(default_factory=dict)  # cards that do not for the moment: as they were last seen

    def uuids(self) -> list[str]:
        return [f"GPU-{i}" for i in range(self.gpus)]

    def alive(self, now: float) -> list[Process]:
        return [p for p in self.processes.values() if p.ends > now]

    def start(
        self, run: RunId, uuids: tuple[str, ...], mib: int | None, now: float, shim: int = 0, how: str = ""
    ) -> None:
        if run in self.processes or run in self.voided:
            return  # the claim is taken: this is what makes a second spawn harmless
        self.see_overlap(run, uuids, mib, now)
        if any(run[0] == p.run[0] for p in self.alive(now)):
            self.doubled.append(run)
        seconds, code, tail = self.durations.get(run[0], (5.0, 0, ""))
        for uuid in uuids:
            seconds, code, tail = self.broken.get(uuid, (seconds, code, tail))
        if how == "hold":  # an allocation: it computes nothing, and goes when it is told to
            seconds = self.durations.get(run[0], (FOREVER,))[0]
        self.processes[run] = Process(run, uuids, mib, now, now + seconds, code, tail, shim=shim, how=how, listed=uuids)

    def on(self, p: Process) -> set[str]:
        """The cards that its program uses."""
        if p.how == "hold":
            return set()
        return {*p.listed, *(uuid for uuid in p.uuids if uuid in self.clinging)}

    def see_overlap(self, run: RunId, uuids: Collection[str], mib: int | None, now: float) -> None:
        for p in self.alive(now):
            for uuid in set(p.uuids) & set(uuids) if p.run != run else ():
                both = [q.mib for q in self.alive(now) if uuid in q.uuids] + [mib]
                if None in both or sum(m or 0 for m in both) > self.total:
                    self.overlaps.append(f"{run} and {p.run} on {uuid}")

    def resize(self, order: Resizing, coming: Collection[str], now: float) -> None:
        """As a shim does: each order once, and none that comes late."""
        p = self.processes.get(order.run)
        if p is None or p.ends <= now or not p.how or order.number <= p.order:
            return
        p.order, p.why = order.number, ""
        if not set(order.cards) <= {*p.uuids, *coming}:
            p.why = "absurd"
        elif p.how == "signal" and order.run[0] in self.deaf:
            p.why = "no_listener"
        else:
            self.see_overlap(p.run, order.cards, p.mib, now)
            p.effective, p.listed = order.number, order.cards
            p.uuids = order.cards if p.how == "restart" else tuple(dict.fromkeys([*p.uuids, *order.cards]))
            self.resizes.append((now, p.run, p.effective, order.cards))


class FakeBackend:
    """A host whose processes are entries of a disk."""

    places = True
    trouble: Hold | None = None

    def __init__(self, disk: Disk, clock: FakeClock, home: str = "") -> None:
        self.disk, self.clock, self.home = disk, clock, home
        self.spares = 4
        self.conflicts: set[str] = set()
        self.reserved: dict[RunId, Sequence[tuple[str, int | None]]] = {}
        self.more: dict[RunId, list[str]] = {}
        self.forgotten: set[RunId] = set()
        self.taken: set[RunId] = set()  # of a database that was put back: there were such runs
        self.deaf = False  # what it is told to stop goes on
        self.boots: dict[RunId, str] = {}
        self.begun: set[RunId] = set()

    def open(self, rows: Sequence[Adopted], listener: Recipient) -> None:
        self.listener = listener
        for row in rows:
            p = self.disk.processes.get(row.run)
            if p is not None and p.order < row.order:  # what has not arrived never will
                p.order, p.why = row.order, "lost"
        self.boots.update({row.run: json.loads(row.handle)["boot"] for row in rows})
        self.begun.update(row.run for row in rows if row.begun)

    def close(self) -> None: ...
    def tick(self, now: float) -> float | None:
        return None

    def capacity(self) -> int:
        return self.spares

    def log_path(self, run: RunId, uni_id: str) -> str:
        return f"{self.home}/runs/{run[0]}.{run[1]}/log"

    def claims(self, uuids: Collection[str]) -> list[Claimed]:
        found = []
        for p in self.disk.alive(self.clock.at):
            for uuid in p.uuids:
                name = f"{uuid}~{p.shim}~{p.run[0]}.{p.run[1]}"
                found.append(Claimed(uuid=uuid, mib=p.mib, run=p.run, session=p.shim, name=name, uid=os.getuid(), ours=True))
        return found

    def reserve(
        self, run: RunId, node: str, wants: Sequence[tuple[str, int | None]], known: frozenset[str], *, alone: bool,
        tenure: Tenure = BY_HAND,
    ) -> Reserved | Denied:  # fmt: skip
        if not self.spares:
            return Denied.ASKED
        if run in self.taken:
            return Denied.TAKEN
        if any(uuid in self.conflicts for uuid, _ in wants):
            return Denied.REFUSED
        self.reserved[run] = wants
        shim = shim_of(run)
        return Reserved(handle=json.dumps({"pid": shim, "ticks": 1, "boot": self.clock.boot}), session=shim)

    def withdraw(self, runs: Collection[RunId]) -> None:
        for run in runs:
            self.reserved.pop(run, None)
            self.more.pop(run, None)

    def reserve_more(
        self, run: RunId, wants: Sequence[tuple[str, int | None]], known: frozenset[str], *, alone: bool,
        tenure: Tenure = BY_HAND,
    ) -> Denied | None:  # fmt: skip
        if any(uuid in self.conflicts for uuid, _ in wants):
            return Denied.REFUSED
        self.more[run] = [uuid for uuid, _ in wants]
        failpoint.failpoint("resize.reserved")
        return None

    def resize(self, orders: Sequence[Resizing]) -> None:
        for order in orders:
            failpoint.failpoint("resize.before_order")
            self.disk.resize(order, self.more.pop(order.run, []), self.clock.at)
            failpoint.failpoint("resize.ordered")
            self.listener.changed(order.run)

    def give_up(self, run: RunId, order: int, cards: Collection[str]) -> None:
        p = self.disk.processes.get(run)
        if p is not None and order == p.effective and not set(cards) & set(p.listed):
            p.uuids = tuple(uuid for uuid in p.uuids if uuid not in cards)
            self.listener.changed(run)

    def pause(self, run: RunId, *, paused: bool) -> None:
        p = self.disk.processes.get(run)
        if p is None or p.ends <= self.clock.at or p.signalled:
            return
        paused = paused and p.supervised  # without a shim nobody is stopped
        if paused != p.still:
            self.disk.pauses.append((self.clock.at, run, paused))
            p.ends, p.left = (FOREVER, p.ends - self.clock.at) if p.left is None else (self.clock.at + p.left, None)

    def footing(self, p: Process) -> Footing | None:
        return Footing(p.effective, p.order, not p.why, p.uuids, p.why) if p.how else None

    def start(self, launches: Sequence[Launch]) -> None:
        for launch in launches:
            wants = self.reserved.pop(launch.run, None)
            if wants is None:
                continue  # it was started before
            self.boots[launch.run] = self.clock.boot
            mib = wants[0][1] if wants else None
            how = launch.spec.get("resize") or ""
            self.disk.start(launch.run, tuple(u for u, _ in wants), mib, self.clock.at, shim_of(launch.run), how)

    def reports(self, runs: Collection[RunId] | None = None) -> list[RunReport]:
        return [self.report(run) for run in (self.boots if runs is None else runs)]

    def report(self, run: RunId) -> RunReport:
        p, shim = self.disk.processes.get(run), shim_of(run)
        if p is None and run in self.disk.voided:
            return RunReport(run=run, kind=Phase.VOIDED)
        if p is None and self.boots.get(run, self.clock.boot) != self.clock.boot:
            return RunReport(run=run, kind=Phase.GONE, cause="host_rebooted")
        if p is None:
            gone = run in self.begun  # its directory was removed
            return RunReport(run=run, kind=Phase.GONE if gone else Phase.NOT_STARTED, cause="exit_unknown" if gone else "")
        if p.ends > self.clock.at:
            alive = self.disk.boot == self.clock.boot
            living = RunReport(
                run=run, kind=Phase.ALIVE, session=shim, footing=self.footing(p), still=p.still, supervised=p.supervised,
                pids=() if p.supervised else (1,),
            )  # fmt: skip
            return living if alive else RunReport(run=run, kind=Phase.GONE, cause="host_rebooted")
        number = 15 if p.signalled else None
        code, stopped = 143 if number else p.code, run in self.disk.told_to_end
        end = Exit(code=code, signal=number, tail=p.tail, ran_for=p.ends - p.began, stopped=stopped)
        if p.how == "hold":
            end = Exit(code=0, released="asked", ran_for=p.ends - p.began)
        return RunReport(run=run, kind=Phase.ENDED, exit=end, session=shim)

    def void(self, run: RunId) -> Void:
        if run in self.disk.processes:
            return Void.STARTED
        self.disk.voided.add(run)
        return Void.NEVER

    def stop(self, runs: Collection[RunId], *, kill: bool) -> None:
        for run in () if self.deaf else runs:
            p = self.disk.processes.get(run)
            if p is not None and p.ends > self.clock.at:
                p.ends, p.signalled, p.left = self.clock.at + (0.0 if kill else 0.5), True, None

    def forget(self, runs: Collection[RunId]) -> None:
        self.forgotten.update(runs)
        for run in runs:
            self.boots.pop(run, None)


def shim_of(run: RunId) -> int:
    """No such process."""
    return 900_000_000 + run[0] * 1000 + run[1]


class FakeProbe:
    opening_since: float | None = None
    trouble: Hold | None = None

    def __init__(self, disk: Disk, clock: FakeClock) -> None:
        self.disk, self.clock = disk, clock
        self.asked = 0
        self.owed_since: float | None = None
        self.silent = False
        self.lines: list[bytes] = []

    def open(self, now: float) -> None:
        self.lines.append(self.line())

    def close(self) -> None: ...
    def rate(self, period: float) -> None: ...
    def watch(self, seconds: float) -> None: ...
    def tick(self, now: float) -> float | None:
        return None

    def look(self, now: float) -> int:
        self.asked += 1
        self.owed_since = now
        if not self.silent:
            self.lines.append(self.line())
        return self.asked

    def line(self) -> bytes:
        gpus = []
        now = self.clock.at
        for i, uuid in enumerate(self.disk.uuids()):
            procs, used = [], 0
            for p in self.disk.processes.values():
                if uuid in self.disk.on(p) and p.began <= now < p.ends + self.disk.lag:
                    size = self.disk.total - 512 if p.mib is None else p.mib
                    used += size
                    if p.ends > now:
                        procs.append(
                            {
                                "pid": 1,
                                "used_mib": size,
                                "uid": os.getuid(),
                                "sid": p.shim or None,
                                "user": "me",
                                "name": "job",
                                "mark": None,
                            }
                        )
            foreign = self.disk.strangers.get(uuid, 0)
            if foreign:
                used += foreign
                procs.append(
                    {"pid": 2, "used_mib": foreign, "uid": 54321, "sid": None, "user": "bob", "name": "py", "mark": None}
                )
            used = min(used, self.disk.total)
            load = self.disk.loads.get(uuid, 0)
            if uuid in self.disk.late:
                gpus.append(self.disk.late[uuid])
                continue
            if uuid in self.disk.unread:
                gpus.append({"index": i, "uuid": uuid, "name": "fake", "state": "unreadable", "error": "no answer",
                             "total_mib": self.disk.total, "used_mib": 0, "free_mib": 0, "utilization": None,
                             "procs": []})  # fmt: skip
                continue
            gpus.append({"index": i, "uuid": uuid, "name": "fake", "state": "ok", "error": "", "total_mib": self.disk.total,
                         "used_mib": used, "free_mib": self.disk.total - used, "utilization": load, "procs": procs,
                         "ecc_uncorrected": self.disk.errors.get(uuid), "remap_failed": uuid in self.disk.rows})  # fmt: skip
        none = dict.fromkeys(("driver", "error", "hold"))
        head = {"at": now, "seq": self.asked, "asked": self.asked or None, **none, "gpus": gpus}
        return json.dumps(head).encode()


HOSTS: weakref.WeakSet[Host] = weakref.WeakSet()
"""All that there are: see conftest.py."""


class Host:
    """One machine: its disk, its clock, and the engine that runs on it just now."""

    def __init__(self, home: str, **disk: Any) -> None:
        self.home = home
        self.disk = Disk(**disk)
        self.clock = FakeClock()
        self.crashes = self.submits = 0
        HOSTS.add(self)
        gc.collect()
        gc.freeze()  # as daemon.py does: a sweep collects, and need not look through pytest and hypothesis each time
        self.boot()

    def boot(self) -> None:
        """A new engine on what the last one left; it may crash on the way up, too."""
        while True:
            try:
                self.store = Store(self.home)
                self.backend = FakeBackend(self.disk, self.clock, self.home)
                self.probe = FakeProbe(self.disk, self.clock)
                self.engine = Engine(home=self.home, devices="fake", store=self.store, clock=self.clock, settings={})
                self.engine.open(self.backends(), self.probe)
                return
            except failpoint.Crashed:
                self.crash()

    def backends(self) -> dict[str, Backend]:
        return {"local": self.backend}

    def let_go(self) -> None:
        """Of what the process of an engine would let go with its end."""
        if hasattr(self, "engine"):
            self.engine.history._file.close()

    def crash(self) -> None:
        self.crashes += 1
        self.let_go()
        self.store.db.close()
        os.close(self.store.journal)

    def submit(self, *given: dict[str, Any], policy: dict[str, Any] | None = None, once: str | None = None) -> list[int]:
        full = [{"commands": ["true"], "workdir": "/", **g} for g in given]
        self.submits += 1
        once = once or f"submit {self.submits}"  # a client that got no answer asks again with the same key
        request = checks.request({"batch": {"policy": policy or {}}, "jobs": full, "once": once})
        answer = self.request(
            lambda: jobs.submit(self.store, request, at=self.clock.wall(), now=self.clock.now(), rank=lambda: 0.5)
        )
        first, last = answer["ids"]
        return list(range(first, last + 1))

    def cancel(self, id: int) -> Reason | None:
        answer = self.request(lambda: intents.cancel(self.store, [id], False, at=self.clock.wall(), now=self.clock.now()))
        self.engine.people_want(dict.fromkeys(answer[0], "cancel"))
        return answer[1][0][1] if answer[1] else None

    def request(self, act: Callable[[], Any]) -> Any:
        """As a client does: again, if the engine died before it answered."""
        for _ in range(3):
            try:
                with self.store.transaction():
                    answer = act()
                self.engine.soon()
                return answer
            except failpoint.Crashed:
                self.crash()
                self.boot()
        raise AssertionError("the engine dies at each request")

    def step(self, seconds: float = 0.0) -> None:
        """Lets time pass and everything happen that is due; a crash brings a new engine."""
        self.clock.at += seconds
        if seconds and not self.probe.silent:
            self.probe.lines.append(self.probe.line())  # the readings that come unasked
        try:
            for run in self.engine.open_ids():
                self.engine.carried.changed(run)
            for _ in range(20):
                self.hear()
                if self.engine.tick_at is not None and self.engine.tick_at <= self.clock.at:
                    self.engine.tick()
                elif not self.probe.lines:
                    break
            if self.engine.settle_at is not None and self.engine.settle_at <= self.clock.at:
                self.engine.settle()
            self.engine.housekeeping_at = self.engine.housekeeping(self.clock.at)
        except failpoint.Crashed:
            self.crash()
            self.boot()

    def hear(self) -> None:
        lines, self.probe.lines = self.probe.lines, []
        for line in lines:
            self.probe.owed_since = None
            self.engine.heard(line)

    def settle(self, at_most: float = 5000.0, step: float = 1.0) -> None:
        """Until nothing is left to do."""
        until = self.clock.at + at_most
        while jobs.unfinished(self.store):
            assert self.clock.at < until, f"still unfinished: {self.states()}"
            self.step(step)

    def states(self) -> dict[int, str]:
        return dict(self.store.db.execute("SELECT id, state FROM job ORDER BY id").fetchall())

    def job(self, id: int) -> dict[str, Any]:
        cursor = self.store.db.execute("SELECT * FROM job WHERE id = ?", (id,))
        return dict(zip([d[0] for d in cursor.description], cursor.fetchone(), strict=True))

    def why(self, id: int) -> str | None:
        reason = self.engine.waits.get(self.job(id)["shape"])
        return reason.code if reason else None
