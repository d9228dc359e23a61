"""`logs/state/{pid}.json` (SPEC A32), and the same in `logs/status/`: how one scheduler stands, for the console and for scripts.

Rules: what is in it is a pure function of the board and a few facts. Written whole under another name and renamed, so that no
reader sees half of one; removed at the end. It carries host and boot: a file of another host is never touched, one of this host
whose process is gone (or of an earlier boot) is removed by the next scheduler. Anybody may have put anything there: what is not
as we write it is passed over.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle import proc
from jostle.compete.board import Queue, counted, instant
from jostle.formats.workspace import STEMS
from jostle.uniid.file import make_directory

LINES = 20
MOST = 64_000_000  # bytes that are read of one; that of 10,000 tasks has some 5 million
TYPES: dict[str, type] = {
    "pid": int, "mode": str, "config_index": int, "config_file": str, "state": str, "host": str, "boot_id": str,
    "start_ticks": int, "batch": int,
}  # fmt: skip
STATES = ("starting", "running", "completed", "failed", "stopping")


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
    error_kind: str | None = None,
    finished_at: float | None = None,
) -> dict[str, Any]:
    """The file's content: the fields of A32, and what names this very process and its batch."""
    busy = [queue for queue in queues.values() if queue["running_tasks"]]
    assigned = {
        str(gpu): queue["id"]
        for queue in busy
        for task in queue["processes"]
        if task["status"] == "running"
        for gpu in task["gpus"]
    }
    return {
        "pid": scheduler.pid,
        "mode": scheduler.mode,
        "config_index": scheduler.config_index,
        "config_file": scheduler.config_file,
        "state": now,
        "started_at": instant(scheduler.started_at),
        "finished_at": instant(finished_at),
        **counted(queues.values()),
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
        "last_error_kind": error_kind,
    }


class StateFile:
    """The file of one scheduler, in each of its directories. What cannot be written now (a full disk) is written next time."""

    def __init__(self, pid: int, *directories: str) -> None:
        self.pid, self.directories = pid, directories

    def write(self, content: Mapping[str, Any]) -> bool:
        try:
            text = json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogateescape")
        except UnicodeError:
            return False
        written = [_write(text, *self._paths(directory)) for directory in self.directories]
        return all(written)

    def remove(self) -> None:
        for path in (path for directory in self.directories for path in self._paths(directory)):
            try:
                os.unlink(path)
            except OSError:
                pass

    def _paths(self, directory: str) -> tuple[str, str]:
        return os.path.join(directory, f".{self.pid}.json.new"), os.path.join(directory, f"{self.pid}.json")


def _write(text: bytes, fresh: str, path: str) -> bool:
    try:
        make_directory(os.path.dirname(path))
        with open(fresh, "wb", opener=_anew) as f:
            f.write(text)
        os.replace(fresh, path)
    except OSError:
        return False
    return True


def _anew(path: str, flags: int) -> int:
    """A file of our own, whatever lies there under this name."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    return os.open(path, flags | os.O_EXCL | os.O_CLOEXEC, 0o644)


def read_all(directory: str) -> list[dict[str, Any]]:
    """The state files of this directory that can be read, by pid."""
    try:
        names = [os.path.splitext(name) for name in os.listdir(directory)]
    except OSError:
        return []
    pids = sorted(int(stem) for stem, end in names if stem.isascii() and stem.isdecimal() and end == ".json")
    return [content for pid in pids if (content := read(directory, pid)) is not None]


def read(directory: str, pid: int) -> dict[str, Any] | None:
    try:
        content = json.loads(_text(os.path.join(directory, f"{pid}.json")))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and content.get("pid") == pid and _typed(content) else None


def _text(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)  # a FIFO must not hold us up
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(f"{path} is not a regular file")
    with os.fdopen(fd, "rb") as f:
        raw = f.read(MOST + 1)
    if len(raw) > MOST:
        raise OSError(f"{path} is too large")
    return raw.decode("utf-8", "surrogateescape")


def _typed(content: Mapping[str, Any]) -> bool:
    """What we know of it is of the kind that we write; some of it may be missing."""
    for key, kind in TYPES.items():
        value = content.get(key)
        if value is not None and type(value) is not kind:
            return False
        if isinstance(value, int) and not 0 <= value < 1 << 62:
            return False
    return str(content.get("host")).isprintable() and content["pid"] < 1 << 31


def complete(content: Mapping[str, Any]) -> bool:
    """Whether it says all that is needed to tell how its scheduler stands."""
    filled = all(content.get(key) is not None for key in TYPES)
    return filled and content["mode"] in STEMS and content["state"] in STATES


def runs_here(content: Mapping[str, Any], host: str, boot_id: str) -> bool:
    """Whether its process runs on this host."""
    ticks = content.get("start_ticks")
    same = content.get("host") == host and content.get("boot_id") == boot_id
    return same and isinstance(ticks, int) and proc.alive(int(content["pid"]), ticks)


def on_other_hosts(directory: str, scheduler: Scheduler) -> list[dict[str, Any]]:
    """Files of schedulers of other hosts that run the same tasks: two engines do not know of each other."""
    same = ("mode", "config_index", "config_file")
    return [
        content
        for content in read_all(directory)
        if content.get("host") not in (None, scheduler.host)
        and all(content.get(key) == getattr(scheduler, key) for key in same)
        and content.get("state") in ("starting", "running")
    ]


def clean(directories: Sequence[str], host: str, boot_id: str) -> list[int]:
    """Removes the files of schedulers of this host that are gone; their pids."""
    removed = set()
    for directory in directories:
        for content in read_all(directory):
            if content.get("host") == host and not runs_here(content, host, boot_id):
                StateFile(int(content["pid"]), directory).remove()
                removed.add(int(content["pid"]))
    return sorted(removed)
