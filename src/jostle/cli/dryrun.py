"""`jostle run --dry-run`: what would run and what would not; without an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.cli import render
from jostle.cli.terminal import Terminal
from jostle.intake.selection import planned, selected
from jostle.wording.labels import heads
from jostle.wording.rows import planned as planned_row

if TYPE_CHECKING:
    from jostle.intake.options import Options


def shown(batches: list[dict[str, Any]], options: Options, json: bool, terminal: Terminal) -> int:
    """What would run, and what would not; without an engine."""
    if json:
        terminal.put_json(planned(batches, options, terminal))
        return 0
    for batch in batches:
        selection = selected(batch, options, terminal)
        unfinished = terminal.reader.unfinished_batch(batch["key"])
        if unfinished is not None:
            terminal.tell("would_attach", batch=unfinished)
        head = heads("dry_run", terminal.language)
        rows = [planned_row(job, terminal.language) for job in selection.plain(batch)]
        terminal.put(render.table(head, rows, columns=terminal.width, colours=terminal.colours))
        rest = selection.left_out(terminal.language)
        name = f"{render.plain(batch['name'])}: " if batch["name"] else ""
        would = name + terminal.message("would_run", run=selection.count("run"), n=len(selection.jobs))
        terminal.say(would + (f" ({rest})" if rest else ""))
    return 0
