"""The host beside its cards: processors and memory, and what a process on a card uses of them."""

from __future__ import annotations

import os
from typing import NamedTuple

from jostle import proc


class Host(NamedTuple):
    cores: int
    cpu_percent: float | None  # since the last look; None: there was none before, or no time has passed
    memory: tuple[int, int]  # bytes: all, used
    swap: tuple[int, int]
    ticks: tuple[int, int]  # of the processors, for the next look: busy, all


class Process(NamedTuple):
    command: str  # "": it cannot be seen
    seconds: float | None  # since its start
    cpu_percent: float | None  # of one core, over its life
    memory_percent: float | None  # of the host's


def host(before: tuple[int, int] | None = None) -> Host:
    sizes = proc.memory()
    ticks = proc.processor_ticks()
    busy, all_ = (ticks[0] - before[0], ticks[1] - before[1]) if before is not None else (0, 0)
    total, swap = sizes.get("MemTotal", 0), sizes.get("SwapTotal", 0)
    return Host(
        os.cpu_count() or 1, round(100 * busy / all_, 1) if all_ > 0 else None, (total, total - sizes.get("MemAvailable", 0)),
        (swap, swap - sizes.get("SwapFree", 0)), ticks,
    )  # fmt: skip


def process_facts(pid: int) -> Process:
    usage = proc.usage(pid)
    if usage is None:
        return Process("", None, None, None)
    total = proc.memory().get("MemTotal", 0)
    cpu = round(100 * usage.processor_s / usage.age_s, 1) if usage.age_s > 0 else None
    return Process(proc.command_line(pid), round(usage.age_s, 1), cpu, round(100 * usage.rss / total, 1) if total else None)
