"""`jostle logs ID`: what a job has printed, and with -f what it prints until it has ended.

Bytes are passed on as they are; to a terminal without the control sequences that could do more than colour.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from jostle.cli import screen
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.follow.output import POLL, Item, begun, output
from jostle.intake import ids
from jostle.views.logs import chunks, log, opened, printed_path, start_of


def logs_options(p: Parser) -> None:
    p.example("""
        jostle logs 17
        jostle logs -f last
        jostle logs 17 --run 1 -n 50""")
    p.add_argument("id", metavar="ID", help=ids.WRITTEN_ONE)
    p.add_argument("-f", "--follow", action="store_true", help="go on until the job has ended")
    p.number("-n", "--lines", help="only the last N lines")
    p.number("--run", help="of the N-th try (default: the last)")
    p.add_argument("--raw", action="store_true", help="pass control sequences to a terminal, too")
    p.add_argument("--path", action="store_true", help="print where the log lies")
    p.json_option()


def logs(args: Namespace, terminal: Terminal) -> int:
    id = ids.single(args.id, lambda: terminal.reader)
    if args.json:
        terminal.put_json({"schema": 1, **log(terminal, id, args.run, args.lines)})
    elif args.path:
        if args.follow:
            follow(begun(terminal, id, args.run), terminal, args)
        terminal.put(printed_path(terminal, id, args.run))
    elif args.follow:
        follow(output(terminal, id, run=args.run, lines=args.lines), terminal, args)
    else:
        fd = opened(printed_path(terminal, id, args.run))
        follow(chunks(fd, start_of(fd, args.lines)), terminal, args)
    return 0


def follow(items: Iterable[Item], terminal: Terminal, args: Namespace) -> None:
    sys.stdout.flush()
    out = sys.stdout.buffer
    shown = screen.LogFilter().feed if sys.stdout.isatty() and not args.raw else bytes
    for item in items:
        if isinstance(item, bytes):
            out.write(shown(item))
            continue
        out.flush()
        if item is None:
            time.sleep(POLL)
        else:
            terminal.tell(item.code, **item.values)
    out.flush()
