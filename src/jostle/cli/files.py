"""The files that a verb is given, whatever their format, as one batch.

A directory is a workspace and `*.txt` a task file (SPEC A1–A4, A7); everything else is a job file of our own. A task file is one
batch with the rules of its workspace, so it stands alone; job files go together.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.errors import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence


def load(files: Sequence[str], mode: str | None = None) -> tuple[dict[str, Any], list[str]]:
    """The batch (name, policy, queues, jobs) and warnings; BadFiles with everything that is wrong."""
    if not any(is_tasks(file) for file in files):
        from jostle.formats import jobfile

        return jobfile.load(files), []
    if len(files) > 1:
        raise Usage("a workspace or task file has rules of its own: give it alone, or `jostle import` it into a job file")
    from jostle.compete import jobs, workspace
    from jostle.formats import taskfile

    space = workspace.find(files[0], mode=mode)
    blocks, warnings = taskfile.load(space.command_file, space.mode)
    if not blocks:
        raise Usage(f"{space.command_file} holds no task: nothing to do")
    visible = None if "JOSTLE_UNI_ID" in os.environ else os.environ.get("CUDA_VISIBLE_DEVICES")  # a run's cards are its own
    return jobs.batch(space, blocks, visible), [*space.warnings, *warnings]


def is_tasks(file: str) -> bool:
    return file.lower().endswith(".txt") or os.path.isdir(file)
