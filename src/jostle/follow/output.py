"""What a job prints, as it grows: over all its tries, until it has ended. A terminal passes it on, a page streams it.

Rules: the end is looked at before the last reading, so that what was printed before it is certainly seen. Without an engine
nobody records the end of a run, so it is looked for, and what is waited for is said.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from jostle.backends.local.outside import is_over, runs_of
from jostle.core.states import FINAL
from jostle.errors import NoEngine
from jostle.views.logs import chunks, log_path, opened, other, read_on, real, start_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from jostle.session import Session

POLL = 0.1  # s after which a growing log is worth another look
LOOK = 1.0  # s between looks whether an engine runs, while nothing is printed


class Note(NamedTuple):
    """A message of wording.messages about what is followed."""

    code: str
    values: dict[str, Any]


Item = bytes | Note | None


def output(session: Session, id: int, *, run: int | None = None, lines: int | None = None) -> Iterator[Item]:
    """Pieces of the log, notes, and None while there is nothing new: whoever reads then waits for about POLL and asks again. Of
    one `run` only, or from the last one on; of its beginning only the last so many `lines`."""
    fd = opened((yield from begun(session, id, run)))
    try:
        yield from chunks(fd, start_of(fd, lines))
        # where all tries write to one path, a run that has not begun names the file of the one before: the first of them wrote it
        last = min((try_of["n"] for try_of in real(runs_of(session.reader, id)) if not other(fd, try_of["log"])), default=0)
        alone = _Alone(session, id)
        while True:
            job, runs = session.reader.job(id), runs_of(session.reader, id)
            over = job is None or job["state"] in FINAL or any(r["n"] == run and r["ended_at"] is not None for r in runs)
            later = next((r for r in real(runs) if run is None and r["n"] > last and other(fd, r["log"])), None)
            following = opened(later["log"]) if later is not None else fd  # now: while we are read, it may be put aside
            grown = False
            for piece in _grown(fd):
                grown = True
                yield piece
            if later is not None:
                os.close(fd)
                fd, last = following, later["n"]
                yield Note("log_again", {"id": id, "run": last})
            elif over or alone.over:
                return
            elif not grown:
                if (note := alone.look(runs)) is not None:
                    yield note
                if not alone.over:
                    yield None
    finally:
        os.close(fd)


def begun(session: Session, id: int, run: int | None) -> Generator[Item, None, str]:
    """Until there is a log; where it lies."""
    noted, look_at = False, 0.0
    while (path := log_path(session, id, run)) is None:
        state = (session.reader.job(id) or {"state": ""})["state"]
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + LOOK
            if not session.engine_answers():
                raise NoEngine(f"job {id} is {state} and has printed nothing, and no engine runs: `jostle up` goes on")
        if not noted:
            yield Note("log_waiting", {"id": id, "state": state})
            noted = True
        yield None
    return path


def _grown(fd: int) -> Iterator[bytes]:
    if os.lseek(fd, 0, os.SEEK_CUR) > os.fstat(fd).st_size:
        os.lseek(fd, 0, os.SEEK_SET)  # it was truncated
    while piece := read_on(fd):
        yield piece


class _Alone:
    """Without an engine."""

    def __init__(self, session: Session, id: int) -> None:
        self.session, self.id = session, id
        self.look_at, self.noted = 0.0, False
        self.over = False  # nothing more will be printed; what was printed last is still to be read

    def look(self, runs: list[dict[str, Any]]) -> Note | None:
        """Now and then: whether somebody records the end, and if not, whether the last run is over."""
        if time.monotonic() < self.look_at:
            return None
        self.look_at = time.monotonic() + LOOK
        if self.session.engine_answers():
            self.noted = False
            return None
        self.over = not runs or is_over(self.session.home, self.id, runs[-1])
        if self.noted and not self.over:
            return None
        self.noted = True
        return Note("log_over" if self.over else "log_alone", {"id": self.id})
