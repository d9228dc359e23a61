"""The task, its records, and what is computed from them.

The C programs are compiled when first needed, into c/bin.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import time
from dataclasses import dataclass
from typing import NamedTuple

from scene import TooSlow

HERE = os.path.dirname(os.path.abspath(__file__))
_RECORD = struct.Struct("<QqqQ32s")  # as in c/task.c


class NoCompiler(Exception):
    pass


def built(name: str, *flags: str) -> str:
    """The path of one of our own C programs."""
    binary = os.path.join(HERE, "c", "bin", name)
    compiled(os.path.join(HERE, "c", f"{name}.c"), binary, *flags)
    return binary


def compiled(source: str, binary: str, *flags: str) -> None:
    """Compiles unless that was done since the source changed."""
    if os.path.exists(binary) and os.path.getmtime(binary) >= os.path.getmtime(source):
        return
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise NoCompiler("no C compiler here: install gcc (Debian: apt install gcc libc6-dev)")
    os.makedirs(os.path.dirname(binary), exist_ok=True)
    fresh = f"{binary}.{os.getpid()}"
    subprocess.run([compiler, "-O2", "-Wall", "-D_GNU_SOURCE", *flags, "-o", fresh, source], check=True, timeout=60)
    os.replace(fresh, binary)


def task_program() -> str:
    return built("task", "-static")


@dataclass(frozen=True, kw_only=True)
class Task:
    number: int
    out: str  # the file of records
    ms: float = 0.0
    gpus: int = 1
    mib: int | None = None  # per GPU; None: the whole card

    def argv(self) -> list[str]:
        return [task_program(), self.out, str(self.number), f"{self.ms:g}"]


class Record(NamedTuple):
    number: int
    began: float  # seconds, CLOCK_MONOTONIC
    ended: float
    pid: int
    devices: str


class Sheet:
    """The file that the tasks of one measurement write their records to."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "wb"):
            pass

    def tasks(self, count: int, ms: float = 0.0) -> list[Task]:
        return [Task(number=i + 1, out=self.path, ms=ms) for i in range(count)]

    def count(self) -> int:
        return os.path.getsize(self.path) // _RECORD.size

    def wait(self, count: int, seconds: float) -> list[Record]:
        """All records once there are that many."""
        deadline = time.monotonic() + seconds
        while self.count() < count:
            if time.monotonic() > deadline:
                raise TooSlow(f"only {self.count()} of {count} tasks had run after {seconds:g} s")
            time.sleep(0.02)
        return self.records()

    def records(self) -> list[Record]:
        with open(self.path, "rb") as f:
            data = f.read(self.count() * _RECORD.size)
        return [
            Record(number, began / 1e9, ended / 1e9, pid, devices.rstrip(b"\0").decode())
            for number, began, ended, pid, devices in _RECORD.iter_unpack(data)
        ]


def gaps_ms(records: list[Record], slots: int) -> list[float]:
    """How long slots stood empty between two tasks.

    Slots are alike, so their names are not needed: the k-th task to end makes room for the (slots + k)-th to start.
    """
    begins, ends = sorted(r.began for r in records), sorted(r.ended for r in records)
    return [(begin - end) * 1e3 for begin, end in zip(begins[slots:], ends, strict=False)]


def rate(records: list[Record]) -> float:
    """Tasks per second from the first start to the last end."""
    return len(records) / (max(r.ended for r in records) - min(r.began for r in records))


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
