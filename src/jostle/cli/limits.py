"""`jostle limits`: how many cards you may hold, in all your homes together."""

from __future__ import annotations

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.core.fields import LIMITS
from jostle.errors import Usage
from jostle.intake.limits import change
from jostle.views.limits import limits as look
from jostle.wording import labels
from jostle.wording.limits import cells
from jostle.wording.reasons import trouble

DO = ("show", "set", "clear")


def limits_options(p: Parser) -> None:
    p.usage = "jostle limits\n       jostle limits set NAME=N…\n       jostle limits clear [NAME…|manager]"
    p.example("""
        jostle limits
        jostle limits set max_total_gpus=4 max_gpus_per_task=2
        jostle limits clear max_total_gpus
        jostle limits clear manager     forget the limits of the manager's file""")
    p.add_argument("do", nargs="?", metavar="set|clear", choices=DO, default="show", help="without it they are shown")
    p.add_argument("words", nargs="*", metavar="NAME=N", help=", ".join(LIMITS))
    p.json_option()


def limits(args: Namespace, terminal: Terminal) -> int:
    if args.do != "show":
        change(terminal, args.do, args.words)
    elif args.words:
        raise Usage("limits: expected `set NAME=N` or `clear NAME`")
    view = look(terminal)
    if args.json:
        terminal.put_json({"schema": 1, **view})
    else:
        rows = [cells(limit, view, terminal.language) for limit in view["limits"]]
        head = labels.heads("limits", terminal.language)
        terminal.put(render.table(head, rows, columns=terminal.width, right=(1, 2), colours=terminal.colours))
    if view["hold"]:
        terminal.say(trouble(view["hold"], terminal.language))
        return 1
    return 0
