"""In the job's own process: keeps what the task returned, for the sweeper that asked for it."""

from __future__ import annotations

import os
import pickle
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback


class Report(Callback):
    def __init__(self, path: str) -> None:
        self.path = path

    def on_job_end(self, config: Any, job_return: JobReturn, **_: Any) -> None:
        if job_return.status is JobStatus.COMPLETED:
            with open(f"{self.path}.new", "wb") as f:
                pickle.dump(job_return.return_value, f)
            os.replace(f"{self.path}.new", self.path)
