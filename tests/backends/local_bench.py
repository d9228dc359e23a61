"""A small loop with a Local in it, and waiting for conditions instead of for time."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jostle import proc
from jostle.backends.local.backend import Local, Report, Reservation
from jostle.core.model import Exit, RunId

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


class Bench:
    """One home with its Local, driven by hand."""

    def __init__(self, home: Path, lease_dir: Path) -> None:
        self.home, self.lease_dir = home, lease_dir
        self.loop = Loop()
        self.changes: list[RunId] = []
        self.local = Local(home=str(home), lease_dir=str(lease_dir), watcher=self.loop, changed=self.changes.append)
        self.local.open()

    def until(self, condition: Callable[[], Any], *, what: str = "") -> Any:
        """Turns the loop until the condition holds, and says what it gave."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.local.tick(time.monotonic())
            got = condition()
            if got:
                return got
            self.loop.turn(0.02)
        raise AssertionError(f"never happened: {what or condition}")

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

    def reserve(self, run: RunId, wants: Sequence[tuple[str, int | None]] = ()) -> Reservation:
        self.until(lambda: self.local.spares, what="a spare")
        reservation = self.local.reserve(run, wants, frozenset())
        assert reservation is not None
        return reservation

    def start(
        self, run: RunId, *commands: str | list[str], wants: Sequence[tuple[str, int | None]] = (), **more: Any
    ) -> Reservation:
        reservation = self.reserve(run, wants)
        self.local.start(reservation, self.spec(run, commands, **more))
        return reservation

    def report(self, run: RunId, kind: str) -> Report:
        def look() -> Report | None:
            report = self.local.poll(run)
            return report if report.kind == kind else None

        got = self.until(look, what=f"{run} {kind}, last {self.local.poll(run)}")
        assert isinstance(got, Report)
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
