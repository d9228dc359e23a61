"""The tasks of a batch as a person who knows the source system sees them: queues of processes (SPEC A32). No I/O.

Rules: a task's row comes from the store; only what has changed is worked out again, for a batch may have 10,000 tasks. Our states
map to the source's: queued → pending (after a failure: retrying), starting, running and stopping → running, succeeded →
completed, failed and cancelled → failed. A task that was skipped is completed if its work was done before, and failed if it was
not started because another failed. A queue whose task is tried again, or waits to be, is busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from jostle.compete.edits import by_place, current, queue_of
from jostle.core.reasons import Reason, done_by
from jostle.core.states import OPEN, UNSUCCESSFUL
from jostle.core.variables import filled
from jostle.wording.reasons import text

Row = Mapping[str, Any]
Queue = dict[str, Any]

STATUS = {
    "queued": "pending", "starting": "running", "running": "running", "stopping": "running", "succeeded": "completed",
    "skipped": "failed", "failed": "failed", "cancelled": "failed",
}  # fmt: skip
COUNTS = ("total_tasks", "pending_tasks", "running_tasks", "completed_tasks", "failed_tasks")


class Board:
    """The tasks of one batch."""

    def __init__(self, rows: Iterable[Row] = (), without: Iterable[int] = ()) -> None:
        self.rows: dict[int, Row] = {}
        self.without = frozenset(without)  # told no more: another task took their place
        self.ids: dict[str, set[int]] = {}
        self.live: set[int] = set()
        self.shown: dict[str, Queue] = {}
        self.take(rows)

    def take(self, rows: Iterable[Row]) -> None:
        """New rows, or newer ones of the same tasks."""
        fresh = [row for row in rows if row["id"] not in self.without]
        current_ids = {row["id"] for row in current(fresh)}
        for row in fresh:
            original = self.rows.pop(row["retry_of"], None)
            if original is not None:
                self.ids[queue_of(original)].discard(original["id"])
            queue = queue_of(row)
            members = self.ids.setdefault(queue, set())
            if row["id"] in current_ids:
                self.rows[row["id"]] = row
                members.add(row["id"])
            else:
                self.rows.pop(row["id"], None)
                members.discard(row["id"])
            (self.live.add if row["id"] in current_ids and row["state"] in OPEN else self.live.discard)(row["id"])
            self.shown.pop(queue, None)

    def queues(self) -> dict[str, Queue]:
        """By the queue's number, in its order."""
        for name, ids in self.ids.items():
            if name not in self.shown and ids:
                self.shown[name] = queue_view(number(name), self.members(name))
        return {name: self.shown[name] for name in sorted((n for n, ids in self.ids.items() if ids), key=_by_number)}

    def members(self, queue: str) -> list[Row]:
        """Its tasks: the k-th, from 0, is the process with this index."""
        return sorted((self.rows[id] for id in self.ids.get(queue, ())), key=by_place)

    def counts(self) -> dict[str, int]:
        return counted(self.queues().values())


def counted(queues: Iterable[Queue]) -> dict[str, int]:
    """Over all queues."""
    all_queues = list(queues)
    return {name: sum(queue[name] for queue in all_queues) for name in COUNTS}


def queue_view(id: int | str, rows: Iterable[Row]) -> Queue:
    """One queue as A32 shows it."""
    processes = [process(k, row) for k, row in enumerate(rows)]
    tally = dict.fromkeys(("pending", "running", "completed", "failed", "retrying"), 0)
    for task in processes:
        tally[task["status"]] += 1
    now = next((task for task in processes if task["status"] == "running"), None)
    errors = [(task["finished_at"] or task["started_at"] or "", task["last_error"]) for task in processes if task["last_error"]]
    return {
        "id": id,
        "status": _status(tally),
        "total_tasks": len(processes),
        "pending_tasks": tally["pending"] + tally["retrying"],
        "running_tasks": tally["running"],
        "completed_tasks": tally["completed"],
        "failed_tasks": tally["failed"],
        "current_task": now and now["commands"][-1],
        "current_gpu": now and now["current_gpu"],
        "last_error": max(errors)[1] if errors else None,
        "processes": processes,
    }


def process(index: int, row: Row) -> dict[str, Any]:
    """One task; its index counts from 0, as `process_index` of the console's requests does."""
    status = status_of(row)
    gpus = list(row["gpus"]) if row["state"] != "queued" else []
    return {
        "index": index,
        "commands": list(row["commands"]) if status != "running" else commands(row),
        "memory_gb": memory_gb(row["memory_mib"]),
        "gpu_count": row["gpu_request"][0],
        "status": status,
        "current_gpu": gpus[0] if status == "running" and gpus else None,
        "gpus": gpus,
        "retry_count": row["retries"],
        "last_error": last_error(row),
        "started_at": instant(row["started_at"]),
        "finished_at": instant(row["ended_at"]),
        **background(row, status),
    }


def background(row: Row, status: str) -> dict[str, list[int]]:
    """`background`: the processes that a task's commands have left running and that it waits for, if there are any."""
    reason = row["reason"] or {}
    return {"background": list(reason["params"]["pids"])} if status == "running" and reason.get("code") == "background" else {}


def status_of(row: Row) -> str:
    if row["state"] == "queued" and row["retries"]:
        return "retrying"
    return "completed" if done_by(row["state"], row["reason"]) else STATUS[row["state"]]


def commands(row: Row) -> list[str]:
    """What a running task was started with; its uni_id is known when the row carries it."""
    cards = ",".join(map(str, row["gpus"]))
    values = {"available_gpu": cards, "gpu_list": cards}
    if row.get("uni_id"):
        values["uni_id"] = row["uni_id"]
    return [filled(command, values) for command in row["commands"]]


def last_error(row: Row) -> str | None:
    """Why its last try failed, or why it was not tried."""
    ended_badly = row["state"] in UNSUCCESSFUL and not done_by(row["state"], row["reason"])
    if row["state"] == "succeeded" or not (row["retries"] or ended_badly):
        return None
    if row["error_type"]:
        return str(row["error_type"])
    reason = row["reason"]
    return text(Reason(code=reason["code"], params=reason.get("params") or {})) if reason else "unknown"


def memory_gb(mib: int | None) -> float | int | None:
    if mib is None:
        return None
    return mib // 1024 if mib % 1024 == 0 else round(mib / 1024, 3)


def instant(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")


def number(name: str) -> int | str:
    return int(name) if name.isdecimal() else name


def _status(tally: Mapping[str, int]) -> str:
    if tally["running"] or tally["retrying"]:
        return "running"
    if tally["pending"]:
        return "idle"
    return "failed" if tally["failed"] else "completed"


def _by_number(name: str) -> tuple[int, str]:
    return (int(name) if name.isdecimal() else 1 << 62, name)
