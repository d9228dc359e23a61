"""What a scheduler sees to in the uni_id file, without an engine: the runs that are lost are named here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from jostle.compete.register import RegisterWatch


class Store:
    def __init__(self, **lost: str) -> None:
        self.lost = lost

    def lost_runs(self, **_: Any) -> dict[str, str]:
        return self.lost


class Told:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def tell(self, text: str, level: str = "INFO") -> None:
        self.lines.append(f"{level} {text}")


def test_a22_an_entry_waits_for_the_last_of_its_processes_and_a_word_is_left_alone(tmp_path: Path) -> None:
    living = subprocess.Popen(["sleep", "600"])
    dead = subprocess.Popen(["true"])
    dead.wait()
    file, told = tmp_path / "uni_id.json", Told()
    running = {"state": "running", "retry_count": 2}
    content = {
        "waits": {"pid": living.pid, **running}, "gone": {"pid": dead.pid, **running}, "other": {"pid": dead.pid, **running},
        "said": {"pid": dead.pid, "state": "normal_exit"},
    }  # fmt: skip
    file.write_text(json.dumps(content))
    register = RegisterWatch(str(file), Store(waits="unknown", gone="signal_9", said="unknown", removed="unknown"), told)  # type: ignore[arg-type]
    try:
        register.look()
        content["gone"] = {"pid": dead.pid, "state": "abnormal_exit", "retry_count": 2, "error_type": "signal_9"}
        assert json.loads(file.read_text()) == content and len(told.lines) == 1 and "gone was left at running" in told.lines[0]
    finally:
        living.kill()
        living.wait()
    register.look()
    assert json.loads(file.read_text())["waits"]["state"] == "abnormal_exit" and not register.orphans
    assert json.loads(file.read_text())["other"]["state"] == "running", "its run is not known to be lost"
