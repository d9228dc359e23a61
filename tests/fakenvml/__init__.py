"""A driver for tests on hosts without one: builds the C stand-in and writes its hardware from a scenario's reading.

The probe under test loads it as the real binding does, by LD_LIBRARY_PATH, in a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from jostle.probes.scenario import Scenario
from jostle.probes.sim import reading
from jostle.probes.snapshot import GpuReading, Proc
from jostle.probes.world import HeldCard, ProcessUse
from tests.compiled import library

_SOURCE = os.path.join(os.path.dirname(__file__), "fakenvml.c")
_ERRORS = {"lost": 15, "unreadable": 999}
_MODES = {"default": 0, "prohibited": 2, "exclusive_process": 3}
MISMATCH = 18


def library_dir(process_version: int = 3, init: int = 0) -> str:
    """A directory with the stand-in; `init`: what this library answers to the first call of all."""
    flags = ("-pthread", f"-DPROCESS_VERSION={process_version}", f"-DINIT={init}")
    return os.path.dirname(library(_SOURCE, "libnvidia-ml.so.1", *flags))


class Driver:
    """The stand-in with hardware that a test may change at any time."""

    def __init__(self, directory: str, process_version: int = 3) -> None:
        self._library = library_dir(process_version)
        self._state = os.path.join(directory, "nvml.state")

    @property
    def env(self) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": self._library, "FAKE_NVML_STATE": self._state}

    def show(
        self,
        scenario: Scenario,
        t: float = 0.0,
        claims: Iterable[HeldCard] = (),
        uses: Iterable[ProcessUse] = (),
        *,
        extra: Sequence[str] = (),
    ) -> None:
        """Makes the hardware what the simulator would show at this time."""
        init = [f"init {MISMATCH}"] if any(w.holds(scenario.when(t)) for w in scenario.mismatch) else []
        hang = ["hang nvmlDeviceGetCount"] if any(w.holds(scenario.when(t)) for w in scenario.hang) else []
        stuck = {m.card for m in scenario.mishaps if m.kind == "hang" and m.window.holds(scenario.when(t))}
        hang += [f"hang * {scenario.cards[place].uuid}" for place in sorted(stuck)]
        self.write([*init, *hang, *lines(reading(scenario, t, claims, uses)), *extra])

    def write(self, state: Iterable[str]) -> None:
        temporary = self._state + ".new"
        with open(temporary, "w") as f:
            f.write("\n".join(state) + "\n")
        os.replace(temporary, self._state)


def lines(gpus: Sequence[GpuReading]) -> list[str]:
    """The stand-in's state for a reading."""
    found = []
    for gpu in gpus:
        if gpu["mig_slice"]:
            continue
        size = f"{gpu['total_mib']} {gpu['used_mib']}"
        found.append(f"gpu {gpu['uuid']} {size} {gpu['utilization'] or 0} {gpu['name']}")
        if gpu["state"] in _ERRORS:
            found.append(f"error {_ERRORS[gpu['state']]}")
        found += [f"{key} {number}" for key, number in _settings(gpu).items()]
        found += [_process(who) for who in gpu["procs"]]
        if gpu["state"] == "mig":
            found += ["mig", *_slices(gpu["uuid"], gpus)]
    return found


def _slices(parent: str, gpus: Sequence[GpuReading]) -> list[str]:
    found = []
    for gpu in gpus:
        if gpu["mig_slice"] and gpu["uuid"].startswith(parent.replace("GPU-", "MIG-") + "-"):
            found.append(f"slice {gpu['uuid']} {gpu['total_mib']} {gpu['used_mib']} {gpu['name']}")
            found += [_process(who) for who in gpu["procs"]]
    return found


def _settings(gpu: GpuReading) -> dict[str, int]:
    """What differs from a card without ECC in its default mode."""
    found = {"mode": _MODES[gpu.get("compute_mode", "default")], "ecc": gpu.get("ecc_uncorrected") or 0}
    found["remap"] = int(gpu.get("remap_failed") or False)
    return {key: number for key, number in found.items() if number}


def _process(who: Proc) -> str:
    kind = "G" if who.get("kind") == "graphics" else "C"
    load = f" {who['sm']}" if "sm" in who else ""
    return f"proc {who['pid']} {'-' if who['used_mib'] is None else who['used_mib']} {kind}{load}"
