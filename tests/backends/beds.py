"""One way to drive each backend from outside, for the contract: what the engine would do, and what a host or a cluster does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fake_cluster import Clock, Cluster, ClusterBackend
from local_bench import Bench, Ear
from tests.engine.fakes import Disk, FakeBackend, FakeClock

from jostle import proc
from jostle.core.model import RunId
from jostle.port import Adopted, Backend, Footing, Launch, Phase, Reserved, Resizing, RunReport, is_placing

CARDS = ("GPU-0", "GPU-1", "GPU-2")
LONG = 1000.0  # s that a run would take unless it is ended


class Bed:
    """A backend, and what it carries; `restart` is another engine's on what the last one left."""

    backend: Any

    def __init__(self) -> None:
        self.ear = Ear()
        self.rows: dict[RunId, Adopted] = {}

    def make(self) -> Backend:
        raise NotImplementedError

    def pass_time(self) -> None:
        raise NotImplementedError

    def open(self) -> None:
        self.backend = self.make()
        self.backend.open(list(self.rows.values()), self.ear)

    def restart(self) -> None:
        self.backend.close()
        self.open()

    def until(self, condition: Callable[[], Any]) -> Any:
        for _ in range(3000):
            if got := condition():
                return got
            self.pass_time()
        raise AssertionError(f"never happened; reports: {self.backend.reports()}")

    # --- as the engine does it: reserve, record, start

    def record(self, run: RunId, cards: Sequence[str] = ()) -> Launch:
        """With cards: one that may get others."""
        handle = ""
        if is_placing(self.backend):
            handle = self.until(lambda: self._reserved(run, cards))
        uni_id = f"{os.getpid():08x}{run[0]:04x}{run[1]:04x}"
        self.rows[run] = Adopted(run, uni_id, handle, False, 1 if cards else 0)
        return Launch(run, handle, {**self.spec(run, uni_id), **({"resize": "restart"} if cards else {})})

    def _reserved(self, run: RunId, cards: Sequence[str]) -> str:
        answer = self.backend.reserve(run, "", [(card, None) for card in cards], frozenset(), alone=True)
        return answer.handle if isinstance(answer, Reserved) else ""

    def resize(self, run: RunId, order: int, *cards: str, more: Sequence[str] = ()) -> None:
        """Reserved, recorded, told."""
        known = frozenset(c.name for c in self.backend.claims(CARDS))
        assert self.backend.reserve_more(run, [(card, None) for card in more], known, alone=True) is None
        self.rows[run] = self.rows[run]._replace(order=order)
        self.backend.resize([Resizing(run, order, cards, {"CUDA_VISIBLE_DEVICES": "0", "JOSTLE_GPUS": "0"})])

    def footing(self, run: RunId, order: int) -> Footing:
        """As it is when the fate of this order is known."""

        def known() -> Footing | None:
            report = self.hear(run)
            got = None if report is None else report.footing
            return got if got is not None and got.order >= order and (not got.taken or got.effective == got.order) else None

        return self.until(known)

    def held(self, run: RunId) -> list[str]:
        return sorted(c.uuid for c in self.backend.claims(CARDS) if c.run == run)

    def start(self, run: RunId, code: int = 0, cards: Sequence[str] = ()) -> Launch:
        launch = self.record(run, cards)
        self.ends_with(run, code)
        self.backend.start([launch])
        return launch

    def begun(self, run: RunId) -> None:
        self.report(run, Phase.ALIVE)
        self.rows[run] = self.rows[run]._replace(begun=True)

    def hear(self, run: RunId) -> RunReport | None:
        """The report of a run, if there is one; a handle that it brings is recorded."""
        for report in self.backend.reports([run]):
            if report.handle is not None:
                self.rows[run] = self.rows[run]._replace(handle=report.handle)
            return report
        return None

    def report(self, run: RunId, kind: Phase) -> RunReport:
        return self.until(lambda: r if (r := self.hear(run)) is not None and r.kind is kind else None)

    # --- what happens to the run itself

    def spec(self, run: RunId, uni_id: str) -> dict[str, Any]:
        return {"uni_id": uni_id}

    def ends_with(self, run: RunId, code: int) -> None:
        """How it will end when it is let go."""

    def let_go(self, run: RunId) -> None: ...
    def lose(self, run: RunId) -> None:
        """The run dies with whoever looked after it."""

    def silence(self, on: bool) -> None:
        """Nobody answers the backend, where it must ask."""

    def times_begun(self, run: RunId) -> int:
        raise NotImplementedError


class FakeBed(Bed):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.disk, self.clock = Disk(), FakeClock()

    def make(self) -> Backend:
        return FakeBackend(self.disk, self.clock)

    def pass_time(self) -> None:
        self.clock.at += 1.0

    def ends_with(self, run: RunId, code: int) -> None:
        self.disk.durations[run[0]] = (LONG * 1000, code, "")

    def let_go(self, run: RunId) -> None:
        self.disk.processes[run].ends = self.clock.at

    def lose(self, run: RunId) -> None:
        del self.disk.processes[run]
        self.backend.begun.add(run)

    def times_begun(self, run: RunId) -> int:
        return int(run in self.disk.processes)


class ClusterBed(Bed):
    def __init__(self, path: Path, seed: int = 0, *, bad_line: bool = True) -> None:
        super().__init__()
        self.clock = Clock()
        self.cluster = Cluster(self.clock, seed, bad_line=bad_line)

    def make(self) -> Backend:
        return ClusterBackend(self.cluster)

    def pass_time(self) -> None:
        self.clock.at += 1.0
        self.cluster.step()
        self.backend.tick(self.clock.at)

    def ends_with(self, run: RunId, code: int) -> None:
        self.cluster.lasts[self.rows[run].uni_id] = (LONG * 1000, code)

    def let_go(self, run: RunId) -> None:
        for job in self.cluster.jobs.values():
            if job.uni_id == self.rows[run].uni_id and job.running:
                job.ends = self.clock.at

    def lose(self, run: RunId) -> None:
        self.cluster.lose(self.rows[run].uni_id)

    def silence(self, on: bool) -> None:
        self.cluster.silent = on

    def times_begun(self, run: RunId) -> int:
        return self.cluster.ran[self.rows[run].uni_id]


class LocalBed(Bed):
    """Real processes; a run ends when it finds its file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.home, self.leases = path / "home", path / "leases"
        self.home.mkdir()
        self.leases.mkdir()
        self.code: dict[RunId, int] = {}

    def make(self) -> Backend:
        self.bench = Bench(self.home, self.leases, None)
        return self.bench.local

    def pass_time(self) -> None:
        self.bench.local.tick(time.monotonic())
        self.bench.turn()

    def ends_with(self, run: RunId, code: int) -> None:
        (self.home / f"{run[0]}.code").write_text(str(code))

    def spec(self, run: RunId, uni_id: str) -> dict[str, Any]:
        wait = f"echo begun >> {run[0]}.begun; until [ -e {run[0]}.go ]; do sleep 0.02; done; exit $(cat {run[0]}.code)"
        return self.bench.spec(run, [wait], uni_id=uni_id, grace=0.5, pauses=True)

    def let_go(self, run: RunId) -> None:
        (self.home / f"{run[0]}.go").touch()

    def lose(self, run: RunId) -> None:
        shim = json.loads((self.bench.dir(run) / "claim").read_text())["pid"]
        members = proc.tree(shim)
        for pid in [shim, *members]:
            with contextlib.suppress(ProcessLookupError):  # a sleep that has just ended
                os.kill(pid, signal.SIGKILL)

    def times_begun(self, run: RunId) -> int:
        file = self.home / f"{run[0]}.begun"
        return len(file.read_text().splitlines()) if file.exists() else 0
