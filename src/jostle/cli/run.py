"""`jostle run FILE…`: submits job files, sweeps or suites, follows them to their end, and exits with their result.

A batch is owned by this process: Ctrl-C or SIGTERM cancels it (a second one at once); on a terminal Ctrl-C asks first. kill -9 or
a hang-up leaves it running, and the same command attaches to it again. When the engine vanishes, it is started again and the
story goes on where it was. Suites run one after another; what was done before is not run again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jostle import units
from jostle.cli import render
from jostle.cli.keyboard import Keyboard
from jostle.cli.parse import Namespace, Parser, checked
from jostle.cli.terminal import Terminal
from jostle.core.fields import RULES
from jostle.errors import INTERRUPTED, Unfit, Usage
from jostle.follow.followed import Followed, owner, signal_feed, tell_failures
from jostle.formats import spec

if TYPE_CHECKING:
    from jostle.client import Client
    from jostle.follow.feed import Feed
    from jostle.intake.options import Options
    from jostle.intake.submitting import Taken


GATES = ("min_free_mib", "max_utilization", "max_concurrent", "max_wait", "start_interval", "choice")
"""Options that are fields of a policy."""


def run_options(p: Parser) -> None:
    p.example("""
        jostle run jobs.yaml
        jostle run --gpus sim:4x24 examples/hello.yaml
        jostle run jobs.yaml --detach && jostle ps
        jostle run suites.yaml --suite gamma --max-concurrent 4 --dry-run""")
    p.add_argument("files", nargs="*", metavar="FILE", help="job files, sweeps, suites; or a task file (*.txt) or workspace")
    p.add_argument("--job-file", action="append", default=[], metavar="F", help="the same as FILE")
    p.add_argument("--suite", action="append", default=[], metavar="NAME", help="only this suite of the files; may be repeated")
    p.mode_option("of a task file; default: by its name")
    p.devices_option("the set of devices")
    p.add_argument("-d", "--detach", action="store_true", help="submit, print the ids, and leave")
    p.add_argument("--dry-run", action="store_true", help="only say what would run and what would be skipped")
    p.add_argument("--strict", action="store_true", help="refuse what this host can never run, instead of a warning")
    p.add_argument("--freeze", action="store_true", help="run from a snapshot of the code; later edits do not reach it")
    p.json_option()
    _gates(p)
    _skipping(p)


def _gates(p: Parser) -> None:
    group = p.add_argument_group("rules, over what the files say")

    def gate(option: str, field: str, metavar: str, read: Callable[[str], Any] | None = None) -> None:
        rule = RULES[field]
        check, words = checked(read or spec.reader(rule.kind)), ", ".join(rule.kind.words)
        help = rule.what.removesuffix(", see below") + (words and f": {words}")
        group.add_argument(option, dest=field, type=check, metavar=metavar, help=help)

    gate("--min-memory", "min_free_mib", "MB", _megabytes)
    gate("--max-util", "max_utilization", "PERCENT")
    gate("--max-concurrent", "max_concurrent", "N")
    gate("--max-wait", "max_wait", "T")
    gate("--launch-delay", "start_interval", "T")
    gate("--policy", "choice", "NAME")
    group.add_argument("--share", action="store_true", help="several of these jobs may run on one GPU, as far as its memory goes")


def _skipping(p: Parser) -> None:
    skipping = p.add_argument_group("what was done before (one of them)")
    skipping.add_argument("--skip-done", action="store_true", help="skip it for plain job files too")
    skipping.add_argument("--redo", action="store_true", help="run all, done or not")
    skipping.add_argument("--redo-changed", action="store_true", help="run also what was done with other code")
    skipping.add_argument("--only-failed", action="store_true", help="run only what failed when it last ran")
    skipping.add_argument("--trust-logs", action="store_true", help="take a job whose log exists as done")


def _megabytes(text: str) -> int:
    """As nvidia-smi counts them."""
    return 0 if text.strip() == "0" else units.size_mib(text + "MiB" if text.strip().isdecimal() else text)


def options_of(args: Namespace, terminal: Terminal) -> Options:
    from jostle.experiments.skip import Rule
    from jostle.intake.options import Options

    if not args.files and not args.job_file:
        raise Usage("run: no file is given. `jostle run --help` shows an example")
    gates = {field: value for field in GATES if (value := getattr(args, field)) is not None}
    try:
        return Options(
            files=(*args.files, *args.job_file), suites=tuple(args.suite), mode=args.mode, devices=args.gpus,
            rules={**gates, "share": True} if args.share else gates, skip_done=args.skip_done, freeze=args.freeze,
            strict=args.strict,
            skip=Rule(redo=args.redo, redo_changed=args.redo_changed, trust_logs=args.trust_logs, only_failed=args.only_failed),
        )  # fmt: skip
    except Unfit as e:
        one, other = terminal.spelled(e.what), terminal.spelled(str(e.params["other"]))
        raise Usage(f"run: {one} does not go with {other}: expected one of them") from None


def run(args: Namespace, terminal: Terminal) -> int:
    from jostle.intake.batches import loaded, restrict

    options = options_of(args, terminal)
    batches = loaded(options, terminal)
    if args.dry_run:
        from jostle.cli.dryrun import shown

        return shown(batches, options, args.json, terminal)
    restrict(batches, options, terminal)
    if args.detach:
        return detached(batches, options, args.json, terminal)
    worst, feed = 0, None
    for k, batch in enumerate(batches):
        client = terminal.client(gpus=options.devices)
        last, feed = feed, signal_feed(terminal, gpus=options.devices, after=terminal.reader.last_seq())
        if last is not None and last.interrupted():
            terminal.tell("interrupted_before", names=", ".join(b["name"] or "" for b in batches[k:]))
            return INTERRUPTED
        code = run_batch(batch, client, feed, options, args.json, terminal)
        if code == INTERRUPTED:
            return code
        worst = max(worst, code)
    return worst


def run_batch(batch: dict[str, Any], client: Client, feed: Feed, options: Options, json: bool, terminal: Terminal) -> int:
    """A batch from its submit, or from where it stands, to its end."""
    from jostle.intake.submitting import taken

    person = None if json else Keyboard(terminal)
    hint = f". {terminal.message('asks')}" if person is not None and person.there() else ""
    receipt = taken(batch, client, options, terminal, owner=owner(), hint=hint)
    client.close()
    tell(receipt, batch, options, json, terminal, hint)
    if receipt.number is None:
        return 0
    feed.batch = receipt.number
    return follow(receipt.number, receipt.rows, feed, options, json, terminal, person)


def tell(receipt: Taken, batch: dict[str, Any], options: Options, json: bool, terminal: Terminal, hint: str = "") -> None:
    """What has become of it."""
    if json and receipt.number is None:
        terminal.put_json(receipt.plain())
    elif not json and (outcome := receipt.outcome(batch, options, terminal.language)):
        terminal.say(outcome + (hint if receipt.new else ""))


def detached(batches: list[dict[str, Any]], options: Options, json: bool, terminal: Terminal) -> int:
    from jostle.intake.submitting import taken_in_turn

    for batch, receipt in taken_in_turn(batches, options, terminal):
        if json:
            terminal.put_json(receipt.plain())
            continue
        tell(receipt, batch, options, json, terminal)
        if receipt.rows:
            terminal.put(render.span(receipt.rows[0]["id"], receipt.rows[-1]["id"]))
    return 0


def follow(
    batch: int, rows: list[dict[str, Any]], feed: Feed, options: Options, json: bool, terminal: Terminal, person: Keyboard | None
) -> int:  # fmt: skip
    from jostle.cli.watching import Events, Lines, LiveCards
    from jostle.follow.progress import Progress

    progress = Progress(rows, terminal.language)
    feed.start()
    screen = Events(terminal) if json else LiveCards(terminal, progress) if terminal.interactive else Lines(terminal, progress)
    followed = Followed(terminal, batch, progress, feed, screen, gpus=options.devices, person=person)
    stopped = followed.to_the_end()
    if followed.detached:
        terminal.tell("runs_on", batch=batch, summary=progress.summary())
        return INTERRUPTED
    if json:
        terminal.put_json({"schema": 1, "batch": batch, "ok": progress.succeeded, "counts": +progress.counts})
    else:
        terminal.tell("batch_summary", batch=batch, summary=progress.summary())
        tell_failures(terminal, progress)
    return INTERRUPTED if stopped else 0 if progress.succeeded else 1
