"""`jostle show ID` and `jostle why ID`: everything about one job."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jostle import units
from jostle.cli import render
from jostle.core.states import UNFINISHED
from jostle.errors import Usage
from jostle.intake import ids
from jostle.views.story import story
from jostle.views.why import explained
from jostle.wording import sentences

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal
    from jostle.views.why import Explained

MOST = 100  # jobs that `why` explains at once


def show_options(p: Parser) -> None:
    p.example("""
        jostle show 17
        jostle show last --json""")
    p.add_argument("id", metavar="ID", help=ids.WRITTEN_ONE)
    p.json_option()


def show(args: Namespace, terminal: Terminal) -> int:
    id = ids.one(args.id, lambda: terminal.reader)
    told = story(terminal, id)
    say_silence([told.why], terminal)
    (job,) = sentences.jobs([told.why.job], terminal.language)
    events = [sentences.event(event, terminal.language) for event in told.events]
    if args.json:
        terminal.put_json({"schema": 1, **told.plain(), "job": job, "events": events})
        return 0
    if job["ended_at"] is None and not terminal.engine_runs():
        terminal.tell("no_engine")
    known = {**job, "env": told.env, "code": told.code, "inputs": told.runs[-1]["inputs"] if told.runs else None}
    terminal.put("\n".join([*facts(known, terminal, told.needs), *run_lines(told.runs), *event_lines(events)]))
    return 0


def say_silence(found: Sequence[Explained], terminal: Terminal) -> None:
    for one in found:
        if one.silent:
            terminal.tell("engine_silent", why=one.silent)


def why_options(p: Parser) -> None:
    p.example("""
        jostle why 17
        jostle why all              everything that has not ended
        JOSTLE_LANG=zh jostle why last""")
    p.add_argument("ids", nargs="+", metavar="ID", help=ids.WRITTEN)
    p.json_option()


def why(args: Namespace, terminal: Terminal) -> int:
    chosen = ids.jobs(args.ids, lambda: terminal.reader, lambda: [row["id"] for row in terminal.reader.jobs(states=UNFINISHED)])
    if len(chosen) > MOST:
        raise Usage(
            f"why: that is {len(chosen):,} jobs, and {MOST} at once are enough to read; `jostle ps --all` has a line for each"
        )
    if not chosen:
        terminal.say("nothing to explain: no job is meant")
    found = [explained(terminal, id) for id in chosen]
    say_silence(found, terminal)
    engine = terminal.engine_runs() if args.json or any(one.job["ended_at"] is None for one in found) else True
    if not engine and not args.json:
        terminal.tell("no_engine")
    if args.json:
        told = [sentences.explained(one.plain(engine), terminal.language) for one in found]
        # who names one job gets the object, who may have named several gets a list
        single = len(args.ids) == 1 and (args.ids[0] == "last" or args.ids[0].isdecimal())
        terminal.put_json({"schema": 1, **told[0]} if single else {"schema": 1, "jobs": told})
        return 0
    for one, job in zip(found, sentences.jobs([one.job for one in found], terminal.language), strict=True):
        terminal.put("\n".join(map(render.plain, why_lines(job, one.behind, terminal.language))))
    return 0


def why_lines(job: dict[str, Any], behind: int, language: str = "en") -> list[str]:
    zh = language == "zh"
    lines = [sentences.headline(job, render.plain(job["name"]), render.gpus(job["gpus"]) if job["gpus"] else "", language)]
    if behind:
        come = render.count(behind, "job like it comes", "jobs like it come")
        lines.append(f"  前面还有 {behind:,} 个同类任务" if zh else f"  {come} before it")
    for refusal in (job["reason"] or {}).get("gpus") or []:
        lines.append("  " + sentences.against(refusal, refusal["text"], language))
    if job["state"] == "failed" and job["attempt"]:
        lines.append(f"  用 `jostle logs {job['id']}` 查看输出" if zh else f"  `jostle logs {job['id']}` shows its output")
    return lines


def facts(job: dict[str, Any], terminal: Terminal, needs: Sequence[Mapping[str, Any]]) -> list[str]:
    state = render.paint(job["state"], render.OF_STATE.get(job["state"], ""), terminal.colours)
    now = time.time()
    pairs = [
        ("job", f"{job['id']}  {render.plain(job['name'])}"),
        ("state", f"{state}  {render.plain(sentences.beside(job['reason']))}".rstrip()),
        ("batch, queue", f"{job['batch']}, {render.plain(job['queue'] or 'none')}"),
        ("asks for", request(job)),
        ("comes after", render.plain(", ".join(map(need, needs)) or "-")),
        ("repeats", f"job {job['retry_of']}" if job.get("retry_of") else "-"),
        ("GPUs", render.gpus(job["gpus"])),
        ("submitted", units.show_instant(job["submitted_at"], now)),
        ("begin", units.show_instant(job.get("begin_at"), now)),
        ("started", units.show_instant(job["started_at"], now)),
        ("ended", units.show_instant(job["ended_at"], now)),
        ("exit code", "-" if job["exit_code"] is None else str(job["exit_code"])),
        ("error", render.plain(job["error_type"] or "-")),
        ("tries", str(job["attempt"] or "-")),
        ("retry", again(job.get("retry"))),
        ("priority", str(job.get("priority", 0))),
        ("time limit", units.show_duration(job.get("time_limit"))),
        ("directory", render.plain(job.get("workdir") or "-")),
        ("log", render.plain(job.get("log") or "-")),
        ("code", shown_code(job.get("code"))),
        ("its files", FILES.get(job.get("inputs") or "", "-")),
        ("tags", render.plain(", ".join(job.get("tags") or ()) or "-")),
    ]  # fmt: skip
    variables = [render.plain(f"{name}={value}") for name, value in (job.get("env") or {}).items()]
    pairs += [("environment" if k == 0 else "", text) for k, text in enumerate(variables)]
    lines = [f"{key:<13} {value}" for key, value in pairs if value != "-"]
    for k, command in enumerate(job["commands"]):
        first, *rest = command.rstrip("\n").split("\n")
        lines.append(f"{'command' if k == 0 else '':<13} {render.plain(first)}")
        lines += [f"{'':<13} {render.plain(line)}" for line in rest]
    return lines


# whether the files that a job is made of were those of its submit when it began
FILES = {"other": "had changed since the submit when it began", "unknown": "cannot be told to be those of the submit"}


def shown_code(code: dict[str, Any] | None) -> str:
    from jostle.experiments.code import shown

    return shown(code) if code else "-"


def need(row: Mapping[str, Any]) -> str:
    """`12 prepare (running)`, `13 train (queued, however it ends)`."""
    return f"{row['id']} {row['name']} ({row['state']}{', however it ends' if row['any'] else ''})"


def again(retry: dict[str, Any] | None) -> str:
    """`at most 3 times; a pause of 10m after every 3 failures`."""
    if not retry or retry["max"] == 0:
        return "-"
    most = "without limit" if retry["max"] is None else f"at most {render.count(retry['max'], 'time')}"
    pause, first = retry.get("backoff"), retry.get("backoff_after")
    if not pause or not first or (retry["max"] is not None and first > retry["max"]):
        return most  # there is none, or it would never come: after the last failure nothing is waited for
    return f"{most}; a pause of {units.show_duration(pause)} after every {render.count(first, 'failure')}"


def request(job: dict[str, Any]) -> str:
    """`1 GPU, the whole card`, `2 GPUs with 20 GiB each`, `1-4 GPUs, whole cards`."""
    low, high = job["gpu_request"]
    if not high:
        return "no GPU"
    cards = f"{low} GPU{'s' * (low != 1)}" if low == high else f"{low}-{high} GPUs"
    if not job["memory_mib"]:
        return cards + (", the whole card" if high == 1 else ", whole cards")
    size = units.show_size(job["memory_mib"]) + (" each" if high > 1 else "")
    return f"{cards} with {size}" + (", shared with other jobs" if job.get("share") else "")


def run_lines(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    if not runs:
        return []
    rows = [
        (str(r["n"]), r["outcome"] or r["state"], render.gpus(r["gpus"]), units.show_instant(r["started_at"]), took(r),
         "-" if r["exit_code"] is None else str(r["exit_code"]), units.show_size(r["peak_mib"]), r["error_type"] or "", r["log"])
        for r in runs
    ]  # fmt: skip
    head = ("RUN", "STATE", "GPUS", "STARTED", "TIME", "EXIT", "PEAK", "ERROR", "LOG")
    return ["", render.table(head, rows, right=(0, 4, 5, 6), paint_column=1)]


def took(run: Mapping[str, Any]) -> str:
    return units.show_duration(time.time() - run["started_at"] if run["ended_at"] is None else run["ran_s"])


CARD_KEYS = ("gpu", "uuid", "gpus", "uuids")


def cards_of(data: dict[str, Any]) -> str:
    """The cards that an event is about: `GPU 0 (GPU-8f1c…), 1 (GPU-77ab…)`; "": none, or they were told by index alone."""
    indices, uuids = (data["gpus"], data["uuids"]) if "uuids" in data else ([data.get("gpu")], [data.get("uuid")])
    known = [f"{index} ({uuid})" for index, uuid in zip(indices, uuids, strict=False) if uuid and index is not None]
    return f"GPU {', '.join(known)}" if known else ""


def event_lines(events: list[dict[str, Any]]) -> list[str]:
    lines = [""] if events else []
    for event in events[-50:]:
        data, reason = event["data"], event["data"].get("reason")
        cards = cards_of(data)
        told = {key: value for key, value in data.items() if not isinstance(value, dict) and value not in (None, [])}
        shown = [f"{key} {value}" for key, value in told.items() if not (cards and key in CARD_KEYS)]
        said = sentences.beside(reason)
        said = ": ".join(part for part in (cards, said or ", ".join(shown)) if part)
        run = f" (run {event['run']})" if event["run"] else ""
        lines.append(render.plain(f"{units.show_instant(event['at'])}  {event['kind']}{run}{': ' + said if said else ''}"))
    return lines
