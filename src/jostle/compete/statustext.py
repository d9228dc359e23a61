"""The status text of SPEC A30, as the source prints it: totals, queues, GPUs with what runs there, and the uni_id file. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.compete.board import Queue
from jostle.core.courtesy import is_python
from jostle.wording.text import plain

BUSY, IDLE = "🔴 BUSY", "🟢 IDLE"
SHOWN = 50  # queues; those that have work to do come first
TASK = 100  # characters of a command


def status(
    queues: Mapping[str, Queue],
    gpus: Sequence[Mapping[str, Any]] | None,  # the engine's answer; None: it could not be asked
    *,
    user: str,
    used: Sequence[int],  # the range of this scheduler
    processes: Mapping[str, tuple[int, int]],  # what runs according to the uni_id file: pid and retry count
    uni_id_file: str,
    never: Sequence[str] = (),  # of the tasks that can never start
) -> list[str]:
    lines = [
        totals(queues),
        *never,
        *_queues(queues),
        *_gpus(queues, gpus, user, used),
        *_processes(processes, uni_id_file),
    ]
    return list(map(plain, lines))


def head(pid: int, mode: str, label: str, now: str) -> str:
    """Which scheduler a status is of: those of one mode share a log."""
    return f"Scheduler {pid} ({mode}, {label}): {now}"


def totals(queues: Mapping[str, Queue]) -> str:
    counts = {
        name: sum(queue[f"{name.lower()}_tasks"] for queue in queues.values())
        for name in ("Total", "Pending", "Running", "Completed", "Failed")
    }
    return "Tasks: " + ", ".join(f"{name}={count}" for name, count in counts.items())


def queue_line(queue: Queue) -> str:
    light = BUSY if queue["status"] == "running" else IDLE
    return (
        f"Queue {queue['id']}: {light}, Pending={queue['pending_tasks']}, Running={queue['running_tasks']}, "
        f"Completed={queue['completed_tasks']}, Failed={queue['failed_tasks']}"
    )


def _queues(queues: Mapping[str, Queue]) -> list[str]:
    shown = list(queues.values())
    if len(shown) > SHOWN:
        first = {"running": 0, "idle": 1, "failed": 2, "completed": 3}
        chosen = {id(queue) for queue in sorted(shown, key=lambda queue: first[queue["status"]])[:SHOWN]}
        shown = [queue for queue in shown if id(queue) in chosen]
    left = len(queues) - len(shown)
    return [*map(queue_line, shown), *([f"… and {left} more {'queue' if left == 1 else 'queues'}"] if left else [])]


def _gpus(
    queues: Mapping[str, Queue], gpus: Sequence[Mapping[str, Any]] | None, user: str, used: Sequence[int]
) -> list[str]:  # fmt: skip
    if gpus is None:
        return ["GPUs: not known, the engine does not answer"]
    tasks: dict[int, list[str]] = {}
    for queue in queues.values():
        for task in queue["processes"] if queue["running_tasks"] else ():
            for gpu in task["gpus"] if task["status"] == "running" else ():
                left = ", ".join(map(str, task.get("background", ())[:SHOWN]))
                waits = f" (its commands have ended; waiting for process {left})" if left else ""
                tasks.setdefault(gpu, []).append(f"  Running Task (Queue {queue['id']}): {cut(task['commands'][-1])}{waits}")
    lines = []
    for gpu in gpus:
        index = gpu["index"]
        if index not in used and index not in tasks:
            continue
        if gpu["state"] != "ok":
            lines.append(f"GPU {index}: {gpu['error'] or gpu['state']}")
        else:
            own = sum(h["user"] == user and is_python(h.get("exe") or "", h["name"]) for h in gpu["holders"])
            free, running = gpu["free_mib"] / 1024, len(tasks.get(index, ()))
            lines.append(f"GPU {index}: Available={free:.1f}GB, User Python Processes={own}, Running Tasks={running}")
        lines += tasks.get(index, ())
    return lines or ["GPUs: none in range"]


def _processes(processes: Mapping[str, tuple[int, int]], file: str) -> list[str]:
    lines = [f"Processes running according to {file}: {len(processes)}"]
    for uni_id, (pid, retry_count) in list(processes.items())[:SHOWN]:
        lines.append(f"  {uni_id}: pid={pid}, retry_count={retry_count}")
    if len(processes) > SHOWN:
        lines.append(f"  … and {len(processes) - SHOWN} more")
    return lines


def cut(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= TASK else line[: TASK - 3] + "..."
