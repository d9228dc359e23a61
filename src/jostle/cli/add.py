"""`jostle add -- CMD ARGS…`: queue one command and print its id."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.cli.parse import Namespace, Parser, checked
from jostle.cli.terminal import Terminal
from jostle.core.fields import JOB
from jostle.core.variables import UNI_ID_FILE
from jostle.errors import Unfit, Usage
from jostle.formats import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIELDS = ("gpus", "memory_mib", "queue", "name", "priority", "on", "begin", "time_limit", "share", "cpus", "host_memory_mib",
          "counters", "nice", "resize", "when_stranger", "grace")  # fmt: skip
"""Options that are fields of a job, by the field's name."""
OPTIONS = {"commands": "the command", "log": "--log", "workdir": "--workdir", "env": "-e"}
FLAWS = {
    "shares_without_memory": "--share needs -m: a job without it takes the whole card",
    "memory_without_card": "-m with -g 0: a job without GPUs needs no memory",
    "resize_needs_card": "--resize with -g 0: a job that gets other cards needs one at least",
    "resize_without_uni_id": f"--resize with -e {UNI_ID_FILE}: a job of the uni_id protocol keeps its cards",
    "not_of_inside": "--{key} means nothing inside allocation {allocation}, where this shell puts its jobs",
}
"""What of a job cannot be together, in the words of this verb."""


def add_options(p: Parser) -> None:
    p.usage = "jostle add [options] -- COMMAND [ARGS…]"
    p.example("""
        jostle add -g 2 -m 20GiB -- python train.py --lr 1e-5
        jostle add -q night --begin 22:00 -- 'source env.sh && python train.py > out.txt'
        jostle add --after last --retry 3 -- bash eval.sh""")
    p.add_argument("-g", metavar="N|N-M", **_field("gpus", " (default 1)"))
    p.add_argument("-m", "--memory", metavar="SIZE", **_field("memory_mib"))
    p.add_argument("--cpus", metavar="N", **_field("cpus"))
    p.add_argument("--host-memory", metavar="SIZE", **_field("host_memory_mib"))
    p.add_argument("--counters", metavar="NAME=N[,…]", **_field("counters"))
    p.add_argument("--nice", metavar="N", **_field("nice"))
    p.add_argument("--resize", metavar="HOW", **_field("resize"))
    p.add_argument("--when-stranger", metavar="HOW", **_field("when_stranger", " (default keep)"))
    p.add_argument("--grace", metavar="TIME", **_field("grace"))
    p.add_argument("-q", "--queue", **_field("queue"))
    p.add_argument("-n", "--name", **_field("name"))
    p.add_argument("-p", "--priority", **_field("priority", " (default 0)"))
    p.add_argument("--on", metavar="TARGET[,TARGET]", **_field("on", " (default local)"))
    p.add_argument("--after", metavar="IDS", help="only when these have succeeded")
    p.add_argument("--after-any", metavar="IDS", help="when these have ended, however")
    p.add_argument("--begin", metavar="TIME", **_field("begin"))
    p.add_argument("--time-limit", metavar="TIME", **_field("time_limit"))
    p.add_argument("--retry", metavar="N", type=checked(spec.attempts), default=0, help="try again when it fails, or `unlimited`")
    p.add_argument("--share", action="store_true", help="other jobs of ours may use the same card; needs -m")
    p.add_argument("--once", metavar="KEY", help="a key of your own: what was added under it before is not added again")
    p.add_argument("--hold", action="store_true", help="queue it, but do not start it before `jostle unhold`")
    p.add_argument("--dry-run", action="store_true", help="say what would become of it now; nothing is queued")
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
    from jostle.intake.request import warn_never
    from jostle.intake.single import preview, queued, requested

    if advice := args.advice():
        terminal.say(f"note: what looks like an option was taken as one of jostle's. {advice}")
    values = {name: getattr(args, name.removesuffix("_mib")) for name in FIELDS}
    try:
        asked = requested(
            terminal, {**values, "tags": args.tag}, command=args.command, retry=args.retry, env=args.env,
            workdir=args.workdir, log=args.log, after=args.after or "", after_any=args.after_any or "", hold=args.hold,
            once=args.once, strict=args.strict,
        )  # fmt: skip
    except Unfit as e:
        raise Usage("add: " + (FLAWS[e.what].format(**e.params) if e.what in FLAWS else f"{OPTIONS[e.what]} {e.text}")) from None
    if args.dry_run:
        for line in preview(terminal, asked):
            terminal.put(line)
        return 0
    answer = queued(terminal, asked)
    terminal.put(str(answer["ids"][0]))
    warn_never(answer, terminal)
    return 0
