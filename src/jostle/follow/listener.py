"""Who is told how a batch goes: any number of listeners, and a story in lines for those who write it down."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jostle.core.reasons import IMPOSSIBLE
from jostle.errors import JostleError
from jostle.wording.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostle.follow.progress import Progress
    from jostle.session import Session

TELL_WAITS = 30.0  # s between lines that say why the next jobs wait
FIRST_TELL = 3.0
TOLD = 2  # jobs in such a tale
MOST_ASKED = 50
ASK = 2.0  # s between two questions why the next job waits


class Listener:
    """Whoever is told how a batch goes; this one does nothing with it."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def event(self, event: dict[str, Any], line: str | None) -> None: ...
    def note(self, text: str) -> None:
        self.session.say(text)

    def patience(self) -> float:
        """How long to wait for the next event before `idle` is called."""
        return 3600.0

    def idle(self) -> None: ...
    def close(self) -> None: ...


class Listeners(Listener):
    """Several at once; one whose terminal has gone is told nothing any more."""

    def __init__(self, session: Session, listeners: Iterable[Listener]) -> None:
        super().__init__(session)
        self.listeners = list(listeners)

    def _each(self, name: str, *values: Any) -> None:
        for listener in list(self.listeners):
            try:
                getattr(listener, name)(*values)
            except (OSError, ValueError):
                self.listeners.remove(listener)

    def event(self, event: dict[str, Any], line: str | None) -> None:
        self._each("event", event, line)

    def note(self, text: str) -> None:
        self._each("note", text)

    def idle(self) -> None:
        self._each("idle")

    def close(self) -> None:
        self._each("close")

    def patience(self) -> float:
        return min((listener.patience() for listener in self.listeners), default=super().patience())


class Narrator(Listener):
    """Lines: what happens, and now and then why the next jobs wait."""

    def __init__(self, session: Session, progress: Progress) -> None:
        super().__init__(session)
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
        count = 0
        for id in self.progress.first_waiting(TOLD + min(len(self.hopeless), MOST_ASKED)):
            reason = waits(self.session, id)
            text = plain(str(reason["text"])) if reason else ""
            if not reason or not text or self.hopeless.get(id) == text:
                continue
            if reason["code"] in IMPOSSIBLE:
                self.hopeless[id] = text
            self.put(self.progress.waits(id, text))
            count += 1
            if count == TOLD:
                break

    def put(self, line: str) -> None:
        raise NotImplementedError


class NextWaiting:
    """Why the next job waits, for who shows it beside how the batch stands; asked for now and then."""

    def __init__(self, session: Session, progress: Progress) -> None:
        self.session, self.progress = session, progress
        self._job: int | None = None  # whose reason it is
        self._text = ""
        self._asked_at = float("-inf")

    def look(self) -> None:
        if time.monotonic() - self._asked_at > ASK:
            self._asked_at = time.monotonic()
            self._job, self._text = next(iter(self.progress.first_waiting(1)), None), ""
            reason = waits(self.session, self._job) if self._job is not None else None
            if self._job is not None and reason and (why := plain(str(reason["text"]))):
                self._text = self.session.message("next", job=self.progress.label(self._job), why=why)

    @property
    def text(self) -> str:
        """"" as soon as it does not wait any more."""
        return self._text if self._job is not None and self.progress.states.get(self._job) == "queued" else ""


def tell_next(session: Session, ids: Iterable[int]) -> None:
    """Why the next of these jobs waits, in a line."""
    from jostle.follow.progress import Progress

    progress = Progress(session.reader.jobs(ids=list(ids)), session.language)
    for id in progress.first_waiting(1):
        if reason := waits(session, id):
            session.say(progress.waits(id, plain(str(reason["text"]))))


def waits(session: Session, id: int) -> dict[str, Any] | None:
    """Why a job waits, as the engine says it."""
    try:
        client = session.client(start=False)
        reason: dict[str, Any] | None = client.call("why", id=id)["reason"]
        client.close()
    except (JostleError, OSError):
        return None
    from jostle.wording.sentences import worded

    return worded(reason, session.language) if reason else None
