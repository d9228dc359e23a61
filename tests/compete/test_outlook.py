"""What is told before anything runs, and what is told only once."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from jostle.cli.terminal import Terminal
from jostle.cli.watching import Lines, Live
from jostle.compete.outlook import missing_cards, never, unwritable
from jostle.compete.scheduler import TaskProgress
from jostle.formats.gpumanage import Settings
from jostle.formats.workspace import Workspace
from tests.cli.conftest import event
from tests.compete.rows import row

GPUS = [{"index": k, "uuid": f"GPU-{k}", "state": "ok", "total_mib": 24 * 1024} for k in range(8)]
POLICY = {"gpus": None, "gpu_left": 0, "min_gpu": None, "max_gpu": None}


def test_a12_cards_that_are_named_and_not_there_are_told() -> None:
    named = Settings(use_all_gpus=False, compete_gpus=(9, 0, 8))
    assert missing_cards(named, GPUS) == "compete_gpus names 8, 9; this host has 0-7"
    assert missing_cards(named, [GPUS[k] for k in (0, 1, 2, 5)]).endswith("this host has 0-2,5")
    assert missing_cards(named, []) == "", "nothing is known of this host's cards"
    assert missing_cards(Settings(use_all_gpus=False, compete_gpus=(4, 7)), GPUS) == missing_cards(Settings(), GPUS) == ""


def test_tasks_that_can_never_start_are_told_with_the_reason_and_only_the_first_five() -> None:
    rows = [row(1), row(2, memory_mib=100 * 1024), row(3, gpu_request=[9, 9]), row(4, gpu_request=[8, 8])]
    told = never(rows, GPUS, POLICY)
    assert [line.partition(":")[0] for line in told] == ["2 n2", "3 n3"]
    assert "can never start with the cards this host has" in told[0] and "the largest offers 24 GiB" in told[0], told
    assert [line[:4] for line in never(rows, GPUS, {**POLICY, "gpu_left": 1})] == ["2 n2", "3 n3", "4 n4"]
    assert [line[:4] for line in never(rows, GPUS, {**POLICY, "gpus": [0], "max_gpu": 1})] == ["2 n2", "3 n3", "4 n4"]
    assert never(rows, [], POLICY) == []
    many = never([row(k, memory_mib=100 * 1024) for k in range(8)], GPUS, POLICY)
    assert len(many) == 6 and many[-1] == "and 3 more tasks that can never start"


@pytest.mark.parametrize("language, stays", [("en", "It stays queued"), ("zh", "保留在队列中")])
def test_of_a_task_that_has_ended_it_is_not_said_that_it_stays_queued(language: str, stays: str) -> None:
    alike = {"memory_mib": 100 * 1024, "attempt": 0}
    queued, cancelled = never([row(1, **alike), row(2, state="cancelled", **alike)], GPUS, POLICY, language)
    assert stays in queued and stays not in cancelled and cancelled.startswith("2 n2: "), (queued, cancelled)


def test_a21_whether_the_uni_id_file_can_be_written(tmp_path: Path) -> None:
    assert unwritable(str(tmp_path / "logs" / "uni_id.json")) == "" and os.listdir(tmp_path / "logs") == []
    assert unwritable(str(tmp_path)) == "it is a directory"
    assert unwritable("/proc/x/uni.json") == "No such file or directory" and unwritable("/proc/uni.json")


def test_a_path_is_relative_inside_the_workspace_and_absolute_elsewhere() -> None:
    space = Workspace(root="/w/s", mode="single", index=0, command_file="", config_file=None, settings=Settings())
    assert space.shown("/w/s/logs/u.json") == "logs/u.json"
    assert [space.shown(path) for path in ("/w/sx/u.json", "/proc/x")] == ["/w/sx/u.json", "/proc/x"]


class Asked(Terminal):
    """A terminal whose engine says these reasons."""

    def __init__(self, reasons: dict[int, dict[str, Any]]) -> None:
        super().__init__()
        self.reasons = reasons

    def client(self, **_: Any) -> Any:
        return self

    def call(self, op: str, id: int) -> dict[str, Any]:
        return {"reason": self.reasons[id]}


def too_many(cards: int) -> dict[str, Any]:
    return {"code": "impossible_count", "params": {"needed": 8, "cards": cards}}


def test_why_a_task_waits_that_can_never_start_is_said_once_and_others_are_said_again() -> None:
    reasons = {1: too_many(4), 2: too_many(2), 3: {"code": "busy", "text": "busy"}}
    lines = Said(Asked(reasons), TaskProgress([row(k, queue=k) for k in (1, 2, 3)]))
    first, second = lines.period()
    assert first.startswith("1 n1: It can never start") and "may use 4." in first
    assert second.startswith("2 n2: It can never start") and "may use 2." in second
    assert lines.period() == lines.period() == ["3 n3: busy"], "those that can never start do not hide it"
    reasons[1] = too_many(3)
    again, other = lines.period()
    assert again.startswith("1 n1: It can never start") and "may use 3." in again and other == "3 n3: busy"
    assert lines.period() == ["3 n3: busy"]


class Said(Lines):
    def period(self) -> list[str]:
        self.told: list[str] = []
        self.idle()
        return self.told

    def put(self, line: str) -> None:
        self.told.append(line.removeprefix("waiting    "))


def test_on_a_terminal_the_name_gives_way_to_what_comes_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size = namedtuple("size", ("columns", "lines"))
    monkeypatch.setattr(os, "get_terminal_size", lambda fd=1: size(100, 24))
    name = "queue 1 task 2: bash scripts/train.sh car --lr 0.001 --epochs 300"
    progress = TaskProgress([row(12, name=name, state="running")])
    live = Live(Terminal(), progress)
    params = {"failures": 3, "error_type": "exit_code_1", "left_s": 600.0}
    requeued = event(1, "requeued", 12, reason={"code": "backoff", "params": params})
    live.event(requeued, progress.take(requeued))
    (line,) = [line for line in capsys.readouterr().out.split("\n") if "again  " in line]
    told = line.rpartition("\x1b[J")[2]
    assert told.startswith("again      12 queue 1 task") and "…: It failed 3 times" in told and len(told) <= 99
    assert "is tried again in 10" in told and told.endswith("."), told
