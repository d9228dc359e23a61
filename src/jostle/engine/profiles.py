"""How runs use their cards: what is added up while they live, and what is kept of it when they have ended.

Rules: what a reading shows counts for the time since the one before it, unless nobody looked for long: `observed_s` says of how
much of the run the rest speaks. What an engine has seen of a run it hands on to the next one through the history, once a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jostle.core.model import RunId
from jostle.engine import curve
from jostle.engine.curve import Curve
from jostle.engine.observe import SAMPLES_APART, UNSEEN, Observer
from jostle.engine.open import Open

FIRST = 1.0  # s that the first one speaks for
MIB = 32  # memory is told as a multiple of it
JOB = "#"  # before the number of a job of ours; no user is called so
SHARED = 10  # others who were there, those who stayed longest
MOST_PROCESSES = 200  # of a run, whose most is remembered; then half of them, those that live and the largest
MOST_SHARED = 200  # of whom is remembered how long; then half of them, those who stayed longest
BELIEVED = 1e12  # a larger number is no reading, nor is one that is none

Weights = dict[int, float]
"""Seconds by value."""


@dataclass(slots=True)
class RunUse:
    """What was seen of a run."""

    observed_s: float = 0.0
    memory: Weights = field(default_factory=dict)  # MiB on that of its cards where it uses most
    load: Weights = field(default_factory=dict)  # percent, the mean of its cards, whoever makes it
    idle_s: float = 0.0
    peak_mib: int = 0
    peak_at_s: float | None = None  # after its start
    shared: dict[str, float] = field(default_factory=dict)  # by user or job: seconds
    gpu_name: str = ""
    gpu_mib: int | None = None
    curve: Curve = field(default_factory=Curve)
    processes: dict[str, int] = field(default_factory=dict)  # by `process`: the most that each was seen to hold on cards, MiB

    def see_processes(self, held: Mapping[str, int]) -> None:
        for process, mib in held.items():
            self.processes[process] = max(mib, self.processes.get(process, 0))
        if len(self.processes) > MOST_PROCESSES:
            largest = sorted(self.processes.items(), key=lambda pair: (pair[0] not in held, -pair[1]))
            self.processes = dict(largest[: MOST_PROCESSES // 2])

    def add(self, seconds: float, memory: int | None, load: int | None) -> None:
        self.observed_s += seconds
        if memory is not None:
            value = math.ceil(memory / MIB) * MIB
            self.memory[value] = self.memory.get(value, 0.0) + seconds
        if load is not None:
            self.load[load] = self.load.get(load, 0.0) + seconds
            self.idle_s += seconds if load == 0 else 0.0

    def share(self, who: str, seconds: float) -> None:
        self.shared[who] = self.shared.get(who, 0.0) + seconds
        if len(self.shared) > MOST_SHARED:
            self.shared = dict(self._longest(MOST_SHARED // 2))

    def _longest(self, most: int) -> list[tuple[str, float]]:
        return sorted(self.shared.items(), key=lambda pair: -pair[1])[:most]

    def profile(self) -> dict[str, Any]:
        """docs/json.md, a run's `profile`."""
        whole = sum(self.load.values())
        mean = sum(value * seconds for value, seconds in self.load.items()) / whole if whole else None
        return {
            "observed_s": round(self.observed_s, 1), "gpu_mib": self.gpu_mib,
            "peak_at_s": None if self.peak_at_s is None else round(self.peak_at_s, 1),
            "memory_p50_mib": share_below(self.memory, 0.5), "memory_p95_mib": share_below(self.memory, 0.95),
            "load_mean": None if mean is None else round(mean, 1), "load_p95": share_below(self.load, 0.95),
            "idle_share": round(self.idle_s / whole, 3) if whole else None,
            "shared": [{"user": None if who.startswith(JOB) else who, "job": int(who[1:]) if who.startswith(JOB) else None,
                        "for_s": round(seconds, 1)} for who, seconds in self._longest(SHARED)],
            "curve": self.curve.plain() if self.curve.points else None,
        }  # fmt: skip


def believable(g: Mapping[str, Any]) -> bool:
    """Whether its numbers are such as a file can keep; they came over a pipe from a driver."""
    numbers = [g[key] for key in ("index", "total_mib", "used_mib", "utilization")] + [g.get("temperature"), g.get("power_w")]
    numbers += [p[key] for p in g["procs"] for key in ("pid", "used_mib")]
    return all(number is None or abs(number) < BELIEVED for number in numbers)


def text(name: str | None) -> str:
    """A name as a file can keep it: that of a user, or what a driver says, need not be text."""
    return (name or "").encode("utf-8", "replace").decode()


def share_below(weights: Weights, share: float) -> int | None:
    """The value that was not exceeded for this share of the time."""
    left = share * sum(weights.values())
    for value in sorted(weights):
        left -= weights[value]
        if left <= 1e-9:
            return value
    return None


def restored(data: Mapping[str, Any]) -> RunUse:
    """Of what an earlier engine had seen; JSON has texts for keys. Whatever is not as it was written there is an error: a number
    that is none would end the engine, now or when the run is recorded."""
    kept = RunUse(**data)
    use = RunUse(_number(kept.observed_s), idle_s=_number(kept.idle_s), peak_mib=int(_number(kept.peak_mib)))
    use.memory, use.load = (
        {int(_number(int(value))): _number(seconds) for value, seconds in weights.items()} for weights in (kept.memory, kept.load)
    )
    for who, seconds in kept.shared.items():
        use.share(f"{JOB}{int(who[1:])}" if who.startswith(JOB) else text(who), _number(seconds))
    use.peak_at_s = None if kept.peak_at_s is None else _number(kept.peak_at_s)
    use.gpu_mib = None if kept.gpu_mib is None else int(_number(kept.gpu_mib))
    use.gpu_name = text(kept.gpu_name)
    use.curve = curve.restored(data["curve"]) if "curve" in data else Curve()
    use.see_processes({text(name): int(_number(mib)) for name, mib in kept.processes.items()})
    return use


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or not 0 <= value < BELIEVED:
        raise ValueError(value)
    return value


class Profiles:
    def __init__(self) -> None:
        self._uses: dict[RunId, RunUse] = {}
        self._at: dict[RunId, float] = {}  # of the last sample, by the engine's clock

    def heard(self, observer: Observer, runs: Iterable[Open], now: float, others: Callable[[str], Iterable[str]]) -> None:
        """Cards have been read; `others`: who is on a card besides our runs."""
        cards: dict[str, tuple[Mapping[str, Any], float]] | None = None  # with when each was read; nearly always nobody asks
        for run in runs:
            if not run.leases or run.over or run.paused:
                if run.paused:
                    self._at.pop(run.id, None)  # what it would be like says nothing of it
                continue
            last = self._at.get(run.id)
            if last is not None and now - last < SAMPLES_APART:
                continue
            if cards is None:
                cards = {g["uuid"]: (g, observer.card_read_at(g)) for g in observer.snapshot["gpus"] if g["state"] == "ok"}
            read = [cards[lease.uuid] for lease in run.leases if lease.uuid in cards]
            here = [g for g, at in read if now - at < SAMPLES_APART and at > run.clock_at and believable(g)]
            if len(here) < len(run.leases):
                continue  # a part tells nothing of the whole, and nothing what was read before its start
            use = self._uses.setdefault(run.id, RunUse())
            seconds = min(FIRST, max(0.0, now - run.clock_at)) if last is None or now - last > UNSEEN else now - last
            self._at[run.id] = now
            self._add(use, run, here, observer, seconds, others)

    def _add(
        self, use: RunUse, run: Open, here: list[Mapping[str, Any]], observer: Observer, seconds: float,
        others: Callable[[str], Iterable[str]],
    ) -> None:  # fmt: skip
        use.gpu_name, use.gpu_mib = text(here[0]["name"]), here[0]["total_mib"]
        used = [_used(g, run.id, observer) for g in here]
        loads = [g["utilization"] for g in here if g["utilization"] is not None]
        memory = None if None in used else max(mib or 0 for mib in used)
        use.add(seconds, memory, round(sum(loads) / len(loads)) if loads else None)
        use.see_processes(_held(here, run.id, observer))
        if memory is not None:
            use.curve.see(self._at[run.id] - run.clock_at, memory)
        if (peak := observer.peaks.get(run.id, 0)) > use.peak_mib:
            use.peak_mib, use.peak_at_s = peak, max(0.0, self._at[run.id] - run.clock_at)
        company = {who for g in here for who in others(g["uuid"])}
        company |= {f"{JOB}{id[0]}" for g in here for id, uuids in observer.placed.items() if g["uuid"] in uuids and id != run.id}
        for who in company:
            use.share(who, seconds)

    def seen_before(self, uses: Mapping[RunId, Mapping[str, Any]], runs: Mapping[RunId, Open], observer: Observer) -> None:
        """What an earlier engine has seen of runs that live."""
        for id in uses.keys() & runs.keys():
            try:
                self._uses[id] = restored(uses[id])
            except (TypeError, ValueError, KeyError, AttributeError):
                continue  # of another version
            observer.has_used(id, self._uses[id].peak_mib)

    def open_runs(self) -> Collection[RunId]:
        """Those of which something was seen."""
        return self._uses.keys()

    def uses(self, runs: Iterable[RunId]) -> dict[RunId, dict[str, Any]]:
        """What was seen of these, as it can be restored."""
        plain = {id: {name: getattr(self._uses[id], name) for name in RunUse.__slots__} for id in runs if id in self._uses}
        return {id: {**use, "curve": use["curve"].plain()} for id, use in plain.items()}

    def so_far(self, run: RunId) -> dict[str, Any] | None:
        """How a run that lives has used its cards until now; None: nothing was seen yet."""
        use = self._uses.get(run)
        return None if use is None else {"peak_mib": use.peak_mib or None, "profile": use.profile()}

    def on_cards(self, run: RunId, observer: Observer) -> list[dict[str, Any]]:
        """Its processes that are on cards now: how much each holds there, and the most that it was seen to."""
        peaks = self._uses[run].processes if run in self._uses else {}
        shown: dict[str, dict[str, Any]] = {}
        for g in observer.snapshot["gpus"]:
            for p in g["procs"]:
                if observer.run_of(p) == run:
                    one = shown.setdefault(process(p), {"pid": p["pid"], "gpus": [], "gpu_mib": 0, "sm": None})
                    one["gpus"].append(g["index"])
                    one["sm"] = max((load for load in (one["sm"], p.get("sm")) if load is not None), default=None)
                    one["gpu_mib"] = None if None in (one["gpu_mib"], p["used_mib"]) else one["gpu_mib"] + p["used_mib"]
        for name, one in shown.items():
            most = max(peaks.get(name, 0), one["gpu_mib"] or 0)
            one["gpu_peak_mib"] = most if one["gpu_mib"] is not None or most else None
        return list(shown.values())

    def ended(self, run: RunId) -> RunUse:
        self._at.pop(run, None)
        return self._uses.pop(run, None) or RunUse()


def process(p: Mapping[str, Any]) -> str:
    """A process in one word: its number may be another's later."""
    return f"{p['pid']}.{p.get('ticks') or 0}"


def _held(here: Iterable[Mapping[str, Any]], run: RunId, observer: Observer) -> dict[str, int]:
    """By process of a run, what it holds on these cards together, where the driver says so."""
    held: dict[str, int] = {}
    for g in here:
        for p in g["procs"]:
            if p["used_mib"] is not None and observer.run_of(p) == run:
                held[process(p)] = held.get(process(p), 0) + p["used_mib"]
    return held


def _used(g: Mapping[str, Any], run: RunId, observer: Observer) -> int | None:
    """None: the driver does not say."""
    parts = [p["used_mib"] for p in g["procs"] if observer.run_of(p, g["uuid"]) == run]
    return None if None in parts else sum(parts)

