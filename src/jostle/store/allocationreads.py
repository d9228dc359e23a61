"""What the store says of allocations and of what runs inside them."""

from __future__ import annotations

from typing import Any

from jostle.store.reads import Reader


def allocations(reader: Reader) -> list[dict[str, Any]]:
    """The rows of those that have not ended, by number."""
    ids = [row[0] for row in reader._all("SELECT id FROM job WHERE commands = '[]' AND ended_at IS NULL")]
    return reader.jobs(ids=ids) if ids else []


def named(reader: Reader, name: str) -> list[dict[str, Any]]:
    """The rows of those of this name. With the prefix of a manager's file that is loaded, or without it, it is the same name
    (SPEC C1)."""
    from jostle.core.limits import MANAGER  # with the model, which reading verbs do without

    prefix = str((reader.meta(MANAGER) or {}).get("prefix") or "")
    bare = name.removeprefix(prefix)
    return [row for row in allocations(reader) if row["name"].removeprefix(prefix) == bare]


def inside(reader: Reader, allocation: int) -> list[dict[str, Any]]:
    """The rows of the jobs inside one that have not ended, by number."""
    ids = [row[0] for row in reader._all("SELECT id FROM job WHERE inside = ? AND ended_at IS NULL", (allocation,))]
    return reader.jobs(ids=ids) if ids else []


def node(reader: Reader, job: int, n: int) -> str:
    """Where a run of a job is."""
    rows = reader._all("SELECT node FROM run WHERE job = ? AND n = ?", (job, n))
    return str(rows[0][0]) if rows else ""


def place(reader: Reader, job: int, priority: int) -> int:
    """Of a job that waits, among all that do, from 1."""
    before = "SELECT count(*) FROM job WHERE state = 'queued' AND (priority > ? OR (priority = ? AND id < ?))"
    return int(reader._all(before, (priority, priority, job))[0][0]) + 1
