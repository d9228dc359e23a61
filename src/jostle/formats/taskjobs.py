"""The blocks of a task file as the jobs of a batch. Pure but for the paths that the workspace knows.

Rules: what a block says is kept; `{work_dir}` is filled here, the other variables when a run starts. Task K of a queue is the
K-th block of that queue in the file, from 1.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from jostle.core.kinds import MAX_NAME
from jostle.core.variables import UNI_ID_FILE, filled
from jostle.formats import gpumanage, spec
from jostle.formats.taskfile import Block
from jostle.formats.workspace import Workspace
from jostle.printable import one_line

NAMED = 48  # characters of a command in a job's name
TASK = re.compile(r"(queue -?\d+ task \d+): ", re.ASCII)  # how its name begins, until somebody changes it
_BASE = re.compile(r"(?<!\$)\{work_dir\}/")


def batch(workspace: Workspace, blocks: Sequence[Block], visible: str | None) -> dict[str, Any]:
    """The submit request of a config, `visible` being the inherited CUDA_VISIBLE_DEVICES."""
    name = f"{os.path.basename(workspace.root) or '/'} {workspace.mode} {workspace.label}"
    return {
        "name": one_line(name[-MAX_NAME :]),
        "policy": gpumanage.policy(workspace.settings, workspace.mode, visible),
        "queues": "own",
        "jobs": jobs(workspace, blocks),
        "texts": [block.commands for block in blocks],  # as the file has them
    }


def jobs(workspace: Workspace, blocks: Sequence[Block]) -> list[dict[str, Any]]:
    counted: Counter[int] = Counter()
    specs = []
    work_dir, logs = workspace.work_dir, os.path.join(workspace.log_dir, "tasks")
    env = {UNI_ID_FILE: workspace.uni_id_file}
    for block in blocks:
        counted[block.queue] += 1
        specs.append(_job(workspace, block, counted[block.queue], work_dir, logs, env))
    return specs


def _job(workspace: Workspace, block: Block, task: int, work_dir: str, logs: str, env: dict[str, str]) -> dict[str, Any]:
    return spec.job(
        name=name_of(block, task),
        queue=str(block.queue),
        commands=[filled(command, {"work_dir": work_dir}) for command in block.commands],
        gpus=[block.gpus, block.gpus],
        memory_mib=max(1, math.ceil(block.memory_gb * 1024)),
        env=dict(env),
        workdir=work_dir,
        log=os.path.join(logs, log_name(workspace, block.queue, task)),
        leftovers="wait",
    )


def name_of(block: Block, task: int) -> str:
    """`queue 1 task 2: bash scripts/train.sh car`: the last command is the one that trains."""
    words = " ".join(_BASE.sub("", block.commands[-1].replace("--uni_id {uni_id}", "")).split()) or "job"
    shown = one_line(words[: NAMED + 1])
    return f"queue {block.queue} task {task}: " + (shown if len(shown) <= NAMED else shown[: NAMED - 1] + "…")


def log_name(workspace: Workspace, queue: int, task: int) -> str:
    """A file given by name has logs of its own: its tasks are not those of config 1."""
    stem = os.path.splitext(os.path.basename(workspace.command_file))[0]
    which = str(workspace.index + 1) if workspace.numbered else re.sub(r"[^\w.-]", "_", stem)[:80]
    return f"{workspace.mode}_{which}_queue{queue}_task{task}.log"
