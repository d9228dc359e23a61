"""`logs/state/{pid}.json` (SPEC A32): how one scheduler stands, for the console and for people's scripts.

Rules: what is in it is a pure function of the board and a few facts. Written whole under another name and renamed, so that no
reader sees half of one; removed at the end. It carries host and boot: a file of another host is never touched, one of this host
whose process is gone (or of an earlier boot) is removed by the next scheduler.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle import proc
from jostle.compete.board import Queue, instant

LINES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheduler:
    """What does not change while it runs."""

    pid: int
    mode: str
    config_index: int
    config_file: str  # the command file it runs
    host: str
    boot_id: str
    start_ticks: int  # with the pid and the boot it names this very process
    batch: int
    started_at: float


def state(
    scheduler: Scheduler,
    queues: Mapping[str, Queue],
    *,
    now: str,  # starting | running | completed | failed | stopping
    gpus_used: Sequence[int] = (),
    gpus_available: Sequence[int] = (),
    last_log_lines: Sequence[str] = (),
    last_error: str | None = None,
    finished_at: float | None = None,
) -> dict[str, Any]:
    """The file's content: the fields of A32, and what names this very process and its batch."""
    busy = [queue for queue in queues.values() if queue["running_tasks"]]
    assigned = {
        str(gpu): queue["id"] for queue in busy for one in queue["processes"] if one["status"] == "running" for gpu in one["gpus"]
    }
    return {
        "pid": scheduler.pid,
        "mode": scheduler.mode,
        "config_index": scheduler.config_index,
        "config_file": scheduler.config_file,
        "state": now,
        "started_at": instant(scheduler.started_at),
        "finished_at": instant(finished_at),
        **{
            name: sum(queue[name] for queue in queues.values())
            for name in ("total_tasks", "pending_tasks", "running_tasks", "completed_tasks", "failed_tasks")
        },
        "gpus_used": list(gpus_used),
        "gpus_available": list(gpus_available),
        "gpu_assignments": assigned,
        "queues": dict(queues),
        "last_log_lines": list(last_log_lines)[-LINES:],
        "last_error": last_error,
        "host": scheduler.host,
        "boot_id": scheduler.boot_id,
        "start_ticks": scheduler.start_ticks,
        "batch": scheduler.batch,
    }


def usable(policy: Mapping[str, Any], detected: Sequence[int]) -> list[int]:
    """The range of a batch's rules among the cards that are there; an older config leaves the last ones to others (A13)."""
    wanted = policy.get("gpus")
    found = [gpu for gpu in detected if wanted is None or gpu in wanted]
    left = policy.get("gpu_left") or 0
    old = policy.get("min_gpu") is None and policy.get("max_gpu") is None
    return found[: max(0, len(found) - left)] if old and left else found


class StateFile:
    """The file of one scheduler. What cannot be written now (a full disk) is written the next time."""

    def __init__(self, directory: str, pid: int) -> None:
        self.path = os.path.join(directory, f"{pid}.json")
        self.fresh = os.path.join(directory, f".{pid}.json.new")

    def write(self, content: Mapping[str, Any]) -> bool:
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(self.fresh, "w", encoding="utf-8", errors="surrogateescape") as f:
                f.write(json.dumps(content, ensure_ascii=False))
            os.replace(self.fresh, self.path)
        except OSError:
            return False
        return True

    def remove(self) -> None:
        for path in (self.fresh, self.path):
            try:
                os.unlink(path)
            except OSError:
                pass


def found(directory: str) -> list[dict[str, Any]]:
    """The state files of this directory that can be read, by pid."""
    files = []
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    for name in names:
        stem, dot, rest = name.partition(".")
        if not stem.isdecimal() or dot + rest != ".json":
            continue
        try:
            with open(os.path.join(directory, name), encoding="utf-8", errors="surrogateescape") as f:
                content = json.load(f)
        except (OSError, ValueError):
            continue
        if isinstance(content, dict) and content.get("pid") == int(stem):
            files.append(content)
    return sorted(files, key=lambda content: int(content["pid"]))


def here(content: Mapping[str, Any], host: str, boot_id: str) -> bool:
    """Whether its process runs on this host."""
    ticks = content.get("start_ticks")
    same = content.get("host") == host and content.get("boot_id") == boot_id
    return same and isinstance(ticks, int) and proc.alive(int(content["pid"]), ticks)


def elsewhere(directory: str, scheduler: Scheduler) -> list[dict[str, Any]]:
    """Files of schedulers of other hosts that run the same tasks: two engines do not know of each other."""
    same = ("mode", "config_index", "config_file")
    return [
        content
        for content in found(directory)
        if content.get("host") not in (None, scheduler.host)
        and all(content.get(key) == getattr(scheduler, key) for key in same)
        and content.get("state") in ("starting", "running")
    ]


def clean(directory: str, host: str, boot_id: str) -> list[int]:
    """Removes the files of schedulers of this host that are gone; their pids."""
    gone = []
    for content in found(directory):
        if content.get("host") == host and not here(content, host, boot_id):
            StateFile(directory, int(content["pid"])).remove()
            gone.append(int(content["pid"]))
    return gone
