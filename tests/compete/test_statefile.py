"""State files that somebody else has put there: nothing of them holds a scheduler up, ends it, or is obeyed by a terminal."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jostle.compete import statefile
from jostle.compete.statefile import Scheduler, StateFile, state
from jostle.compete.statustext import status

ME = Scheduler(
    pid=7, mode="single", config_index=0, config_file="/w/command_gpu.txt", host="h", boot_id="b", start_ticks=5, batch=1,
    started_at=0.0,
)  # fmt: skip


def put(directory: Path, pid: int, **change: Any) -> None:
    StateFile(pid, str(directory)).write({**state(ME, {}, now="running"), "pid": pid, **change})


def pids(directory: Path) -> list[int]:
    return [content["pid"] for content in statefile.read_all(str(directory))]


def test_what_is_no_regular_file_is_passed_over_and_holds_nobody_up(tmp_path: Path) -> None:
    put(tmp_path, 1)
    os.mkfifo(tmp_path / "2.json")
    (tmp_path / "3.json").mkdir()
    (tmp_path / "4.json").symlink_to(tmp_path / "1.json")
    assert pids(tmp_path) == [1] and statefile.clean([str(tmp_path)], "h", "b") == [1]


def test_a_fifo_where_the_file_is_written_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".1.json.new")
    put(tmp_path, 1)
    assert pids(tmp_path) == [1] and os.listdir(tmp_path) == ["1.json"]


def test_one_that_is_too_large_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, 1)
    put(tmp_path, 2, last_error="x" * 5000)
    monkeypatch.setattr(statefile, "MOST", 3000)
    assert pids(tmp_path) == [1]


def test_one_that_is_nested_too_deeply_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "5.json").write_text('{"pid": 5, "x": ' + "[" * 100_000 + "]" * 100_000 + "}")
    assert pids(tmp_path) == [] and statefile.on_other_hosts(str(tmp_path), ME) == []


@pytest.mark.parametrize(
    "change",
    [
        {"batch": {"a": 1}}, {"batch": True}, {"batch": 1 << 70}, {"batch": -1}, {"batch": "1"}, {"start_ticks": 1.5},
        {"mode": 3}, {"config_index": "0"}, {"config_file": ["x"]}, {"state": {}}, {"host": "\x1b[31mEVIL"}, {"host": "a\nb"},
        {"boot_id": 1},
    ],
)  # fmt: skip
def test_what_is_not_as_we_write_it_is_passed_over(tmp_path: Path, change: dict[str, Any]) -> None:
    put(tmp_path, 1, **change)
    assert pids(tmp_path) == []


def test_only_one_that_says_all_can_be_told(tmp_path: Path) -> None:
    whole = json.loads(json.dumps(state(ME, {}, now="running")))
    assert statefile.complete(whole)
    for key in statefile.TYPES:
        assert not statefile.complete({k: v for k, v in whole.items() if k != key}), key
    assert not statefile.complete({**whole, "mode": "x"}) and not statefile.complete({**whole, "state": "\x1b]0;x\x07"})


def test_a_uni_id_of_somebody_else_begins_no_line_of_the_status() -> None:
    lines = status({}, None, user="me", used=[], processes={"\x1b[2Ja\n2026 INFO forged": (1, 0)}, uni_id_file="u\n.json")
    assert lines[-2:] == ["Processes running according to u .json: 1", "  �[2Ja 2026 INFO forged: pid=1, retry_count=0"]
