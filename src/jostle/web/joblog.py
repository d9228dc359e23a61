"""Logs over HTTP: pages of what a run has printed, and downloads by ticket (RELIABILITY S18–S22, S49, S52).

Rules: a log is named by job and run; where it lies says the store. It is opened without following a link, and must be a regular
file of ours with one name: what a job put in its place (a link to a key, a pipe, another's file) is refused.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi.responses import Response, StreamingResponse

from jostle.core.states import FINAL
from jostle.errors import Forbidden, JostleError, NotFound
from jostle.views import logs

if TYPE_CHECKING:
    from jostle.web.site import Visit

LINES = 200
MOST = 1 << 20  # bytes of a page
TICKET_FOR = 30.0  # s


class LogPage(NamedTuple):
    job: int
    run: int
    path: str
    runs: list[int]  # all tries that have a log of their own
    start: int  # bytes
    end: int
    size: int
    text: str
    over: bool  # nothing more will come behind `end`

    def plain(self) -> dict[str, Any]:
        return {
            "job": self.job, "run": self.run, "path": self.path, "runs": self.runs, "from": self.start, "to": self.end,
            "size": self.size, "text": self.text, "over": self.over,
        }  # fmt: skip


def opened(path: str) -> int:
    """Of a log that is what its run wrote."""
    fd = logs.opened(path)
    s = os.fstat(fd)
    if s.st_uid != os.getuid() or s.st_nlink > 1 or not stat.S_ISREG(s.st_mode):
        os.close(fd)
        raise JostleError(f"the log {path} is not a regular file of its own: something else was put in its place")
    return fd


def run_path(visit: Visit, id: int, run: int | None) -> tuple[int, str]:
    """The number of the run, the last if none is named, and where its log lies."""
    if visit.caller.reads_only:
        raise Forbidden("this token may not see what jobs print")
    job = visit.reader.job(id)
    if job is None:
        raise NotFound(f"there is no job {id}")
    row = logs.run_of(visit.reader, id, run)
    if row is None:
        raise NotFound(f"job {id} is {job['state']} and has not run yet, so it has printed nothing")
    return int(row["n"]), str(row["log"])


def page(visit: Visit, id: int, run: int | None, *, lines: int | None, start: int, limit: int = MOST) -> LogPage:
    """The last lines, or, with `lines` None, what stands from `start` on."""
    number, path = run_path(visit, id, run)
    tries = logs.real(visit.reader.runs(id))
    this = next((one for one in tries if one["n"] == number), None)
    # the end is looked at before the last reading: what was printed before it is then certainly seen
    ended = this is None or logs.is_over(visit.home, id, this) or (visit.reader.job(id) or {}).get("state") in FINAL
    numbers = [one["n"] for one in tries]
    if not os.path.lexists(path):
        if ended:
            raise NotFound(f"the log of job {id} is gone: {path}")
        return LogPage(id, number, path, numbers, 0, 0, 0, "", False)
    fd = opened(path)
    try:
        size = os.fstat(fd).st_size
        first = logs.start_of(fd, lines) if lines is not None else start
        if lines is not None and size - first > limit:
            first, limit = max(first, size - MOST), MOST
        text, end = _read(fd, first, limit, grows=not ended) if first < size else ("", first)  # so far it may not even be sought
    finally:
        os.close(fd)
    return LogPage(id, number, path, numbers, first, end, size, text, ended and end >= size)


def _read(fd: int, start: int, limit: int, *, grows: bool) -> tuple[str, int]:
    """Whole characters from there on, and where they end; what was dropped of the log is passed over. At the end of one that
    grows the rest of a character is waited for."""
    parts, left, at = [], limit, start
    os.lseek(fd, start, os.SEEK_SET)
    while left > 0 and (data := logs.read_on(fd)):
        at = os.lseek(fd, 0, os.SEEK_CUR)
        if len(data) > left:
            at -= len(data) - left
            data = data[:left]
        parts.append(data)
        left -= len(data)
    raw = b"".join(parts)
    cut = _torn(raw)
    if cut == len(raw) and not (grows and left > 0):
        cut = 0  # nothing more comes, or fits
    return raw[: len(raw) - cut].decode("utf-8", "replace"), at - cut


def _torn(raw: bytes) -> int:
    """How many bytes at the end begin a character that is not there as a whole."""
    for back in range(1, min(4, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if needed > back else 0
        if byte < 0x80:
            return 0
    return 0


class Tickets:
    """Downloads that a browser may begin without the key."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[float, str, str, str]] = {}

    def make(self, path: str, name: str, session: str) -> str:
        now = time.monotonic()
        self.made = {ticket: kept for ticket, kept in list(self.made.items())[-100:] if kept[0] > now}
        ticket = secrets.token_urlsafe(32)
        self.made[ticket] = (now + TICKET_FOR, path, name, session)
        return ticket

    def redeem(self, ticket: str, session: str) -> Response:
        end, path, name, owner = self.made.pop(ticket, (0.0, "", "", ""))
        if time.monotonic() > end or not secrets.compare_digest(owner, session):
            raise NotFound("this download is over, or another's: ask for it again")
        fd = opened(path)
        heads = {"content-disposition": f'attachment; filename="{name}"', "x-content-type-options": "nosniff"}
        return StreamingResponse(_chunks(fd), media_type="text/plain; charset=utf-8", headers=heads)


def _chunks(fd: int) -> Iterator[bytes]:
    try:
        yield from logs.chunks(fd, 0)
    finally:
        os.close(fd)
