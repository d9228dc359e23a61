"""The floors, and peers which like them read a list of commands and keep nothing: their submit is their start."""

from __future__ import annotations

import os
import sys

from peers.base import Missing, Peer
from peers.install import in_venv
from tasks import HERE, NoCompiler, Task, built


class Lister(Peer):
    separator = "\t"

    def start(self, slots: int, held: bool = False) -> None:
        self.slots = slots

    def argv(self) -> list[str]:
        raise NotImplementedError

    def submit(self, tasks: list[Task]) -> None:
        path = self.scene.path("list")
        with open(path, "w") as f:
            f.writelines(self.separator.join(task.argv()) + "\n" for task in tasks)
        self.scene.start(self.argv(), stdin=path)


class FloorC(Lister):
    name = "floor-c"
    note = "spawns the next task when one ends; keeps nothing (C)"

    @classmethod
    def prepare(cls) -> None:
        try:
            built("floor")
        except NoCompiler as e:
            raise Missing(str(e)) from e

    def argv(self) -> list[str]:
        return [built("floor"), str(self.slots)]


class FloorPy(Lister):
    name = "floor-py"
    note = "the same in Python: asyncio, pidfd, posix_spawn"

    def argv(self) -> list[str]:
        return [sys.executable, os.path.join(HERE, "floor.py"), str(self.slots)]


class FloorDb(FloorPy):
    name = "floor-db"
    note = "floor-py with one durable SQLite commit per hand-over: this disk's share"

    def argv(self) -> list[str]:
        return [*super().argv(), self.scene.path("floor.db")]


class SimpleGpuScheduler(Lister):
    name = "sgs"
    note = "simple-gpu-scheduler 0.1.4: reads a list, keeps nothing"
    separator = " "

    @classmethod
    def prepare(cls) -> None:
        cls.program = in_venv("sgs", "simple-gpu-scheduler==0.1.4", "simple_gpu_scheduler")

    def argv(self) -> list[str]:
        return [self.program, "--gpus", *map(str, range(self.slots))]
