"""What this host has to hand out besides cards: the cores and the memory that the engine, and so its jobs, may use.

The least of what the host has, what the engine's affinity and its control groups allow, and what the settings say. What other
people's programs use of it is not known here, nor what the engines of other homes have promised.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from jostle import proc
from jostle.core.ledger import alive
from jostle.core.model import LOCAL, Node, World
from jostle.core.stock import CPUS, HOST_MEMORY, Stock, of_counters, of_node

AGAIN = 60.0  # s after which a limit that was changed from outside is seen
MIB = 1 << 20


class Capacity:
    def __init__(self) -> None:
        self._read_at = -math.inf
        self._cpus = self._memory_mib = 0

    def here(self, settings: Mapping[str, Any], now: float) -> dict[str, int]:
        """As a node has it."""
        if now - self._read_at >= AGAIN:
            self._read_at, self._cpus, self._memory_mib = now, cores(), memory_mib()
        return {
            "cpus": min(self._cpus, settings.get("cpus") or self._cpus),
            "host_memory_mib": min(self._memory_mib, settings.get("host_memory") or self._memory_mib),
        }


def left(world: World) -> dict[str, Any]:
    """What of this host and of counters is free, and how much there is in all."""
    runs = [run for run in alive(world).values() if run.target == LOCAL]
    here = next((node for target, node in world.nodes if target == LOCAL), Node(name=LOCAL))
    host = Stock({CPUS: here.cpus, HOST_MEMORY: here.host_memory_mib}, of_node, runs, ()).left()
    counters = Stock(world.counters, of_counters, alive(world).values(), ()).left()
    return {"cpus": host[CPUS], "host_memory_mib": host[HOST_MEMORY], "counters": counters}


def cores() -> int:
    """By affinity (in which a cpuset shows, too) and by quotas; a part of a core is none, but there is always one."""
    return max(1, min([len(os.sched_getaffinity(0)), *(math.floor(share) for share in _quotas())]))


def _quotas() -> Iterator[float]:
    for folder in proc.cgroup_folders("cpu"):
        words = proc.cgroup_value(folder, "cpu.max")
        words = words or proc.cgroup_value(folder, "cpu.cfs_quota_us") + proc.cgroup_value(folder, "cpu.cfs_period_us")
        if len(words) == 2 and all(map(_positive, words)):
            yield int(words[0]) / int(words[1])


def memory_mib() -> int:
    names = ("memory.max", "memory.limit_in_bytes")
    limits = [proc.cgroup_value(folder, name) for folder in proc.cgroup_folders("memory") for name in names]
    return min([proc.memory_bytes(), *(int(words[0]) for words in limits if len(words) == 1 and _positive(words[0]))]) // MIB


def _positive(word: str) -> bool:
    return word.isdecimal() and int(word) > 0
