"""What people want of jobs: `cancel hold unhold retry move set`. Each is an intent; the engine alone changes states."""

from __future__ import annotations

from typing import Any

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.core.states import UNFINISHED
from jostle.errors import Usage
from jostle.intake import ids
from jostle.intake.checking import warn_never_of
from jostle.intake.intents import SETTINGS, chosen, sent, setting, wanted
from jostle.wording.declined import declined

SHOWN = 10  # ids, or refusals; nobody reads more


def cancel_options(p: Parser) -> None:
    p.example("""
        jostle cancel 12 15-20
        jostle cancel train queue:night
        jostle cancel all --now""")
    p.add_argument("ids", nargs="+", metavar="ID", help=ids.WRITTEN)
    p.add_argument("--now", action="store_true", help="kill at once, without time to end by itself")


def cancel(args: Namespace, terminal: Terminal) -> int:
    return intend(terminal, args.ids, "cancel", "cancelled", now=args.now)


def hold_options(p: Parser) -> None:
    p.example("jostle hold 12-20")
    p.add_argument("ids", nargs="+", metavar="ID", help=ids.WRITTEN)


def hold(args: Namespace, terminal: Terminal) -> int:
    return intend(terminal, args.ids, "hold", "held")


def unhold_options(p: Parser) -> None:
    p.example("jostle unhold all")
    p.add_argument("ids", nargs="+", metavar="ID", help=ids.WRITTEN)


def unhold(args: Namespace, terminal: Terminal) -> int:
    return intend(terminal, args.ids, "unhold", "released")


def retry_options(p: Parser) -> None:
    p.example("""
        jostle retry 12
        jostle retry all            every failed or skipped job that was not retried yet""")
    p.add_argument("ids", nargs="+", metavar="ID", help=ids.WRITTEN)


def retry(args: Namespace, terminal: Terminal) -> int:
    """Final states are final, so a retry is a new job; its id is printed."""
    answer = sent(terminal, chosen("retry", args.ids, terminal), do="retry")
    for new in answer["new"].values():
        terminal.put(str(new))
    warn_never_of(list(answer["new"].values()), terminal)
    return refusals(terminal, answer)


def move_options(p: Parser) -> None:
    p.usage = "jostle move ID first|last\n       jostle move ID before|after OTHER"
    p.example("""
        jostle move 12 first
        jostle move 12 before 9""")
    p.add_argument("id", metavar="ID", help=ids.WRITTEN_ONE)
    p.add_argument("where", metavar="WHERE", choices=("first", "last", "before", "after"), help="first, last, before or after")
    p.add_argument("other", nargs="?", metavar="OTHER", help=f"the job it goes before or after: {ids.WRITTEN_ONE}")


def move(args: Namespace, terminal: Terminal) -> int:
    beside = args.where in ("before", "after")
    if beside != (args.other is not None):
        raise Usage("move: expected `first`, `last`, `before ID` or `after ID`")
    to = {args.where: ids.single(args.other, lambda: terminal.reader)} if beside else args.where
    answer = sent(terminal, [ids.single(args.id, lambda: terminal.reader)], do="move", to=to)
    return outcome(terminal, answer, "moved")


def set_options(p: Parser) -> None:
    p.usage = "jostle set ID… KEY=VALUE…"
    p.example("""
        jostle set 12 priority=5 memory=24GiB
        jostle set tag:night time_limit=none""")
    keys = f"{', '.join(SETTINGS)}; `none` takes a value back"
    p.add_argument("words", nargs="+", metavar="ID… KEY=VALUE…", help=f"{ids.WRITTEN}; {keys}")


def set(args: Namespace, terminal: Terminal) -> int:
    is_pair = {word: "=" in word and ":" not in word.partition("=")[0] for word in args.words}  # name:lr=0.1 is none
    named = [word for word in args.words if not is_pair[word]]
    values: dict[str, Any] = {}
    for word in filter(is_pair.get, args.words):
        try:
            values.update([setting(*word.split("=", 1))])
        except Usage as e:
            raise Usage(f"set: {e}{ids.as_name(word, terminal.reader)}") from None
    if not named or not values:
        raise Usage("set: expected ids and key=value pairs, such as `jostle set 12 priority=5`")
    return intend(terminal, named, "set", "changed", values=values)


def intend(terminal: Terminal, words: list[str], verb: str, done: str, **fields: Any) -> int:
    answer = wanted(terminal, verb, words, **fields)
    if answer is None:
        terminal.tell("no_job_meant")
        return 0
    return outcome(terminal, answer, done)


def outcome(terminal: Terminal, answer: dict[str, Any], done: str) -> int:
    ending = frozenset(terminal.reader.ids(UNFINISHED) if done == "cancelled" else ()).intersection(answer["done"])
    for code, which in ((done, frozenset(answer["done"]) - ending), ("told_to_end", ending)):
        if which:
            terminal.tell(code, n=len(which), ids=render.first(sorted(which), SHOWN, terminal.language))
    return refusals(terminal, answer)


def refusals(terminal: Terminal, answer: dict[str, Any]) -> int:
    for _, why in answer["refused"][:SHOWN]:
        terminal.tell("refused", why=declined(why, terminal.language))
    if len(answer["refused"]) > SHOWN:
        terminal.tell("more_refused", n=len(answer["refused"]) - SHOWN)
    return 1 if answer["refused"] else 0
