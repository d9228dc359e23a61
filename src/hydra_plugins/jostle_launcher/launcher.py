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
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

import jostle
from hydra_plugins.jostle_launcher import config as _config  # noqa: F401  registers hydra/launcher=jostle
from jostle.errors import JostleError
from jostle.printable import one_line

OURS = ("hydra/launcher", "hydra.launcher", "hydra/sweeper", "hydra.sweeper", "hydra.sweep.", "hydra.mode", "hydra.run.dir")
RESULT = "return_value.pickle"
INTERRUPTED = 130


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
        jobs = [
            self._job(list(overrides), folder, initial_job_idx + k)
            for k, (overrides, folder) in enumerate(zip(job_overrides, folders, strict=True))
        ]
        for folder in folders:
            os.makedirs(folder, exist_ok=True)
        name = f"hydra {configs[0].hydra.job.name}"[:200]
        defaults: Any = OmegaConf.to_container(OmegaConf.create(self.job))
        params = [_params(overrides) for overrides in job_overrides]
        try:
            batch = jostle.submit(jobs, name=name, policy=self.policy, defaults=defaults, devices=self.devices, params=params)
        except JostleError as e:  # what is said under hydra.launcher, or an engine that cannot be had
            raise CompactHydraException("\n".join(f"hydra.launcher: {line}" for line in _lines(e))) from None
        if batch.attend(lambda text: print(text, file=sys.stderr, flush=True)):
            sys.exit(INTERRUPTED)  # it is the program that was interrupted, not one job of it
        rows = batch.jobs()
        return [job_return(*job) for job in zip(job_overrides, configs, folders, rows, strict=True)]

    def _config(self, overrides: list[str], number: int) -> DictConfig:
        assert self.config is not None and self.context is not None
        found: DictConfig = self.context.config_loader.load_sweep_config(self.config, overrides)
        with open_dict(found):
            found.hydra.job.id, found.hydra.job.num = str(number), number
        return found

    def _job(self, overrides: list[str], folder: str, number: int) -> dict[str, Any]:
        assert self.config is not None
        more = [text for text in self.config.hydra.overrides.hydra if not text.lstrip("+~").startswith(OURS)]
        report = "hydra_plugins.jostle_launcher.report.Report"
        own = [
            f"hydra.run.dir={_quoted(folder)}",
            f"+hydra.callbacks.jostle._target_={report}",
            f"+hydra.callbacks.jostle.path={_quoted(os.path.join(folder, RESULT))}",
            f"+hydra.callbacks.jostle.num={number}",
        ]
        argv = [sys.executable, *program(), *places(sys.argv[1:]), *more, *overrides, *own]
        log = os.path.join(folder, "jostle.log")
        return {"run": [argv], "name": _name(overrides), "log": log}


def job_return(overrides: Sequence[str], config: DictConfig, folder: str, row: dict[str, Any]) -> JobReturn:
    """What a sweeper is given of a job that has ended."""
    result = JobReturn(
        overrides=list(overrides), cfg=config, hydra_cfg=OmegaConf.create({"hydra": config.hydra}), working_dir=folder,
        task_name=config.hydra.job.name,
    )  # fmt: skip
    if row["state"] == "succeeded":
        result.status = JobStatus.COMPLETED
        with open(os.path.join(folder, RESULT), "rb") as f:
            result.return_value = pickle.load(f)
    else:
        result.status = JobStatus.FAILED
        why = f"job {row['id']} {row['state']}: `jostle why {row['id']}`; see {folder}/jostle.log"
        result.return_value = jostle.Failed(why)
    return result


def _lines(e: JostleError) -> list[str]:
    return list(dict.fromkeys(line.removeprefix("jostle.submit: ") for line in str(e).splitlines()))


def _params(overrides: Sequence[str]) -> dict[str, str]:
    """What a job stands for: `+model=big` is the model big. What is said to Hydra, or takes something away, is no value."""
    pairs = [text.lstrip("+").partition("=") for text in overrides if not text.startswith("~")]
    return {key: value for key, _, value in pairs if not key.startswith(("hydra.", "hydra/"))}


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
    text = one_line(",".join(overrides)).strip()
    return text[:200] or "hydra"
