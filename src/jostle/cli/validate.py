"""`jostle validate FILE…`: the errors of job files, task files or workspaces, all at once, without running anything.

With `--expand` also what would run: each job of a sweep or of suites, with its command.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.cli import render
from jostle.errors import JostleError

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.desk import Desk
    from jostle.cli.parse import Parser
    from jostle.client import Client


def validate_options(p: Parser) -> None:
    p.example("""
        jostle validate jobs.yaml
        jostle validate --expand sweep.yaml --suite gamma
        jostle validate command/*.txt""")
    p.add_argument("files", nargs="+", metavar="FILE", help="job files, sweeps or suites; task files (*.txt) or workspaces")
    p.add_argument("--expand", action="store_true", help="show each job that would run")
    p.add_argument("--suite", action="append", default=[], metavar="NAME", help="only this suite; may be given several times")
    p.add_argument("--mode", choices=("single", "multi"), help="of a task file; default: by its name")
    p.json_option()


def validate(args: Namespace, desk: Desk) -> int:
    from jostle.formats.flaws import BadFiles
    from jostle.intake.files import each

    try:
        found, warnings = each(args.files, args.mode, args.suite)
    except BadFiles as e:
        if not args.json:
            raise
        for warning in e.warnings:
            desk.say(f"warning: {warning}")
        flaws = [{"file": file, "line": line or None, "text": text} for file, line, text in e.flaws]
        desk.put_json({"schema": 1, "ok": False, "errors": flaws})
        return e.exit_code
    for warning in warnings:
        desk.say(f"warning: {warning}")
    jobs = [job for batch in found for job in batch["jobs"]]
    warn_directories(jobs, desk)
    checked = check_host(found, desk)
    queues = len({
        (k if batch["queues"] == "own" else None, job["queue"])
        for k, batch in enumerate(found) for job in batch["jobs"] if job["queue"] is not None
    })  # fmt: skip
    if args.json:
        shown = {"batches": [as_data(batch) for batch in found]} if args.expand else {}
        told = {"jobs": len(jobs), "queues": queues, "host_checked": checked, **shown}
        desk.put_json({"schema": 1, "ok": True, "errors": [], **told})
        return 0
    if args.expand:
        for batch in found:
            desk.put(expanded(batch, desk.width, desk.colours))
    many = f", {len(found)} batches" if len(found) > 1 else ""
    desk.put(f"good: {render.count(len(jobs), 'job')}, {render.count(queues, 'queue')}{many}")
    if not checked:
        desk.say("not checked: whether this host's GPUs can ever run them; no engine that has read them runs (`jostle up`)")
    return 0


def check_host(batches: list[dict[str, Any]], desk: Desk) -> bool:
    """Asks an engine, if one runs, what can never run here; whether it could tell."""
    client = desk.engine_if_any()
    if client is None:
        return False
    try:
        told = [_could_run(batch, client, desk) for batch in batches]
        return all(told)
    except JostleError:
        return False  # an older engine
    finally:
        client.close()


def _could_run(batch: dict[str, Any], client: Client, desk: Desk) -> bool:
    from jostle.wording.sentences import never

    keys = ("commands", "name", "workdir", "gpus", "memory_mib", "share")
    jobs = [{key: job[key] for key in keys} for job in batch["jobs"]]
    if not jobs:
        return True
    answer = client.call("check", batch={"policy": batch["policy"]}, jobs=jobs)
    for line in never(answer, desk.language):
        desk.say(line.replace("warning: ", f"warning: {render.plain(batch['name'] or '')}: ", 1))
    return bool(answer["checked"])


def as_data(batch: dict[str, Any]) -> dict[str, Any]:
    """A batch as it would be submitted."""
    return {**{key: batch[key] for key in ("name", "kind", "policy", "about")}, "jobs": batch["jobs"]}


def expanded(batch: dict[str, Any], columns: int, colours: bool) -> str:
    """What would run, one line per job; names are not cut, for they are what people look for."""
    from shlex import join

    rows = [[str(k), job["name"], asked(job), " && ".join(c if isinstance(c, str) else join(c) for c in job["commands"])]
            for k, job in enumerate(batch["jobs"], 1)]  # fmt: skip
    rules = ", ".join(f"{key} {value}" for key, value in batch["policy"].items())
    head = f"{render.plain(batch['name'])}: {render.count(len(rows), 'job')}" + (f" ({render.plain(rules)})" if rules else "")
    return render.paint(head, "bold", colours) + "\n" + render.table(["#", "NAME", "ASKS", "COMMAND"], rows, columns=columns,
                                                                     right=(0,), colours=colours) + "\n"  # fmt: skip


def asked(job: dict[str, Any]) -> str:
    """`1 × 8000 MiB`: the cards a job asks for."""
    low, high = job["gpus"]
    if high == 0:
        return "no GPU"
    memory = "whole" if job["memory_mib"] is None else f"{job['memory_mib']} MiB"
    return f"{low if low == high else f'{low}-{high}'} × {memory}" + (" shared" if job["share"] else "")


def warn_directories(jobs: list[dict[str, Any]], desk: Desk) -> None:
    """A directory that is not there is no error: an earlier job may make it."""
    for path in sorted({job["workdir"] for job in jobs}):
        if not os.path.isdir(path):
            desk.say(f"warning: workdir {render.plain(path)} does not exist; a job fails if it is not there when the job starts")
