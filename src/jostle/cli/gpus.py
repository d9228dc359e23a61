"""`jostle gpus`: the cards, who uses them, and whether they may be taken."""

from __future__ import annotations

from typing import Any

from jostle import units
from jostle.cli import render
from jostle.cli.parse import Namespace, Parser, checked
from jostle.cli.terminal import Terminal
from jostle.views import cards as views
from jostle.wording import history, labels, sentences
from jostle.wording.reasons import trouble

WIDE = 110  # columns of a terminal
NARROW = (0, 2, 3, 4, 5, 8, 9)


def gpus_options(p: Parser) -> None:
    p.example("""
        jostle gpus
        jostle gpus --history 24h       what they showed, and who had them
        jostle gpus --exclude 3         no job of ours starts there any more
        jostle gpus --gpus sim:8x24""")
    p.add_argument("--exclude", metavar="N", type=checked(units.numbers), help="do not use these cards: 3 or 0,4-7")
    p.add_argument("--include", metavar="N", type=checked(units.numbers), help="use them again, also those set aside as faulty")
    p.add_argument("--history", metavar="TIME", type=checked(units.seconds), help="what they showed, and who had them: 2h, 7d")
    p.devices_option("look once at these devices", dest="devices")
    p.json_option()


def gpus(args: Namespace, terminal: Terminal) -> int:
    if args.exclude or args.include:
        return change(args, terminal)
    if args.history is not None:
        return past(args, terminal)
    view = views.cards(terminal, args.devices)
    shown = [sentences.card(gpu, terminal.language) for gpu in view.gpus]
    error = trouble(view.error, terminal.language)
    if args.json:
        terminal.put_json({"schema": 1, **view.plain(), "gpus": shown, "error": error})
    elif shown:
        terminal.put(table(shown, view.engine, terminal))
    if error:
        terminal.tell("cards_unread", why=error)
        return 1
    if not shown:
        terminal.tell("no_cards")
    elif not view.engine and not args.json:
        why = "engine_has_others" if terminal.engine_runs() else "engine_not_up"
        terminal.tell("single_look", devices=view.devices, why=(why, {}))
    return 0


def past(args: Namespace, terminal: Terminal) -> int:
    from jostle.views.history import history as past_of

    seen = past_of(terminal, args.history).plain()
    if args.json:
        terminal.put_json({"schema": 1, **seen})
    else:
        terminal.put("\n".join(history.lines(seen, terminal.width, terminal.language)))
    return 0


def table(gpus: list[dict[str, Any]], engine: bool, terminal: Terminal) -> str:
    """All columns where there is room; on a narrow screen those that decide."""
    head = labels.heads("gpus" if engine else "gpus_without_engine", terminal.language)
    columns = range(len(head)) if terminal.width >= WIDE else NARROW
    cells = [labels.card_cells(gpu, engine, terminal.language) for gpu in gpus]
    rows = [[row[k] for k in columns] for row in cells]
    right = [place for place, k in enumerate(columns) if 2 <= k <= 7]
    return render.table([head[k] for k in columns], rows, columns=terminal.width, right=right, colours=terminal.colours)


def change(args: Namespace, terminal: Terminal) -> int:
    client = terminal.client()
    for numbers, on in ((args.exclude, True), (args.include, False)):
        if numbers:
            answer = client.call("exclude", gpus=numbers, on=on)
            excluded, faulty = answer["excluded"], answer.get("faulty")
            terminal.tell("excluded" if excluded else "none_excluded", gpus=render.gpus(excluded))
            if faulty:
                terminal.tell("set_aside", gpus=render.gpus(faulty))
    client.close()
    return 0
