"""An attached client: it owns a batch by its pid, follows it to its end, and tells how it goes.

Ctrl-C or SIGTERM cancels the batch (a second one at once); what the engine cannot take now (a full disk) it is told again until
it does. When the engine vanishes, it is started again and the story goes on where it was. `run` and `compete` are such clients.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from jostle.cli import render
from jostle.cli.progress import fitted
from jostle.errors import Invalid, JostleError, NotFound, Usage

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from jostle.cli.desk import Desk
    from jostle.cli.feed import Feed
    from jostle.cli.progress import Progress

REDRAW = 1.0
REPEAT = 1.0  # s until an interrupt that was not taken is told again
TELL_WAITS = 30.0  # s between lines that say why the next jobs wait
FIRST_TELL = 3.0
TOLD = 2  # jobs in such a tale
MOST_ASKED = 50
SETTLE = 0.05  # s without a further event, after which what was cancelled is told


def owner() -> list[int] | None:
    """This process, as a batch knows its owner."""
    from jostle import proc

    me = proc.stat(os.getpid())
    return [me.pid, me.ticks] if me is not None else None


def attended(args: Namespace, desk: Desk, seq: int) -> Feed:
    """From before the submit on, an interrupt is for the batch: there is no moment at which it would only end us."""
    from jostle.cli.feed import Feed

    feed = Feed(lambda: desk.client(gpus=args.gpus), after=seq, batch=None)
    feed.catch(signal.SIGINT, signal.SIGTERM)
    return feed


class Followed:
    """A batch that is being watched."""

    def __init__(
        self, args: Namespace, desk: Desk, number: int, progress: Progress, feed: Feed, screen: Screen
    ) -> None:  # fmt: skip
        self.args, self.desk, self.number = args, desk, number
        self.progress, self.feed, self.screen = progress, feed, screen
        self.signals = 0
        self.leaving = False  # the batch is left to itself
        self.detached = False  # because somebody wanted it so
        self.unheard = ""  # why the last interrupt was not taken by the engine yet
        self.taken = False  # whether one was
        self.repeat_at = 0.0

    def to_the_end(self) -> bool:
        """Whether somebody interrupted it."""
        while not self.progress.over and not self.leaving:
            patience = self.screen.patience()
            soon = max(0.0, self.repeat_at - time.monotonic()) if self.unheard else patience
            item = self.feed.next(min(patience, soon))
            if item is not None:
                for one in self._in_order(item):
                    self._take(*one)
            elif patience <= soon:
                self.screen.idle()
            if self.unheard and not self.leaving and time.monotonic() >= self.repeat_at:
                self._cancel(again=True)
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
            self._signal(value)
        elif kind == "lost":
            self.screen.note(f"jostle: {value}; connecting again")
        elif kind == "back":
            self.screen.note("jostle: the engine is back")
            if self.unheard:
                self._cancel()
        elif kind == "error":
            self.screen.close()
            raise value

    def _signal(self, number: int) -> None:
        self._interrupt()

    def _interrupt(self) -> None:
        self.signals += 1
        if self.signals > 2:
            self.leaving = True
            goes_on = "they are being cancelled" if self.taken else f"batch {self.number} runs on; `jostle cancel` stops its jobs"
            self.screen.note(
                f"jostle: leaving; the engine could not be told to kill the jobs ({self.unheard}): {goes_on}"
                if self.unheard
                else "jostle: leaving; the jobs are being killed"
            )
            return
        self.screen.note("jostle: killing the jobs" if self.signals == 2 else "jostle: cancelling the batch (again: at once)")
        self._cancel()

    def _cancel(self, again: bool = False) -> None:
        """What an engine that is just going did not take, the next one is told; what it cannot record now, it is told again."""
        before = self.unheard
        try:
            client = self.desk.client(start=not again, gpus=self.args.gpus)  # the feed starts one that is missing
            client.call("intent", ids=None, batch=self.number, do="cancel", now=self.signals >= 2)
            client.close()
            self.unheard, self.taken = "", True
        except (JostleError, OSError) as e:
            final = isinstance(e, Usage | Invalid | NotFound)
            self.unheard = str(e) or type(e).__name__
            self.repeat_at = float("inf") if final else time.monotonic() + REPEAT
            if final or not before:
                self.screen.note(f"jostle: {e}" + ("" if final else "; told again until it is taken"))
        else:
            if before:
                self.screen.note("jostle: the engine has taken it now: " + ("killing" if self.signals >= 2 else "cancelling"))


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
    """--json: each event as it is, and with words."""

    def event(self, event: dict[str, Any], line: str | None) -> None:
        from jostle.wording import sentences

        self.desk.put_json(sentences.event(event, self.desk.language))
        sys.stdout.flush()


class Lines(Screen):
    """A file or pipe: plain lines, and now and then why the next jobs wait."""

    def __init__(self, desk: Desk, progress: Progress) -> None:
        super().__init__(desk)
        self.progress = progress
        self.tell_at = time.monotonic() + FIRST_TELL
        self.hopeless: dict[int, str] = {}  # what was said of jobs that can never start; once is enough

    def event(self, event: dict[str, Any], line: str | None) -> None:
        if line:
            self.put(line)
            self.tell_at = max(self.tell_at, time.monotonic() + FIRST_TELL)

    def patience(self) -> float:
        return max(0.0, self.tell_at - time.monotonic())

    def idle(self) -> None:
        self.tell_at = time.monotonic() + TELL_WAITS
        told = 0
        for id in self.progress.first_waiting(TOLD + min(len(self.hopeless), MOST_ASKED)):
            reason = waits(self.desk, id)
            said = render.plain(str(reason["text"])) if reason else ""
            if not reason or not said or self.hopeless.get(id) == said:
                continue
            if reason["code"].startswith("impossible"):
                self.hopeless[id] = said
            self.put(f"waiting    {self.progress.label(id)}: {said}")
            told += 1
            if told == TOLD:
                break

    def put(self, line: str) -> None:
        self.desk.put(f"{time.strftime('%H:%M:%S')} {line}")
        sys.stdout.flush()


class Live(Screen):
    """A terminal: what has ended scrolls by, below it the picture of now."""

    def __init__(self, desk: Desk, progress: Progress) -> None:
        super().__init__(desk)
        self.progress = progress
        self.drawn = 0
        self.next: int | None = None  # the job whose reason `waiting` is
        self.waiting = ""
        self.asked_at = 0.0
        try:
            self.draw()
        except OSError:
            pass  # a terminal that has gone; the next try tells

    def event(self, event: dict[str, Any], line: str | None) -> None:
        if line and event["kind"] != "starting":
            self._above(fitted(line, self.progress.label(event["job"]), screen_size()[0] - 1))
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
            self.next = first[0] if first else None
            self.waiting = f"next: {self.progress.label(first[0])}: {said}" if said else ""
        self.draw()

    def draw(self) -> None:
        columns, rows = screen_size()
        waiting = self.waiting if self.next is not None and self.progress.states.get(self.next) == "queued" else ""
        lines = self.progress.view(time.time(), columns, min(12, rows - 2), waiting)
        self._write(self._erase() + "\n".join(lines) + "\n")
        self.drawn = len(lines)

    def _above(self, line: str) -> None:
        columns, _ = screen_size()
        self._write(self._erase() + render.cut(render.plain(line), columns - 1) + "\n")
        self.drawn = 0

    def _erase(self) -> str:
        return f"\x1b[{self.drawn}F\x1b[J" if self.drawn else ""

    def close(self) -> None:
        self._write(self._erase())
        self.drawn = 0

    def _write(self, text: str) -> None:
        """On a terminal of an older alphabet a character that it lacks is a `?`: as wide as the picture expects at most."""
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:
            sys.stdout.write(text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding))
        sys.stdout.flush()


class Screens(Screen):
    """Several at once; one whose terminal has gone is told nothing any more."""

    def __init__(self, desk: Desk, screens: Iterable[Screen]) -> None:
        super().__init__(desk)
        self.screens = list(screens)

    def _each(self, name: str, *values: Any) -> None:
        for screen in list(self.screens):
            try:
                getattr(screen, name)(*values)
            except (OSError, ValueError):
                self.screens.remove(screen)

    def event(self, event: dict[str, Any], line: str | None) -> None:
        self._each("event", event, line)

    def note(self, text: str) -> None:
        self._each("note", text)

    def idle(self) -> None:
        self._each("idle")

    def close(self) -> None:
        self._each("close")

    def patience(self) -> float:
        return min((screen.patience() for screen in self.screens), default=super().patience())


def screen_size() -> tuple[int, int]:
    """Columns and lines; a terminal that does not know its size says 0."""
    try:
        size = os.get_terminal_size(1)
    except OSError:
        return 80, 24
    return size.columns or 80, size.lines or 24


def why(desk: Desk, id: int) -> str:
    """Why a job waits, in a sentence; nothing when the engine cannot be asked."""
    reason = waits(desk, id)
    return render.plain(str(reason["text"])) if reason else ""


def waits(desk: Desk, id: int) -> dict[str, Any] | None:
    """Why a job waits, as the engine says it."""
    try:
        client = desk.client(start=False)
        reason: dict[str, Any] | None = client.call("why", id=id)["reason"]
        client.close()
    except (JostleError, OSError):
        return None
    from jostle.wording.sentences import worded

    return worded(reason, desk.language) if reason else None
