"""What differs between two readings of a workspace's settings (SPEC A14), and what of it holds at once. Pure."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from jostle.formats.gpumanage import PLACES, Settings


def changes(old: Settings, new: Settings) -> tuple[list[str], list[str]]:
    """What changed, as `gpu_left 1 → 2`: the keys that hold at once, and those that hold at the next start."""
    now: list[str] = []
    later: list[str] = []
    for key in (field.name for field in fields(Settings)):
        before, after = getattr(old, key), getattr(new, key)
        if before != after:
            (later if key in PLACES else now).append(f"{key} {shown(before)} → {shown(after)}")
    return now, later


def shown(value: Any) -> str:
    """As the file would say it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
