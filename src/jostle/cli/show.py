"""`jostle show ID` and `jostle why ID`: everything about one job."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.errors import Usage
from jostle.intake import ids
from jostle.views.story import Story, story
from jostle.views.why import Explained, explained
from jostle.wording import labels, sentences
from jostle.wording import rows as table_rows

MOST = 100  # jobs that `why` explains at once


def show_options(p: Parser) -> None:
    p.example("""
        jostle show 17
        jostle show last --json""")
    p.add_argument("id", metavar="ID", help=ids.WRITTEN_ONE)
    p.json_option()


def show(args: Namespace, terminal: Terminal) -> int:
    id = ids.single(args.id, lambda: terminal.reader)
    tale = story(terminal, id)
    say_silence([tale.why], terminal)
    (job,) = sentences.jobs([tale.why.job], terminal.language)
    events = [sentences.event(event, terminal.language) for event in tale.events]
    if args.json:
        terminal.put_json({"schema": 1, **tale.plain(), "job": job, "events": events})
        return 0
    if job["ended_at"] is None and not terminal.engine_runs():
        terminal.tell("no_engine")
    language = terminal.language
    runs = [table_rows.run(run, time.time()) for run in tale.runs]
    processes = [table_rows.process(process) for process in tale.processes]
    lines = [
        *fact_lines(job, tale, terminal),
        *table_lines("runs", runs, language, right=(0, 4, 5, 6), paint_column=1),
        *table_lines("processes", processes, language, columns=terminal.width, right=(0, 1, 2, 4, 5, 6)),
        *labels.event_lines(events, language),
    ]
    terminal.put("\n".join(lines))
    return 0


def say_silence(explanations: Sequence[Explained], terminal: Terminal) -> None:
    for explanation in explanations:
        if explanation.silent:
            terminal.tell("engine_silent", why=explanation.silent)


def why_options(p: Parser) -> None:
    p.example("""
        jostle why 17
        jostle why all              everything that has not ended
        JOSTLE_LANG=zh jostle why last""")
    p.add_argument("ids", nargs="+", metavar="ID", help=ids.WRITTEN)
    p.json_option()


def why(args: Namespace, terminal: Terminal) -> int:
    chosen = ids.unfinished(args.ids, lambda: terminal.reader, one_by_name)
    if len(chosen) > MOST:
        raise Usage(
            f"why: that is {len(chosen):,} jobs, and {MOST} at once are enough to read; `jostle ps --all` has a line for each"
        )
    if not chosen:
        terminal.tell("nothing_to_explain")
    explanations = [explained(terminal, id) for id in chosen]
    say_silence(explanations, terminal)
    unfinished = any(explanation.job["ended_at"] is None for explanation in explanations)
    engine = terminal.engine_runs() if args.json or unfinished else True
    if not engine and not args.json:
        terminal.tell("no_engine")
    if args.json:
        answers = [sentences.explained(explanation.plain(engine), terminal.language) for explanation in explanations]
        # who names one job gets the object, who may have named several gets a list
        single = ids.means_one(args.ids)
        terminal.put_json({"schema": 1, **answers[0]} if single else {"schema": 1, "jobs": answers})
        return 0
    jobs = sentences.jobs([explanation.job for explanation in explanations], terminal.language)
    for explanation, job in zip(explanations, jobs, strict=True):
        terminal.put("\n".join(map(render.plain, sentences.why_lines(job, explanation.behind, terminal.language))))
    return 0


def one_by_name(members: ids.Members) -> list[int]:
    """Who names a job gets one, as from `show`."""
    return ids.newest_of(members) if members.kind == "name" else ids.unfinished_of(members)


def fact_lines(job: dict[str, Any], history: Story, terminal: Terminal) -> list[str]:
    language = terminal.language
    run = history.runs[-1] if history.runs else None
    pairs = labels.facts(job, history.needs, history.code, run, time.time(), language)
    pairs += [("environment", render.plain(f"{name}={value}")) for name, value in history.env.items()]
    pairs += [("command", render.plain(line)) for command in job["commands"] for line in command.rstrip("\n").split("\n")]
    lines, last = [], ""
    for fact, text in pairs:
        if fact == "state":
            text = text.replace(job["state"], render.paint(job["state"], render.OF_STATE[job["state"]], terminal.colours), 1)
        lines.append(f"{render.pad(labels.label(fact, language) if fact != last else '', 13)} {text}")
        last = fact
    return lines


def table_lines(name: str, rows: Sequence[Sequence[str]], language: str, **shape: Any) -> list[str]:
    return ["", render.table(labels.heads(name, language), rows, **shape)] if rows else []
