"""The host as the source's system monitor shows it (SPEC C1, C9): processors, memory, disk, network, load, uptime, processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from jostle import proc
from jostle.views.host import host

GIB = 1 << 30
MOMENT = 0.2  # s between the two looks that a load is told from


class System(NamedTuple):
    cores: int
    cpu_percent: float | None  # None: there was no look before
    memory: tuple[int, int]  # bytes: all, used
    swap: tuple[int, int]
    disk: tuple[int, int]  # of the file system with the home
    network: tuple[float, float] | None  # bytes a second that came and went; None: there was no look before
    load: tuple[float, float, float]
    uptime_s: float
    processes: int


class SystemMonitor:
    """Looks at the host; loads are those since the look before."""

    def __init__(self, path: str) -> None:
        self._path = path  # on the disk that counts
        self._ticks: tuple[int, int] | None = None
        self._traffic: tuple[float, tuple[int, int]] | None = None

    def look(self) -> System:
        seen = host(self._ticks)
        self._ticks = seen.ticks
        now, traffic = time.monotonic(), proc.network()
        rate = None
        if self._traffic is not None and now > self._traffic[0]:
            passed, before = now - self._traffic[0], self._traffic[1]
            rate = max(0.0, (traffic[0] - before[0]) / passed), max(0.0, (traffic[1] - before[1]) / passed)
        self._traffic = now, traffic
        return System(
            seen.cores, seen.cpu_percent, seen.memory, seen.swap, _disk(self._path), rate, os.getloadavg(), proc.uptime(),
            sum(1 for _ in proc.pids()),
        )  # fmt: skip

    def once(self) -> System:
        """With loads, for who looks a single time."""
        self.look()
        time.sleep(MOMENT)
        return self.look()


def _disk(path: str) -> tuple[int, int]:
    try:
        s = os.statvfs(path)
    except OSError:
        return 0, 0
    return s.f_blocks * s.f_frsize, (s.f_blocks - s.f_bfree) * s.f_frsize


def line(system: System) -> str:
    """What the status tells of the host."""
    cpu = "?" if system.cpu_percent is None else f"{system.cpu_percent:.1f}%"
    load = " ".join(f"{n:.2f}" for n in system.load)
    return f"Host: CPU {cpu}, memory {_of(system.memory)}, disk {_of(system.disk)}, load {load}"


def lines(system: System, hostname: str, running: int, pending: int) -> Iterator[str]:
    """The system monitor."""
    cpu = "?" if system.cpu_percent is None else f"{system.cpu_percent:.1f}%"
    yield f"Host: {hostname}, up {_span(system.uptime_s)}, {system.processes} processes"
    yield f"CPU: {cpu} of {system.cores} cores"
    yield f"Load: {' '.join(f'{n:.2f}' for n in system.load)}"
    yield f"Memory: {_of(system.memory)}"
    yield f"Swap: {_of(system.swap)}"
    yield f"Disk: {_of(system.disk)}"
    if system.network is not None:
        yield f"Network: {system.network[0] / 1024:.1f} KB/s in, {system.network[1] / 1024:.1f} KB/s out"
    yield f"GPUs: {running} Running, {pending} Pending"


def _of(sizes: tuple[int, int]) -> str:
    total, used = sizes
    share = f" ({100 * used / total:.0f}%)" if total else ""
    return f"{used / GIB:.1f}/{total / GIB:.1f} GB{share}"


def _span(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86400)
    return f"{days} d {rest // 3600} h" if days else f"{rest // 3600} h {rest % 3600 // 60} min"
