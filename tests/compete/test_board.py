"""Tasks as queues of processes, and the state file's content."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jostle import proc
from jostle.compete import statefile
from jostle.compete.board import Board
from jostle.compete.statefile import Scheduler, StateFile, clean, read_all, state
from tests.compete.rows import row

ME = Scheduler(
    pid=4711, mode="single", config_index=0, config_file="/w/command/command_gpu.txt", host="h", boot_id="b", start_ticks=5,
    batch=7, started_at=50.0,
)  # fmt: skip
A32 = [
    "pid", "mode", "config_index", "config_file", "state", "started_at", "finished_at", "total_tasks", "pending_tasks",
    "running_tasks", "completed_tasks", "failed_tasks", "gpus_used", "gpus_available", "gpu_assignments", "queues",
    "last_log_lines", "last_error",
]  # fmt: skip
A32_QUEUE = [
    "id", "status", "total_tasks", "pending_tasks", "running_tasks", "completed_tasks", "failed_tasks", "current_task",
    "current_gpu", "last_error", "processes",
]  # fmt: skip
A32_PROCESS = [
    "index", "commands", "memory_gb", "gpu_count", "status", "current_gpu", "gpus", "retry_count", "last_error", "started_at",
    "finished_at",
]  # fmt: skip
RUNS = {"gpu_request": [2, 2], "commands": ["run --uni_id {uni_id} on {available_gpu}"], "uni_id": "u-2"}


def some() -> list[dict[str, object]]:
    return [
        row(1, state="succeeded", gpus=[4]),
        row(2, state="running", gpus=[4, 7], **RUNS),
        row(3, memory_mib=1536),
        row(4, queue=2, retries=2, attempt=2, error_type="oom", started_at=150.0, gpus=[1]),
        row(5, queue=10, state="failed", error_type="exit_code_3"),
        row(6, queue=10, state="skipped", reason={"code": "done_before", "params": {"job": 1, "run": 1}}),
        row(7, queue=3),
    ]


def test_a32_the_file_has_the_fields_of_the_contract_and_then_who_wrote_it() -> None:
    content = state(ME, Board(some()).queues(), now="running", gpus_used=[4, 7], gpus_available=list(range(8)),
                    last_log_lines=[str(k) for k in range(30)], last_error="oom")  # fmt: skip
    assert list(content) == [*A32, "host", "boot_id", "start_ticks", "batch", "last_error_kind"]
    assert list(content["queues"]) == ["1", "2", "3", "10"], "in the order of their numbers"
    assert [list(q) for q in content["queues"].values()] == [A32_QUEUE] * 4
    assert [list(p) for p in content["queues"]["1"]["processes"]] == [A32_PROCESS] * 3
    assert content["gpu_assignments"] == {"4": 1, "7": 1} and content["last_log_lines"] == [str(k) for k in range(10, 30)]
    counts = {k: content[k] for k in A32 if k.endswith("_tasks")}
    assert counts == {"total_tasks": 7, "pending_tasks": 3, "running_tasks": 1, "completed_tasks": 2, "failed_tasks": 1}
    assert json.loads(json.dumps(content)) == content


def test_a32_our_states_as_the_source_names_them() -> None:
    queues = Board(some()).queues()
    assert [p["status"] for q in queues.values() for p in q["processes"]] == [
        "completed", "running", "pending", "retrying", "pending", "failed", "completed",
    ]  # fmt: skip
    assert {name: q["status"] for name, q in queues.items()} == {"1": "running", "2": "running", "3": "idle", "10": "failed"}
    one = queues["1"]
    assert (one["id"], one["current_task"], one["current_gpu"]) == (1, "run --uni_id u-2 on 4,7", 4)
    assert [p["index"] for p in one["processes"]] == [0, 1, 2] and [p["memory_gb"] for p in one["processes"]] == [20, 20, 1.5]
    waiting = queues["2"]["processes"][0]
    assert (waiting["retry_count"], waiting["last_error"], waiting["gpus"], waiting["finished_at"]) == (2, "oom", [], None)
    assert queues["2"]["last_error"] == "oom" and queues["10"]["processes"][0]["last_error"] == "exit_code_3"
    assert queues["10"]["processes"][1]["last_error"] is None


@pytest.mark.parametrize("code", ["queue_failed", "after_failed"])
def test_a32_a_task_that_was_not_started_because_another_failed_counts_as_failed(code: str) -> None:
    reason = {"code": code, "params": {"job": 1, "state": "failed"}}
    (queue,) = Board([row(1, state="failed", error_type="oom"), row(2, state="skipped", reason=reason)]).queues().values()
    assert (queue["status"], queue["completed_tasks"], queue["failed_tasks"]) == ("failed", 0, 2)
    assert "job 1" in queue["processes"][1]["last_error"]


def test_a_starting_and_a_stopping_task_run_and_a_cancelled_one_failed() -> None:
    rows = [row(k, state=s) for k, s in enumerate(("starting", "stopping", "cancelled"))]
    assert [p["status"] for p in Board(rows).queues()["1"]["processes"]] == ["running", "running", "failed"]


def test_only_the_queue_that_changed_is_worked_out_again() -> None:
    board = Board(some())
    before = board.queues()
    board.take([row(3, state="running", gpus=[4])])
    after = board.queues()
    assert after["2"] is before["2"] and after["1"]["running_tasks"] == 2
    assert board.live == {2, 3}
    board.take([{**row(8, queue=10), "retry_of": 5}])
    assert [p["status"] for p in board.queues()["10"]["processes"]] == ["completed", "pending"], "tried again as another job"
    board.take([row(7, queue=3, state="cancelled", reason={"code": "dropped", "params": {}})])
    assert "3" not in board.queues()


def test_a32_the_file_is_replaced_whole_and_removed(tmp_path: Path) -> None:
    both = [str(tmp_path / "logs" / name) for name in ("state", "status")]
    file = StateFile(4711, *both)
    assert file.write({"pid": 4711}) and file.write({"pid": 4711, "mode": "单"})
    assert [[f["mode"] for f in read_all(directory)] for directory in both] == [["单"], ["单"]]
    assert [os.listdir(directory) for directory in both] == [["4711.json"], ["4711.json"]]
    file.remove()
    file.remove()
    assert [os.listdir(directory) for directory in both] == [[], []]


def test_a_disk_that_is_full_does_not_end_the_scheduler(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the directory should be")
    assert StateFile(1, str(tmp_path / "state")).write({}) is False


def test_a_scheduler_of_another_host_with_the_same_tasks_is_noticed(tmp_path: Path) -> None:
    base = state(ME, {}, now="running")
    for pid, change in enumerate(
        ({"host": "other"}, {"host": "other", "config_index": 1}, {"host": "other", "state": "failed"}, {})
    ):
        StateFile(pid + 1, str(tmp_path)).write({**base, "pid": pid + 1, **change})
    assert [content["pid"] for content in statefile.on_other_hosts(str(tmp_path), ME)] == [1]


@pytest.fixture
def gone() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(60)
    return child.pid


def test_a33_files_of_dead_schedulers_of_this_host_are_removed_and_no_others(tmp_path: Path, gone: int) -> None:
    me = proc.stat(os.getpid())
    assert me is not None
    living = {"pid": me.pid, "host": "h", "boot_id": "b", "start_ticks": me.ticks}
    reused = {"pid": me.ppid, "host": "h", "boot_id": "b", "start_ticks": 1}
    dead = {"pid": gone, "host": "h", "boot_id": "b", "start_ticks": 1}
    for content in (living, reused, dead):
        StateFile(int(content["pid"]), str(tmp_path)).write(content)  # type: ignore[call-overload]
    for pid, content in ((1 << 23, {"host": "elsewhere", "boot_id": "b"}), ((1 << 23) + 1, {"mode": "of the source system"})):
        StateFile(pid, str(tmp_path)).write({"pid": pid, **content})
    (tmp_path / f"{(1 << 23) + 2}.json").write_text("{half of")
    (tmp_path / "notes.txt").write_text("")
    assert sorted(clean([str(tmp_path)], "h", "b")) == sorted([me.ppid, gone])
    kept = {f"{me.pid}.json", f"{1 << 23}.json", f"{(1 << 23) + 1}.json", f"{(1 << 23) + 2}.json", "notes.txt"}
    assert set(os.listdir(tmp_path)) == kept
    assert clean([str(tmp_path)], "h", "after a reboot") == [me.pid]
    assert statefile.read_all(str(tmp_path / "nowhere")) == []
