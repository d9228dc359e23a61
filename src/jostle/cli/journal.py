"""Where a scheduler tells what happens: its log (SPEC A31), and stdout if that is no terminal.

A stdout that has gone away (a closed pipe, a hang-up under nohup) is not written to any more; the scheduler goes on.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jostle.cli import render
from jostle.follow.listener import Listener, Story

if TYPE_CHECKING:
    from typing import Any

    from jostle.cli.desk import Desk
    from jostle.compete.schedlog import SchedulerLog
    from jostle.follow.progress import Progress

LEVELS = {"requeued": "WARNING", "quarantined": "WARNING", "failed": "ERROR", "skipped": "WARNING", "cancelled": "WARNING"}
"""Of what an event says; everything else is INFO."""


class Journal:
    def __init__(self, desk: Desk, log: SchedulerLog) -> None:
        self.desk, self.log = desk, log
        self.echoes = not desk.terminal
        self.last_error: str | None = None
        self.live: Listener | None = None  # the live view, while there is one

    def record(self, text: str, level: str = "INFO") -> None:
        lines = self.log.write(text, level)
        if level == "ERROR":
            self.last_error = text.split("\n")[0]
        if self.echoes:
            self._echo(lines)

    def tell(self, text: str, level: str = "INFO") -> None:
        """Recorded, and said to the person before the terminal."""
        self.record(text, level)
        if self.desk.terminal:
            say = self.live.note if self.live is not None else self.desk.say
            for line in map(render.plain, text.split("\n")):
                say(line if level == "INFO" else f"{level.lower()}: {line}")

    def _echo(self, lines: list[str]) -> None:
        data = ("\n".join(lines) + "\n").encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        try:
            while data:
                data = data[os.write(1, data) :]
        except OSError:
            self.echoes = False


class Logged(Story):
    """The story of a batch as lines of the journal, and now and then why the next tasks wait."""

    def __init__(self, desk: Desk, progress: Progress, journal: Journal) -> None:
        super().__init__(desk, progress)
        self.journal = journal

    def event(self, event: dict[str, Any], line: str | None) -> None:
        self.level = LEVELS.get(event["kind"], "INFO")
        super().event(event, line)
        self.level = "INFO"
        if line and event["kind"] in ("requeued", "failed"):
            self.journal.last_error = line.split(None, 1)[1]

    def idle(self) -> None:
        if self.patience() <= 0:
            super().idle()

    def note(self, text: str) -> None:
        self.journal.record(text.removeprefix("jostle: "))

    level = "INFO"

    def put(self, line: str) -> None:
        self.journal.record(line, self.level)
