"""`jostle demo`: queues of jobs compete with scripted strangers for four simulated GPUs, live. It ends by itself.

It is the product itself: a real engine with a home of its own, real processes, the simulator as probe. Nothing is left behind.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from jostle.cli import render

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal

WORLD = {
    "gpus": {"count": 4, "total": "24GiB", "name": "RTX 4090"},
    "runs": {"ramp": 0.8, "use": 0.85, "utilization": 96},
    "strangers": [
        {"user": "alice", "gpu": 1, "from": 0, "to": 5, "used": "18GiB", "utilization": 88},
        {"user": "bob", "gpu": 1, "from": 8, "to": 12, "used": "11GiB", "utilization": 70},
        {"user": "carol", "gpu": 0, "from": 0, "used": "300MiB", "utilization": 0},
    ],
}

FLAKY = 'sleep 0.6; [ "$JOSTLE_ATTEMPT" -ge 2 ] || { echo "RuntimeError: cuDNN said no"; exit 1; }; sleep 1'

STORY = """\
4 simulated GPUs. alice and bob come and go; carol keeps 300 MiB on GPU 0, which bothers nobody.
Queues `cifar` and `svhn` are each serial; `ddp` wants two cards; `probe-*` share one by memory; `flaky` fails once."""


def jobs() -> list[dict[str, Any]]:
    def job(name: str, run: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "commands": [run], "workdir": "/", **more}

    seeds = ((1, 3), (2, 2.5), (3, 4), (4, 3))
    serial = [job(f"{q}-seed{n}", f"sleep {s}", queue=q) for q in ("cifar", "svhn") for n, s in seeds]
    share = [job(f"probe-{n}", "sleep 4", memory_mib=7000, share=True) for n in (1, 2, 3)]
    big = job("ddp", "sleep 4", gpus=[2, 2], priority=1)
    flaky = job("flaky", FLAKY, retry={"max": 3, "backoff_after": 3, "backoff": 60})
    return [*serial, *share, big, flaky, job("report", "sleep 0.5", needs=[["index", 3, False], ["index", 7, False]])]


def demo_options(p: Parser) -> None:
    p.example("jostle demo")


def demo(args: Namespace, terminal: Terminal) -> int:
    from jostle import client
    from jostle.store.reads import Reader

    home = tempfile.mkdtemp(prefix="jostle-demo-")
    scenario = os.path.join(home, "world.json")
    with open(scenario, "w") as f:
        json.dump(WORLD, f)
    for name in ("JOSTLE_LEASE_DIR", "JOSTLE_SIM_DIR"):
        os.environ.pop(name, None)  # this world is nobody else's
    engine = client.connect(home, gpus=f"sim:{scenario}")
    try:
        terminal.put(STORY)
        env = {"PATH": os.environ.get("PATH", os.defpath)}
        answer = engine.call("submit", batch={"name": "demo"}, context={"env": env}, jobs=jobs())
        follow(engine, Reader(home), answer["batch"], terminal)
        rows = Reader(home).jobs()
        terminal.put(summary(rows, Reader(home)))
        return 0 if all(row["state"] == "succeeded" for row in rows) else 1
    finally:
        engine.call("down", stop_jobs=True, now=True)
        client.wait_gone(engine)
        shutil.rmtree(home, ignore_errors=True)


def follow(engine: Any, reader: Any, batch: int, terminal: Terminal) -> None:
    """Draws the screen again and again on a terminal; elsewhere prints a line for each thing that happens."""
    seq, drawn, began = 0, 0, time.monotonic()
    while True:
        events = reader.events(after=seq)
        seq = events[-1]["seq"] if events else seq
        seen = (engine.call("gpus")["gpus"], engine.call("reasons")) if terminal.interactive else None
        rows = reader.jobs()  # the last: a job that has started meanwhile does not wait
        if seen is not None:
            lines = screen(seen[0], rows, seen[1], terminal)
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
    told = f"why {waiting['name']} waits: {worded(why, terminal.language)['text']}" if waiting and why else ""
    return [*lines, "", render.cut(told, terminal.width - 1)]


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


def summary(rows: list[dict[str, Any]], reader: Any) -> str:
    """What the record says, worked out anew from its rows."""
    done = sum(row["state"] == "succeeded" for row in rows)
    spans = [(card, run["started_at"], run["ended_at"] or 0.0, run["memory_mib"], row["name"])
             for row in rows for run in reader.runs(row["id"]) for card in run["gpus"]]  # fmt: skip
    clashes = sum(
        a[0] == b[0] and a[1] < b[2] and b[1] < a[2] and (a[3] is None or b[3] is None)
        for k, a in enumerate(spans) for b in spans[:k]
    )  # fmt: skip
    tries = sum(row["attempt"] for row in rows)
    first, last = min(row["started_at"] for row in rows), max(row["ended_at"] or 0.0 for row in rows)
    return (
        f"\n{done} of {len(rows)} jobs succeeded in {last - first:.1f} s with {tries} runs; "
        f"whole cards given out twice: {clashes}.\n"
        "Next: jostle up --gpus sim:4x24, jostle add -- CMD, jostle ps, jostle why ID; on a real server leave out --gpus."
    )
