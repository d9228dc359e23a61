"""Scenarios of the simulated world: what GPUs there are and what happens to them, as data.

A scenario is named by `8x24` (8 GPUs of 24 GiB), `4x80+4x24`, or the path of a YAML or JSON file with these keys (`gpus` is
needed):

    gpus: {count: 8, total: 24GiB, name: RTX 4090}     alike; or a list: [{total: 80GiB, name: A100}, {total: 24GiB}];
                            compute_mode: default, exclusive_process or prohibited
    repeat: 600                                        the script below starts over every 600 s
    runs:                                              what runs (live claims) do on their GPUs
      use: 1.0              a fraction (0..1) of the promise, or MiB (6000, 6GiB); a whole card is total less 512 MiB
      ramp: 0               s until all is allocated, linear
      lag: 0                s before any of it shows
      free_lag: 0           s that the memory still shows, without a process, after the run has ended
      utilization: 90       percent
    strangers:                                         other people's processes
      - {user: bob, gpu: 3, from: 10, to: 60, used: 8GiB, ramp: 5, utilization: 80}
        gpu: a number, a list, or `all` · `for: 50` instead of `to` · uid: a number (made up per user if missing; user
        `me` is the probe's own, `root` is 0) · pid: of a real process · hidden: true = memory without a visible process ·
        kind: graphics (else compute) · name: python · exe: python3 (of `me`, else not to be seen)
    faults:   [{gpu: 2, from: 20, to: 30, state: lost}]         or unreadable; ecc: one more uncorrected error of its
                            memory since then; remap: a row of it could not be replaced; with both the card still answers
    missing:  [{gpu: 2, from: 20, to: 30}]             not listed at all; those behind it move up, as with a real driver
    reorder:  [{gpu: 0, from: 20, to: 30}]             listed last
    mig:      [{gpu: 1, slices: 2}]                    equal slices, or sizes: [10GiB, 5GiB]; from, to as above
    hang:     [{from: 20, to: 30}]                     the probe does not answer; with gpu: 2, only that card does not
    mismatch: [{from: 20, to: 30}]                     driver and library differ: nothing can be read

Times are seconds since the world began, as numbers or like `90s 5m 2h`; `from` is 0 and `to` never, if missing. Sizes
are MiB as numbers or like `500MiB 24GiB`. `gpu` is the GPU's place in `gpus`, whatever index it has at the time; MIG
slices follow in the order of `mig`. A changed file is read again. Errors name the file, the line and what was
expected.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field

from jostle.core.kinds import MAX_GPUS
from jostle.errors import Invalid

RESERVED_MIB = 512
"""What the driver keeps of a card, so that a run that has the whole card leaves it over."""


def reserved_mib(total_mib: int) -> int:
    return min(RESERVED_MIB, total_mib // 2)  # of cards too small to be true


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    start: float = 0.0
    end: float = math.inf

    def holds(self, t: float) -> bool:
        return self.start <= t < self.end


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioCard:
    """A GPU, or a slice of one; its place in Scenario.cards is how the script names it."""

    uuid: str
    total_mib: int
    name: str = "Simulated GPU"
    parent: int | None = None  # of a slice
    window: Window = field(default_factory=Window)  # of a slice: while the parent is in MIG mode
    compute_mode: str = "default"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stranger:
    user: str
    uid: int | None
    pid: int
    real: bool = False  # the pid is a process to be looked up, not a made-up one
    card: int
    window: Window
    used_mib: int
    ramp: float = 0.0
    utilization: int = 0
    hidden: bool = False
    kind: str = "compute"
    name: str = "python"
    exe: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    use: float | int = 1.0  # float: fraction of the promise; int: MiB
    ramp: float = 0.0
    lag: float = 0.0
    free_lag: float = 0.0
    utilization: int = 90


@dataclass(frozen=True, kw_only=True, slots=True)
class Mishap:
    """Something that happens to one card: lost | unreadable | ecc | remap | missing | reorder | hang."""

    card: int
    kind: str
    window: Window


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    cards: tuple[ScenarioCard, ...]
    strangers: tuple[Stranger, ...] = ()
    runs: Runs = field(default_factory=Runs)
    mishaps: tuple[Mishap, ...] = ()
    hang: tuple[Window, ...] = ()
    mismatch: tuple[Window, ...] = ()
    repeat: float | None = None

    def when(self, elapsed: float) -> float:
        """The script's time."""
        return elapsed % self.repeat if self.repeat else elapsed


FAKE_PIDS = 5_000_000
"""Made-up pids start here: above what a Linux kernel can give (2^22)."""

_SHAPE = re.compile(r"\d+x\d+(\.\d+)?(\+\d+x\d+(\.\d+)?)*")


def card(place: int, total_mib: int, name: str = "Simulated GPU", compute_mode: str = "default") -> ScenarioCard:
    return ScenarioCard(uuid=f"GPU-sim-{place:04d}", total_mib=total_mib, name=name, compute_mode=compute_mode)


def is_shape(name: str) -> bool:
    return _SHAPE.fullmatch(name) is not None


def load(name: str) -> Scenario:
    """The scenario of this name (devices without their `sim:`)."""
    if is_shape(name):
        return of_shape(name)
    if not os.path.exists(name):
        raise Invalid(f"sim:{name}: neither a scenario file that exists nor a shape like sim:8x24 (8 GPUs of 24 GiB)")
    try:
        with open(name, encoding="utf-8") as f:
            text = f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise Invalid(f"{name}: cannot be read: {e}") from e
    from jostle.probes import scenario_file

    return scenario_file.parse(text, name)


def of_shape(shape: str) -> Scenario:
    sizes: list[int] = []
    for part in shape.split("+"):
        count, _, gib = part.partition("x")
        sizes += [round(float(gib) * 1024)] * min(int(count), MAX_GPUS + 1)
    if not 0 < len(sizes) <= MAX_GPUS or min(sizes) < 1:
        raise Invalid(f"sim:{shape}: expected 1 to {MAX_GPUS} GPUs with some memory each, like sim:8x24")
    return Scenario(cards=tuple(card(i, mib) for i, mib in enumerate(sizes)))
