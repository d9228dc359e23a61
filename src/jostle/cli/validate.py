"""`jostle validate FILE…`: the errors of job files, task files or workspaces, all at once, without running anything.

With `--expand` also what would run: each job of a sweep or of suites, with its command.
"""

from __future__ import annotations

from typing import Any

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.errors import Invalid
from jostle.wording.labels import heads, job_request

SUBMITTED = ("name", "kind", "policy", "about", "jobs")  # of a batch


def validate_options(p: Parser) -> None:
    p.example("""
        jostle validate jobs.yaml
        jostle validate --expand sweep.yaml --suite gamma
        jostle validate command/*.txt""")
    p.add_argument("files", nargs="+", metavar="FILE", help="job files, sweeps or suites; task files (*.txt) or workspaces")
    p.add_argument("--expand", action="store_true", help="show each job that would run")
    p.add_argument("--suite", action="append", default=[], metavar="NAME", help="only this suite; may be given several times")
    p.mode_option("of a task file; default: by its name")
    p.json_option()


def validate(args: Namespace, terminal: Terminal) -> int:
    from jostle.intake.checking import count_queues, validated, verdict

    if args.json:
        answer, batches = verdict(args.files, terminal, mode=args.mode, suites=args.suite)
        if args.expand and answer["ok"]:
            answer["batches"] = [{key: batch[key] for key in SUBMITTED} for batch in batches]
        terminal.put_json(answer)
        return 0 if answer["ok"] else Invalid.exit_code
    batches, checked = validated(args.files, terminal, mode=args.mode, suites=args.suite)
    if args.expand:
        for batch in batches:
            terminal.put(expanded(batch, terminal.width, terminal.colours, terminal.language))
    many = f", {len(batches)} batches" if len(batches) > 1 else ""
    jobs, queues = sum(len(batch["jobs"]) for batch in batches), count_queues(batches)
    terminal.put(f"good: {render.count(jobs, 'job')}, {render.count(queues, 'queue')}{many}")
    if not checked:
        terminal.tell("not_checked")
    return 0


def expanded(batch: dict[str, Any], columns: int, colours: bool, language: str) -> str:
    """What would run, one line per job; names are not cut, for they are what people look for."""
    from jostle.intake.selection import texts

    rows = [[str(k), job["name"], job_request(job), " && ".join(texts(job))] for k, job in enumerate(batch["jobs"], 1)]
    rules = ", ".join(f"{key} {value}" for key, value in batch["policy"].items())
    head = f"{render.plain(batch['name'])}: {render.count(len(rows), 'job')}" + (f" ({render.plain(rules)})" if rules else "")
    table = render.table(heads("expanded", language), rows, columns=columns, right=(0,), colours=colours)
    return render.paint(head, "bold", colours) + "\n" + table + "\n"
