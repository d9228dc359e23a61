"""Many listen while much happens: 100 streams, 50 followers of logs, 8 jobs a second, and a console that dies, hangs, is flooded.

    make soak SECONDS=600          or: python -m tests.web.soak --seconds 600 [--streams 100] [--followers 50] [--rate 8]

Asked is what must hold however slow the machine is: each stream hears every event once and in order, from the last that it heard
if the console went away; each follower has its log to the last byte; and whatever becomes of the console, jobs start and end.
Delays are told, and nothing depends on them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.e2e.instance import PATIENCE
from tests.web.console import Console

LONGEST = 4 << 20  # bytes of one part of a stream
PAUSE = 0.2  # s until a stream that broke off is opened again
CROWD = 200  # connections that say nothing
ASKING = 16  # who ask as fast as they are answered
ASKED = ("/api/v1/ps?all=true", "/api/v1/gpus", "/api/v1/status", "/api/v1/logs/1")
LAST = "the last line"
PRINTS = """exec 9<> <(:); k=0
until [ -e {stop} ]; do k=$((k+1)); echo "$JOSTLE_JOB_ID: line $k 训练中 ……"; read -rt 0.5 -u 9; done; echo "{last}"
"""


class Tab:
    """One open stream, as a tab has it: it comes back by itself, from the last that it has heard."""

    def __init__(self, console: Console, late: list[float], log: int | None = None) -> None:
        """`late`: takes how long each event was under way."""
        self.console, self.late, self.log = console, late, log
        self.seq: int | None = None
        self.openings = 0
        self.text: list[str] = []  # of the log that it follows
        self.at = 0
        self.over = log is None
        self.wrong: list[str] = []

    async def listen(self) -> None:
        while True:
            with contextlib.suppress(OSError, EOFError):
                await self._read()
            await asyncio.sleep(PAUSE)

    async def _read(self) -> None:
        log = "" if self.over else f"&log={self.log}&run=1&from={self.at}"
        heard = {} if self.seq is None else {"Last-Event-ID": str(self.seq)}
        async with answered(self.console, f"/api/v1/stream?gpus=1{log}", **heard) as reader:
            self.openings += 1
            kept = b""
            while size := int(await reader.readline() or b"0", 16):
                *whole, kept = (kept + (await reader.readexactly(size + 2))[:-2]).split(b"\n\n")
                for part in whole:
                    self._take(dict(line.split(": ", 1) for line in part.decode().split("\n")))

    def _take(self, part: dict[str, str]) -> None:
        kind, data = part.get("event"), json.loads(part.get("data", "null"))
        if kind == "hello" and self.seq is None:
            self.seq = data["seq"]
        elif kind == "event":
            number = int(part["id"])
            if self.seq is None or number != self.seq + 1:
                self.wrong.append(f"event {number} came after {self.seq}")
            self.seq = number
            self.late.append(time.time() - data["at"])
        elif kind == "behind":
            self.wrong.append(f"was told that it has missed something: {data}")
        elif kind == "log" and data["job"] == self.log:
            if data["from"] != self.at:
                self.wrong.append(f"of log {self.log} byte {data['from']} came after {self.at}")
            self.at, self.over = data["to"], data["over"]
            self.text.append(data["text"])


@contextlib.asynccontextmanager
async def answered(console: Console, path: str, **heads: str) -> AsyncIterator[asyncio.StreamReader]:
    """The body of an answer, as it comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", console.port, limit=LONGEST)
    try:
        sent = {"Host": "localhost", "Authorization": f"Bearer {console.token}", **heads}
        writer.write("\r\n".join([f"GET {path} HTTP/1.1", *(f"{k}: {v}" for k, v in sent.items()), "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise ConnectionError(head.partition(b"\r\n")[0].decode())
        yield reader
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def until(condition: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        await asyncio.sleep(0.05)


class Soak:
    def __init__(self, console: Console, *, streams: int = 100, followers: int = 50, rate: float = 8.0) -> None:
        self.console, self.instance, self.rate = console, console.instance, rate
        self.streams, self.followers = streams, followers
        self.tabs: list[Tab] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.printing: list[int] = []  # jobs whose logs are followed
        self.started: list[int] = []  # jobs of the load
        self.late: list[float] = []  # s from an event to who heard it
        self.told: list[str] = []

    async def run(self, seconds: float, each: int) -> None:
        """In turn the console is left alone, killed, hung and flooded, until the time is up and each was once; each until so many
        jobs have started and ended meanwhile."""
        engine, before = self.instance.engine, self.instance.log()
        stop = self.instance.work / "stop-printing"
        prints = {"gpus": [0, 0], "commands": [PRINTS.format(stop=stop, last=LAST)]}
        self.printing = self.instance.submit(*[prints] * self.followers)
        await until(lambda: set(self.instance.states(self.printing).values()) == {"running"}, "all that print run")
        end = time.monotonic() + seconds
        try:
            self.tabs = [Tab(self.console, self.late, log) for log in (*[None] * self.streams, *self.printing)]
            self._begin(*(tab.listen() for tab in self.tabs))
            await until(lambda: all(tab.seq is not None for tab in self.tabs), "all streams are open")
            self._begin(self._start_jobs())
            while True:
                for phase in (self.alone, self.killed, self.hung, self.flooded):
                    await self._lived_through(phase, each)
                if time.monotonic() > end:
                    break
            await self._stop(self.tasks.pop())
            stop.touch()
            await until(lambda: set(self.instance.states(self.printing + self.started).values()) == {"succeeded"}, "their ends")
            await self.all_have_heard()
            await until(lambda: all(tab.over for tab in self.tabs), "the ends of all logs")
        finally:
            await self._stop(*self.tasks)
        assert self.instance.engine == engine and self.instance.log() == before, self.instance.log()

    def judge(self) -> None:
        """After the run: nothing was lost, doubled or torn."""
        assert [f"stream {k}: {wrong}" for k, tab in enumerate(self.tabs) for wrong in tab.wrong] == []
        newest = self._newest()
        assert {tab.seq for tab in self.tabs} == {newest}
        for tab in self.tabs[self.streams :]:
            text = "".join(tab.text)
            assert tab.log is not None and text == self.instance.output(tab.log), f"the log of job {tab.log}"
            assert text.endswith(f"\n{LAST}\n")

    # --- what happens to the console

    async def alone(self, each: int) -> None:
        await self._jobs_go_on(each)

    async def killed(self, each: int) -> None:
        openings = [tab.openings for tab in self.tabs]
        os.kill(self.console.pid, signal.SIGKILL)
        await self._jobs_go_on(each)
        await asyncio.to_thread(self.console.open, self.console.port)
        await until(lambda: all(tab.openings > n for tab, n in zip(self.tabs, openings, strict=True)), "all come back")

    async def hung(self, each: int) -> None:
        pid = self.console.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            await self._jobs_go_on(each)
        finally:
            os.kill(pid, signal.SIGCONT)

    async def flooded(self, each: int) -> None:
        async with contextlib.AsyncExitStack() as crowd:
            for _ in range(CROWD):
                _, writer = await asyncio.open_connection("127.0.0.1", self.console.port)
                crowd.callback(writer.close)
            asking = [asyncio.create_task(self._ask(path)) for path in ASKED * (ASKING // len(ASKED))]
            try:
                await self._jobs_go_on(each)
            finally:
                await self._stop(*asking)

    async def _ask(self, path: str) -> None:
        while True:
            with contextlib.suppress(OSError, EOFError):
                async with answered(self.console, path, Connection="close") as reader:
                    await reader.read()

    # --- what goes on meanwhile

    async def _lived_through(self, phase: Callable[[int], Coroutine[Any, Any, None]], each: int) -> None:
        began, first = time.monotonic(), len(self.started)
        self.late.clear()
        await phase(each)
        await self.all_have_heard()
        took, jobs = time.monotonic() - began, self.started[first:]
        waits = [row["started_at"] - row["submitted_at"] for row in self.instance.jobs(jobs).values() if row["started_at"]]
        self.told.append(
            f"{phase.__name__:<8} {took:6.1f} s  {len(jobs) / took:5.1f} jobs/s, start after {spread(waits)}; "
            f"{len(self.late):8} events heard, after {spread(self.late)}"
        )

    async def all_have_heard(self) -> None:
        """Each stream is live: what has happened by now comes to it."""
        newest = self._newest()
        await until(lambda: all((tab.seq or 0) >= newest for tab in self.tabs), f"event {newest} in all streams")

    def _newest(self) -> int:
        with self.instance.reader() as reader:
            return reader.last_seq()

    async def _jobs_go_on(self, each: int) -> None:
        """Jobs that are submitted from now on start and end."""
        first = len(self.started)
        await until(lambda: len(self.started) >= first + each, f"{each} more jobs")
        await until(lambda: set(self.instance.states(self.started[first : first + each]).values()) == {"succeeded"}, "their ends")

    async def _start_jobs(self) -> None:
        began = time.monotonic()
        while True:
            self.started += await asyncio.to_thread(self.instance.submit, {"name": f"load {len(self.started)}"})
            await asyncio.sleep(max(0.0, began + len(self.started) / self.rate - time.monotonic()))

    def _begin(self, *works: Coroutine[Any, Any, None]) -> None:
        self.tasks += [asyncio.create_task(work) for work in works]

    async def _stop(self, *tasks: asyncio.Task[None]) -> None:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(ended, asyncio.CancelledError):
                raise ended or AssertionError("one who was to go on has ended")


def spread(seconds: list[float]) -> str:
    if len(seconds) < 2:
        return "–"
    cuts = statistics.quantiles(seconds, n=20, method="inclusive")
    return f"{cuts[9] * 1e3:.0f} ms (p95 {cuts[18] * 1e3:.0f})"


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=float, default=600.0)
    p.add_argument("--streams", type=int, default=100)
    p.add_argument("--followers", type=int, default=50)
    p.add_argument("--rate", type=float, default=8.0, help="jobs a second")
    p.add_argument("--each", type=int, default=160, help="jobs that start and end in each state of the console")
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="jostle-soak-") as place:
        console = Console(Path(place))
        try:
            soak = Soak(console, streams=args.streams, followers=args.followers, rate=args.rate)
            asyncio.run(soak.run(args.seconds, args.each))
            soak.judge()
        finally:
            console.close()
    print("\n".join(soak.told))
    print(f"{len(soak.started)} jobs, {len(soak.tabs)} streams, {sum(tab.at for tab in soak.tabs)} bytes of logs: nothing lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
