"""The status of the source's manager, word for word (SPEC C9): scripts read it. What it did not tell comes after what it did."""

from __future__ import annotations

from collections.abc import Iterator

from jostle.manage.board import ManagerBoard, Task
from jostle.wording.text import plain

WIDE, NARROW = "=" * 60, "-" * 40


def lines(board: ManagerBoard) -> Iterator[str]:
    total, free = sum(node.total for node in board.nodes), sum(node.free for node in board.nodes)
    yield from (WIDE, "GPU Resource Manager Status", WIDE)
    yield f"Total Nodes: {len(board.nodes)}"
    yield f"Total GPUs: {total}"
    yield f"Free GPUs: {free}"
    yield f"Allocated GPUs: {total - free}"
    yield f"Active Tasks: {len(board.tasks)}"
    yield from ("", "Node Details:", NARROW)
    for node in board.nodes:
        yield f"{plain(node.name)}: {node.free}/{node.total} free ({node.total - node.free} allocated)"
    yield from ("", "Task Allocations:", NARROW)
    yield from map(task_line, board.tasks)
    yield from ("", f"Own GPUs: {board.running} running, {board.pending} pending")


def task_line(task: Task) -> str:
    count = f"{task.gpus} GPU" if task.gpus == 1 else f"{task.gpus} GPUs"
    if task.node is not None:
        return f"Task {plain(task.name)}: {count} on {plain(task.node)} (running)"
    place = f", place {task.place}" if task.place is not None else ""
    return f"Task {plain(task.name)}: {count} on pending (pending){place}, priority {task.priority}"
