"""Rows of the store as these tests need them, and the specs they may have been made of."""

from __future__ import annotations

from typing import Any


def row(id: int, queue: int = 1, state: str = "queued", **more: Any) -> dict[str, Any]:
    ended = state in ("succeeded", "failed", "cancelled", "skipped")
    ran = state not in ("queued", "skipped")
    return {
        "id": id, "name": f"n{id}", "queue": f"7/{queue}", "batch": 7, "state": state, "attempt": int(ran), "retries": 0,
        "exit_code": None, "error_type": None, "started_at": 100.0 if ran else None, "ended_at": 200.0 if ended else None,
        "reason": None, "commands": [f"prepare {id}", f"run {id}"], "memory_mib": 20 * 1024, "gpu_request": [1, 1], "gpus": [],
        "retry_of": None, "place": float(id), **more,
    }  # fmt: skip


def spec(row: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The block that this row was made of."""
    made = {
        "queue": row["queue"].partition("/")[2], "commands": row["commands"], "gpus": row["gpu_request"],
        "memory_mib": row["memory_mib"],
    }  # fmt: skip
    return {**made, **more}
