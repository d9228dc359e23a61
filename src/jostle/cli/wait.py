"""`jostle wait [IDS]`: until jobs have ended; the exit code says whether all succeeded."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from jostle import units
from jostle.cli import ids, render
from jostle.cli.parse import checked
from jostle.core.states import FINAL, UNFINISHED
from jostle.errors import NotFound

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.desk import Desk
    from jostle.cli.parse import Parser



def wait_options(p: Parser) -> None:
    p.example("""
        jostle wait 12 13 && python plot.py
        jostle wait --timeout 2h""")
    p.add_argument("ids", nargs="*", metavar="ID", help=ids.WRITTEN + " (default: all that is unfinished)")
    p.add_argument("--timeout", metavar="TIME", type=checked(units.seconds), help="give up after this long, with exit code 124")
    p.json_option()


def wait(args: Namespace, desk: Desk) -> int:
    from jostle.follow.feed import Feed

    words = args.ids or ["all"]
    deadline = None if args.timeout is None else time.monotonic() + args.timeout
    seq = desk.reader.last_seq()
    chosen = ids.jobs(words, lambda: desk.reader, lambda: [r["id"] for r in desk.reader.jobs(states=UNFINISHED)])
    states = {row["id"]: row["state"] for row in desk.reader.jobs(ids=chosen)}
    missing = [id for id in chosen if id not in states]
    if missing:
        raise NotFound(f"there is no job {missing[0]}; `jostle ps --all` lists them")
    if not chosen and not args.json:
        desk.say("nothing to wait for: every job has ended")
    open_ids = {id for id, state in states.items() if state not in FINAL}
    code = 0
    if open_ids:
        feed = Feed(desk.client, after=seq, batch=None)
        feed.catch(signal.SIGINT, signal.SIGTERM)
        feed.start()
        code = follow(feed, desk, states, open_ids, deadline)
    return finish(args.json, desk, states, code)


def follow(feed: object, desk: Desk, states: dict[int, str], open_ids: set[int], deadline: float | None) -> int:
    """0 when all have ended, 124 when time is up, 130 when interrupted."""
    from jostle.follow.feed import Feed

    assert isinstance(feed, Feed)
    while open_ids:
        item = feed.next(None if deadline is None else deadline - time.monotonic())
        if item is None:
            return 124
        kind, value = item
        if kind == "signal":
            return 130
        if kind == "error":
            raise value
        if kind == "lost":
            desk.say(f"jostle: {value}; trying again")
        if kind == "event" and value["job"] in open_ids and value["kind"] in FINAL:
            states[value["job"]] = value["kind"]
            open_ids.discard(value["job"])
    return 0


def finish(json: bool, desk: Desk, states: dict[int, str], code: int) -> int:
    failed = sorted(id for id, state in states.items() if state in FINAL and state != "succeeded")
    code = code or int(bool(failed))
    if json:
        desk.put_json({"schema": 1, "ok": code == 0, "jobs": {str(id): state for id, state in states.items()}})
    elif code == 124:
        waiting = sum(state not in FINAL for state in states.values())
        desk.say(f"time is up: {render.count(waiting, 'job')} not finished")
    for id in failed if not json else ():
        desk.say(f"job {id} {states[id]}: `jostle why {id}`")
    return code
