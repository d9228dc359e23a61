"""Why a job waits, from its row: the part of the answer that does not depend on GPUs is found here, pure; for all who ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.core.reasons import Reason
from jostle.core.states import FINAL, OPEN


def explain(
    row: Mapping[str, Any],
    *,
    shape_reason: Reason | None = None,
    now: float = 0.0,
    wall: float = 0.0,
    ahead: tuple[int, int | None] = (0, None),
    needs: Sequence[Mapping[str, Any]] = (),
) -> Reason | None:
    """None for a job that has ended, of which the store knows the reason, and for one that runs and has nothing to say."""
    if row["state"] == "stopping":
        return Reason(code="cancelling")
    if row["state"] in OPEN and row["reason"]:
        return Reason(code=row["reason"]["code"], params=row["reason"].get("params") or {})
    if row["state"] != "queued":
        return None
    if row["intent"] == "hold":
        return Reason(code="held")
    if ahead[0]:
        return Reason(code="behind", params={"queue": row["queue"], "n": ahead[0], "job": ahead[1]})
    waiting = [n for n in needs if n["state"] not in FINAL]
    if waiting:
        return Reason(code="after", params={"jobs": [n["id"] for n in waiting]})
    left = row["not_before"] - now
    if left > 0 and row["reason"] and row["reason"]["code"] == "yielded":
        return Reason(code="yielded", params={**row["reason"]["params"], "left_s": left})
    if left > 0 and row["retries"]:
        return Reason(code="backoff", params={"failures": row["retries"], "error_type": row["error_type"], "left_s": left})
    if left > 0 and row["begin_at"]:
        return Reason(code="begin", params={"at": wall + left, "left_s": left})
    return shape_reason or Reason(code="starting_soon")
