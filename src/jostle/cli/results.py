"""`jostle results [BATCH|FILE|DIR …]`: metrics out of logs, over seeds: mean ± deviation, n, values, the best, what is missing.

Works without an engine, and on logs that jostle did not write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.errors import Unfit, Usage

if TYPE_CHECKING:
    from jostle.experiments.grouping import Summary
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
    from jostle.experiments import asked, tables
    from jostle.views.results import query
    from jostle.views.results import results as view

    try:
        sought = query(vars(args))
        look = tables.Look(decimals=sought.decimals, rename=asked.renames(args.rename))
    except Unfit as e:
        raise Usage(f"results: --{e.what} {e.text}") from None
    seen = view(terminal, sought)
    for code, values in seen.headings(terminal.reader, named=bool(args.targets and args.json)):
        terminal.tell(code, **values)
    if args.plot:
        from jostle.experiments import plot

        for note in plot.save(args.plot, seen.summary, look, args.x):
            terminal.tell("warning", text=note)
    elif args.x:
        raise Usage("results: --x is the axis of a plot; expected --plot FILE with it")
    show(terminal, seen.summary, look, "json" if args.json else args.format)
    if advice := seen.advice(args.metric):
        terminal.tell(advice)
    return 0 if seen.summary.counted else 1


def show(terminal: Terminal, summary: Summary, look: Look, form: str) -> None:
    from jostle.experiments import tables

    if form == "json":
        terminal.put_json(tables.as_json(summary, look, terminal.language))
        return
    if form == "table":
        show_table(terminal, summary, look)
    else:
        terminal.put(tables.FORMATS[form](summary, look))
    for code, values in tables.beside(summary, form, terminal.language):
        terminal.tell(code, **values)


def show_table(terminal: Terminal, summary: Summary, look: Look) -> None:
    from jostle.experiments import tables

    head, rows = tables.text_cells(summary, look)
    first = len(head) - len(tables.layout(summary).columns) - 2
    terminal.put(render.table(head, rows, columns=terminal.width, right=range(first, len(head) - 1)))
    if summary.missing:
        terminal.put("\n" + terminal.message("results_missing", n=len(summary.missing)))
        short = terminal.interactive and len(summary.missing) > TOLD
        for missing in summary.missing[: TOLD if short else None]:
            terminal.put(render.plain(f"  {tables.why(missing, terminal.language)}"))
        if short:
            terminal.put("  " + terminal.message("results_more", n=len(summary.missing) - TOLD))
