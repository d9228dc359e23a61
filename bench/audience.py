"""A console beside a jostle on stage, and who looks at it: streams, followers of logs, and what a page asks for.

Who listens are the tabs of tests/web/soak.py: they check what they hear, and a fault in that is one of the run.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from peers.ours import Jostle
from scene import until
from tasks import HERE

ROOT = os.path.dirname(HERE)
sys.path[:0] = [path for path in (f"{ROOT}/src", ROOT) if path not in sys.path]

from tests.web.soak import Tab, answered  # noqa: E402

GATHERED = 0.25  # s of events that a page answers with one reading, as TOLD_MS in web/src/api/hooks.ts
EXPLAINED = 5.0  # s between two readings of why jobs wait, as REASONS_MS there


class Web:
    """The web process of a home."""

    def __init__(self, peer: Jostle) -> None:
        self.peer = peer
        self.url = self._verb("--port", "0")
        self.port = int(re.search(r":(\d+)/", self.url)[1])  # type: ignore[index]
        self.token = self._verb("--token")
        self.pid = int(re.search(r"pid (\d+)", self._verb("--list"))[1])  # type: ignore[index]

    def _verb(self, *words: str) -> str:
        return self.peer.scene.run([*self.peer.program, "web", *words]).decode().strip()

    def address(self) -> str:
        """Where a browser logs in, once."""
        return self._verb("--url")

    def close(self) -> None:
        self._verb("--stop")


@contextmanager
def console(peer: Jostle) -> Iterator[Web]:
    web = Web(peer)
    try:
        yield web
    finally:
        web.close()


class Page(Tab):
    """A tab that asks for what the page in it would ask for when it hears of something."""

    def __init__(self, web: Web, late: list[float]) -> None:
        super().__init__(web, late)  # type: ignore[arg-type]  # of a console it needs port and token
        self.touched: set[int] = set()

    def _take(self, part: dict[str, str]) -> None:
        super()._take(part)
        if part.get("event") == "event" and (job := re.search(r'"job":(\d+)', part["data"])):
            self.touched.add(int(job[1]))

    async def ask(self) -> None:
        while True:
            await asyncio.sleep(GATHERED)
            ids, self.touched = self.touched, set()
            if ids:
                await self._get("/api/v1/ps?" + "&".join(f"id={id}" for id in ids))
                await self._get("/api/v1/status")

    async def explain(self) -> None:
        while True:
            await self._get("/api/v1/ps?short=true")
            await asyncio.sleep(EXPLAINED)

    async def _get(self, path: str) -> None:
        async with answered(self.console, path, Connection="close") as reader:
            await reader.read()


class Audience:
    """All who listen, in a thread of their own."""

    def __init__(self, web: Web, *, pages: int = 0, streams: int = 0, logs: tuple[int, ...] = ()) -> None:
        self.late: list[float] = []  # s from an event to who heard it
        self.pages = [Page(web, self.late) for _ in range(pages)]
        followed = (*[None] * streams, *logs)
        self.tabs = [*self.pages, *(Tab(web, self.late, log) for log in followed)]  # type: ignore[arg-type]
        self.wrong: list[str] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        works: list[Callable[[], Coroutine[Any, Any, None]]] = [tab.listen for tab in self.tabs]
        works += [work for page in self.pages for work in (page.ask, page.explain)]
        self.tasks = [self.loop.create_task(work()) for work in works]
        ends = self.loop.run_until_complete(asyncio.gather(*self.tasks, return_exceptions=True))
        self.wrong += [repr(end) for end in ends if not isinstance(end, asyncio.CancelledError)]
        self.loop.close()

    def __enter__(self) -> Audience:
        self.thread.start()
        until(lambda: all(tab.seq is not None for tab in self.tabs), 60.0, "all streams open")
        return self

    def heard(self, seq: int) -> bool:
        return all((tab.seq or 0) >= seq for tab in self.tabs)

    def __exit__(self, *error: object) -> None:
        self.loop.call_soon_threadsafe(lambda: [task.cancel() for task in self.tasks])
        self.thread.join()
        if wrong := self.wrong + [text for tab in self.tabs for text in tab.wrong]:
            raise RuntimeError(f"{len(wrong)} faults in what streams heard: {wrong[0]}")
