"""Jobs, whosesoever, until they have ended."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from jostle.core.states import FINAL
from jostle.errors import INTERRUPTED, TIME_IS_UP
from jostle.follow.listener import FIRST_TELL

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostle.errors import JostleError
    from jostle.follow.feed import Feed
    from jostle.session import Session


def until_ended(
    feed: Feed, states: dict[int, str], deadline: float | None, lost: Callable[[JostleError], None] = lambda why: None,
    lasts: Callable[[], None] | None = None,
) -> int:  # fmt: skip
    """Takes the ends of these jobs into `states`: 0 when all have ended, else the exit code that says why not. `lost`: is told
    when the engine has gone; the feed connects again. `lasts`: called once, if it takes long."""
    left = {id for id, state in states.items() if state not in FINAL}
    end = math.inf if deadline is None else deadline
    tell_at = math.inf if lasts is None else time.monotonic() + FIRST_TELL
    while left:
        until = min(end, tell_at)
        item = feed.next(None if until == math.inf else until - time.monotonic())
        if item is None and until == end:
            return TIME_IS_UP
        if time.monotonic() >= tell_at and lasts is not None:
            tell_at = math.inf
            lasts()
        if item is None:
            continue
        kind, value = item
        if kind == "signal":
            return INTERRUPTED
        if kind == "error":
            raise value
        if kind == "lost":
            lost(value)
        if kind == "event" and value["job"] in left and value["kind"] in FINAL:
            states[value["job"]] = value["kind"]
            left.discard(value["job"])
    return 0


def until_gone(session: Session, id: int) -> None:
    """Until a job has ended, also over a restart of the engine."""
    from jostle.follow.feed import Feed

    feed = Feed(session.client, after=session.reader.last_seq(), batch=None, again=session.client_again)
    row = session.reader.job(id)
    if row is not None and row["state"] not in FINAL:
        feed.start()
        until_ended(feed, {id: row["state"]}, None)
        feed.close()
