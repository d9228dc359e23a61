"""The Python names that people of the source system import (SPEC A8): task files as lists of tuples, and RetryConfig.

Rules: a file is taken whole or not at all; BadFiles tells everything that is wrong with it. A number that was written whole stays
whole.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from jostle.formats import taskfile


@dataclass(frozen=True)
class RetryConfig:
    """Retries without limit; every so many failures wait this long (s)."""

    max_retry_before_backoff: int = 3
    backoff_duration: float = 600


def parse_command_file(path: str | os.PathLike[str]) -> list[tuple[list[str], int, float]]:
    """(commands, queue_id, memory_gb) of each block of a single-GPU file."""
    blocks, _ = taskfile.load(os.fspath(path), "single")
    return [(list(block.commands), block.queue, block.memory_gb) for block in blocks]


parse_gpu_command_file = parse_command_file


def parse_gpus_command_file(path: str | os.PathLike[str]) -> list[tuple[list[str], int, int, float]]:
    """(commands, queue_id, gpu_count, memory_gb) of each block of a multi-GPU file."""
    blocks, _ = taskfile.load(os.fspath(path), "multi")
    return [(list(block.commands), block.queue, block.gpus, block.memory_gb) for block in blocks]
