"""What a probe says: the shape of one snapshot, which both probes fill and the engine reads.

Rules: None means "the driver does not say", never zero. A GPU that is not ok shows no free memory, so that no reader
can take it for idle by forgetting to look at its state.
"""

from __future__ import annotations

from typing import Protocol, TypedDict

NO_NVML = "no NVML on this host: install the NVIDIA driver, or try --gpus sim:8x24"
MISMATCH = "Driver/library version mismatch: the driver was updated under a running kernel module; reboot, or reload it"
LOST = "GPU is lost"
MIB = 1 << 20


class _Proc(TypedDict):
    pid: int
    used_mib: int | None
    uid: int | None  # None: not in our /proc
    sid: int | None
    ticks: int | None
    user: str
    name: str
    mark: str | None  # JOSTLE_UNI_ID of its environment, if we may read that


class Proc(_Proc, total=False):
    kind: str  # compute | graphics; absent: compute, for that is the one that counts
    exe: str  # the file it executes, by its base name; absent or "": not known
    sm: int  # % of the card's processors that it keeps busy; absent: nobody looks, or the driver does not say


class _GpuReading(TypedDict):
    index: int
    uuid: str
    name: str
    state: str  # ok | lost | unreadable | mig | starting (the driver has not answered for it yet)
    error: str
    total_mib: int
    used_mib: int
    free_mib: int
    utilization: int | None
    temperature: int | None
    power_w: float | None
    mig_slice: bool
    procs: list[Proc]


class GpuReading(_GpuReading, total=False):
    pci: str  # where it sits, as the kernel writes it: 0000:41:00.0; absent or "": the driver does not say
    power_limit_w: float | None
    fan: int | None  # % of its speed
    sm_mhz: int | None
    memory_mhz: int | None
    reserved_mib: int  # what the driver keeps for itself, empty or not
    compute_mode: str  # default | exclusive_process | prohibited; absent: default
    ecc_uncorrected: int | None  # errors of its memory since the driver was loaded; read once a minute at most
    remap_failed: bool | None  # a broken row of its memory could not be replaced
    no_handle: bool  # the driver lists it and gives no handle: CUDA may count without it
    # only of a card that is late; instants are by the clock of the snapshot's `at`
    read_at: float  # when this reading of it began, in place of just now
    asked: int  # the newest look that had been asked for by then, in place of the snapshot's
    silent_since: float  # since when there was no good answer
    overcommitted: bool  # simulated only: more was asked of the card than it has


class Reading(TypedDict):
    driver: str | None
    error: str | None  # why there are no GPUs to see
    hold: str | None  # driver_mismatch: nothing may start, what runs goes on
    gpus: list[GpuReading]


class Hung(Exception):
    """A scenario wants a probe that does not answer."""


class Relieved(Exception):
    """This thread was stuck in a card, and another reads on in its place."""


class Source(Protocol):
    spent: bool  # of no more use after this reading: the next try needs a fresh process

    def read(self, asked: int | None = None, again: bool = True) -> Reading:
        """The GPUs now. Never raises for what a driver or a file says (but Hung).

        `asked`: the number of the look that waits for it. Without `again`, cards that are late are left alone.
        """

    def watch(self, seconds: float) -> None:
        """Somebody looks: for so long, what each process does is told, too."""


def failed(error: str, hold: str | None = None) -> Reading:
    return {"driver": None, "error": error, "hold": hold, "gpus": []}


def blind(index: int, uuid: str, name: str, state: str, error: str, total_mib: int = 0, mig_slice: bool = False) -> GpuReading:
    """A GPU that cannot be read: nothing of it is free."""
    return {
        "index": index,
        "uuid": uuid,
        "name": name,
        "state": state,
        "error": error,
        "total_mib": total_mib,
        "used_mib": 0,
        "free_mib": 0,
        "utilization": None,
        "temperature": None,
        "power_w": None,
        "mig_slice": mig_slice,
        "procs": [],
    }
