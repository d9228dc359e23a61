"""A batch before a person's eyes: events as JSON, plain lines, or the live picture on a terminal with how the GPUs stand."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from jostle import units
from jostle.cli import render
from jostle.cli.terminal import Terminal
from jostle.core.states import FINAL, OPEN
from jostle.follow.listener import Listener, Narrator, NextWaiting
from jostle.views.cards import seen_by_engine
from jostle.wording.labels import occupancy
from jostle.wording.text import message

if TYPE_CHECKING:
    from jostle.follow.progress import Progress

REDRAW = 1.0
LOOK = 2.0  # s between two looks at the GPUs
LEAST = 16  # columns of a job's name that are always shown


class Events(Listener):
    """--json: each event as it is, and with words."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(terminal)
        self.terminal = terminal

    def event(self, event: dict[str, Any], line: str | None) -> None:
        from jostle.wording import sentences

        self.terminal.put_json(sentences.event(event, self.terminal.language))
        sys.stdout.flush()


class Lines(Narrator):
    """A file or pipe: plain lines."""

    def __init__(self, terminal: Terminal, progress: Progress) -> None:
        super().__init__(terminal, progress)
        self.terminal = terminal

    def put(self, line: str) -> None:
        self.terminal.put_now(f"{time.strftime('%H:%M:%S')} {line}")


class Live(Listener):
    """A terminal: what has ended scrolls by, below it the picture of now."""

    cards = ""  # how the GPUs stand, in words

    def __init__(self, terminal: Terminal, progress: Progress) -> None:
        super().__init__(terminal)
        self.progress = progress
        self.drawn = 0
        self.next = NextWaiting(terminal, progress)
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
        self.next.look()
        self.draw()

    def draw(self) -> None:
        columns, rows = screen_size()
        lines = picture(self.progress, time.time(), columns, min(12, rows - 2), self.next.text, self.cards)
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


class LiveCards(Live):
    """… with how the GPUs stand."""

    def __init__(self, terminal: Terminal, progress: Progress) -> None:
        self.looked_at = float("-inf")
        self.last = False  # whether it was the last look
        super().__init__(terminal, progress)

    def draw(self) -> None:
        """Looks with every picture, not only when nothing happens: where much happens the cards change most. And once more when
        all is over, so that no card is said to be ours that is not."""
        if time.monotonic() - self.looked_at > LOOK or (self.progress.over and not self.last):
            self.looked_at, self.last = time.monotonic(), self.progress.over
            self.cards = occupancy(seen_by_engine(self.session) or (), self.session.language)
        super().draw()


def bar(progress: Progress, now: float, columns: int) -> str:
    """`████████░░░░ 16/24  67%  about 12m left`."""
    ended, total = sum(progress.counts[state] for state in FINAL), len(progress.states)
    left = progress.left_words(now)
    text = f" {ended:,}/{total:,} {100 * ended // max(1, total):3d}%" + (f"  {left}" if left else "")
    length = max(0, min(30, columns - render.width(text) - 1))
    filled = length * ended // max(1, total)
    return "█" * filled + "░" * (length - filled) + text


def picture(progress: Progress, now: float, columns: int, rows: int, waiting: str, cards: str = "") -> list[str]:
    """The live picture: how it stands in all, the running jobs, why the next one waits."""
    live = [id for id, state in progress.states.items() if state in OPEN]
    lines = [progress.summary() + (f"  |  {cards}" if cards else "")]
    if len(progress.states) > 1:
        lines.append(bar(progress, now, columns))
    room = max(1, rows - len(lines) - 2)
    for id in live[:room]:
        where = f"GPU {render.gpus(progress.gpus.get(id, []))}"
        lines.append(f"  {progress.label(id)}  {where}  {units.show_duration(now - progress.since.get(id, now))}")
    if len(live) > room:
        lines.append("  " + message("and_more", progress.language, n=len(live) - room))
    if waiting:
        lines.append(f"  {waiting}")
    return [render.cut(line, columns - 1) for line in lines]


def fitted(line: str, label: str, columns: int) -> str:
    """The line in so many columns: what happened and what comes of it stand around the job's name, which gives way first."""
    over = render.width(line) - columns
    if over <= 0 or not label:
        return line
    short = render.cut(label, max(min(LEAST, render.width(label)), render.width(label) - over))
    return line.replace(label, short, 1)


def screen_size() -> tuple[int, int]:
    """Columns and lines; a terminal that does not know its size says 0."""
    try:
        size = os.get_terminal_size(1)
    except OSError:
        return 80, 24
    return size.columns or 80, size.lines or 24
