"""The status text, as people who know the source system read it."""

from __future__ import annotations

from typing import Any

from jostle.compete.board import Board
from jostle.compete.statustext import status
from tests.compete.rows import row


def gpu(index: int, **more: Any) -> dict[str, Any]:
    return {"index": index, "state": "ok", "error": "", "free_mib": 15565, "holders": [], **more}


def told(rows: list[dict[str, Any]], gpus: list[dict[str, Any]] | None, **more: Any) -> list[str]:
    given: dict[str, Any] = {"user": "me", "used": [1, 2], "processes": {}, "uni_id_file": "logs/uni_id.json", **more}
    return status(Board(rows).queues(), gpus, **given)


def test_a30_the_lines_are_those_of_the_source() -> None:
    rows = [
        *(row(k) for k in (4, 5, 6)), row(1, state="succeeded"), row(2, state="succeeded"),
        row(3, state="running", gpus=[1], commands=["rm -rf x", "bash run_pipeline.sh car --uni_id abc123"]),
        row(7, queue=2), row(8, queue=2),
    ]  # fmt: skip
    python = [
        {"pid": 1, "user": "me", "name": "/usr/bin/python3.11"}, {"pid": 2, "user": "bob", "name": "python"},
        {"pid": 3, "user": "me", "name": "pt_main_thread", "exe": "python3.11"},
        {"pid": 4, "user": "me", "name": "pythonia", "exe": "x"},
    ]  # fmt: skip
    processes = {"abc123": (12345, 0)}
    assert told(rows, [gpu(0), gpu(1, holders=python), gpu(2, state="lost", error="GPU is lost")], processes=processes) == [
        "Tasks: Total=8, Pending=5, Running=1, Completed=2, Failed=0",
        "Queue 1: 🔴 BUSY, Pending=3, Running=1, Completed=2, Failed=0",
        "Queue 2: 🟢 IDLE, Pending=2, Running=0, Completed=0, Failed=0",
        "GPU 1: Available=15.2GB, User Python Processes=2, Running Tasks=1",
        "  Running Task (Queue 1): bash run_pipeline.sh car --uni_id abc123",
        "GPU 2: GPU is lost",
        "Processes running according to logs/uni_id.json: 1",
        "  abc123: pid=12345, retry_count=0",
    ]


def test_a30_a_queue_whose_task_waits_to_be_tried_again_is_busy() -> None:
    assert told([row(1, retries=1), row(2)], [])[1] == "Queue 1: 🔴 BUSY, Pending=2, Running=0, Completed=0, Failed=0"


def test_a_status_without_an_engine_says_so() -> None:
    assert "not known" in told([row(1)], None)[2]


def test_many_queues_and_long_commands_are_cut() -> None:
    rows = [row(k, queue=k, state="running" if k > 990 else "succeeded", gpus=[1], commands=["x" * 300]) for k in range(1, 1001)]
    lines = told(rows, [gpu(1)])
    queues = [line for line in lines if line.startswith("Queue ")]
    assert len(queues) == 50 and queues[-1].startswith("Queue 1000: 🔴") and "… and 950 more queues" in lines
    assert max(map(len, lines)) < 140
