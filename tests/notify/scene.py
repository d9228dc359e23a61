"""A store with events in it, without an engine, and a channel to somebody who listens on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jostle.core.fields import NOTIFY
from jostle.engine import checks
from jostle.notify.deliver import Channel, deliver
from jostle.notify.outbox import Outbox
from jostle.store import jobs
from jostle.store.store import Store

AT = 1_800_000_000.0


def settings(**said: Any) -> dict[str, Any]:
    return {**{field.name: field.fresh() for field in NOTIFY.values()}, **said}


class Home:
    """A home of which only the store and the spools are there."""

    def __init__(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        path.chmod(0o700)
        (path / "notify").mkdir(mode=0o700, exist_ok=True)
        self.path = str(path)
        self.store = Store(self.path)

    def submit(self, *names: str, batch: dict[str, Any] | None = None) -> list[int]:
        """Jobs of one batch; the first number of a home is 1."""
        asked = [{"commands": ["true"], "workdir": "/", "name": name} for name in names]
        request = checks.request({"jobs": asked, "batch": batch or {}})
        with self.store.transaction():
            first = self.store.db.execute("SELECT coalesce(max(id), 0) + 1 FROM job").fetchone()[0]
            jobs.submit(self.store, request, at=AT, now=0.0, rank=lambda: 0.0)
        return list(range(first, first + len(names)))

    def happens(self, kind: str, at: float = AT, **data: Any) -> None:
        with self.store.transaction():
            self.store.event(at, kind, **data)

    def outbox(self, channel: Channel, **said: Any) -> Outbox:
        return Outbox(self.path, channel, settings(**said), deliver, "lab-1")

    def close(self) -> None:
        self.store.close()


def mail(port: int, *events: str, name: str = "me") -> Channel:
    options = {"host": "localhost", "port": port, "security": "none", "sender": "jostle@lab.example", "to": ["me@lab.example"]}
    return Channel(name=name, kind="mail", events=events or ("failed",), options=options)


def hook(port: int, *events: str, name: str = "hook") -> Channel:
    options = {"url": f"http://localhost:{port}/hook"}
    return Channel(name=name, kind="webhook", events=events or ("failed",), options=options, allow_private=("localhost",))
