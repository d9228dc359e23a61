"""How long do 60 jobs of 1–4 GPUs take on 8 GPUs? (trace60.csv: seconds, GPUs, GiB per GPU.)

Exclusive: against a greedy list scheduler without any overhead, which starts the first job of the list that fits.
Sharing by memory on cards of 80 GiB: against the longest job and the memory-seconds, whichever is more; and no card
may ever have been promised more than it has, which is checked from the tasks' own records.
"""

from __future__ import annotations

import csv
import heapq
import os
import time
from dataclasses import replace
from typing import NamedTuple

from figures import Row, below, hold_against
from lab import Lab
from peers.base import Peer
from peers.ours import Jostle, JostleSharing
from tasks import HERE, Record, Sheet, Task

GROUP = "makespan of 60 jobs on 8 GPUs"
GPUS, CARD_GIB = 8, 80


class Job(NamedTuple):
    seconds: float
    gpus: int
    gib: int


def measure(lab: Lab) -> list[Row]:
    jobs = trace(0.25 if lab.quick else 1.0)
    return [exclusive(lab, jobs), sharing(lab, jobs)]


def trace(scale: float) -> list[Job]:
    with open(os.path.join(HERE, "trace60.csv")) as f:
        return [Job(float(r["seconds"]) * scale, int(r["gpus"]), int(r["gib"])) for r in csv.DictReader(f)]


def exclusive(lab: Lab, jobs: list[Job]) -> Row:
    ideal = greedy(jobs)
    row = Row(group=GROUP, what="whole cards", unit="s", floor=ideal, floor_name="greedy")
    for kind in lab.with_skills("multi"):
        if kind.seconds_per_task > 0.1:
            continue  # about three minutes for gflow
        took = lab.attempt("makespan, whole cards", kind, GPUS, False, lambda p: run(p, jobs, False)[0])
        if took is not None and kind is Jostle:
            row.ours, row.ratio = took, took / ideal
        elif took is not None:
            row.peers[kind.name] = took
    row.peers["lower bound"] = max(sum(j.seconds * j.gpus for j in jobs) / GPUS, max(j.seconds for j in jobs))
    return hold_against(row, "<= 1.03x greedy", below(row.ratio, 1.03))


def sharing(lab: Lab, jobs: list[Job]) -> Row:
    work = sum(j.seconds * j.gpus * j.gib for j in jobs) / (GPUS * CARD_GIB)
    bound = max(work, max(j.seconds for j in jobs))
    row = Row(group=GROUP, what="cards shared by memory", unit="s", floor=bound, floor_name="lower bound")
    most = None
    if lab.named("jostle"):
        JostleSharing.program = Jostle.program
        result = lab.attempt("makespan, shared cards", JostleSharing, GPUS, False, lambda p: run(p, jobs, True))
        if result is not None:
            row.ours, row.ratio = result[0], result[0] / bound
            most = most_promised(result[1], jobs)
            row.peers["most GiB on a card"] = most
    return hold_against(row, "<= 1.5x bound, <= 80 GiB a card", below(row.ratio, 1.5), below(most, CARD_GIB))


def run(peer: Peer, jobs: list[Job], share: bool) -> tuple[float, list[Record]]:
    """Seconds from the submit to the last end, and the tasks' records."""
    sheet = Sheet(peer.scene.path("sheet"))
    tasks = [Task(number=i, out=sheet.path, ms=j.seconds * 1e3, gpus=j.gpus) for i, j in enumerate(jobs)]
    if share:
        tasks = [replace(task, mib=job.gib * 1024) for task, job in zip(tasks, jobs, strict=True)]
    began = time.monotonic()
    peer.submit(tasks)
    records = sheet.wait(len(jobs), 120.0)
    return max(r.ended for r in records) - began, records


def greedy(jobs: list[Job]) -> float:
    """The end of the list when at each instant every waiting job that fits is started, in order, at no cost."""
    waiting, running, free, now = list(jobs), [], GPUS, 0.0
    while waiting or running:
        for job in list(waiting):
            if job.gpus <= free:
                waiting.remove(job)
                free -= job.gpus
                heapq.heappush(running, (now + job.seconds, job.gpus))
        now = running[0][0]
        while running and running[0][0] == now:
            free += heapq.heappop(running)[1]
    return now


def most_promised(records: list[Record], jobs: list[Job]) -> float:
    """The most GiB that the tasks on one card had been promised at one instant."""
    changes: dict[str, list[tuple[float, int]]] = {}
    for record in records:
        for device in record.devices.split(","):
            gib = jobs[record.number].gib
            changes.setdefault(device, []).extend([(record.began, gib), (record.ended, -gib)])
    most = 0
    for steps in changes.values():
        held = 0
        for _, step in sorted(steps):
            held += step
            most = max(most, held)
    return float(most)
