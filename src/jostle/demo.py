"""The demo: queues of jobs compete with scripted strangers for four simulated GPUs.

It is the product itself: a real engine with a home of its own, real processes, the simulator as probe. Nothing is left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from jostle import client
from jostle.client import Client
from jostle.store.reads import Reader

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


@contextlib.contextmanager
def stage() -> Iterator[tuple[Client, Reader]]:
    """The engine of the demo, with its jobs submitted, and a reader of its store."""
    home = tempfile.mkdtemp(prefix="jostle-demo-")
    scenario = os.path.join(home, "world.json")
    with open(scenario, "w") as f:
        json.dump(WORLD, f)
    for name in ("JOSTLE_LEASE_DIR", "JOSTLE_SIM_DIR"):
        os.environ.pop(name, None)  # this world is nobody else's
    engine = client.connect(home, gpus=f"sim:{scenario}")
    try:
        env = {"PATH": os.environ.get("PATH", os.defpath)}
        engine.call("submit", batch={"name": "demo"}, context={"env": env}, jobs=jobs())
        yield engine, Reader(home)
    finally:
        engine.call("down", stop_jobs=True, now=True)
        client.wait_gone(engine)
        shutil.rmtree(home, ignore_errors=True)


class Outcome(NamedTuple):
    """What the record says, worked out anew from its rows."""

    jobs: int
    succeeded: int
    tries: int
    took_s: float
    clashes: int  # whole cards that were given to two runs at once


def outcome(reader: Reader) -> Outcome:
    rows = reader.jobs()
    spans = [(card, run["started_at"], run["ended_at"] or 0.0, run["memory_mib"])
             for row in rows for run in reader.runs(row["id"]) for card in run["gpus"]]  # fmt: skip
    clashes = sum(
        a[0] == b[0] and a[1] < b[2] and b[1] < a[2] and (a[3] is None or b[3] is None)
        for k, a in enumerate(spans) for b in spans[:k]
    )  # fmt: skip
    first, last = min(row["started_at"] for row in rows), max(row["ended_at"] or 0.0 for row in rows)
    succeeded = sum(row["state"] == "succeeded" for row in rows)
    return Outcome(len(rows), succeeded, sum(row["attempt"] for row in rows), last - first, clashes)
