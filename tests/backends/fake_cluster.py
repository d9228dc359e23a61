"""A cluster that chooses for itself where and when runs begin, reached by a backend over a bad line; time is a number.

The cluster outlives engines. What is asked of it may not arrive, be done without an answer, be answered late, or be done and
answered twice. Its shared file system is the spool: who claims a run there begins it, and nobody else ever does.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.core.model import Exit, RunId
from jostle.core.reasons import Hold
from jostle.port import Adopted, Launch, Phase, Recipient, RunReport, Void

PREFIX = "jostle-"
PATIENCE = 30.0  # s after which a submit that was not answered, and shows nowhere, is made again
VOID = "void"


class Clock:
    at = 1000.0

    def now(self) -> float:
        return self.at


@dataclass
class ClusterJob:
    name: str
    uni_id: str
    begins: float
    ends: float = float("inf")
    code: int = 0
    running: bool = False


class Cluster:
    def __init__(self, clock: Any, seed: int = 0, *, bad_line: bool = True, queue_for: float = 2.0) -> None:
        self.clock, self.rng, self.queue_for = clock, random.Random(seed), queue_for
        self.fates = ("answered", "answered", "late", "unheard", "unanswered", "twice") if bad_line else ("answered",)
        self.jobs: dict[int, ClusterJob] = {}
        self.spool: dict[str, Any] = {}  # uni_id -> claim (a job's number), VOID, or an Exit
        self.ran: Counter[str] = Counter()  # how often the commands of a run have begun
        self.lasts: dict[str, tuple[float, int]] = {}  # uni_id -> how long its commands take, and how they end
        self.silent = False
        self._post: list[tuple[float, Callable[[], None]]] = []

    # --- what is asked of it

    def ask(self, act: Callable[[], Any], answer: Callable[[Any], None]) -> None:
        fate = "unheard" if self.silent else self.rng.choice(self.fates)
        for _ in range({"unheard": 0, "twice": 2}.get(fate, 1)):
            result = act()
            if fate != "unanswered":
                late = self.rng.uniform(1.0, 20.0) if fate == "late" else 0.0
                self._post.append((self.clock.at + late, lambda result=result: answer(result)))  # type: ignore[misc]

    def submit(self, uni_id: str) -> int:
        self.jobs[len(self.jobs) + 1] = ClusterJob(PREFIX + uni_id, uni_id, self.clock.at + self.queue_for)
        return len(self.jobs)

    def listing(self) -> dict[str, tuple[int, bool]]:
        """By name: number, and whether it runs."""
        there = sorted(self.jobs.items(), key=lambda item: item[1].running)  # of two of one name, the one that runs
        return {job.name: (number, job.running) for number, job in there if job.ends > self.clock.at}

    def cancel(self, name: str, kill: bool) -> None:
        for job in self.jobs.values():
            if job.name == name and job.ends > self.clock.at:
                job.ends, job.code = self.clock.at + (0.0 if kill or not job.running else 0.5), 143

    # --- what it does by itself

    def step(self) -> None:
        for number, job in self.jobs.items():
            if not job.running and job.begins <= self.clock.at < job.ends:
                if self.spool.setdefault(job.uni_id, number) != number:
                    job.ends = self.clock.at  # another has begun this run, or it was voided
                    continue
                self.ran[job.uni_id] += 1
                seconds, job.code = self.lasts.get(job.uni_id, (5.0, 0))
                job.running, job.ends = True, self.clock.at + seconds
            if job.running and job.ends <= self.clock.at and self.spool[job.uni_id] == number:
                self.spool[job.uni_id] = Exit(code=job.code, signal=15 if job.code == 143 else None)
        due, self._post = [p for p in self._post if p[0] <= self.clock.at], [p for p in self._post if p[0] > self.clock.at]
        for _, deliver in due:
            deliver()

    def lose(self, uni_id: str) -> None:
        """The node of a run dies, and the run with it."""
        for job in self.jobs.values():
            if job.uni_id == uni_id:
                job.ends, job.running = self.clock.at, False


@dataclass
class Handed:
    uni_id: str
    handle: str = ""
    spec: Any = None  # None: an earlier engine handed it over
    asked_at: float = float("-inf")
    seen: dict[str, tuple[int, bool]] | None = None  # the newest listing that was asked for since it was handed over …
    seen_at: float = float("-inf")  # … and when that was; answers may come in any order


class ClusterBackend:
    """Hands runs over. A submit whose answer was lost is found again by its name."""

    places = False

    def __init__(self, cluster: Cluster, most: int | None = None) -> None:
        self.cluster, self.most = cluster, most
        self.trouble: Hold | None = None
        self.runs: dict[RunId, Handed] = {}

    def open(self, rows: Sequence[Adopted], listener: Recipient) -> None:
        self.listener = listener
        self.runs = {row.run: Handed(row.uni_id, row.handle) for row in rows}

    def close(self) -> None: ...
    def capacity(self) -> int | None:
        return None if self.most is None else max(0, self.most - len(self.runs))

    def log_path(self, run: RunId, uni_id: str) -> str:
        return f"/spool/{uni_id}/log"

    def start(self, launches: Sequence[Launch]) -> None:
        for launch in launches:
            self.runs.setdefault(launch.run, Handed(launch.spec["uni_id"], spec=launch.spec))
        self.tick(self.cluster.clock.now())

    def tick(self, now: float) -> float | None:
        for run, handed in self.runs.items():
            known = handed.spec is None or handed.handle or handed.uni_id in self.cluster.spool
            if not known and now >= handed.asked_at + PATIENCE:
                handed.asked_at, handed.seen = now, None  # again by the same name: the spool lets one of them begin
                self.cluster.ask(lambda h=handed: self.cluster.submit(h.uni_id), lambda n, r=run: self._submitted(r, n))  # type: ignore[misc]
        asked = [(run, handed) for run, handed in self.runs.items() if now > handed.asked_at]
        if asked:
            self.cluster.ask(self.cluster.listing, lambda seen: self._listed(asked, now, seen))
        return now + 1.0

    def _submitted(self, run: RunId, number: int) -> None:
        if run in self.runs:
            self.runs[run].handle = str(number)
            self.listener.changed(run)

    def _listed(self, asked: list[tuple[RunId, Handed]], at: float, seen: dict[str, tuple[int, bool]]) -> None:
        for run, handed in asked:
            if self.runs.get(run) is handed and at > max(handed.asked_at, handed.seen_at):
                handed.seen, handed.seen_at = seen, at
                handed.handle = str(seen.get(PREFIX + handed.uni_id, (handed.handle,))[0])
                self.listener.changed(run)

    def reports(self, runs: Collection[RunId] | None = None) -> list[RunReport]:
        asked = self.runs if runs is None else [run for run in runs if run in self.runs]
        return [report for run in asked if (report := self._report(run, self.runs[run])) is not None]

    def _report(self, run: RunId, handed: Handed) -> RunReport | None:
        there, handle = self.cluster.spool.get(handed.uni_id), handed.handle or None
        if isinstance(there, Exit):
            return RunReport(run=run, kind=Phase.ENDED, exit=there, handle=handle)
        if there == VOID:
            return RunReport(run=run, kind=Phase.VOIDED)
        if handed.seen is None:
            return RunReport(run=run, kind=Phase.STARTING, handle=handle) if handed.spec is not None else None
        number, running = handed.seen.get(PREFIX + handed.uni_id, (0, False))
        if number:
            kind = Phase.ALIVE if running else Phase.WAITING
            return RunReport(run=run, kind=kind, why="" if running else "Priority", handle=handle)
        if there is not None:
            return RunReport(run=run, kind=Phase.GONE, cause="exit_unknown")
        return RunReport(run=run, kind=Phase.NOT_STARTED if handed.spec is None or handed.handle else Phase.STARTING)

    def void(self, run: RunId) -> Void:
        return Void.NEVER if self.cluster.spool.setdefault(self.runs[run].uni_id, VOID) == VOID else Void.STARTED

    def stop(self, runs: Collection[RunId], *, kill: bool) -> None:
        for run in self.runs.keys() & runs:
            self.cluster.ask(lambda r=run: self.cluster.cancel(PREFIX + self.runs[r].uni_id, kill), lambda _: None)  # type: ignore[misc]

    def forget(self, runs: Collection[RunId]) -> None:
        for run in runs:
            self.runs.pop(run, None)
