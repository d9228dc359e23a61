"""Logs over HTTP: pages of what a run has printed (views.logs), and downloads by ticket (RELIABILITY S18–S22, S49, S52).

Rules: a log is named by job and run; where it lies says the store. It is opened without following a link, and must be a regular
file of ours with one name: what a job put in its place (a link to a key, a pipe, another's file) is refused.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fastapi.responses import Response, StreamingResponse

from jostle.errors import JostleError, NotFound
from jostle.views import logs
from jostle.wording.flaws import flaw

if TYPE_CHECKING:
    from jostle.web.site import Visit

LINES = 200
TICKET_FOR = 30.0  # s


def opened(path: str) -> int:
    """Of a log that is what its run wrote."""
    fd = logs.opened(path)
    s = os.fstat(fd)
    if s.st_uid != os.getuid() or s.st_nlink > 1 or not stat.S_ISREG(s.st_mode):
        os.close(fd)
        raise JostleError(flaw("log_replaced", path=path))
    return fd


def page(visit: Visit, id: int, run: int | None, *, lines: int | None, start: int, limit: int = logs.MOST) -> logs.LogPage:
    visit.must_see_output()
    return logs.page(visit, id, run, lines=lines, start=start, limit=limit, open=opened)


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
            raise NotFound(flaw("log_ticket"))
        fd = opened(path)
        heads = {"content-disposition": f'attachment; filename="{name}"', "x-content-type-options": "nosniff"}
        return StreamingResponse(_chunks(fd), media_type="text/plain; charset=utf-8", headers=heads)


def _chunks(fd: int) -> Iterator[bytes]:
    try:
        yield from logs.chunks(fd, 0)
    finally:
        os.close(fd)
