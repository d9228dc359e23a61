"""`gpu_manager.log` (SPEC C12): all that was done and went wrong, for as many bytes and backups as the configuration says."""

from __future__ import annotations

import sys

from jostle.compete.schedlog import SchedulerLog
from jostle.formats.managerfile import LEVELS, Logging


class ManagerLog(SchedulerLog):
    """Several processes append to it at once, and whoever finds it full puts it aside."""

    def __init__(self, path: str, rules: Logging) -> None:
        self._least = LEVELS.index(rules.level)
        limit = rules.max_size if rules.backup_count else sys.maxsize  # without backups it is never put aside
        super().__init__(path, limit=limit, backups=rules.backup_count)

    def write(self, text: str, level: str = "INFO", at: float | None = None) -> list[str]:
        return super().write(text, level, at) if LEVELS.index(level) >= self._least else []
