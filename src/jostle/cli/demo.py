"""`jostle demo`: queues of jobs compete with scripted strangers for four simulated GPUs, live. It ends by itself."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from jostle.cli import render

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal

def demo_options(p: Parser) -> None:
    p.example("jostle demo")


def demo(args: Namespace, terminal: Terminal) -> int:
    from jostle.demo import STORY, outcome, stage

    with stage() as (engine, reader):
        terminal.put(STORY)
        follow(engine, reader, terminal)
        end = outcome(reader)
    terminal.put(
        f"\n{end.succeeded} of {end.jobs} jobs succeeded in {end.took_s:.1f} s with {end.tries} runs; "
        f"whole cards given out twice: {end.clashes}.\n"
        "Next: jostle up --gpus sim:4x24, jostle add -- CMD, jostle ps, jostle why ID; on a real server leave out --gpus."
    )
    return 0 if end.succeeded == end.jobs else 1


def follow(engine: Any, reader: Any, terminal: Terminal) -> None:
    """Draws the screen again and again on a terminal; elsewhere prints a line for each thing that happens."""
    seq, drawn, began = 0, 0, time.monotonic()
    while True:
        events = reader.events(after=seq)
        seq = events[-1]["seq"] if events else seq
        shown_now = (engine.call("gpus")["gpus"], engine.call("reasons")) if terminal.interactive else None
        rows = reader.jobs()  # the last: a job that has started meanwhile does not wait
        if shown_now is not None:
            lines = screen(shown_now[0], rows, shown_now[1], terminal)
            sys.stdout.write(f"\x1b[{drawn}F\x1b[J" * bool(drawn) + "\n".join(lines) + "\n")
            sys.stdout.flush()
            drawn = len(lines)
        else:
            names = {row["id"]: row["name"] for row in rows}
            for text in filter(None, (told(e, names) for e in events)):
                terminal.put(f"{time.monotonic() - began:5.1f}s  {text}")
        if any(e["kind"] == "batch_ended" for e in events) or time.monotonic() - began > 120:
            return
        time.sleep(0.2)


def told(event: dict[str, Any], names: dict[int, str]) -> str | None:
    name, data = names.get(event["job"], ""), event["data"]
    if event["kind"] == "starting":
        return f"{name} starts on GPU {render.gpus(data['gpus'])}"
    if event["kind"] == "requeued":
        return f"{name} failed ({data.get('error_type')}) and will be tried again"
    return f"{name} {event['kind']}" if event["kind"] in ("succeeded", "failed", "skipped") else None


def screen(gpus: list[dict[str, Any]], rows: list[dict[str, Any]], reasons: dict[str, Any], terminal: Terminal) -> list[str]:
    from jostle.wording.sentences import worded

    names = {row["id"]: row["name"] for row in rows}
    lines = [""]
    for g in gpus:
        lines.append(card(g, names, terminal))
    lines.append("")
    for queue in ("cifar", "svhn", None):
        mine = "  ".join(piece(row, terminal) for row in rows if row["queue"] == queue)
        lines.append(f"{queue or 'free':<6} {mine}")
    waiting = next((row for row in rows if row["state"] == "queued" and row["ready"] == 1), None)
    why = reasons["shapes"].get(str(waiting["shape"])) if waiting else None
    reason_line = f"why {waiting['name']} waits: {worded(why, terminal.language)['text']}" if waiting and why else ""
    return [*lines, "", render.cut(reason_line, terminal.width - 1)]


def card(g: dict[str, Any], names: dict[int, str], terminal: Terminal) -> str:
    full = round(20 * g["used_mib"] / max(1, g["total_mib"]))
    bar = render.paint("█" * full, "blue" if g["runs"] else "magenta", terminal.colours) + "░" * (20 - full)
    mine = ", ".join(names.get(int(run.partition(".")[0]), run) for run in g["runs"])
    others = ", ".join(f"{h['user']} {(h['used_mib'] or 0) / 1024:.1f}G" for h in g["holders"] if h["run"] is None)
    who = render.paint(mine, "green", terminal.colours) + f"  ({others})" * bool(others) if mine else others
    return f"GPU {g['index']}  {bar}  {g['used_mib'] / 1024:4.1f}/{g['total_mib'] / 1024:.0f} GiB  {who or 'free'}"


MARKS = {"queued": ("·", "dim"), "starting": ("▸", "yellow"), "running": ("▸", "green"), "stopping": ("▸", "yellow"),
         "succeeded": ("✓", "dim"), "failed": ("✗", "red"), "cancelled": ("✗", "dim"), "skipped": ("✗", "dim")}  # fmt: skip


def piece(row: dict[str, Any], terminal: Terminal) -> str:
    mark, colour = MARKS[row["state"]]
    return render.paint(f"{mark} {row['name']}", colour, terminal.colours)
