"""`jostle wait [IDS]`: until jobs have ended; the exit code says whether all succeeded."""

from __future__ import annotations

import sys
import time

from jostle import units
from jostle.cli import render
from jostle.cli.parse import Namespace, Parser, checked
from jostle.cli.terminal import Terminal
from jostle.core.states import FINAL
from jostle.errors import NotFound
from jostle.intake import ids

SHOWN = 10  # ids of what is waited for


def wait_options(p: Parser) -> None:
    p.example("""
        jostle wait 12 13 && python plot.py
        jostle wait --timeout 2h""")
    p.add_argument("ids", nargs="*", metavar="ID", help=ids.WRITTEN + " (default: all that is unfinished)")
    p.add_argument("--timeout", metavar="TIME", type=checked(units.seconds), help="give up after this long, with exit code 124")
    p.json_option()


def wait(args: Namespace, terminal: Terminal) -> int:
    from jostle.follow.ends import until_ended
    from jostle.follow.feed import loss
    from jostle.follow.followed import signal_feed

    deadline = None if args.timeout is None else time.monotonic() + args.timeout
    seq = terminal.reader.last_seq()
    chosen = ids.unfinished(args.ids or ["all"], lambda: terminal.reader, whole_batch)
    states = {row["id"]: row["state"] for row in terminal.reader.jobs(ids=chosen)}
    missing = [id for id in chosen if id not in states]
    if missing:
        raise NotFound(f"there is no job {missing[0]}; `jostle ps --all` lists them")
    if not chosen and not args.json:
        terminal.tell("nothing_to_wait")
    code = 0
    if left := [id for id, state in states.items() if state not in FINAL]:
        if sys.stderr.isatty() and not args.json:
            terminal.tell("waiting_for", n=len(left), ids=render.first(left, SHOWN, terminal.language))
        feed = signal_feed(terminal, gpus=None, after=seq)
        feed.start()
        code = until_ended(feed, states, deadline, lambda e: terminal.tell(loss(e), why=str(e)))
    return finish(args.json, terminal, states, code)


def whole_batch(members: ids.Members) -> list[int]:
    """A batch has an end, and succeeds as a whole; a name, queue or tag may come again and again."""
    return list(members.states) if members.kind == "batch" else ids.unfinished_of(members)


def finish(json: bool, terminal: Terminal, states: dict[int, str], code: int) -> int:
    failed = sorted(id for id, state in states.items() if state in FINAL and state != "succeeded")
    code = code or int(bool(failed))
    if json:
        terminal.put_json({"schema": 1, "ok": code == 0, "jobs": {str(id): state for id, state in states.items()}})
    elif code == 124:
        waiting = sum(state not in FINAL for state in states.values())
        terminal.tell("time_is_up", n=waiting)
    for id in failed if not json else ():
        terminal.tell("job_ended", id=id, state=states[id])
    return code
