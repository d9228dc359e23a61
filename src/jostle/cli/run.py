"""`jostle run FILE…`: submits a job file as one batch, follows it to its end, and exits with its result.

The batch is owned by this process: Ctrl-C or SIGTERM cancels it (a second one at once). kill -9 or a hang-up leaves it running,
and the same command attaches to it again. When the engine vanishes, it is started again and the story goes on where it was.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from jostle.cli import render
from jostle.cli.validate import warn_directories
from jostle.errors import JostleError, NoEngine

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.desk import Desk
    from jostle.cli.feed import Feed
    from jostle.cli.parse import Parser
    from jostle.cli.progress import Progress

REDRAW = 1.0
TELL_WAITS = 30.0  # s between lines that say why the next jobs wait
FIRST_TELL = 3.0
SETTLE = 0.05  # s without a further event, after which what was cancelled is told


def run_options(p: Parser) -> None:
    p.example("""
        jostle run jobs.yaml
        jostle run --gpus sim:4x24 examples/hello.yaml
        jostle run jobs.yaml --detach && jostle ps""")
    p.add_argument("files", nargs="+", metavar="FILE", help="job files; together they are one batch")
    p.add_argument("--gpus", metavar="SPEC", help="the set of devices: nvml, sim:8x24 or sim:FILE")
    p.add_argument("-d", "--detach", action="store_true", help="submit, print the ids, and leave")
    p.json_option()


def run(args: Namespace, desk: Desk) -> int:
    from jostle.formats import jobfile

    batch = jobfile.load(args.files)
    key = batch_key(args.files)
    client = desk.client(gpus=args.gpus)
    feed = None if args.detach else attended(args, desk, desk.reader.last_seq())
    attached = desk.reader.unfinished_batch(key)
    if attached is not None:
        number, rows = attached, desk.reader.jobs(batch=attached)
        unfinished = sum(row["ended_at"] is None for row in rows)
        left = render.count(unfinished, "job")
        desk.say(f"batch {number} of the same file is not finished ({left} left): attached to it again")
        if changed(batch, rows):
            desk.say(
                f"the file has changed since batch {number} was submitted; the new jobs are not part of it: "
                "run it again when this batch has ended"
            )
    else:
        warn_directories(batch["jobs"], desk)
        answer = client.call("submit", **submission(batch, key, attached=not args.detach))
        number = answer["batch"]
        rows = rows_of(batch, answer["ids"][0])
        if not args.json:
            desk.say(f"batch {number}: {render.count(len(rows), 'job')} ({span(*answer['ids'])})")
    client.close()
    if feed is None:
        return detached(args, desk, number, rows)
    feed.batch = number
    return follow(args, desk, number, rows, feed)


def changed(batch: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Whether the file holds other jobs than the batch that was made of it; copies made by `retry` do not count."""
    from shlex import join

    said = [(job["name"], [c if isinstance(c, str) else join(c) for c in job["commands"]]) for job in batch["jobs"]]
    return said != [(row["name"], row["commands"]) for row in rows if row["retry_of"] is None]


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def attended(args: Namespace, desk: Desk, seq: int) -> Feed:
    """From before the submit on, an interrupt is for the batch: there is no moment at which it would only end us."""
    from jostle.cli.feed import Feed

    feed = Feed(lambda: desk.client(gpus=args.gpus), after=seq, batch=None)
    feed.catch(signal.SIGINT, signal.SIGTERM)
    return feed


def batch_key(files: list[str]) -> str:
    """What makes it the same batch: the same files in the same order."""
    return "run:" + "\n".join(os.path.realpath(file) for file in files)


def submission(batch: dict[str, Any], key: str, *, attached: bool) -> dict[str, Any]:
    from jostle import proc
    from jostle.cli.context import capture

    me = proc.stat(os.getpid())
    owner = [me.pid, me.ticks] if attached and me is not None else None
    return {
        "batch": {"key": key, "name": batch["name"], "owner": owner, "policy": batch["policy"]},
        "context": capture(),
        "jobs": batch["jobs"],
        "once": os.urandom(16).hex(),
    }


def rows_of(batch: dict[str, Any], first: int) -> list[dict[str, Any]]:
    """The new jobs as the store will show them, without asking it."""
    return [
        {"id": first + k, "name": job["name"], "state": "queued", "gpus": [], "started_at": None}
        for k, job in enumerate(batch["jobs"])
    ]


def detached(args: Namespace, desk: Desk, number: int, rows: list[dict[str, Any]]) -> int:
    ids = [row["id"] for row in rows]
    if args.json:
        desk.put_json({"schema": 1, "batch": number, "ids": ids})
    else:
        desk.put(span(ids[0], ids[-1]))
    return 0


def follow(args: Namespace, desk: Desk, number: int, rows: list[dict[str, Any]], feed: Feed) -> int:
    from jostle.cli.progress import Progress

    progress = Progress(rows, desk.language)
    feed.start()
    screen: Screen = Events(desk) if args.json else Live(desk, progress) if desk.terminal else Lines(desk, progress)
    interrupted = Followed(args, desk, number, progress, feed, screen).to_the_end()
    if args.json:
        desk.put_json({"schema": 1, "batch": number, "ok": progress.succeeded, "counts": +progress.counts})
    else:
        desk.say(f"batch {number}: {progress.summary()}")
    return 130 if interrupted else 0 if progress.succeeded else 1


class Followed:
    """A batch that is being watched."""

    def __init__(
        self, args: Namespace, desk: Desk, number: int, progress: Progress, feed: Feed, screen: Screen
    ) -> None:  # fmt: skip
        self.args, self.desk, self.number = args, desk, number
        self.progress, self.feed, self.screen = progress, feed, screen
        self.signals = 0
        self.unheard = False  # an interrupt that no engine has taken yet

    def to_the_end(self) -> bool:
        """Whether somebody interrupted it."""
        while not self.progress.over:
            item = self.feed.next(self.screen.patience())
            if item is None:
                self.screen.idle()
            else:
                for one in self._in_order(item):
                    self._take(*one)
                if self.signals > 2:
                    break
        self.screen.close()
        return self.signals > 0

    def _in_order(self, item: tuple[str, Any]) -> list[tuple[str, Any]]:
        """The engine cancels a batch from its last job to its first; people are told from the first to the last."""
        items = [item]
        if self.signals and not self.args.json:
            while items[-1][0] == "event" and (more := self.feed.next(SETTLE)) is not None:
                items.append(more)
        return sorted(items, key=_told_at)

    def _take(self, kind: str, value: Any) -> None:
        if kind == "event":
            self.screen.event(value, self.progress.take(value))
        elif kind == "signal":
            self._interrupt()
        elif kind == "lost":
            self.screen.note(f"jostle: {value}; connecting again")
        elif kind == "back":
            self.screen.note("jostle: the engine is back")
            if self.unheard:
                self._cancel()
        elif kind == "error":
            self.screen.close()
            raise value

    def _interrupt(self) -> None:
        self.signals += 1
        if self.signals > 2:
            self.screen.note("jostle: leaving; the jobs are being killed")
            return
        self.screen.note("jostle: killing the jobs" if self.signals == 2 else "jostle: cancelling the batch (again: at once)")
        self._cancel()

    def _cancel(self) -> None:
        """What an engine that is just going did not take, the next one is told."""
        try:
            client = self.desk.client(gpus=self.args.gpus)
            client.call("intent", ids=None, batch=self.number, do="cancel", now=self.signals >= 2)
            client.close()
            self.unheard = False
        except JostleError as e:
            self.unheard = isinstance(e, NoEngine)
            self.screen.note(f"jostle: {e}")


def _told_at(item: tuple[str, Any]) -> tuple[int, int]:
    """First what happened otherwise, then what was cancelled by id, then what is no event."""
    kind, value = item
    if kind != "event":
        return 2, 0
    return (1, value["job"]) if value["kind"] in ("cancelled", "skipped") else (0, 0)


class Screen:
    """How progress is told; this one tells nothing."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def event(self, event: dict[str, Any], line: str | None) -> None: ...
    def note(self, text: str) -> None:
        self.desk.say(text)

    def patience(self) -> float:
        """How long to wait for the next event before `idle` is called."""
        return 3600.0

    def idle(self) -> None: ...
    def close(self) -> None: ...


class Events(Screen):
    """--json: each event as it is."""

    def event(self, event: dict[str, Any], line: str | None) -> None:
        self.desk.put_json(event)
        sys.stdout.flush()


class Lines(Screen):
    """A file or pipe: plain lines, and now and then why the next jobs wait."""

    def __init__(self, desk: Desk, progress: Progress) -> None:
        super().__init__(desk)
        self.progress = progress
        self.tell_at = time.monotonic() + FIRST_TELL

    def event(self, event: dict[str, Any], line: str | None) -> None:
        if line:
            self.desk.put(f"{time.strftime('%H:%M:%S')} {line}")
            sys.stdout.flush()
            self.tell_at = max(self.tell_at, time.monotonic() + FIRST_TELL)

    def patience(self) -> float:
        return max(0.0, self.tell_at - time.monotonic())

    def idle(self) -> None:
        self.tell_at = time.monotonic() + TELL_WAITS
        for id in self.progress.first_waiting(2):
            said = why(self.desk, id)
            if said:
                self.desk.put(f"{time.strftime('%H:%M:%S')} waiting    {self.progress.label(id)}: {said}")
        sys.stdout.flush()


class Live(Screen):
    """A terminal: what has ended scrolls by, below it the picture of now."""

    def __init__(self, desk: Desk, progress: Progress) -> None:
        super().__init__(desk)
        self.progress = progress
        self.drawn = 0
        self.waiting = ""
        self.asked_at = 0.0
        self.draw()

    def event(self, event: dict[str, Any], line: str | None) -> None:
        if line and event["kind"] != "starting":
            self._above(line)
        self.draw()

    def note(self, text: str) -> None:
        self._above(text)
        self.draw()

    def patience(self) -> float:
        return REDRAW

    def idle(self) -> None:
        if time.monotonic() - self.asked_at > 2.0:
            self.asked_at = time.monotonic()
            first = self.progress.first_waiting(1)
            said = why(self.desk, first[0]) if first else ""
            self.waiting = f"next: {self.progress.label(first[0])}: {said}" if said else ""
        self.draw()

    def draw(self) -> None:
        columns, rows = screen_size()
        lines = self.progress.view(time.time(), columns, min(12, rows - 2), self.waiting)
        sys.stdout.write(self._erase() + "\n".join(lines) + "\n")
        sys.stdout.flush()
        self.drawn = len(lines)

    def _above(self, line: str) -> None:
        columns, _ = screen_size()
        sys.stdout.write(self._erase() + render.cut(line, columns - 1) + "\n")
        self.drawn = 0

    def _erase(self) -> str:
        return f"\x1b[{self.drawn}F\x1b[J" if self.drawn else ""

    def close(self) -> None:
        sys.stdout.write(self._erase())
        sys.stdout.flush()
        self.drawn = 0


def screen_size() -> tuple[int, int]:
    """Columns and lines; a terminal that does not know its size says 0."""
    try:
        size = os.get_terminal_size(1)
    except OSError:
        return 80, 24
    return size.columns or 80, size.lines or 24


def why(desk: Desk, id: int) -> str:
    """Why a job waits, in a sentence; nothing when the engine cannot be asked."""
    try:
        client = desk.client(start=False)
        reason = client.call("why", id=id, lang=desk.language)["reason"]
        client.close()
    except (JostleError, OSError):
        return ""
    return str(reason["text"]) if reason else ""
