"""A workspace of task files for a test, and what is seen of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.instance import PATIENCE, Instance, until

WAIT = "until [ -e {work_dir}/%s ]; do sleep 0.02; done"


class Space:
    """A workspace; what its tasks make lies beside it, in its work_dir."""

    def __init__(self, jostle: Instance, name: str, tasks: str, settings: str = "", file: str = "command_gpu.txt") -> None:
        self.jostle = jostle
        self.work = jostle.work / name
        self.root = self.work / "compete_gpu_retry"
        (self.root / "command").mkdir(parents=True)
        (self.root / "config").mkdir()
        self.commands(tasks, file)
        self.settings(settings)

    def commands(self, tasks: str, file: str = "command_gpu.txt") -> None:
        (self.root / "command" / file).write_text(tasks)

    def settings(self, text: str) -> None:
        (self.root / "config" / "gpu_manage.yaml").write_text("check_time: 1\n" + text)

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        return self.jostle.start("compete", *words, cwd=self.root, **options)

    def run(self, *words: str, **options: Any) -> tuple[int, str, str]:
        return self.jostle.run("compete", *words, cwd=self.root, **options)

    def file(self, name: str) -> Path:
        return self.work / name

    def lines(self, name: str) -> list[str]:
        return self.file(name).read_text().split("\n")[:-1] if self.file(name).exists() else []

    def made(self, name: str) -> None:
        until(self.file(name).exists, name)

    def log(self) -> str:
        path = self.root / "logs" / "compete_gpu.log"
        return path.read_text() if path.exists() else ""

    def says(self, text: str) -> None:
        until(lambda: text in self.log(), f"{text!r} in the log")

    def states(self) -> list[dict[str, Any]]:
        """The state files, by pid."""
        directory = self.root / "logs" / "state"
        found = []
        for path in sorted(directory.glob("*.json")) if directory.exists() else ():
            try:
                found.append(json.loads(path.read_text()))
            except FileNotFoundError:
                continue
        return found

    def state(self, **wanted: Any) -> dict[str, Any]:
        """The one state file, when it says this."""

        def look() -> Any:
            return next((s for s in self.states() if all(s[key] == value for key, value in wanted.items())), None)

        found = until(look, f"a state file with {wanted}")
        assert isinstance(found, dict)
        return found


def ended(child: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = child.communicate(timeout=PATIENCE)
    return child.returncode, out + err
