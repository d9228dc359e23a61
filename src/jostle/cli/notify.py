"""`jostle notify status`, `jostle notify test [CHANNEL]`: whether messages get through."""

from __future__ import annotations

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.wording.labels import heads
from jostle.wording.notices import channel_cells, trouble, troubled


def notify_options(p: Parser) -> None:
    p.example("""
        jostle notify               what was sent, what waits, what went wrong
        jostle notify test          a message by each channel, now
        jostle notify test mail""")
    p.add_argument("what", nargs="?", choices=("status", "test"), default="status", help="default: status")
    p.add_argument("channel", nargs="?", metavar="CHANNEL", help="only this one")
    p.json_option()


def notify(args: Namespace, terminal: Terminal) -> int:
    if args.what == "test":
        return test(args, terminal)
    from jostle.notify.status import status as look
    from jostle.notify.trial import chosen

    view = look(terminal.home)
    if args.channel is not None:
        chosen(terminal.home, args.channel, terminal.language)
    view["channels"] = [channel for channel in view["channels"] if args.channel in (None, channel["name"])]
    if args.json or not view["channels"]:
        terminal.put_json({"schema": 1, **view}) if args.json else terminal.tell("notify_unset")
        return 0
    terminal.put(render.table(heads("notify", terminal.language), [channel_cells(channel) for channel in view["channels"]]))
    for line in (line for channel in view["channels"] for line in troubled(channel, terminal.language)):
        terminal.put(line)
    terminal.tell("notify_runs" if view["running"] else "notify_stopped", pid=view["pid"] or 0, log=view["log"])
    return 0


def test(args: Namespace, terminal: Terminal) -> int:
    from jostle.notify.trial import tried

    results = []
    for result in tried(terminal.home, args.channel, terminal.language):
        results.append(result)
        if not args.json:
            why = "" if result["ok"] else f": {trouble(result['error'], terminal.language)}"
            terminal.put(terminal.message("notify_taken" if result["ok"] else "notify_not_taken", name=result["name"], why=why))
    if args.json:
        terminal.put_json({"schema": 1, "channels": results})
    return 0 if all(result["ok"] for result in results) else 1
