"""Hydra's multirun on jostle, by the program itself: `python app.py -m hydra/launcher=jostle x=1,2`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jostle
from tests.e2e.instance import PATIENCE, Instance

pytest.importorskip("hydra", reason="hydra-core is not installed")

App = Callable[..., "subprocess.CompletedProcess[str]"]

APP = """
import os
import hydra

@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config):
    print("x is", config.x, "on GPU", os.environ["CUDA_VISIBLE_DEVICES"])
    if config.x == 13:
        raise ValueError("an unlucky number")
    return config.x * config.factor

if __name__ == "__main__":
    main()
"""

@pytest.fixture
def app(instance: Instance, tmp_path: Path) -> App:
    folder = instance.work
    (folder / "conf").mkdir()
    (folder / "conf" / "config.yaml").write_text("x: 1\nfactor: 10\n")
    (folder / "app.py").write_text(APP)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "app.py", "-m", "hydra/launcher=jostle", "hydra.launcher.devices=sim:2x24", *words]
        return subprocess.run(argv, cwd=folder, env=instance.env, text=True, capture_output=True, timeout=2 * PATIENCE)

    return run


def test_each_combination_is_a_job_and_its_value_comes_back(app: App, instance: Instance) -> None:
    done = app("x=1,2,3", "factor=10", "hydra.launcher.memory=4GiB", "hydra.sweep.dir=\"out put's\"")
    assert done.returncode == 0, done.stderr
    rows = instance.newest(3)
    assert [(row["name"], row["state"], row["memory_mib"]) for row in rows] == [
        (f"x={x},factor=10", "succeeded", 4096) for x in (1, 2, 3)
    ]
    folder = instance.work / "out put's"
    assert sorted(os.listdir(folder)) == ["0", "1", "2", "multirun.yaml"]
    assert "x is 2 on GPU" in (folder / "1" / "jostle.log").read_text()
    assert "x: 2" in (folder / "1" / ".hydra" / "config.yaml").read_text()
    values = [returned(str(folder / n), row).return_value for n, row in zip("012", rows, strict=True)]
    assert values == [10, 20, 30]


def returned(folder: str, row: dict[str, Any]) -> Any:
    """What a sweeper is given of a job that has ended."""
    from omegaconf import OmegaConf

    from hydra_plugins.jostle_launcher.launcher import JostleLauncher

    return JostleLauncher()._result([], OmegaConf.create({"hydra": {"job": {"name": "app"}}}), folder, row)


def test_a_job_that_failed_is_told_and_the_others_have_their_values(
    app: App, instance: Instance
) -> None:
    done = app("x=1,13")
    assert done.returncode == 1 and "job 2 failed: `jostle why 2`" in done.stderr
    rows = instance.newest(2)
    assert [row["state"] for row in rows] == ["succeeded", "failed"]
    folders = [os.path.dirname(row["log"]) for row in rows]
    assert returned(folders[0], rows[0]).return_value == 10
    with pytest.raises(jostle.Failed, match="job 2 failed"):
        _ = returned(folders[1], rows[1]).return_value
