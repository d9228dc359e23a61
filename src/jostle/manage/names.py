"""Names of tasks (SPEC C1, C4): with the prefix or without it, it is the same task; a cluster is told the name with it, once."""

from __future__ import annotations

from collections.abc import Sequence


def bare(name: str, prefix: str) -> str:
    """As a task is called here and shown."""
    return name.removeprefix(prefix) or name


def prefixed(name: str, prefix: str) -> str:
    """As a cluster is told it."""
    return name if name.startswith(prefix) else prefix + name


def managed(name: str, prefixes: Sequence[str]) -> bool:
    """Whether a job that runs is one of the manager's, too."""
    return any(prefix and name.startswith(prefix) for prefix in prefixes)
