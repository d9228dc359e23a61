"""The stream: one per tab, over which everything comes that a page watches. Server-sent events, read by `fetch`.

Rules: the store is the truth and the engine's own stream only wakes us, so that nothing is lost whoever dies; a number is told
once, in order, and whoever names the last one they heard goes on there. New events are read once for all who listen. Who reads
slowly waits alone. While nobody listens, nobody is asked for anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import struct
import time
from collections import deque
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response, StreamingResponse

from jostle import __version__
from jostle.address import address
from jostle.core.states import ALL, FINAL
from jostle.errors import JostleError, NotFound
from jostle.intake import ids as written
from jostle.views.status import of_itself
from jostle.web import hidden
from jostle.web.joblog import LINES, page
from jostle.web.looking import cards_now, worded_cards, worded_event
from jostle.web.site import Seats, Visit, visit
from jostle.wording import sentences
from jostle.wording.flaws import flaw

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Collection

    from jostle.views.cards import CardReading
    from jostle.web.gate import Caller
    from jostle.web.site import Site

routes = APIRouter(prefix="/api/v1")
KEPT = 2000  # newest events that are not read from the store again
PAGE = 500
MOST = 150  # streams, and calls that wait, at once
KEPT_PLACES = 50  # … of them kept for who may do everything
WAIT = 60.0  # s that such a call waits at the most
ALIVE = 1.0  # s without a word until a sign of life: a page that hears none for three holds us for lost
LOOK = 3.0  # s between looks at the engine, and at the store if none runs
LOG_LOOK = 0.3  # s between looks at a log that grows
SOON = 0.02  # s that what comes together is gathered


async def happens(event: asyncio.Event, within: float) -> bool:
    """Whether it is set in time. `asyncio.wait_for` of Python 3.10 and 3.11 swallows a cancellation that comes together with the
    event: the task would live on, and do its work beside the one that took its place."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({waiting}, timeout=max(0.0, within))
        return event.is_set()
    finally:
        waiting.cancel()


class Happened:
    """An event, and how it is told: to all of one language and the same rights in the same bytes."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row, self.seq, self.job = row, int(row["seq"]), row["job"]
        self._frames: dict[tuple[str, bool], bytes] = {}

    def frame(self, visit: Visit) -> bytes:
        to = (visit.language, visit.caller.reads_only)
        if to not in self._frames:
            self._frames[to] = frame("event", worded_event(visit, self.row), self.seq)
        return self._frames[to]


class Hub:
    """What all streams of this process share: whatever is the same for many of them is made once."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.seats = Seats(MOST, KEPT_PLACES, flaw("seats_streams"))
        self.listeners: dict[object, float] = {}  # each with the seconds between two readings of the cards that it wants; 0: none
        self.recent: deque[Happened] = deque(maxlen=KEPT)
        self.seq = 0  # the newest event that is known
        self.engine: dict[str, Any] = {}
        self.seen: CardReading | None = None  # the last reading that was told
        self.cards: dict[tuple[str, bool], bytes] = {}  # as it was told, by language and whether to one who may only look
        self.turned = asyncio.Event()  # set, and replaced, whenever something is new
        self.welcome: dict[Caller, bool] = {}  # who was looked at since
        self.woken = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []
        self.beginning = asyncio.Lock()

    def turn(self) -> None:
        self.turned.set()
        self.turned = asyncio.Event()
        self.welcome.clear()

    def welcomes(self, caller: Caller) -> bool:
        """Whether they may hear what is new."""
        if caller not in self.welcome:
            self.welcome[caller] = caller.still_welcome(self.site.secrets)
        return self.welcome[caller]

    @contextlib.asynccontextmanager
    async def listening(self, caller: Caller, cards_each: float = 0.0) -> AsyncIterator[None]:
        """Busy if there is no place."""
        me = object()
        with self.seats.place(caller):
            self.listeners[me] = cards_each
            try:
                async with self.beginning:
                    if not self.tasks:
                        await self._begin()
                yield
            finally:
                del self.listeners[me]
                if not self.listeners:
                    for task in self.tasks:
                        task.cancel()
                    self.tasks = []

    async def _begin(self) -> None:
        self.seq = await asyncio.to_thread(self.site.reader.last_seq)
        self.recent.clear()
        self.seen, self.cards = None, {}
        await self._look_at_engine()
        self.tasks = [asyncio.create_task(work()) for work in (self._hear, self._read, self._look, self._look_at_cards)]

    async def _hear(self) -> None:
        """The engine's stream: any byte of it means that there is something to read."""
        while True:
            with contextlib.suppress(OSError):
                with address(self.site.home) as path:
                    reader, writer = await asyncio.open_unix_connection(path)
                try:
                    peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                    if struct.unpack("3i", peer)[1] == os.getuid():
                        writer.write(json.dumps({"op": "subscribe", "after": self.seq, "rows": False}).encode() + b"\n")
                        await self._look_at_engine()
                        while await reader.read(1 << 16):
                            self.woken.set()
                finally:
                    writer.close()
                await self._look_at_engine()
            await asyncio.sleep(0.5)

    async def _read(self) -> None:
        """New events, once for all."""
        while True:
            await happens(self.woken, LOOK)
            self.woken.clear()
            await asyncio.sleep(SOON)
            try:
                fresh = await asyncio.to_thread(self.site.reader.events, None, self.seq, PAGE)
            except JostleError:
                continue
            if fresh:
                self.recent.extend(map(Happened, fresh))
                self.seq = fresh[-1]["seq"]
                self.turn()
                if len(fresh) == PAGE:
                    self.woken.set()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            await self._look_at_engine()

    async def _look_at_engine(self) -> None:
        engine = await asyncio.to_thread(self._engine)
        if engine != self.engine:
            self.engine = engine
            self.turn()

    def _engine(self) -> dict[str, Any]:
        try:
            hello = of_itself(self._visit("en"))
        except JostleError as e:
            return {"running": None, "pid": None, "hold": "", "probe": str(e)}  # there, and does not answer
        texts = {key: hello.get(key) or "" for key in ("hold", "probe")}
        return {"running": bool(hello), "pid": hello.get("pid"), **texts}

    async def _look_at_cards(self) -> None:
        while True:
            each = min((wanted for wanted in self.listeners.values() if wanted), default=0.0)
            if each:
                with contextlib.suppress(JostleError):
                    seen = await asyncio.to_thread(cards_now, self._visit("en"))
                    if self.seen is None or _still(seen) != _still(self.seen):
                        self.seen = seen
                        worded = {lang: worded_cards(seen, lang) for lang in ("en", "zh")}
                        self.cards = {(lang, False): frame("gpus", shown) for lang, shown in worded.items()}
                        self.cards |= {(lang, True): frame("gpus", hidden.cards(shown)) for lang, shown in worded.items()}
                        self.turn()
            await asyncio.sleep(each or 0.5)

    def _visit(self, language: str) -> Visit:
        from jostle.web.gate import Caller

        return Visit(self.site, Caller("read", "the stream"), language)

    def since(self, seq: int) -> list[Happened] | None:
        """The events after this one; None: older ones have to be read from the store."""
        if seq >= self.seq:
            return []
        if not self.recent or self.recent[0].seq > seq + 1:
            return None
        return [*itertools.takewhile(lambda event: event.seq > seq, reversed(self.recent))][::-1]

    async def heard_of(self, jobs: Collection[int], seq: int, end: float) -> bool:
        """Whether, after this one, there is an event of one of these jobs, or may have been; waits for it, until the end."""
        while True:
            turned, events = self.turned, self.since(seq)
            if events is None or any(event.job in jobs for event in events):
                return True
            seq = self.seq
            if not await happens(turned, end - time.monotonic()):
                return False


def _still(seen: CardReading) -> CardReading:
    """What of it is told anew when it changes."""
    return seen._replace(age_s=0, read_at=None)


class Stream:
    """What one tab hears."""

    def __init__(
        self, hub: Hub, visit: Visit, *, after: int | None, log: tuple[int, int | None, int | None] | None, cards: bool
    ) -> None:  # fmt: skip
        self.hub, self.visit, self.after = hub, visit, after
        self.log, self.cards = log, cards
        self.engine: dict[str, Any] = {}
        self.shown = b""
        self.log_over = False
        self.log_at = 0.0  # when it is looked at next: however much happens, a log is read no oftener
        self.sent_at = time.monotonic()

    async def parts(self, each: float) -> AsyncGenerator[bytes, None]:
        async with self.hub.listening(self.visit.caller, each):
            hub = self.hub
            begin = hub.seq if self.after is None else self.after
            yield frame("hello", {"seq": hub.seq, "engine": bool(hub.engine.get("running")), "version": __version__})
            if begin > hub.seq:
                yield frame("behind", {"seq": hub.seq})  # of another home, or a database that was put back
                begin = hub.seq
            self.after = begin
            while True:
                turned = hub.turned
                if news := await self._news():
                    yield b"".join(news)
                    self.sent_at = time.monotonic()
                growing = self.log is not None and not self.log_over
                until = min(self.log_at, self.sent_at + ALIVE) if growing else self.sent_at + ALIVE
                if await happens(turned, until - time.monotonic()):
                    welcome = hub.welcomes(self.visit.caller)
                else:
                    welcome = self.visit.caller.still_welcome(self.visit.site.secrets)
                if time.monotonic() >= self.sent_at + ALIVE:
                    yield b": alive\n\n"
                    self.sent_at = time.monotonic()
                if not welcome:
                    return  # it ends with its session, and with the token that opened either

    async def _news(self) -> list[bytes]:
        parts = []
        if self.hub.engine != self.engine:
            self.engine = self.hub.engine
            shown = self.engine
            if self.visit.caller.reads_only:
                shown = {**shown, **{key: hidden.words(shown.get(key) or "") for key in ("hold", "probe")}}
            parts.append(frame("engine", {**sentences.status(shown, self.visit.language), "seq": self.hub.seq}))
        assert self.after is not None
        events = self.hub.since(self.after)
        if events is None:
            events = [*map(Happened, await asyncio.to_thread(self.visit.reader.events, None, self.after, PAGE))]
            if events and events[0].seq > self.after + 1:
                parts.append(frame("behind", {"seq": events[0].seq}))  # what was before it has been removed
            if len(events) == PAGE:
                self.hub.turn()  # there are more, and nobody else would wake us
        for event in events:
            self.after = event.seq
            parts.append(event.frame(self.visit))
        cards = self.hub.cards.get((self.visit.language, self.visit.caller.reads_only))
        if self.cards and cards is not None and cards is not self.shown:
            self.shown = cards
            parts.append(cards)
        if self.log is not None and not self.log_over and time.monotonic() >= self.log_at:
            parts += await asyncio.to_thread(self._log)
            self.log_at = time.monotonic() + LOG_LOOK
        return parts

    def _log(self) -> list[bytes]:
        assert self.log is not None
        job, run, start = self.log
        try:
            part = page(self.visit, job, run, lines=LINES if start is None else None, start=start or 0)
        except JostleError as e:
            if e.code == "not_found" and (self.visit.reader.job(job) or {}).get("attempt") == 0:
                return []  # it has not begun
            self.log_over = True
            return [frame("log", {"job": job, "run": run, "error": str(e), "over": True})]
        self.log_over = part.over
        self.log = (job, part.run, part.end)
        return [frame("log", part.plain())] if part.text or part.over or start is None else []


def frame(kind: str, data: Any, number: int | None = None) -> bytes:
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode("ascii")


@routes.get("/stream")
async def stream(
    request: Request, visit: Annotated[Visit, Depends(visit)], after: Annotated[int | None, Query(ge=0, lt=1 << 62)] = None,
    gpus: Annotated[float, Query(ge=0, le=60)] = 0.0, log: Annotated[int | None, Query(ge=1, lt=1 << 53)] = None,
    run: Annotated[int | None, Query(ge=1, lt=1 << 31)] = None,
    start: Annotated[int | None, Query(alias="from", ge=0, lt=1 << 62)] = None,
) -> Response:  # fmt: skip
    hub: Hub = request.app.state.hub
    if log is not None:
        visit.must_see_output()
    heard = request.headers.get("last-event-id") or ""
    if heard.isascii() and heard.isdigit() and len(heard) < 18:
        after = int(heard)
    opened = Stream(hub, visit, after=after, log=(log, run, start) if log is not None else None, cards=gpus > 0)
    each = max(0.5, gpus) if gpus else 0.0
    parts = opened.parts(each)
    first = await anext(parts)  # it has its place, or is refused, before it is answered
    return StreamingResponse(_all(first, parts), media_type="text/event-stream", headers={"x-accel-buffering": "no"})


async def _all(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with contextlib.aclosing(rest):
        yield first
        async for part in rest:
            yield part


@routes.get("/wait")
async def wait(
    request: Request, visit: Annotated[Visit, Depends(visit)], ids: str, within: Annotated[float, Query(ge=0, le=WAIT)] = 30.0
) -> dict[str, Any]:  # fmt: skip
    """When these have ended, or the time is up. It listens as a stream does: who waits holds no thread."""
    hub: Hub = request.app.state.hub
    end, heard = time.monotonic() + within, True
    async with hub.listening(visit.caller):
        chosen = await asyncio.to_thread(_chosen, visit, ids)
        while True:
            seq = hub.seq
            states = await asyncio.to_thread(_states, visit, chosen)
            over = all(state in FINAL for state in states.values())
            if over or not heard:
                return {"schema": 1, "over": over, "ok": all(s == "succeeded" for s in states.values()), "jobs": states}
            heard = await hub.heard_of(set(chosen), seq, end)


def _chosen(visit: Visit, ids: str) -> list[int]:
    """By number only: who may only look must not try out names."""
    return written.jobs([ids], lambda: visit.reader, lambda: visit.reader.ids(tuple(s for s in ALL if s not in FINAL)))


def _states(visit: Visit, chosen: list[int]) -> dict[int, str]:
    states = {row["id"]: row["state"] for row in visit.reader.jobs(ids=chosen)}
    if missing := [id for id in chosen if id not in states]:
        raise NotFound(flaw("log_job", id=missing[0]))
    return states
