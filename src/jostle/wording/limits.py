"""Limits of a person in words: who has set one, and a row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.wording.text import plain

# who has set a limit: (English, Chinese)
LIMITS_BY: dict[str, tuple[str, str]] = {
    "own": ("set by you (`jostle limits`)", "由您设定，见 `jostle limits`"),
    "config": ("set in config.yaml", "由 config.yaml 设定"),
    "lab": ("set in the lab's file", "由实验室的文件设定"),
    "manager": ("set in the manager's file", "由管理器的文件设定"),
    "manager_default": ("the manager's default", "管理器的默认值"),
}


def limit_by(source: str, at: int) -> str:
    """Who has set a limit; `at`: 0 in English, 1 in Chinese."""
    return LIMITS_BY[source][at] if source in LIMITS_BY else source


def cells(limit: Mapping[str, Any], view: Mapping[str, Any], lang: str) -> list[str]:
    """Name, most, how many are held, and who says so, with his file."""
    numbers = [("–" if number is None else str(number)) for number in (limit["most"], limit["held"])]
    return [limit["name"], *numbers, source(limit, view, lang) or "–"]


def source(limit: Mapping[str, Any], view: Mapping[str, Any], lang: str) -> str:
    """Who has set it; nobody: nothing."""
    origin = limit["source"] or ""
    file = {"lab": view["lab_file"], "manager": view["manager_file"], "manager_default": view["manager_file"]}.get(origin, "")
    chinese = lang.startswith("zh")
    return limit_by(origin, int(chinese)) + (f"{'：' if chinese else ': '}{plain(file)}" if file else "")
