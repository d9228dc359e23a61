"""Where a scheduler tells what happens: its log (SPEC A31), whoever is there to hear it, and those who read along.

Who reads along and has gone away (a closed pipe, a hang-up under nohup) is not told any more; the scheduler goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.follow.listener import Listener, Narrator
from jostle.wording.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from jostle.compete.schedlog import SchedulerLog
    from jostle.follow.progress import Progress
    from jostle.session import Session

LEVELS = {"requeued": "WARNING", "quarantined": "WARNING", "failed": "ERROR", "skipped": "WARNING", "cancelled": "WARNING"}
"""Of what an event says; everything else is INFO."""


TASK, OWN, SETTINGS = "task", "own", "settings"
"""What an error is about."""


class SchedulerJournal:
    def __init__(
        self, log: SchedulerLog, *, say: Callable[[str], None] | None = None, echo: Callable[[list[str]], None] | None = None
    ) -> None:  # fmt: skip
        self.log = log
        self.say = say  # to the person, if one is there
        self.echo = echo  # who reads along gets each line of the log
        self.last_error: str | None = None
        self.error_kind: str | None = None  # what it is about: a task, or the scheduler's own settings
        self.live: Listener | None = None  # the live view, while there is one

    def record(self, text: str, level: str = "INFO", kind: str = TASK) -> None:
        lines = self.log.write(text, level)
        if level == "ERROR":
            self.last_error, self.error_kind = text.split("\n")[0], kind
        if self.echo is not None:
            try:
                self.echo(lines)
            except OSError:
                self.echo = None

    def tell(self, text: str, level: str = "INFO", kind: str = OWN) -> None:
        """Recorded, and said to the person who is there."""
        self.record(text, level, kind)
        if self.say is not None:
            say = self.live.note if self.live is not None else self.say
            for line in map(plain, text.split("\n")):
                say(line if level == "INFO" else f"{level.lower()}: {line}")


class Logged(Narrator):
    """The story of a batch as lines of the journal, and now and then why the next tasks wait."""

    def __init__(self, session: Session, progress: Progress, journal: SchedulerJournal) -> None:
        super().__init__(session, progress)
        self.journal = journal

    def event(self, event: dict[str, Any], line: str | None) -> None:
        self.level = LEVELS.get(event["kind"], "INFO")
        super().event(event, line)
        self.level = "INFO"
        if line and event["kind"] in ("requeued", "failed"):
            self.journal.last_error, self.journal.error_kind = line.split(None, 1)[1], TASK

    def idle(self) -> None:
        if self.patience() <= 0:
            super().idle()

    def note(self, text: str) -> None:
        self.journal.record(text.removeprefix("jostle: "))

    level = "INFO"

    def put(self, line: str) -> None:
        self.journal.record(line, self.level)
