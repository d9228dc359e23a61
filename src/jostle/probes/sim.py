"""Simulated GPUs: a world in a directory, which any number of probes and engines may share.

    JOSTLE_SIM_DIR (else $JOSTLE_HOME/sim)
      began        boot id and BOOTTIME second at which this world's time is 0; made once, renewed after a reboot
      use/PID      lines `INDEX-or-UUID MIB [UTIL]`: what the process PID says that it uses, for as long as it lives
                   (written whole: under another name, then renamed)

What shows on a GPU is the sum of
- the scenario's strangers (see scenario.py);
- runs: a claim file in the lease directory counts while it is locked and a process of its session lives. It shows the
  scenario's share of its promise, after `lag`, growing over `ramp`. When a process of the same session has a `use`
  file, that speaks for the run instead. `free_lag` is kept by each probe by itself, from the look that first misses
  the claim;
- `use` files. One of a dead process is removed.
Of what is stopped (SIGSTOP) the memory shows, and no load.

A claim's age is taken once, when this probe first sees it: wall time less the file's mtime, at least 0 and at most
the age of its session's process; from then on by BOOTTIME. So a clock that jumps matters only between those two, and
never makes a claim older than its process.

A world that several users share is a directory that one of them made for it (mode 1777); one that a probe makes is
private.

More than the card has never shows: then `overcommitted` is true, by which tests find promises that were too big.
`reading` is pure. `Sim` gathers what it needs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from jostle import proc
from jostle.errors import JostleError
from jostle.probes import scenario as scenarios
from jostle.probes.holders import Holders, unknown
from jostle.probes.relay import LastReading, all_silent, late
from jostle.probes.scenario import Runs, Scenario, ScenarioCard, Stranger, reserved_mib
from jostle.probes.snapshot import LOST, MISMATCH, GpuReading, Hung, Proc, Reading, blind, failed
from jostle.probes.world import Claims, HeldCard, ProcessUse, SimWorld, boottime, lease_dir, version, world_dir

DRIVER = "simulated"


class _Load:
    """What adds up on one card."""

    def __init__(self) -> None:
        self.mib = 0
        self.utilization = 0
        self.procs: list[Proc] = []

    def add(self, mib: int, utilization: int, who: Proc | None) -> None:
        self.mib += mib
        self.utilization += utilization
        if who is not None:
            who["sm"] = utilization
            self.procs.append(who)


def reading(scenario: Scenario, t: float, claims: Iterable[HeldCard] = (), uses: Iterable[ProcessUse] = ()) -> list[GpuReading]:
    """The GPUs as a driver would show them, t seconds after the world began. Strangers are named, others bare pids."""
    now = scenario.when(t)
    loads = [_Load() for _ in scenario.cards]
    places = {card.uuid: place for place, card in enumerate(scenario.cards)}
    for stranger in scenario.strangers:
        if stranger.window.holds(now):
            _add_stranger(loads[stranger.card], stranger, now)
    for held in claims:
        if held.uuid in places:
            _add_run(loads[places[held.uuid]], scenario.runs, held, scenario.cards[places[held.uuid]].total_mib)
    for use in uses:
        place = int(use.gpu) if use.gpu.isdecimal() else places.get(use.gpu, -1)
        if 0 <= place < len(loads):
            loads[place].add(use.mib, use.utilization, unknown(use.pid, use.mib))
    return _listed(scenario, now, loads)


def _add_stranger(load: _Load, stranger: Stranger, now: float) -> None:
    mib = _grown(stranger.used_mib, now - stranger.window.start, stranger.ramp)
    who = unknown(stranger.pid, mib, stranger.kind)
    if not stranger.real:
        who["uid"], who["user"], who["sid"] = stranger.uid, stranger.user, stranger.pid
        who["name"], who["exe"] = stranger.name, stranger.exe
    load.add(mib, stranger.utilization, None if stranger.hidden else who)


def _add_run(load: _Load, runs: Runs, held: HeldCard, total_mib: int) -> None:
    if held.age < runs.lag:
        return
    promise = total_mib - reserved_mib(total_mib) if held.mib is None else held.mib
    full = runs.use if isinstance(runs.use, int) else round(promise * runs.use)
    mib = _grown(full, held.age - runs.lag, runs.ramp)
    if held.gone_for is None:
        load.add(mib, 0 if held.still else runs.utilization, unknown(held.pid, mib))
    elif held.gone_for < runs.free_lag:
        load.add(mib, 0, None)


def _grown(mib: int, since: float, ramp: float) -> int:
    return mib if since >= ramp else int(mib * since / ramp)


def _listed(scenario: Scenario, now: float, loads: Sequence[_Load]) -> list[GpuReading]:
    """The cards in the order and with the indices that a driver would give them."""
    mishaps = [m for m in scenario.mishaps if m.window.holds(now)]
    happening = {(m.card, m.kind) for m in mishaps}
    slices = [p for p, card in enumerate(scenario.cards) if card.parent is not None and card.window.holds(now)]
    parents = {scenario.cards[p].parent for p in slices}
    order = [p for p, card in enumerate(scenario.cards) if card.parent is None and (p, "missing") not in happening]
    order.sort(key=lambda p: (p, "reorder") in happening)
    order += [p for p in slices if (scenario.cards[p].parent, "missing") not in happening]
    shown: list[GpuReading] = []
    for index, place in enumerate(order):
        card = scenario.cards[place]
        body = place if card.parent is None else card.parent
        if (body, "lost") in happening:
            shown.append(_blind(index, card, "lost", LOST))
        elif (body, "unreadable") in happening:
            shown.append(_blind(index, card, "unreadable", "Unknown Error"))
        elif place in parents:
            shown.append(_blind(index, card, "mig", ""))
        else:
            shown.append(_readable(index, card, loads[place]))
            shown[-1]["ecc_uncorrected"] = sum(m.kind == "ecc" and m.card == body for m in mishaps)
            shown[-1]["remap_failed"] = (body, "remap") in happening
    return shown


def _blind(index: int, card: ScenarioCard, state: str, error: str) -> GpuReading:
    return blind(index, card.uuid, card.name, state, error, card.total_mib, card.parent is not None)


def _readable(index: int, card: ScenarioCard, load: _Load) -> GpuReading:
    used, utilization = min(load.mib, card.total_mib), min(load.utilization, 100)
    return {
        "index": index,
        "uuid": card.uuid,
        "name": card.name,
        "state": "ok",
        "error": "",
        "total_mib": card.total_mib,
        "used_mib": used,
        "free_mib": card.total_mib - used,
        "utilization": None if card.parent is not None else utilization,  # as MIG slices have none
        "temperature": 35 + utilization * 4 // 10,
        "power_w": 60.0 + 2 * utilization,
        "power_limit_w": 300.0,
        "fan": utilization // 2,
        "sm_mhz": 210 + 23 * utilization,
        "memory_mhz": 10501 if utilization else 405,
        "mig_slice": card.parent is not None,
        "pci": "",  # it sits nowhere
        "procs": load.procs,
        "reserved_mib": reserved_mib(card.total_mib),
        "compute_mode": card.compute_mode,
        "overcommitted": load.mib > card.total_mib,
    }


class Sim:
    """The probe of one simulated world."""

    spent = False

    def __init__(self, name: str) -> None:
        self._name = name
        self._file = None if scenarios.is_shape(name) else name
        self._version: tuple[int, int, int] | None = None
        self._scenario: Scenario | None = None
        self._error = ""
        self._world: SimWorld | None = None
        self._claims = Claims(lease_dir())
        self._holders = Holders()
        self._last: dict[int, LastReading] = {}
        self._look = 0
        self._began = time.monotonic()
        self._watched_until = 0.0

    def watch(self, seconds: float) -> None:
        self._watched_until = time.monotonic() + seconds

    def read(self, asked: int | None = None, again: bool = True) -> Reading:
        self._look = max(self._look, asked or 0)
        scenario = self._current()
        if scenario is None:
            return failed(self._error)
        try:
            self._world = self._world or SimWorld(world_dir())
            elapsed = boottime() - self._world.began_at
            uses, stats = self._world.uses()
        except OSError as e:
            self._world = None
            return failed(f"the simulated world cannot be used: {e}")
        now = scenario.when(elapsed)
        if any(window.holds(now) for window in scenario.hang):
            raise Hung
        if any(window.holds(now) for window in scenario.mismatch):
            return failed(MISMATCH, "driver_mismatch")
        claims = self._claims.look(scenario.runs.free_lag, stats, frozenset(card.uuid for card in scenario.cards))
        gpus = reading(scenario, elapsed, claims, uses)
        self._name_holders(gpus, stats)
        gpus = self._late(gpus, scenario, now)
        return {"driver": DRIVER, "error": None, "hold": None, "gpus": gpus}

    def _current(self) -> Scenario | None:
        """The scenario, read again when its file has changed; None if it cannot be read."""
        current = version(self._file)
        if current != self._version or (self._scenario is None and not self._error):
            try:
                self._scenario, self._error = scenarios.load(self._name), ""
            except JostleError as e:
                self._scenario, self._error = None, str(e)
            self._version = current
        return self._scenario

    def _late(self, gpus: list[GpuReading], scenario: Scenario, now: float) -> list[GpuReading]:
        """The same with the cards that do not answer as they were last seen."""
        places = {card.uuid: place for place, card in enumerate(scenario.cards)}
        hung = {m.card: now - m.window.start for m in scenario.mishaps if m.kind == "hang" and m.window.holds(now)}
        at, readings = time.monotonic(), []
        for gpu in gpus:
            place = places[gpu["uuid"]]
            body = scenario.cards[place].parent
            silent_for = hung.get(place if body is None else body)
            if silent_for is None:
                self._last[place] = LastReading([gpu], at, self._look)
                readings.append(gpu)
                continue
            last = self._last.get(place)
            since = max(at - silent_for, last.at if last else self._began)
            readings += late(gpu["index"], last, since, since, at, len(gpus))
            readings[-1]["uuid"], readings[-1]["index"] = gpu["uuid"], gpu["index"]
        if all_silent(readings):
            raise Hung
        return readings

    def _name_holders(self, gpus: list[GpuReading], stats: dict[int, proc.Stat]) -> None:
        living: set[int] = set()
        watched = time.monotonic() < self._watched_until
        for gpu in gpus:
            for i, who in enumerate(gpu["procs"]):
                living.add(who["pid"])
                load = who.pop("sm")
                if who["uid"] is None:
                    stat = stats.get(who["pid"])
                    gpu["procs"][i] = who = self._holders.describe(who["pid"], who["used_mib"], who["kind"], stat)
                if watched and not gpu["mig_slice"]:
                    who["sm"] = load
        self._holders.forget_dead(living)
