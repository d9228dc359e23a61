"""What there is to hand out besides cards: CPU cores and memory of a node, and counters that people name, which count wherever
their runs go.

Rules: a run is counted from its start to its end with what its job asked for, whatever it really uses; who asks for nothing is
counted with nothing. Never more is handed out than there is; where a setting was lowered since, the rest is waited out. What is
kept for a job that has waited long (reserve) is closed to those who stand back for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from jostle.core.model import Amounts, Job, Run
from jostle.core.reasons import Reason
from jostle.core.reserve import KeptCards, end_of

CPUS, HOST_MEMORY = "cpus", "host_memory"

Asked = Callable[[Job | Run], Amounts]


def of_node(asked: Job | Run) -> Amounts:
    """What of a node's it takes."""
    cpus, memory = asked.cpus, asked.host_memory_mib
    if cpus is None and memory is None:
        return ()
    return tuple((name, amount) for name, amount in ((CPUS, cpus), (HOST_MEMORY, memory)) if amount is not None)


def of_counters(asked: Job | Run) -> Amounts:
    return asked.counters


class Stock:
    """What is left while a plan is made: everything handed out is entered at once."""

    def __init__(self, total: Mapping[str, int], asked: Asked, runs: Iterable[Run], heads: Iterable[Job]) -> None:
        self.total, self._asked = total, asked
        self._runs = [(run, amounts) for run in runs if (amounts := asked(run))]
        self._free = dict(total)
        self._least: dict[str, int] = {}  # that any job or run asks of it
        self.lowest = math.inf  # priority of a job that asks for any of it
        for _, amounts in self._runs:
            self._take(amounts)
        for head in heads:
            if amounts := asked(head):
                self.lowest = min(self.lowest, head.priority)
                self._note(amounts)

    def _note(self, amounts: Amounts) -> None:
        for name, amount in amounts:
            self._least[name] = min(amount, self._least.get(name, amount))

    def _take(self, amounts: Amounts) -> None:
        self._note(amounts)
        for name, amount in amounts:
            self._free[name] = self._free.get(name, 0) - amount

    def left(self) -> dict[str, dict[str, int]]:
        """For showing: by name, how much there is and how much of it is free."""
        return {name: {"total": total, "free": max(0, self._free[name])} for name, total in self.total.items()}

    def take(self, job: Job) -> None:
        self._take(self._asked(job))

    def impossible(self, job: Job) -> Reason | None:
        """It asks for more than there will ever be."""
        for name, amount in self._asked(job):
            total = self.total.get(name, 0)
            if amount > total:
                return _reason("impossible_", name, {"needed": amount, "total": total})
        return None

    def short(self, job: Job, kept: Iterable[KeptCards], now: float) -> Reason | None:
        """Why the job cannot have now what it asks for; None: it can."""
        before = [k for k in kept if k.job.id != job.id and k.binds(job) and k.closed_to(job, now)]
        for name, amount in self._asked(job):
            free = max(0, self._free.get(name, 0))
            held_back = [(k.job.id, n) for k in before for its, n in self._asked(k.job) if its == name]
            reserved = min(free, sum(n for _, n in held_back))
            if amount > free - reserved:
                numbers = {"needed": amount, "available": free, "total": self.total.get(name, 0)}
                for_job = {"kept": reserved, "job": held_back[0][0]} if reserved else {}
                return self.impossible(job) or _reason("", name, {**numbers, **for_job})
        return None

    def bigger(self, job: Job) -> bool:
        """Whether others who ask for less of the same can pass it by."""
        return any(amount > self._least.get(name, amount) for name, amount in self._asked(job))

    def served(self, job: Job) -> bool:
        """Whether a run of its batch has as much as it asks for."""
        wanted = self._asked(job)
        return any(
            run.batch == job.batch and all(dict(amounts).get(name, 0) >= amount for name, amount in wanted)
            for run, amounts in self._runs
        )

    def ready_at(self, job: Job, now: float) -> float:
        """When there will be enough for the job, as far as time limits of runs tell."""
        missing = {name: amount - self._free.get(name, 0) for name, amount in self._asked(job)}
        at = now
        for run, amounts in sorted(self._runs, key=lambda pair: end_of(pair[0])):
            if all(n <= 0 for n in missing.values()):
                break
            at = max(at, end_of(run))
            missing.update({name: missing[name] - amount for name, amount in amounts if name in missing})
        return at


def _reason(prefix: str, name: str, numbers: Mapping[str, int]) -> Reason:
    """In the words of what is short: memory in MiB, a counter with its name."""
    if name == CPUS:
        return Reason(code=prefix + "cpus", params=dict(numbers))
    if name == HOST_MEMORY:
        sizes = {key if key == "job" else f"{key}_mib": number for key, number in numbers.items()}
        return Reason(code=prefix + "host_memory", params=sizes)
    return Reason(code=prefix + "counter", params={"name": name, **numbers})
