"""`jostle results [BATCH|FILE|DIR …]`: metrics out of logs, over seeds: mean ± deviation, n, values, the best, what is missing.

Works without an engine, and on logs that jostle did not write.
"""

from __future__ import annotations

import math
import os
import re
from typing import TYPE_CHECKING

from jostle.cli import render
from jostle.errors import NotFound, Usage

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal
    from jostle.experiments.grouping import Summary, Trial
    from jostle.experiments.tables import Look

FORMATS = ("table", "markdown", "latex", "csv", "json")
TOLD = 50  # of what is missing, in a table for people


def results_options(p: Parser) -> None:
    p.example("""
        jostle results                       the newest batch that has logs
        jostle results jobs_multi_seed.yaml --across config --format latex --rename FedETF=FAFI
        jostle results logs/multi_seed       logs that anybody wrote
        jostle results 7 --metric accuracy --metric 'loss=val loss: ([0-9.]+)'
        jostle results jobs_gamma.yaml --plot gamma.png --x gamma_reg""")
    p.add_argument("targets", nargs="*", metavar="BATCH|FILE|DIR",
                   help="a batch, a file that was run, a log or a folder (default: the newest batch with logs)")  # fmt: skip
    p.add_argument("--last", metavar="N", help="the newest N batches, at all or of each FILE (default: 1)")
    p.add_argument("-m", "--metric", action="append", default=[], metavar="NAME[=REGEX]",
                   help="what to look for; without REGEX a key of JSON lines; repeatable, also for one name")  # fmt: skip
    p.add_argument("--seed-key", metavar="KEYS", default="seed", help="what runs of one group differ in (default: seed)")
    p.add_argument("--by", metavar="KEYS", help="group by these keys only, instead of all but the seed")
    p.add_argument("--across", metavar="KEY", help="a column for each value of this key, each with its own best")
    p.add_argument("--best", action="append", default=[], metavar="[METRIC=]max|min",
                   help="which is the best (default: max, but min for a loss, an error or a time)")  # fmt: skip
    p.add_argument("--any-state", action="store_true", help="count what failed or unfinished runs have printed, too")
    p.add_argument("--names", metavar="REGEX", help="what the name of a log says (default: CONFIG_ALGORITHM_seedN)")
    p.add_argument("--tail", metavar="SIZE", help="look only at the end of each log, e.g. 64KiB")
    p.add_argument("--format", choices=FORMATS, default="table", help="how to print it (default: table)")
    p.add_argument("--decimals", metavar="N", default="2", help="digits after the point (default: 2)")
    p.add_argument("--scale", action="append", default=[], metavar="[METRIC=]X", help="multiply values, e.g. 100 for per cent")
    p.add_argument("--rename", action="append", default=[], metavar="OLD=NEW", help="show a value, key or metric by another name")
    p.add_argument("--plot", metavar="FILE", help="also draw it: .png, .svg or .pdf (needs matplotlib)")
    p.add_argument("--x", metavar="KEY", help="the key along the axis of the plot; numbers make a line")
    p.json_option()


def results(args: Namespace, terminal: Terminal) -> int:
    from jostle.experiments import collect, grouping, metrics, tables

    wanted = metrics.parsed(args.metric)
    names = [metric.name for metric in wanted]
    look = tables.Look(decimals=number(args.decimals, "--decimals", 0, 15), rename=renames(args.rename))
    best, tail = directions(args.best, names), size(args.tail)
    factors = scales(args.scale, names)
    trials, _ = collect.measured(chosen(args, terminal), wanted, tail, factors)
    seeds = listed(args.seed_key)
    found = grouping.summary(
        trials, names, seed_keys=seeds, by=listed(args.by) if args.by is not None else None, best=best, across=args.across
    )
    if args.plot:
        from jostle.experiments import plot

        notes = plot.save(args.plot, found, look, args.x)
        for note in notes:
            terminal.say(f"warning: {note}")
    elif args.x:
        raise Usage("results: --x is the axis of a plot; expected --plot FILE with it")
    show(terminal, found, look, "json" if args.json else args.format)
    if not found.counted and any(one.why.startswith("no line") for one in found.missing):
        advise(terminal, args.metric)
    return 0 if found.counted else 1


# --- what is meant


def chosen(args: Namespace, terminal: Terminal) -> list[Trial]:
    from jostle.experiments import collect

    names = pattern(args.names or collect.NAMES)
    trials: list[Trial] = []
    numbers: list[int] = []
    others: list[tuple[str | None, list[Trial]]] = []
    last = number(args.last or "1", "--last", 1, 10**9)
    if not args.targets:
        numbers = collect.newest_batches(terminal.reader, last)
        if not numbers:
            raise NotFound("there is no batch yet: `jostle run FILE` makes one, and `jostle results DIR` reads logs")
    for target in args.targets:
        if target.isascii() and target.isdigit() and len(target) < 16 and not os.path.exists(target):
            numbers.append(int(target))
        elif os.path.isdir(target):
            trials += collect.of_logs(target, names)
        elif of_file(target, last, names, numbers, others, terminal):
            if left := collect.left_behind(terminal.reader, target, last):
                lacking = f"an older batch of {target} has {render.count(left, 'job')} that this one has not"
                terminal.say(f"note: {lacking}; --last {last + 1} takes both")
        elif not os.path.exists(target):
            raise NotFound(f"there is no batch, file or folder {target!r}")
        elif target.lower().endswith(collect.SPECS):
            raise NotFound(f"there is no batch of {target}, and none has done what it says: `jostle run {target}` makes one")
        else:
            trials += collect.of_logs(target, names)
    for one in numbers if not (args.targets and args.json) else ():
        terminal.say(render.plain(collect.headline(terminal.reader, one)))
    return trials + collect.of_batches(terminal.reader, numbers, names, args.any_state, others)


def of_file(
    target: str, last: int, names: re.Pattern[str], numbers: list[int], others: list[tuple[str | None, list[Trial]]],
    terminal: Terminal,
) -> bool:  # fmt: skip
    """Puts the batches of a file to the numbers, and what other batches have done for it to the others; False: nothing."""
    from jostle.experiments import collect

    made = collect.batches_of_file(terminal.reader, target, last)
    if not os.path.isfile(target) or not target.lower().endswith(collect.SPECS):
        numbers += made
        return bool(made)
    from jostle.experiments.otherbatches import done_by_other_batches

    found = done_by_other_batches(terminal.reader, target, made, names, instead=last == 1)
    numbers += [number for number in made if number not in found.old]
    others += found.done
    for number in found.old:
        terminal.say(f"note: batch {number} is of an older {target}; what it says now was done by other batches, which count")
    if found.never and (made or found.done):
        terminal.say(f"note: nothing of {render.plain(', '.join(found.never))} in {target} has run")
    return bool(made or found.done)


def pattern(regex: str) -> re.Pattern[str]:
    try:
        return re.compile(regex)
    except re.error as e:
        raise Usage(f"results: --names {regex!r} is no regular expression: {e}") from None


def number(text: str, option: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12 and low <= int(text) <= high):
        raise Usage(f"results: {option} {text!r} is not understood; expected a number from {low} to {high}")
    return int(text)


def size(text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,15})\s*(|[kmg])(?:i?b)?", text.strip().lower())
    if match is None or not int(match[1]):
        raise Usage(f"results: --tail {text!r} is not understood; expected a size such as 64KiB or 1MiB")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2]]


def listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def renames(texts: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (old, given, _) in zip(texts, pairs, strict=True):
        if not old or not given:
            raise Usage(f"results: --rename {text!r} is not understood; expected OLD=NEW")
    return {old: new for old, _, new in pairs}


def scales(texts: list[str], names: list[str]) -> dict[str, float]:
    """By metric; one that names none is for all."""
    found: dict[str, float] = {}
    for text in texts:
        name, given, said = text.rpartition("=")
        try:
            factor = float(said)
        except ValueError:
            factor = 0.0
        if not factor or not math.isfinite(factor) or (given and name not in names):
            expected = f"a number such as 100, or METRIC=100 with METRIC of {', '.join(names)}"
            raise Usage(f"results: --scale {text!r} is not understood; expected {expected}")
        found |= {name: factor} if given else dict.fromkeys(names, factor)
    return found


def directions(texts: list[str], names: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, given, way = text.rpartition("=")
        if way not in ("max", "min") or (given and name not in names):
            known = ", ".join(names)
            raise Usage(f"results: --best {text!r} is not understood; expected max, min, or METRIC=max with METRIC of {known}")
        found |= {name: way} if given else dict.fromkeys(names, way)
    return found


# --- showing


def show(terminal: Terminal, found: Summary, look: Look, form: str) -> None:
    from jostle.experiments import tables

    if form == "json":
        terminal.put_json(tables.as_json(found, look))
        return
    if form == "table":
        show_table(terminal, found, look)
    else:
        terminal.put(tables.FORMATS[form](found, look))
    if form == "csv":
        for one in found.missing:
            terminal.say(render.plain(f"not counted: {tables.why(one)}"))
    elif found.missing and form != "table":
        terminal.say(f"{render.count(len(found.missing), 'run')} not counted; they are listed below the table")
    for note in found.notes:
        terminal.say(render.plain(f"note: {note}"))


def advise(terminal: Terminal, given: list[str]) -> None:
    """Where no log has any line that was looked for: how to look for another."""
    another = "`-m 'acc=acc: ([0-9.]+)'` looks for the number behind `acc: `"
    if not given:
        terminal.say(f"note: without -m it is `Test Accuracy: 91.2` and the like that is looked for; {another}")
    elif not any("=" in text for text in given):
        terminal.say(f"note: -m NAME alone is a key of JSON lines; {another}")


def show_table(terminal: Terminal, found: Summary, look: Look) -> None:
    from jostle.experiments import tables

    head, rows = tables.text_cells(found, look)
    first = len(head) - len(tables.layout(found).columns) - 2
    terminal.put(render.table(head, rows, columns=terminal.width, right=range(first, len(head) - 1)))
    if found.missing:
        terminal.put(f"\nnot counted: {len(found.missing)}")
        short = terminal.interactive and len(found.missing) > TOLD
        for one in found.missing[: TOLD if short else None]:
            terminal.put(render.plain(f"  {tables.why(one)}"))
        if short:
            terminal.put(f"  … and {len(found.missing) - TOLD:,} more; `--json` lists them")
