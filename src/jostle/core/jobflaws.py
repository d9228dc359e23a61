"""What the fields of a job cannot say together. Each by itself is checked by its kind; here stands all that holds across them.

Rules: pure, and light to import, for every command starts with it. A flaw is a code and its parameters: each door words it, or
gives it file and line.
"""

from __future__ import annotations

from jostle.core.fields import JOB
from jostle.core.variables import UNI_ID_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

OF_ALLOCATIONS = ("tied_to", "awaited_by", "idle_release")
"""What only an allocation, a job without commands, has."""

HOLDS = frozenset({*OF_ALLOCATIONS, "name", "priority", "time_limit", "memory_mib", "gpus", "share", "tags", "commands",
                   "workdir", "begin", "intent"})  # fmt: skip
"""What may be said of an allocation; all else is about what runs."""


def flaws(job: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """`job`: its fields, at least those named here; what only programs say may be absent."""
    wrong: list[tuple[str, dict[str, Any]]] = []
    allocation, inside = not job["commands"], job.get("inside")
    least, most = job["gpus"]
    if allocation:
        wrong += [("not_of_allocation", {"key": key}) for key in job if key not in HOLDS and job[key] != JOB[key].default]
        wrong += [("holds_no_card", {})] if least < 1 else []
    else:
        wrong += [("only_of_allocation", {"key": key}) for key in OF_ALLOCATIONS if job.get(key) is not None]
    if inside is not None and not allocation:
        odd = [key for key in ("on", "resize") if job[key] != JOB[key].default]
        wrong += [("not_of_inside", {"key": key, "allocation": inside}) for key in odd]
    if job["resize"] is not None and not allocation:
        wrong += [("resize_needs_card", {})] if least < 1 else []
        wrong += [("resize_without_uni_id", {})] if UNI_ID_FILE in job["env"] else []
    if job["memory_mib"] is not None and most == 0:
        wrong.append(("memory_without_card", {}))
    if job["share"] and job["memory_mib"] is None and most > 0 and inside is None:  # inside, it has what the allocation has
        wrong.append(("shares_without_memory", {}))
    return wrong
