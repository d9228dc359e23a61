"""python bench/run.py: jostle beside floors and peers, in one run, on this machine. See README.md.

Data on standard output, progress on standard error. Exit code 0 when everything could be measured, 1 when something of
jostle failed, whatever the goals say.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import signal
import sys
import time

from figures import Row, table
from lab import Lab
from peers.base import Peer
from peers.floors import FloorC, FloorDb, FloorPy, SimpleGpuScheduler
from peers.gflow import Gflow
from peers.ours import Jostle
from peers.tsp import TaskSpooler
from scene import adopt_orphans, clear_up
from tasks import NoCompiler, task_program

MEASURES = [
    *("handover", "throughput", "submit", "growth", "many", "idle", "start", "restart"),
    *("makespan", "caution", "elastic", "experiments", "console", "gate", "page"),
]
PARTICIPANTS: list[type[Peer]] = [Jostle, FloorC, FloorPy, FloorDb, TaskSpooler, SimpleGpuScheduler, Gflow]


def options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter, some minutes")
    parser.add_argument("--only", metavar="NAMES", help=f"some of: {','.join(MEASURES)}")
    parser.add_argument("--peers", metavar="NAMES", help=f"some of: {','.join(k.name for k in PARTICIPANTS)}")
    parser.add_argument("--reps", type=int, help="repetitions (3; with --quick 2)")
    parser.add_argument("--json", metavar="FILE", help="write all rows there too")
    chosen = parser.parse_args(argv)
    chosen.only = among(parser, chosen.only, MEASURES)
    chosen.peers = among(parser, chosen.peers, [kind.name for kind in PARTICIPANTS])
    return chosen


def among(parser: argparse.ArgumentParser, text: str | None, known: list[str]) -> list[str]:
    names = text.split(",") if text else known
    for name in names:
        if name not in known:
            parser.error(f"{name} is none of {', '.join(known)}")
    return names


def surroundings() -> str:
    """What a reader must know to judge absolute values."""
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, load {load:.1f}, Linux {platform.release()}, Python {platform.python_version()}, "
        f"{time.strftime('%Y-%m-%d %H:%M')}"
    )


def measured(lab: Lab, names: list[str]) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        try:
            rows += importlib.import_module(f"measures.{name}").measure(lab)
        except Exception as e:
            lab.fault(name, "the measurement", e)
    return rows


def report(lab: Lab, rows: list[Row], before: str) -> None:
    print(f"at the start: {before}\nat the end:   {surroundings()}\n")
    print(table(rows))
    print("\nparticipants")
    for kind in lab.kinds:
        print(f"  {kind.name}: {kind.note}")
    for note in [*lab.notes, *(f"! {fault}" for fault in lab.faults)]:
        print(f"  {note}")
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        print("  the machine was busy with other things: repeat before you believe a narrow miss")
    judged = [row.met for row in rows if row.met is not None]
    print(f"\ngoals: {sum(judged)} of {len(judged)} met")


def main(argv: list[str]) -> int:
    chosen = options(argv)
    lab = Lab(quick=chosen.quick, reps=chosen.reps or (2 if chosen.quick else 3))
    before = surroundings()
    adopt_orphans()
    try:
        task_program()
    except NoCompiler as e:
        print(e, file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the stage is cleared on the way out
    try:
        lab.admit([kind for kind in PARTICIPANTS if kind.name in chosen.peers])
        rows = measured(lab, chosen.only)
    finally:
        clear_up()
    report(lab, rows, before)
    if chosen.json:
        found = {"where": before, "rows": [row.as_json() for row in rows], "notes": lab.notes, "faults": lab.faults}
        with open(chosen.json, "w") as f:
            json.dump(found, f, indent=1)
    return 1 if any("jostle" in fault for fault in lab.faults) or Jostle not in lab.kinds else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
