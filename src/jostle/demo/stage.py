"""The stage of the demo: an engine and a console with a home of their own, of which nothing is left."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from jostle import client
from jostle.core.states import UNFINISHED
from jostle.demo.shows import WORKSPACE, Show
from jostle.experiments.skip import Rule
from jostle.intake.batches import loaded
from jostle.intake.options import Options
from jostle.intake.selection import selected
from jostle.intake.submitting import submitted
from jostle.session import Session
from jostle.views.cards import seen_by_engine
from jostle.views.listing import listing
from jostle.web import instances
from jostle.wording import sentences
from jostle.wording.text import listed

if TYPE_CHECKING:
    from jostle.store.reads import Reader
    from jostle.web.instances import Instance

ACT_AT = 12  # unfinished jobs: with fewer the next act begins
GONE_WITHIN = 10.0
LONGEST = 120.0  # s of the show that ends by itself
LOGIN_EACH = 540.0  # s: a URL is good for ten minutes


class Stage(Session):
    """A session in the demo's home."""

    def __init__(self, home: str, show: Show) -> None:
        super().__init__()
        self._home, self.show = home, show
        self.acts = 0
        self.workspace = os.path.join(home, "workspace")
        self.console: Instance | None = None
        self.login_at = float("-inf")

    def say(self, text: str) -> None:
        """What is said of its files is for nobody."""

    def begin(self, *, console: bool) -> None:
        for name, text in WORKSPACE.items():
            self._write(os.path.join(self.workspace, name), text)
        world = os.path.join(self.home, "world.json")
        self._write(world, json.dumps(self.show.world))
        client.connect(self.home, gpus=f"sim:{world}").close()
        self.go_on()
        if console:
            self.console = instances.start(instances.Wanted(home=self.home, workspace=self.workspace, port=0))

    def go_on(self) -> None:
        """The next act, if there is one and it is time for it."""
        counts = self.reader.counts() if self.acts else {}
        if self.acts == self.show.acts or sum(counts.get(state, 0) for state in UNFINISHED) >= ACT_AT:
            return
        for name, text in self.show.act(self.acts).items():
            path = os.path.join(self.workspace, name)
            self._write(path, text)
            options = Options(files=(path,), skip=Rule(redo=True))
            for batch in loaded(options, self):
                selection = selected(batch, options, self)
                submitted(batch, selection, selection.taken(), options, self, None)
        self.acts += 1

    def _write(self, path: str, text: str) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def events(self, over: Callable[[], bool]) -> Iterator[tuple[float, dict[str, Any]]]:
        """What happens, and after how many seconds, until it is over; or lasts too long for a show that ends by itself."""
        seq, began = 0, time.monotonic()
        while not over() and time.monotonic() - began < LONGEST:
            for event in self.reader.events(after=seq):
                seq = event["seq"]
                yield time.monotonic() - began, event
            time.sleep(0.2)

    def jobs(self, language: str) -> list[dict[str, Any]]:
        """What runs, waits and has lately ended, with the text of its reason."""
        return sentences.jobs(listing(self, short=True).rows, language)

    def cards(self) -> list[dict[str, Any]]:
        return seen_by_engine(self) or []

    def counts(self, language: str) -> str:
        return listed(sentences.states(self.reader.counts(), language), language)

    def fresh_login(self) -> str:
        """A URL for one login, if there is a console and the one before is good no more."""
        if self.console is None or time.monotonic() - self.login_at < LOGIN_EACH:
            return ""
        self.login_at = time.monotonic()
        return instances.login_url(self.home, self.console)

    def asked(self, path: str) -> dict[str, Any]:
        """The console's answer over HTTP."""
        from http.client import HTTPConnection

        from jostle.web.secret import Secrets

        assert self.console is not None
        connection = HTTPConnection("127.0.0.1", self.console.port, timeout=30)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {Secrets(self.home).token()}"})
            answer: dict[str, Any] = json.load(connection.getresponse())
            return answer
        finally:
            connection.close()


PREFIX, LOCK = "jostle-demo-", "demo.lock"


@contextlib.contextmanager
def stage(show: Show, *, console: bool) -> Iterator[Stage]:
    for name in ("JOSTLE_LEASE_DIR", "JOSTLE_SIM_DIR"):
        os.environ.pop(name, None)  # this world is nobody else's
    clear_left_behind()
    home = tempfile.mkdtemp(prefix=PREFIX)
    made = Stage(home, show)
    fresh = os.path.join(home, f"{LOCK}.new")  # under its name it is locked from the first instant: who clears looks at that
    lock = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(fresh, os.path.join(home, LOCK))
    try:
        made.begin(console=console)
        yield made
    finally:
        made.close()
        clear(home)
        os.close(lock)


def told_to_end() -> list[int]:
    """The signals that come from now on. None of them ends this process itself: first all goes that it has started."""
    heard: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: heard.append(number))
    return heard


def clear_left_behind() -> None:
    """What a demo has left that was killed: nobody holds its lock any more."""
    for entry in os.scandir(tempfile.gettempdir()):
        if not entry.name.startswith(PREFIX):
            continue
        try:
            if entry.stat(follow_symlinks=False).st_uid != os.getuid():
                continue
            lock = os.open(os.path.join(entry.path, LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue  # no directory of a demo, or of one that has just begun or ended
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            clear(entry.path)
        except BlockingIOError:
            pass  # it goes on
        finally:
            os.close(lock)


def clear(home: str) -> None:
    """All that was started for it ends, and it is no more."""
    instances.stop_all(home)
    engine = client.attempt(home)
    if engine is not None:
        client.down(engine, stop_jobs=True, now=True)
    end = time.monotonic() + GONE_WITHIN
    while os.path.exists(home) and time.monotonic() < end:
        shutil.rmtree(home, ignore_errors=True)  # somebody's last word may come between


def telling(rows: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Of each reason to wait the first job, and the last failure."""
    waiting = {row["reason"]["code"]: row for row in reversed(rows) if row["state"] == "queued" and row["reason"]}
    failed = [row for row in rows if row["state"] == "failed"]
    return [*list(waiting.values())[:most], *failed[-1:]]


class Outcome(NamedTuple):
    """What the record says, worked out anew from its rows."""

    jobs: int
    succeeded: int
    tries: int
    took_s: float
    clashes: int  # whole cards that were given to two runs at once


def outcome(reader: Reader) -> Outcome:
    rows = reader.jobs()
    spans = [(card, run["started_at"], run["ended_at"] or 0.0, run["memory_mib"])
             for row in rows for run in reader.runs(row["id"]) for card in run["gpus"]]  # fmt: skip
    clashes = sum(
        a[0] == b[0] and a[1] < b[2] and b[1] < a[2] and (a[3] is None or b[3] is None)
        for k, a in enumerate(spans) for b in spans[:k]
    )  # fmt: skip
    first, last = min(row["started_at"] for row in rows), max(row["ended_at"] or 0.0 for row in rows)
    succeeded = sum(row["state"] == "succeeded" for row in rows)
    return Outcome(len(rows), succeeded, sum(row["attempt"] for row in rows), last - first, clashes)
