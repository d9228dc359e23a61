"""What people want of jobs: `cancel hold unhold retry move set`. Each is an intent; the engine alone changes states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.cli import ids, render
from jostle.core import kinds
from jostle.core.fields import JOB
from jostle.core.states import UNFINISHED
from jostle.errors import Usage
from jostle.formats import spec

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal

SHOWN = 10  # ids, or refusals; nobody reads more


def cancel_options(p: Parser) -> None:
    p.example("""
        jostle cancel 12 15-20
        jostle cancel all --now""")
    p.add_argument("ids", nargs="+", metavar="ID", help=ids.WRITTEN)
    p.add_argument("--now", action="store_true", help="kill at once, without time to end by itself")


def cancel(args: Namespace, terminal: Terminal) -> int:
    chosen = wanted(args.ids, terminal, UNFINISHED)
    return intend(terminal, chosen, "cancel", "cancelled", every=args.ids == ["all"], now=args.now)


def hold_options(p: Parser) -> None:
    p.example("jostle hold 12-20")
    p.add_argument("ids", nargs="+", metavar="ID", help=ids.WRITTEN)


def hold(args: Namespace, terminal: Terminal) -> int:
    return intend(terminal, wanted(args.ids, terminal, ("queued",)), "hold", "held")


def unhold_options(p: Parser) -> None:
    p.example("jostle unhold all")
    p.add_argument("ids", nargs="+", metavar="ID", help=ids.WRITTEN)


def unhold(args: Namespace, terminal: Terminal) -> int:
    held = wanted(args.ids, terminal, ("queued",), "hold")
    return intend(terminal, held, "unhold", "released")


def retry_options(p: Parser) -> None:
    p.example("""
        jostle retry 12
        jostle retry all            every failed or skipped job that was not retried yet""")
    p.add_argument("ids", nargs="+", metavar="ID", help=ids.WRITTEN)


def retry(args: Namespace, terminal: Terminal) -> int:
    """Final states are final, so a retry is a new job; its id is printed."""
    chosen = ids.jobs(args.ids, lambda: terminal.reader, lambda: not_retried(terminal))
    answer = told(terminal, chosen, do="retry")
    for new in answer["new"].values():
        terminal.put(str(new))
    return refusals(terminal, answer)


def not_retried(terminal: Terminal) -> list[int]:
    """Failed and skipped jobs of which there is no newer copy."""
    found = [row["id"] for row in terminal.reader.jobs(states=("failed", "skipped"))]
    copied = {row["retry_of"] for row in terminal.reader.jobs()} if found else frozenset()
    return [id for id in found if id not in copied]


def move_options(p: Parser) -> None:
    p.usage = "jostle move ID first|last\n       jostle move ID before|after OTHER"
    p.example("""
        jostle move 12 first
        jostle move 12 before 9""")
    p.add_argument("id", metavar="ID", help=ids.WRITTEN_ONE)
    p.add_argument("where", metavar="WHERE", choices=("first", "last", "before", "after"), help="first, last, before or after")
    p.add_argument("other", nargs="?", metavar="OTHER", help="the job it goes before or after")


def move(args: Namespace, terminal: Terminal) -> int:
    beside = args.where in ("before", "after")
    if beside != (args.other is not None):
        raise Usage("move: expected `first`, `last`, `before ID` or `after ID`")
    to = {args.where: ids.one(args.other, lambda: terminal.reader)} if beside else args.where
    return intend(terminal, [ids.one(args.id, lambda: terminal.reader)], "move", "moved", to=to)


def set_options(p: Parser) -> None:
    p.usage = "jostle set ID… KEY=VALUE…"
    p.example("""
        jostle set 12 priority=5 memory=24GiB
        jostle set 3-7 time_limit=none""")
    p.add_argument(
        "words", nargs="+", metavar="ID… KEY=VALUE…", help="; ".join((", ".join(SETTINGS), "`none` takes a value back"))
    )


def set(args: Namespace, terminal: Terminal) -> int:
    chosen = [word for word in args.words if "=" not in word]
    values = dict(setting(word) for word in args.words if "=" in word)
    if not chosen or not values:
        raise Usage("set: expected ids and key=value pairs, such as `jostle set 12 priority=5`")
    return intend(terminal, wanted(chosen, terminal, ("queued",)), "set", "changed", values=values)


def _truth(text: str) -> bool:
    return spec.one_of(text, ("true", "false")) == "true"


SETTINGS = {field.key: field for field in JOB.values() if field.settable}


def setting(word: str) -> tuple[str, Any]:
    key, _, text = word.partition("=")
    if key not in SETTINGS:
        from difflib import get_close_matches

        near = get_close_matches(key, SETTINGS, 1, 0.75)
        raise Usage(f"set: there is no setting {key!r}; expected " + (near[0] if near else "one of " + ", ".join(SETTINGS)))
    field = SETTINGS[key]
    if text == "none" and field.kind is not kinds.NAME:  # a job can be called so
        return field.name, field.fresh()
    try:
        return field.name, _truth(text) if field.kind is kinds.TRUTH else spec.reader(field.kind)(text)
    except ValueError as e:
        raise Usage(f"set: {key}={text!r} is not understood; expected {e}") from None


def wanted(words: list[str], terminal: Terminal, states: tuple[str, ...], intent: str | None = None) -> list[int]:
    """The ids; `all` = every job in these states."""
    return ids.jobs(words, lambda: terminal.reader, lambda: terminal.reader.ids(states, intent))


def intend(terminal: Terminal, chosen: list[int], do: str, done: str, *, every: bool = False, **fields: Any) -> int:
    if not chosen:
        terminal.say("nothing to do: no job is meant")
        return 0
    answer = told(terminal, chosen, do=do, **fields)
    if every:  # `all` meant those that could be meant: one that has ended since is no mistake
        answer["refused"] = []
    if answer["done"]:
        ids = sorted(answer["done"])
        more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
        terminal.say(f"{done}: {render.count(len(ids), 'job')} ({', '.join(map(str, ids[:SHOWN]))}{more})")
    return refusals(terminal, answer)


def told(terminal: Terminal, chosen: list[int], **fields: Any) -> dict[str, Any]:
    if not chosen:
        return {"done": [], "refused": [], "new": {}}
    client = terminal.client()
    try:
        return client.call("intent", ids=chosen, batch=None, **fields)
    finally:
        client.close()


def refusals(terminal: Terminal, answer: dict[str, Any]) -> int:
    for _, text in answer["refused"][:SHOWN]:
        terminal.say(f"jostle: {text}")
    if len(answer["refused"]) > SHOWN:
        terminal.say(f"jostle: … and {len(answer['refused']) - SHOWN:,} more")
    return 1 if answer["refused"] else 0
