"""What one web process knows, and a visit: one call to it, as a session of the rooms that do the work."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from fastapi import Request

from jostle.errors import Forbidden, JostleError, NoEngine, NotFound, Usage
from jostle.formats.workspace import STEMS, BatchKey
from jostle.session import Session
from jostle.store.reads import Reader
from jostle.web import hidden
from jostle.web.answers import Busy, language
from jostle.web.joblog import Tickets
from jostle.web.secret import Secrets
from jostle.wording.flaws import flaw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostle.client import Client
    from jostle.web.gate import Caller
    from jostle.web.instances import Wanted

ANSWER_WITHIN = 5.0  # s that the engine has for an answer; a page is told, and can ask again
LENGTHY = 8  # calls at once that wait for another process; each holds one of the threads that all calls share
LENGTHY_KEPT = 3  # … of them kept for who may do everything
TEXT = 200  # characters of what an audit says


class Seats:
    """For so many at once; some places are kept for who may do everything, however many others look."""

    def __init__(self, places: int, kept: int, full: str) -> None:
        self._places, self._for_readers, self._full = places, places - kept, full
        self._all = self._readers = 0
        self._lock = threading.Lock()

    @contextmanager
    def place(self, caller: Caller) -> Iterator[None]:
        """Busy if there is none."""
        reader = caller.reads_only
        with self._lock:
            if self._all >= self._places or (reader and self._readers >= self._for_readers):
                raise Busy(self._full)
            self._count(1, reader)
        try:
            yield
        finally:
            with self._lock:
                self._count(-1, reader)

    def _count(self, more: int, reader: bool) -> None:
        self._all += more
        self._readers += more * reader


class Site:
    def __init__(self, wanted: Wanted) -> None:
        self.wanted, self.home = wanted, wanted.home
        self.secrets = Secrets(wanted.home)
        self.reader = Reader(wanted.home)
        self.children: dict[BatchKey, Any] = {}  # schedulers that this process has started
        self.tickets = Tickets()
        self.lengthy = Seats(LENGTHY, LENGTHY_KEPT, flaw("seats_lengthy"))
        self.processor: tuple[int, int] | None = None  # its ticks at the last look

    def audit(self, who: str, did: str, what: str) -> dict[str, str]:
        """Into the log of the web process, and for the request that does it."""
        entry = {"who": f"web, {who}", "did": did[:TEXT], "what": what[:TEXT]}
        print(time.strftime("%Y-%m-%d %H:%M:%S"), json.dumps(entry), file=sys.stderr, flush=True)
        return entry


class Visit(Session):
    """One call. What is said to a person is collected, for the answer; an engine that does not answer is waited for briefly."""

    def __init__(self, site: Site, caller: Caller, language: str) -> None:
        super().__init__()
        self.site, self.caller, self._language = site, caller, language
        self._home, self._reader = site.home, site.reader
        self.messages: list[str] = []

    @property
    def language(self) -> str:
        return self._language

    def say(self, text: str) -> None:
        self.messages.append(text)

    def close(self) -> None:
        """The reader is the site's."""

    def client(self, *, start: bool = True, gpus: str | None = None) -> Client:
        client = super().client(start=start, gpus=gpus)
        client.sock.settimeout(ANSWER_WITHIN)
        return client

    def lengthy(self) -> AbstractContextManager[None]:
        """Around what waits for another process: there is room for a few at once, so that the rest is answered."""
        return self.site.lengthy.place(self.caller)

    def must_have_engine(self) -> None:
        """Before something is looked at that only an engine knows: none is started for a look."""
        if not self.engine_runs():
            raise NoEngine(flaw("needs_engine"))

    def must_see_files(self) -> None:
        if self.caller.reads_only:
            raise Forbidden(flaw("may_not_files"))

    def must_see_output(self) -> None:
        if self.caller.reads_only:
            raise Forbidden(flaw("may_not_prints"))

    def ask(self, op: str, *, did: str = "", what: str = "", **fields: Any) -> dict[str, Any]:
        """A request to the engine; one that changes something says what is `did`, and leaves a trace in its transaction."""
        by = {"by": self.site.audit(self.caller.who, did, what)} if did else {}
        client = self.client()
        try:
            return client.call(op, **fields, **by)
        finally:
            client.close()

    def note(self, did: str, what: str) -> None:
        """A change that is none of the store's: to a file, or a scheduler. Recorded if an engine runs; in our log in any case."""
        by = self.site.audit(self.caller.who, did, what)
        client = self.engine_if_any()
        if client is not None:
            try:
                client.call("note", by=by)
            except JostleError as e:
                print(f"not recorded: {e}", file=sys.stderr, flush=True)
            finally:
                client.close()


async def visit(request: Request) -> Visit:
    """For a route's parameters: `Annotated[Visit, Depends(visit)]`."""
    return Visit(request.app.state.site, request.state.caller, language(request))


def checked_mode(mode: str) -> str:
    if mode not in STEMS:
        raise Usage("there is no such mode; expected single or multi")
    return mode


def known_workspaces(site: Site) -> list[str]:
    """The workspace we were started for, first; then those of the store, the newest first. No caller can add one."""
    roots = [site.wanted.workspace] if site.wanted.workspace else []
    for batch in reversed(site.reader.batches()):
        key = BatchKey.read(batch["key"])
        if key is not None:
            roots.append(key.root)
    by_place: dict[str, str] = {}
    for path in roots:
        by_place.setdefault(os.path.realpath(path), path)
    return list(by_place.values())


def workspace_of(site: Site, named: str | None) -> str:
    """The root that a call acts on; only a known one."""
    known = known_workspaces(site)
    if named is None:
        if not known:
            raise NotFound(flaw("no_workspace"))
        return known[0]
    if [hidden.base(path) for path in known].count(named) == 1:
        return next(path for path in known if hidden.base(path) == named)  # who may only look knows no more of it
    for path in known:
        if named == path or os.path.realpath(named) == os.path.realpath(path):
            return path
    raise NotFound(flaw("workspace_unknown"))
