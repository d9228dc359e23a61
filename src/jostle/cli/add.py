"""`jostle add -- CMD ARGS…`: queue one command and print its id."""

from __future__ import annotations

import os

from jostle.cli.parse import checked
from jostle.core.fields import JOB, RETRY
from jostle.errors import Usage
from jostle.formats import spec
from jostle.intake import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from typing import Any

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal

SHELL = frozenset(" \t\n;&|<>()$`\\\"'*?[]{}~#!")
BATCH = "add"
"""Single commands lie together in one standing batch of this key."""


def add_options(p: Parser) -> None:
    p.usage = "jostle add [options] -- COMMAND [ARGS…]"
    p.example("""
        jostle add -g 2 -m 20GiB -- python train.py --lr 1e-5
        jostle add -q night --begin 22:00 -- 'source env.sh && python train.py > out.txt'
        jostle add --after last --retry 3 -- bash eval.sh""")
    p.add_argument("-g", metavar="N|N-M", **_field("gpus", " (default 1)"))
    p.add_argument("-m", "--memory", metavar="SIZE", **_field("memory_mib"))
    p.add_argument("-q", "--queue", **_field("queue"))
    p.add_argument("-n", "--name", **_field("name"))
    p.add_argument("-p", "--priority", **_field("priority", " (default 0)"))
    p.add_argument("--after", metavar="IDS", help="only when these have succeeded")
    p.add_argument("--after-any", metavar="IDS", help="when these have ended, however")
    p.add_argument("--begin", metavar="TIME", **_field("begin"))
    p.add_argument("--time-limit", metavar="TIME", **_field("time_limit"))
    p.add_argument("--retry", metavar="N", type=checked(spec.attempts), default=0, help="try again when it fails, or `unlimited`")
    p.add_argument("--share", action="store_true", help="other jobs of ours may use the same card; needs -m")
    p.add_argument("--once", metavar="KEY", help="a key of your own: what was added under it before is not added again")
    p.add_argument("--hold", action="store_true", help="queue it, but do not start it before `jostle unhold`")
    p.add_argument("--strict", action="store_true", help="refuse what this host can never run, instead of a warning")
    p.add_argument("--log", metavar="PATH", help="where its output goes")
    p.add_argument("--workdir", metavar="DIR", help="where it runs (default: here)")
    p.add_argument("-e", "--env", metavar="NAME=VALUE", action="append", default=[], help="a variable; NAME alone: as it is here")
    p.add_argument("--tag", action="append", default=[], type=checked(lambda t: spec.label(t, "a tag")), help="may be repeated")
    p.add_argument(
        "command",
        nargs="+",
        metavar="COMMAND",
        help="a program and its arguments, run as they are; one text with spaces or shell characters is run by bash",
    )
    p.advice = lambda typed: forgotten(p, typed)
    p.set_defaults(advice=lambda: forgotten(p, p.typed))


def forgotten(p: Parser, typed: Sequence[str]) -> str:
    """What to say of options behind a command without `--`: whose they are, nobody can tell."""
    takes = {name for action in p._actions if action.nargs != 0 for name in action.option_strings}
    k = 0
    while k < len(typed) and typed[k][:1] == "-" and typed[k] != "--":
        k += 2 if typed[k] in takes else 1
    if "--" in typed or not any(word[:1] == "-" and len(word) > 1 for word in typed[k + 1 :]):
        return ""
    from shlex import join

    return f"Options of the command come behind `--`: `jostle add {join([*typed[:k], '--', *typed[k:]])}`"


def _field(name: str, default: str = "") -> dict[str, Any]:
    """An option for a field of a job, as the table has it."""
    field = JOB[name]
    if field.default is None and not field.absent.startswith("none"):
        default = f" (default: {field.absent})"
    read = checked(spec.reader(field.kind))
    return {"dest": name.removesuffix("_mib"), "type": read, "default": field.fresh(), "help": field.what + default}


def add(args: Namespace, terminal: Terminal) -> int:
    from jostle.intake.request import request, sent, warn_never

    if args.share and args.memory is None:
        raise Usage("add: --share needs -m: a job without it takes the whole card")
    if args.memory is not None and args.gpus[1] == 0:
        raise Usage("add: -m with -g 0: a job without GPUs needs no memory")
    head = {"key": BATCH, "name": BATCH, "join": True, "policy": rules(args, terminal)}
    asked = {**request(head, [job_of(args, terminal)], once=args.once), "strict": args.strict}
    advice = args.advice()
    if advice:
        terminal.say(f"note: what looks like an option was taken as one of jostle's. {advice}")
    again = f"`--once {asked['once']}` with the same command asks again and takes it once only"
    answer = sent(terminal, asked, again=again)
    terminal.put(str(answer["ids"][0]))
    warn_never(answer, terminal)
    return 0


def rules(args: Namespace, terminal: Terminal) -> dict[str, Any]:
    """Cards that this shell does not see are not used (SPEC A12)."""
    if "CUDA_VISIBLE_DEVICES" not in os.environ or args.gpus[1] == 0:
        return {}
    from jostle.intake import visible

    gpus = visible.restricted(terminal)
    return {} if gpus is None else {"gpus": gpus}


def job_of(args: Namespace, terminal: Terminal) -> dict[str, Any]:
    commands = [command_of(args.command)]
    retry = {**{name: field.default for name, field in RETRY.items()}, "max": args.retry} if args.retry != 0 else None
    needs = [["job", id, any_end] for word, any_end in ((args.after, False), (args.after_any, True)) if word
             for id in ids.jobs([word], lambda: terminal.reader)]  # fmt: skip
    here = os.getcwd()
    values = spec.job(
        name=args.name or spec.name_of(commands), queue=args.queue, commands=commands, gpus=args.gpus,
        memory_mib=args.memory, share=args.share, env=dict(map(variable, args.env)),
        workdir=directory(args.workdir, here), log=log_file(args.log, here) if args.log else None,
        priority=args.priority, needs=needs, begin=args.begin, time_limit=args.time_limit, retry=retry, tags=args.tag,
    )  # fmt: skip
    if args.hold:
        values["intent"] = "hold"
    return values


def command_of(words: list[str]) -> str | list[str]:
    """Arguments are executed as they are; one text that only a shell understands is given to bash."""
    if len(words) == 1 and any(c in SHELL for c in words[0]):
        try:
            return spec.command(words[0])
        except ValueError as e:
            raise Usage(f"add: expected {e}") from None
    if not words[0]:
        raise Usage("add: the command is empty; expected a program and its arguments")
    return words


def log_file(text: str, here: str) -> str:
    path = full_path("--log", text, here)
    if os.path.isdir(path):
        raise Usage(f"add: --log {path} is a directory; expected a file to write to, which need not exist yet")
    return path


def full_path(option: str, text: str, here: str) -> str:
    try:
        return spec.path(text, here)
    except ValueError as e:
        raise Usage(f"add: {option} {text!r} is not understood; expected {e}") from None


def directory(text: str | None, here: str) -> str:
    if text is None:
        return here
    path = full_path("--workdir", text, here)
    if not os.path.isdir(path):
        raise Usage(f"add: --workdir {path} is no directory; expected one that exists")
    return path


def variable(text: str) -> tuple[str, str]:
    """`NAME=VALUE`, or `NAME` for the value it has here."""
    name, said, value = text.partition("=")
    if not said and name and name not in os.environ:
        raise Usage(f"add: -e {name}: it is not set here; expected NAME=VALUE, or a variable that is set")
    try:
        return spec.variable(name, value if said else os.environ.get(name, ""))
    except ValueError as e:
        raise Usage(f"add: -e {text!r} is not understood; expected {e}") from None
