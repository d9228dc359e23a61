"""A small loop with a Local in it, and waiting for conditions instead of for time."""

from __future__ import annotations

import json
import os
import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle import proc
from jostle.backends.local.backend import Local
from jostle.core.model import Exit, RunId
from jostle.port import BY_HAND, Adopted, Launch, Phase, Reserved, RunReport, Tenure

PATIENCE = 60.0


class Loop:
    """The engine's loop, as far as a backend knows it."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        self.selector.register(fd, selectors.EVENT_READ, callback)

    def unwatch(self, fd: int) -> None:
        self.selector.unregister(fd)

    def turn(self, timeout: float) -> None:
        for key, _ in self.selector.select(timeout):
            if key.fd in self.selector.get_map():  # an earlier callback may have ended this watch
                key.data()


def mark(job: int, n: int) -> str:
    """Of a run of this very test process: whoever looks for it must not find those of another."""
    return f"{os.getpid()}-{job}-{n}"


class Ear:
    """What a backend tells the engine."""

    def __init__(self) -> None:
        self.changes: list[RunId] = []
        self.endings: list[RunId] = []
        self.wakes = 0
        self.notes: list[tuple[RunId, str, Mapping[str, Any]]] = []

    def changed(self, run: RunId) -> None:
        self.changes.append(run)

    def about_to_end(self, run: RunId) -> None:
        self.endings.append(run)

    def wake(self) -> None:
        self.wakes += 1

    def noted(self, run: RunId, kind: str, data: Mapping[str, Any]) -> None:
        self.notes.append((run, kind, data))


@dataclass(frozen=True)
class Held:
    """A run's reservation, as tests look at it."""

    run: RunId
    handle: str
    pid: int
    ticks: int
    names: tuple[str, ...]


class Bench:
    """One home with its Local, driven by hand."""

    def __init__(self, home: Path, lease_dir: Path, rows: Sequence[Adopted] | None = ()) -> None:
        """`rows` None: whoever made it opens it."""
        self.home, self.lease_dir = home, lease_dir
        self.loop, self.ear = Loop(), Ear()
        self.changes = self.ear.changes
        self.local = Local(home=str(home), lease_dir=str(lease_dir), watcher=self.loop)
        if rows is not None:
            self.local.open(rows, self.ear)

    def until(self, condition: Callable[[], Any], *, what: str = "") -> Any:
        """Turns the loop until the condition holds, and says what it gave."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.local.tick(time.monotonic())
            got = condition()
            if got:
                return got
            self.turn()
        raise AssertionError(f"never happened: {what or condition}")

    def turn(self) -> None:
        self.loop.turn(0.02)

    def nursery(self) -> int | None:
        """The child of this process that makes this home's shims."""
        for pid in proc.pids():
            s = proc.stat(pid)
            if s is None or s.ppid != os.getpid() or s.state in "ZX":
                continue
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if str(self.home / "runs").encode() in argv:
                return pid
        return None

    def shims(self) -> set[int]:
        """Those that the present nursery has made and that live, with a run or without."""
        nursery = self.nursery()
        found = (proc.stat(pid) for pid in proc.pids()) if nursery is not None else ()
        return {s.pid for s in found if s is not None and s.ppid == nursery and s.state not in "ZX"}

    def dir(self, run: RunId) -> Path:
        return self.home / "runs" / f"{run[0]}.{run[1]}"

    def spec(self, run: RunId, commands: Sequence[str | list[str]], **more: Any) -> dict[str, Any]:
        uni_id = more.pop("uni_id", mark(*run))
        env = {"PATH": os.environ["PATH"], proc.MARK: uni_id, **more.pop("env", {})}
        return {
            "run": f"{run[0]}.{run[1]}",
            "uni_id": uni_id,
            "dir": str(self.dir(run)),
            "commands": list(commands),
            "env": env,
            "workdir": str(self.home),
            "umask": 0o022,
            "limits": {},
            "log": str(self.dir(run) / "log"),
            "log_cap_mib": 64,
            "time_limit": None,
            "grace": 5.0,
            "leftovers": "kill",
            **more,
        }

    def reserve(self, run: RunId, wants: Sequence[tuple[str, int | None]] = (), tenure: Tenure = BY_HAND) -> Held:
        self.until(self.local.capacity, what="a spare")
        got = self.local.reserve(run, "", wants, frozenset(), tenure=tenure)
        assert isinstance(got, Reserved)
        shim = json.loads(got.handle)
        names = tuple(c.name for c in self.local.claims() if c.claim.run == run and c.claim.sid == shim["pid"])
        return Held(run, got.handle, shim["pid"], shim["ticks"], names)

    def give(self, held: Held, spec: Mapping[str, Any]) -> None:
        self.local.start([Launch(held.run, held.handle, spec)])

    def start(self, run: RunId, *commands: str | list[str], wants: Sequence[tuple[str, int | None]] = (), **more: Any) -> Held:
        held = self.reserve(run, wants)
        self.give(held, self.spec(run, commands, **more))
        return held

    def poll(self, run: RunId) -> RunReport:
        (report,) = self.local.reports([run])
        return report

    def has_begun(self, run: RunId) -> bool:
        return self.poll(run).kind is Phase.ALIVE

    def is_unsupervised(self, run: RunId) -> bool:
        report = self.poll(run)
        return report.kind is Phase.ALIVE and not report.supervised

    def unsupervised(self, run: RunId) -> RunReport:
        self.until(lambda: self.is_unsupervised(run), what=f"{run} has no shim")
        return self.poll(run)

    def stop(self, run: RunId, *, kill: bool) -> None:
        self.local.stop([run], kill=kill)

    def forget(self, run: RunId) -> None:
        self.local.forget([run])

    def report(self, run: RunId, kind: str) -> RunReport:
        def look() -> RunReport | None:
            report = self.poll(run)
            return report if report.kind == kind else None

        got = self.until(look, what=f"{run} {kind}, last {self.poll(run)}")
        assert isinstance(got, RunReport)
        return got

    def end(self, run: RunId) -> Exit:
        got = self.report(run, "ended").exit
        assert got is not None
        return got

    def carry(self, run: RunId, *commands: str | list[str], **more: Any) -> Exit:
        self.start(run, *commands, **more)
        return self.end(run)

    def running(self, run: RunId, *files: str) -> None:
        """Until the run's own processes have made these files in the home."""
        self.until(lambda: all((self.home / f).exists() for f in files), what=f"{files}")

    def log(self, run: RunId) -> str:
        return (self.dir(run) / "log").read_text()


MakeBench = Callable[..., Bench]
