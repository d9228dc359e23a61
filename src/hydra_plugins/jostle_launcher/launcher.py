"""The launcher: each combination of a sweep becomes a job that runs the same program once more, with its overrides.

Rules: nothing of the sweep's process is pickled; the job is a command that can be read, logged and tried again. What the task
returned comes back through a file in the job's output directory. A job that failed raises when its value is asked for.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

import jostle
from hydra_plugins.jostle_launcher import config as _config  # noqa: F401  registers hydra/launcher=jostle

OURS = ("hydra/launcher", "hydra.launcher", "hydra/sweeper", "hydra.sweeper", "hydra.sweep.", "hydra.mode", "hydra.run.dir")
RESULT = "return_value.pickle"


class JostleLauncher(Launcher):
    def __init__(self, policy: dict[str, Any] | None = None, devices: str | None = None, **job: Any) -> None:
        self.policy, self.devices = dict(policy or {}), devices
        self.job = {key: value for key, value in job.items() if value is not None}
        self.config: DictConfig | None = None
        self.context: HydraContext | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.config, self.context = config, hydra_context

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        configs = [self._config(list(overrides), initial_job_idx + k) for k, overrides in enumerate(job_overrides)]
        folders = [os.path.abspath(os.path.join(c.hydra.sweep.dir, c.hydra.sweep.subdir)) for c in configs]
        jobs = [self._job(list(overrides), folder) for overrides, folder in zip(job_overrides, folders, strict=True)]
        for folder in folders:
            os.makedirs(folder, exist_ok=True)
        batch = jostle.submit(jobs, name=f"hydra {configs[0].hydra.job.name}"[:200], policy=self.policy, gpus=self.devices)
        batch.wait()
        rows = batch.jobs()
        return [self._result(*one) for one in zip(job_overrides, configs, folders, rows, strict=True)]

    def _config(self, overrides: list[str], number: int) -> DictConfig:
        assert self.config is not None and self.context is not None
        found: DictConfig = self.context.config_loader.load_sweep_config(self.config, overrides)
        with open_dict(found):
            found.hydra.job.id, found.hydra.job.num = f"jostle_{number}", number
        return found

    def _job(self, overrides: list[str], folder: str) -> dict[str, Any]:
        assert self.config is not None
        more = [text for text in self.config.hydra.overrides.hydra if not text.lstrip("+~").startswith(OURS)]
        report = "hydra_plugins.jostle_launcher.report.Report"
        own = [
            f"hydra.run.dir={_quoted(folder)}",
            f"+hydra.callbacks.jostle._target_={report}",
            f"+hydra.callbacks.jostle.path={_quoted(os.path.join(folder, RESULT))}",
        ]
        argv = [sys.executable, *program(), *places(sys.argv[1:]), *more, *overrides, *own]
        log = os.path.join(folder, "jostle.log")
        return {**OmegaConf.to_container(OmegaConf.create(self.job)), "run": [argv], "name": _name(overrides), "log": log}  # type: ignore[dict-item]

    def _result(self, overrides: Sequence[str], config: DictConfig, folder: str, row: dict[str, Any]) -> JobReturn:
        done = JobReturn(
            overrides=list(overrides), cfg=config, hydra_cfg=OmegaConf.create({"hydra": config.hydra}), working_dir=folder,
            task_name=config.hydra.job.name,
        )  # fmt: skip
        if row["state"] == "succeeded":
            done.status = JobStatus.COMPLETED
            with open(os.path.join(folder, RESULT), "rb") as f:
                done.return_value = pickle.load(f)
        else:
            done.status = JobStatus.FAILED
            why = f"job {row['id']} {row['state']}: `jostle why {row['id']}`; see {folder}/jostle.log"
            done.return_value = jostle.Failed(why)
        return done


def program() -> list[str]:
    """How this very program was started: a module, or a file."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return ["-m", spec.name.removesuffix(".__main__")]
    return [os.path.abspath(sys.argv[0])]


def places(argv: Sequence[str]) -> list[str]:
    """The options that say where the configuration lies; all others are overrides, or of the sweep alone."""
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        if word in ("-cn", "-cp", "-cd", "--config-name", "--config-path", "--config-dir"):
            kept += [word, next(words, "")]
        elif word.startswith(("--config-name=", "--config-path=", "--config-dir=")):
            kept.append(word)
    return kept


def _quoted(path: str) -> str:
    """As Hydra's grammar takes any text."""
    return "'" + path.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _name(overrides: Sequence[str]) -> str:
    text = "".join(c if c.isprintable() else " " for c in ",".join(overrides)).strip()
    return text[:200] or "hydra"
