"""Hydra's multirun on jostle, by the program itself: `python app.py -m hydra/launcher=jostle x=1,2`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jostle
from tests.e2e.instance import PATIENCE, Instance, hears_all, until

pytest.importorskip("hydra", reason="hydra-core is not installed")

OURS = ["hydra/launcher=jostle", "hydra.launcher.devices=sim:2x24"]
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

    def run(*words: str, launcher: str = "jostle") -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "app.py", "-m", *(OURS if launcher == "jostle" else []), *words]
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


TELLING = """
import json
import hydra
from hydra.core.hydra_config import HydraConfig

@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config):
    h = HydraConfig.get()
    told = {"num": h.job.num, "id": h.job.id, "mode": h.mode.name, "dir": h.runtime.output_dir, "task": list(h.overrides.task)}
    with open(f"{config.out}/{config.x}.json", "w") as f:
        json.dump({**told, "seen": config.seen}, f)
    print("Test Accuracy:", config.x)

if __name__ == "__main__":
    main()
"""


def test_a_job_is_told_what_hydras_own_launcher_tells_it_and_its_overrides_are_its_params(app: App, instance: Instance) -> None:
    (instance.work / "app.py").write_text(TELLING)
    (instance.work / "conf" / "config.yaml").write_text("x: 1\nout: x\nseed: 0\nseen: ${hydra:job.num}\n")
    told = {}
    for launcher in ("jostle", "basic"):
        out = instance.work / launcher
        out.mkdir()
        done = app("x=5,6", "seed=7", f"out={out}", "hydra.sweep.dir=swept", launcher=launcher)
        assert done.returncode == 0, done.stderr
        told[launcher] = [json.loads((out / f"{x}.json").read_text()) for x in (5, 6)]
        for one in told[launcher]:
            one["task"] = [text for text in one["task"] if not text.startswith("out=")]
    assert told["jostle"] == told["basic"]
    assert [(one["num"], one["id"], one["mode"], one["seen"]) for one in told["jostle"]] == [
        (0, "0", "MULTIRUN", 0), (1, "1", "MULTIRUN", 1),
    ]  # fmt: skip
    out = instance.work / "jostle"
    assert [row["params"] for row in instance.newest(2)] == [{"x": x, "seed": "7", "out": str(out)} for x in "56"]
    found = instance.json("results", "--by", "x")
    assert [(group["params"]["x"], group["metrics"]["accuracy"]["mean"]) for group in found["groups"]] == [("5", 5), ("6", 6)]


def test_an_interrupt_cancels_the_jobs_and_says_so(app: App, instance: Instance) -> None:
    waits = "open('began', 'w').close(); import time; time.sleep(100); print("
    (instance.work / "app.py").write_text(APP.replace("print(", waits))
    argv = [sys.executable, "app.py", "-m", *OURS, "x=1,2"]
    child = subprocess.Popen(
        argv, cwd=instance.work, env=instance.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hears_all
    )
    until((instance.work / "began").exists)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, "Traceback" in err) == (130, False), err
    assert "cancelling the batch" in err and "batch 1: 2 cancelled" in err
    assert [row["state"] for row in instance.newest(2)] == ["cancelled", "cancelled"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("hydra.launcher.memory=lots", "hydra.launcher: memory: \"lots\" is not understood"),
        ("+hydra.launcher.memroy=4", "hydra.launcher: unknown key \"memroy\""),
        ("+hydra.launcher.policy.max_concurent=4", "hydra.launcher: unknown key \"max_concurent\""),
    ],
)
def test_what_is_wrong_under_the_launcher_is_one_error(app: App, said: str, told: str) -> None:
    done = app("x=1,2,3", said)
    assert done.returncode == 1 and done.stderr.count("memroy") + done.stderr.count("lots") + done.stderr.count("concurent") <= 4
    assert told in done.stderr and "Traceback" not in done.stderr and done.stderr.count("hydra.launcher: ") <= 1, done.stderr


def returned(folder: str, row: dict[str, Any]) -> Any:
    """What a sweeper is given of a job that has ended."""
    from omegaconf import OmegaConf

    from hydra_plugins.jostle_launcher.launcher import job_return

    return job_return([], OmegaConf.create({"hydra": {"job": {"name": "app"}}}), folder, row)


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
