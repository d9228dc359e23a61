"""How many cards a person may hold and does, over all homes, and who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing import Any

    from jostle.session import Session


class Limit(TypedDict):
    name: str
    most: int | None  # None: no limit
    source: str | None  # who has set it: own | config | lab | manager | manager_default
    held: int | None  # cards that count for it now; of what holds for one task: None


class LimitsReport(TypedDict):
    limits: list[Limit]
    said: dict[str, dict[str, int]]  # by source
    lab_file: str
    manager_file: str
    hold: str  # the lab's file cannot be understood


COUNTED = {"max_total_gpus": "total", "max_reserved_gpus": "automatic", "max_manual_gpus": "manual"}


def limits(session: Session) -> LimitsReport:
    client = session.client()
    try:
        return of_answer(client.call("limits"))
    finally:
        client.close()


def of_answer(answer: dict[str, Any]) -> LimitsReport:
    each: list[Limit] = []
    for name, cap in answer["limits"].items():
        held = answer["held"].get(COUNTED.get(name))
        each.append({"name": name, "most": cap and cap["most"], "source": cap and cap["source"], "held": held})
    return {
        "limits": each, "said": answer["said"], "lab_file": answer["lab_file"],
        "manager_file": answer["manager"].get("file", ""), "hold": answer["hold"],
    }  # fmt: skip
