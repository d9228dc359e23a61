"""`jostle import [DIR|FILE]`: a workspace or task file of the source system as a job file of our own."""

from __future__ import annotations

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal


def import_options(p: Parser) -> None:
    p.example("""
        jostle import
        jostle import command/command_gpus_1.txt -o jobs.yaml
        jostle import ~/project/compete --mode multi -o jobs.yaml && jostle run jobs.yaml""")
    p.add_argument("source", nargs="?", default=".", metavar="DIR|FILE", help="a workspace (default: here), or a task file")
    p.mode_option("how to read it; default: by the name of the file")
    p.number("--config-index", help="which config of the workspace, from 0")
    p.add_argument("--config-file", metavar="FILE", help="its settings; default: config/gpu_manage.yaml")
    p.add_argument("--lenient", action="store_true", help="leave bad blocks out, with a warning")
    p.add_argument("-o", "--output", metavar="OUT", help="write a file instead of printing it")
    p.add_argument("--force", action="store_true", help="write over a file that exists")


def import_(args: Namespace, terminal: Terminal) -> int:
    from jostle.formats import jobwriter
    from jostle.intake.checking import count_queues
    from jostle.intake.files import as_job_file

    text, batch = as_job_file(
        terminal, args.source, mode=args.mode, index=args.config_index, config_file=args.config_file, lenient=args.lenient
    )  # fmt: skip
    if args.output is None or args.output == "-":
        terminal.put(text.removesuffix("\n"))
        return 0
    jobwriter.write(args.output, text, force=args.force)
    what = f"{render.count(len(batch['jobs']), 'job')}, {render.count(count_queues([batch]), 'queue')}"
    terminal.say(f"wrote {render.plain(args.output)}: {what}. Run it: jostle run {render.plain(args.output)}")
    return 0
