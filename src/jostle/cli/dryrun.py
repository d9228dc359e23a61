"""`jostle run --dry-run`: what would run and what would not; without an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.cli import render
from jostle.intake.selection import selected, texts
from jostle.wording.labels import heads

if TYPE_CHECKING:
    from jostle.cli.terminal import Terminal
    from jostle.experiments.skip import Verdict
    from jostle.intake.options import Options

DOES = {"run": "run", "done": "done before", "log": "its log exists", "not_failed": "did not fail"}


def shown(batches: list[dict[str, Any]], options: Options, json: bool, terminal: Terminal) -> int:
    """What would run, and what would not; without an engine."""
    plain_jobs = []
    for batch in batches:
        selection = selected(batch, options, terminal)
        if json:
            plain_jobs += selection.plain(batch)
            continue
        unfinished = terminal.reader.unfinished_batch(batch["key"])
        if unfinished is not None:
            terminal.tell("would_attach", batch=unfinished)
        rows = [_line(job, verdict) for job, verdict in zip(selection.jobs, selection.verdicts, strict=True)]
        head = heads("dry_run", terminal.language)
        terminal.put(render.table(head, rows, columns=terminal.width, colours=terminal.colours))
        rest = selection.left_out(terminal.language)
        name = f"{render.plain(batch['name'])}: " if batch["name"] else ""
        would = name + terminal.message("would_run", run=selection.count("run"), n=len(selection.jobs))
        terminal.say(would + (f" ({rest})" if rest else ""))
    if json:
        terminal.put_json({"schema": 1, "jobs": plain_jobs})
    return 0


def _line(job: dict[str, Any], verdict: Verdict) -> tuple[str, str, str]:
    by = f" by job {verdict.by[0]}" if verdict.by else ""
    by += f" with other code ({verdict.code[0]} → {verdict.code[1]})" if verdict.code else ""
    return job["name"], DOES[verdict.what] + by, " && ".join(texts(job))
