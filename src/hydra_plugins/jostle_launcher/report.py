"""In the job's own process: it is one of a sweep, as far as its configuration tells, and what its task returned is kept for the
sweeper that asked for it."""

from __future__ import annotations

import os
import pickle
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import open_dict, read_write


class Report(Callback):
    def __init__(self, path: str, num: int) -> None:
        self.path, self.num = path, num

    def on_run_start(self, config: Any, **_: Any) -> None:
        """As Hydra's own launcher has it: on the command line the mode would begin another sweep."""
        with read_write(config.hydra), open_dict(config.hydra):
            config.hydra.mode = RunMode.MULTIRUN
            config.hydra.job.num, config.hydra.job.id = self.num, str(self.num)

    def on_job_end(self, config: Any, job_return: JobReturn, **_: Any) -> None:
        if job_return.status is JobStatus.COMPLETED:
            with open(f"{self.path}.new", "wb") as f:
                pickle.dump(job_return.return_value, f)
            os.replace(f"{self.path}.new", self.path)
