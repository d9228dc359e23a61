"""An attached client: it owns a batch by its pid, follows it to its end, and tells how it goes.

Ctrl-C or SIGTERM cancels the batch (a second one at once); what the engine cannot take now (a full disk) it is told again until
it does. Where there is a person to be asked, the first Ctrl-C asks before it cancels a night's work. When the engine vanishes, it
is started again and the story goes on where it was. `run` and `compete` are such clients.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any, Protocol

from jostle.errors import Invalid, JostleError, NotFound, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostle.follow.feed import Feed
    from jostle.follow.listener import Listener
    from jostle.follow.progress import Progress
    from jostle.session import Session

REPEAT = 1.0  # s until an interrupt that was not taken is told again
LOOK = 0.05  # s between two looks for an answer, while a question is open
CANCEL, DETACH, GO_ON = "cancel", "detach", "go on"
TOLD = 10  # failed jobs that are named at the end


def owner() -> list[int] | None:
    """This process, as a batch knows its owner."""
    from jostle import proc

    me = proc.stat(os.getpid())
    return [me.pid, me.ticks] if me is not None else None


def signal_feed(
    session: Session, *, gpus: str | None, after: int, signals: Iterable[int] = (signal.SIGINT, signal.SIGTERM)
) -> Feed:  # fmt: skip
    """From before the submit on, an interrupt is for the batch: there is no moment at which it would only end us."""
    from jostle.follow.feed import Feed

    feed = Feed(lambda: session.client(gpus=gpus), after=after, batch=None, again=lambda: session.client_again(gpus=gpus))
    feed.catch(*signals)
    return feed


class Person(Protocol):
    """Who can be asked what an interrupt is to do."""

    def there(self) -> bool: ...  # to see the question now, and to answer it
    def ask(self, batch: int) -> None: ...
    def answer(self, batch: int) -> str:
        """CANCEL, DETACH, GO_ON; "": none yet."""


class Followed:
    """A batch that is being followed. `gpus`: the devices of an engine that is started; `person`: who is asked before the first
    Ctrl-C cancels it."""

    def __init__(
        self, session: Session, number: int, progress: Progress, feed: Feed, listener: Listener, *, gpus: str | None = None,
        person: Person | None = None,
    ) -> None:  # fmt: skip
        self.session, self.number, self.gpus = session, number, gpus
        self.progress, self.feed, self.listener, self.person = progress, feed, listener, person
        self.signals = 0
        self.leaving = False  # the batch is left to itself
        self.detached = False  # because somebody wanted it so
        self.unheard = ""  # why the last interrupt was not taken by the engine yet
        self.taken = False  # whether one was
        self.repeat_at = 0.0

    def to_the_end(self) -> bool:
        """Whether somebody interrupted it."""
        while not self.progress.over and not self.leaving:
            patience = self.listener.patience()
            soon = max(0.0, self.repeat_at - time.monotonic()) if self.unheard else patience
            item = self.feed.next(min(patience, soon))
            if item is not None:
                self._take(*item)
            elif patience <= soon:
                self.listener.idle()
            if self.unheard and not self.leaving and time.monotonic() >= self.repeat_at:
                self._cancel(again=True)
        self.listener.close()
        return self.signals > 0

    def _take(self, kind: str, value: Any) -> None:
        from jostle.follow.feed import loss

        if kind == "event":
            self.listener.event(value, self._progress(value))
        elif kind == "signal":
            self._signal(value)
        elif kind == "lost":
            self._note(loss(value), why=str(value))
        elif kind == "back":
            self._note("engine_back")
            if self.unheard:
                self._cancel()
        elif kind == "error":
            self.listener.close()
            raise value

    def _progress(self, event: dict[str, Any]) -> str | None:
        """Takes an event; the end of jobs that joined the batch since is its end, too."""
        if event["kind"] == "submitted":
            first, count = event["data"]["first"], event["data"]["count"]
            new = [id for id in range(first, first + count) if id not in self.progress.states]
            self.progress.join(self.session.reader.jobs(ids=new) if new else ())
        return self.progress.take(event)

    def _signal(self, number: int) -> None:
        answer = CANCEL
        if number == signal.SIGINT and not self.signals and self.person is not None and self.person.there():
            answer = self._answer(self.person)
        if answer == CANCEL:
            self._interrupt()
        elif answer == DETACH:
            self.detached = self.leaving = True
        elif not self.progress.over:
            self.listener.idle()  # draws the picture again

    def _answer(self, person: Person) -> str:
        """What happens meanwhile is told afterwards. A further signal is an answer, and so is the end of the batch: ""."""
        self.listener.close()
        person.ask(self.number)
        later: list[tuple[dict[str, Any], str | None]] = []
        answer = ""
        while not answer and not self.progress.over:
            item = self.feed.next(LOOK)
            if item is None:
                answer = person.answer(self.number)
            elif item[0] == "event":
                later.append((item[1], self._progress(item[1])))
            elif item[0] == "signal":
                answer = CANCEL
            else:
                self._take(*item)
        for event, line in later:
            self.listener.event(event, line)
        return answer

    def _interrupt(self) -> None:
        self.signals += 1
        if self.signals > 2:
            self.leaving = True
            if not self.unheard:
                self._note("leaving")
            elif self.taken:
                self._note("leaving_unheard", why=self.unheard)
            else:
                self._note("leaving_running", why=self.unheard, batch=self.number)
            return
        self._note("killing" if self.signals == 2 else "cancelling")
        self._cancel()

    def _cancel(self, again: bool = False) -> None:
        """What an engine that is just going did not take, the next one is told; what it cannot record now, it is told again."""
        before = self.unheard
        try:
            client = self.session.client(start=not again, gpus=self.gpus)  # the feed starts one that is missing
            client.call("intent", ids=None, batch=self.number, do="cancel", now=self.signals >= 2)
            client.close()
            self.unheard, self.taken = "", True
        except (JostleError, OSError) as e:
            final = isinstance(e, Usage | Invalid | NotFound)
            self.unheard = str(e) or type(e).__name__
            self.repeat_at = float("inf") if final else time.monotonic() + REPEAT
            if final or not before:
                self._note("not_taken" if final else "not_taken_yet", why=str(e))
        else:
            if before:
                self._note("taken_kill" if self.signals >= 2 else "taken_cancel")

    def _note(self, code: str, **values: Any) -> None:
        self.listener.note(self.session.message(code, **values))


def tell_failures(session: Session, progress: Progress) -> None:
    """What failed, once more at the end: on the way it has scrolled by."""
    failed = sorted(progress.why)
    for id in failed[:TOLD]:
        because = session.message("because", why=progress.why[id]) if progress.why[id] else ""
        verb = "show" if id in progress.never_ran else "logs"
        session.tell("failed_job", job=progress.label(id), because=because, verb=verb, id=id)
    if len(failed) > TOLD:
        session.tell("more_failed", n=len(failed) - TOLD)
