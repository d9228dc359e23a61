"""`jostle validate FILE…`: the errors of job files, task files or a workspace, all at once, without running anything."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.cli import render

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.desk import Desk
    from jostle.cli.parse import Parser


def validate_options(p: Parser) -> None:
    p.example("""
        jostle validate jobs.yaml
        jostle validate command/command_gpus.txt""")
    p.add_argument("files", nargs="+", metavar="FILE", help="job files, or a task file (*.txt) or workspace")
    p.add_argument("--mode", choices=("single", "multi"), help="of a task file; default: by its name")
    p.json_option()


def validate(args: Namespace, desk: Desk) -> int:
    from jostle.cli.files import load
    from jostle.formats.flaws import BadFiles

    try:
        batch, warnings = load(args.files, args.mode)
    except BadFiles as e:
        if not args.json:
            raise
        flaws = [{"file": file, "line": line or None, "text": text} for file, line, text in e.flaws]
        desk.put_json({"schema": 1, "ok": False, "errors": flaws})
        return e.exit_code
    for warning in warnings:
        desk.say(f"warning: {warning}")
    warn_directories(batch["jobs"], desk)
    queues = len({job["queue"] for job in batch["jobs"] if job["queue"] is not None})
    if args.json:
        desk.put_json({"schema": 1, "ok": True, "errors": [], "jobs": len(batch["jobs"]), "queues": queues})
    else:
        desk.put(f"good: {render.count(len(batch['jobs']), 'job')}, {render.count(queues, 'queue')}")
    return 0


def warn_directories(jobs: list[dict[str, Any]], desk: Desk) -> None:
    """A directory that is not there is no error: an earlier job may make it."""
    for path in sorted({job["workdir"] for job in jobs}):
        if not os.path.isdir(path):
            desk.say(f"warning: workdir {render.plain(path)} does not exist; a job fails if it is not there when the job starts")
