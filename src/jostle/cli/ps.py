"""`jostle ps`: what runs, what waits and why, and what has lately ended."""

from __future__ import annotations

import time

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.core.reasons import UNWRITTEN
from jostle.errors import Usage
from jostle.views.listing import Listing, listing, refuse_unknown
from jostle.wording import labels, sentences
from jostle.wording import rows as table_rows


def ps_options(p: Parser) -> None:
    p.example("""
        jostle ps
        jostle ps --all --json
        jostle ps --batches""")
    p.add_argument("-a", "--all", action="store_true", help="also what ended long ago, and every waiting job")
    p.number("-b", "--batch", help="only jobs of this batch")
    p.add_argument("-s", "--state", action="append", metavar="STATE", help="only jobs in this state")
    p.add_argument("--batches", action="store_true", help="batches and how they stand, instead of jobs; the newest first")
    p.json_option()


def ps(args: Namespace, terminal: Terminal) -> int:
    if args.batches:
        return put_batches(args, terminal)
    refuse_unknown(args.state, "ps: ")
    batch, states = args.batch, args.state
    short = not (args.all or args.state or args.json)  # a table that need not list every waiting job
    listed = listing(terminal, batch=batch, everything=args.all, states=states, short=short)
    unfinished = any(row["ended_at"] is None for row in listed.rows)
    language = terminal.language
    rows = sentences.jobs(listed.rows, language)
    if args.json:
        terminal.put_json({"schema": 1, "engine": listed.engine if unfinished else terminal.engine_runs(), "jobs": rows})
    elif not rows:
        terminal.tell("no_such_jobs" if args.state or batch is not None else "no_jobs")
    else:
        say_what_concerns_all(listed, terminal)
        now = time.time()
        lines = [table_rows.job(row, now, language) for row in rows]
        head, columns = labels.heads("ps", language), terminal.width
        terminal.put(render.table(head, lines, columns=columns, right=(0, 5, 6), paint_column=3, colours=terminal.colours))
        for code, values in listed.left_out:
            terminal.put(terminal.message(code, **values))
    return 0


def put_batches(args: Namespace, terminal: Terminal) -> int:
    from jostle.views.batches import batches

    if args.batch is not None or args.state:
        raise Usage("ps: --batches lists batches; expected it without --batch and --state")
    listed = batches(terminal, everything=args.all)
    if args.json:
        terminal.put_json({"schema": 1, "batches": listed})
    elif not listed:
        terminal.tell("no_jobs")
    else:
        lines = [table_rows.batch(row, time.time(), terminal.language) for row in listed]
        terminal.put(render.table(labels.heads("batches", terminal.language), lines, columns=terminal.width, right=(0, 3, 4)))
    return 0


def say_what_concerns_all(listed: Listing, terminal: Terminal) -> None:
    if not listed.engine:
        terminal.tell("no_engine")
    elif listed.hold in UNWRITTEN:  # an end cannot be recorded then, and the table shows it as running
        terminal.say(sentences.on_hold(listed.hold, terminal.language))
    for line in sentences.set_aside(terminal.reader.meta("health"), terminal.language):
        terminal.say(line)
