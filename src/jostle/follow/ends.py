"""Jobs, whosesoever, until they have ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jostle.core.states import FINAL
from jostle.errors import INTERRUPTED, TIME_IS_UP

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostle.errors import JostleError
    from jostle.follow.feed import Feed
    from jostle.session import Session


def until_ended(
    feed: Feed, states: dict[int, str], deadline: float | None, lost: Callable[[JostleError], None] = lambda why: None
) -> int:  # fmt: skip
    """Takes the ends of these jobs into `states`: 0 when all have ended, else the exit code that says why not. `lost`: is told
    when the engine has gone; the feed connects again."""
    left = {id for id, state in states.items() if state not in FINAL}
    while left:
        item = feed.next(None if deadline is None else deadline - time.monotonic())
        if item is None:
            return TIME_IS_UP
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
