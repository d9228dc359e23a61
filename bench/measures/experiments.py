"""A sweep of 10,000 jobs from its file to the list, and the results of 10,000 logs.

The sweep: expanded only, submitted, listed. The logs: 1 MB each, with the number that is looked for at the end; the
floor opens each, reads its last 16 KiB and searches them for the same pattern, so the ratio says what the rest costs.
"""

from __future__ import annotations

import os
import re
import time

from figures import Row, Series, below, hold_against
from lab import Lab
from peers.base import Peer
from peers.ours import Jostle

GROUP = "experiments"
SWEEP = """\
command: echo {a} {b} {seed}
matrix: {a: [%s], b: [%s], seed: [%s]}
job: {name: "{a}_{b}_seed{seed}"}
"""
LOG_SIZE, BLOCK = 1 << 20, 16 << 10
PATTERN = re.compile(rb"Test Accuracy: ([\d.]+)")


def measure(lab: Lab) -> list[Row]:
    kinds = {what: Series() for what in ("expanded", "submitted", "listed", "results")}
    logs = lab.size(10_000, 2_000)
    for rep, kind in lab.turns(lab.named("jostle")):
        lab.attempt(f"a sweep, {rep + 1}/{lab.reps}", kind, 8, True, lambda p, r=rep: sweep(kinds, p, r))
        lab.attempt(f"results, {rep + 1}/{lab.reps}", kind, 8, True, lambda p, r=rep: results(kinds, p, r, logs))
    steps = ("expanded", "submitted", "listed")
    rows = [kinds[what].row(GROUP, f"10,000 jobs of a matrix, {what}", "s") for what in steps]
    for row, most in zip(rows, (2.0, 5.0, 1.0), strict=True):
        hold_against(row, f"seconds (<= {most:g})", below(row.ours, most))
    ends = kinds["results"].row(GROUP, f"results of {logs:,} logs of 1 MB", "s", floor="read their ends")
    return [*rows, ends]


def sweep(kinds: dict[str, Series], peer: Peer, rep: int) -> None:
    assert isinstance(peer, Jostle)
    path = peer.scene.path("sweep.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(SWEEP % tuple(", ".join(map(str, range(n))) for n in (10, 10, 100)))
    expand = [*peer.status_argv()[:-1], "validate", "--expand", "--json", path]
    kinds["expanded"].add("jostle", rep, peer.scene.timed(expand))
    kinds["submitted"].add("jostle", rep, peer.scene.timed(peer.file_argv(path)))
    kinds["listed"].add("jostle", rep, peer.scene.timed(peer.status_argv()))


def results(kinds: dict[str, Series], peer: Peer, rep: int, count: int) -> None:
    """The logs are holes but for their ends: what is read is real, and ten gigabytes need not be written."""
    assert isinstance(peer, Jostle)
    folder = peer.scene.path("logs")
    os.mkdir(folder)
    for n in range(count):
        with open(os.path.join(folder, f"data{n // 100}_Algo_seed{n % 100}.log"), "wb") as f:
            f.seek(LOG_SIZE)
            f.write(b"epoch 9\nTest Accuracy: %d.5\n" % (n % 100))
    began = time.perf_counter()
    found = 0
    for entry in os.scandir(folder):
        with open(entry.path, "rb") as f:
            f.seek(-BLOCK, os.SEEK_END)
            found += PATTERN.search(f.read()) is not None
    kinds["results"].add("read their ends", rep, time.perf_counter() - began)
    assert found == count
    words = ["results", folder, "--format", "csv", "-m", r"accuracy=Test Accuracy: ([\d.]+)"]
    kinds["results"].add("jostle", rep, peer.scene.timed([*peer.status_argv()[:-1], *words]))
