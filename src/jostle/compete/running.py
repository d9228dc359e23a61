"""Which schedulers run here, for `jostle compete --status` and for the console.

Rules: that one runs say the store (the owner of its batch: pid and start ticks, which only we can write) and the kernel (such a
process lives, is ours, and is a `compete`). A state file does not count: it stays after kill -9, is gone where somebody cleared
logs/, and anybody may have put it there (RELIABILITY S25, S53). It only tells how a scheduler stands that is known to run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jostle import proc
from jostle.compete import statefile
from jostle.formats.workspace import BatchKey
from jostle.store.reads import Reader


@dataclass(frozen=True, kw_only=True)
class Running:
    pid: int
    ticks: int
    batch: int
    key: BatchKey

    def proven(self, pid: int) -> bool:
        same = pid == self.pid and proc.alive(pid, self.ticks) and proc.uid(pid) == os.getuid()
        return same and "compete" in proc.command_line(pid).split()  # also if the pid and ticks are those of another boot

    def state(self, directory: str) -> dict[str, Any]:
        """What its file in this directory says; as long as there is none, that it starts."""
        content = statefile.read(directory, self.pid) or {}
        if (content.get("start_ticks"), content.get("batch")) == (self.ticks, self.batch) and statefile.complete(content):
            return content
        return {
            "pid": self.pid, "mode": self.key.mode, "config_index": self.key.index, "state": "starting", "batch": self.batch,
            "queues": {},
        }  # fmt: skip


def one_of(reader: Reader, key: BatchKey) -> Running | None:
    return next((scheduler for scheduler in running(reader, key.root) if scheduler.key == key), None)


def running(reader: Reader, root: str | None = None) -> Iterator[Running]:
    """Those of one workspace, or of all."""
    real = os.path.realpath(root) if root is not None else None
    for number, text, (pid, ticks) in reader.owned_batches():
        key = BatchKey.read(text)
        if key is not None and real in (None, key.root):
            scheduler = Running(pid=pid, ticks=ticks, batch=number, key=key)
            if scheduler.proven(pid):
                yield scheduler
