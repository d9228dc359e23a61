"""One Ctrl-C on a terminal asks before it cancels a night's work: cancel, detach or go on. A second one cancels.

Rules: only where a person can see the question and answer it; everywhere else, and for SIGTERM, the first signal cancels. What
happens meanwhile is told after the answer, and the end of the batch is an answer, too.
"""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING, Any

from jostle.cli.terminal import Terminal
from jostle.follow.followed import Followed

if TYPE_CHECKING:
    from jostle.follow.feed import Feed
    from jostle.follow.listener import Listener
    from jostle.follow.progress import Progress

LOOK = 0.05  # s between two looks at the keyboard, while a question is open
WORDS = {"c": "cancel", "d": "detach", "g": "go on", "": "go on"}


def can_ask(terminal: Terminal) -> bool:
    """Whether there is a person at the screen and at the keyboard, and both are ours now."""
    try:
        return terminal.interactive and os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


class Asking(Followed):
    """A batch that is followed by a person, and that others may add jobs to."""

    def __init__(
        self, terminal: Terminal, number: int, progress: Progress, feed: Feed, listener: Listener, *, gpus: str | None, json: bool
    ) -> None:  # fmt: skip
        super().__init__(terminal, number, progress, feed, listener, gpus=gpus, in_order=not json)
        self.terminal, self.json = terminal, json

    def _take(self, kind: str, value: Any) -> None:
        if kind == "event":
            self._join(value)
        super()._take(kind, value)

    def _join(self, event: Any) -> None:
        """Jobs that joined the batch since: its end is theirs, too."""
        if event["kind"] == "submitted":
            first, count = event["data"]["first"], event["data"]["count"]
            new = [id for id in range(first, first + count) if id not in self.progress.states]
            self.progress.join(self.terminal.reader.jobs(ids=new) if new else ())

    def _signal(self, number: int) -> None:
        if number != signal.SIGINT or self.signals or self.json or not can_ask(self.terminal):
            self._interrupt()
            return
        answer = self._answered()
        if answer == "cancel":
            self._interrupt()
        elif answer == "detach":
            self.detached = self.leaving = True
        elif not self.progress.over:
            self.listener.idle()  # draws the picture again

    def _answered(self) -> str:
        self.listener.close()
        self._ask()
        later: list[tuple[Any, str | None]] = []
        answer, typed = "", ""
        while not answer and not self.progress.over:
            item = self.feed.next(LOOK)
            if item is not None and item[0] == "event":
                self._join(item[1])
                later.append((item[1], self.progress.take(item[1])))
            elif item is not None and item[0] == "signal":
                answer = "cancel"
            elif item is not None:
                self._take(*item)
            elif (more := _keys()) is not None:
                typed += more
                if more == "" or "\n" in typed:
                    answer = WORDS.get(typed.strip().lower()[:1], "")
                    typed = ""
                    if not answer:
                        self._ask()
        for event, line in later:
            self.listener.event(event, line)
        return answer

    def _ask(self) -> None:
        self.terminal.put_now(self.terminal.message("ask", batch=self.number))


def _keys() -> str | None:
    """What was typed, a line at least; empty at the end of it; None if nothing was."""
    try:
        if not select.select([0], [], [], 0)[0]:
            return None
        return os.read(0, 4096).decode("utf-8", "replace")
    except OSError:
        return ""
