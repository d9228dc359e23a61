"""Reasons as values: a code and its numbers; jostle.wording has the sentences, for whoever shows them.

A Reason explains a job, a Refusal one GPU, a Hold a place or a target at which nothing starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

# tuples, for the command line words reasons, too, and dataclasses cost more to import than all the rest of this


class Refusal(NamedTuple):
    """Why one GPU is not given to a job."""

    code: str
    uuid: str
    index: int  # type: ignore[assignment]  # not that of tuples
    params: Mapping[str, Any] = {}


class Reason(NamedTuple):
    code: str
    params: Mapping[str, Any] = {}
    gpus: tuple[Refusal, ...] = ()


ABSENT = "target_absent"
"""Nobody here can reach the run; so of one that is to be cancelled, too, this is what there is to say."""

UNWRITTEN = ("disk_full", "disk_error", "unwritten")
"""Holds during which nothing is recorded, not even an end."""

IMPOSSIBLE_CARDS = frozenset({
    "impossible", "impossible_count", "impossible_slices", "impossible_limit", "impossible_user_limit",
})  # fmt: skip
IMPOSSIBLE = IMPOSSIBLE_CARDS | {"impossible_cpus", "impossible_host_memory", "impossible_counter"}
"""Why a job could never start, however long it waits."""

DRIVER_STARTING, UNREADABLE = "driver_starting", "gpus:"
DRIVER_HOLDS = frozenset({DRIVER_STARTING, "driver_mismatch"})
PROBE_TROUBLES = frozenset({"probe_unstarted", "probe_ended", "probe_silent", "probe_waits"})
GPU_HOLDS = DRIVER_HOLDS | {UNREADABLE, "gpus_unclaimable", "gpus_unlisted", "gpu_limits_unread"}
"""Of our own holds those that concern GPUs only, for who has no more of a hold than its text."""


class Hold(NamedTuple):
    """Why nothing starts somewhere; of a probe, why it reads no card."""

    code: str
    detail: str = ""
    gpus_only: bool = False  # jobs without a GPU start all the same


def as_text(hold: Hold | None) -> str:
    """As it is sent, and shown to programs; "": nothing is held up."""
    return "" if hold is None else f"{hold.code} {hold.detail}" if hold.detail else hold.code


def hold_of(text: str) -> Hold:
    """The one place where such a text is read again: for words and findings, never for a decision."""
    code, _, detail = text.partition(" ")
    return Hold(code, detail, gpus_only=code in GPU_HOLDS)


def on_hold(hold: Hold | None, *, with_gpus: bool = True) -> Reason | None:
    """What a hold says to a job that needs GPUs, or needs none."""
    return None if hold is None or (hold.gpus_only and not with_gpus) else Reason("on_hold", {"hold": as_text(hold)})


DONE_BEFORE = "done_before"


def done_before(by: Sequence[int]) -> dict[str, Any]:
    """Of a job that is skipped because this run, (job, run), has done its work."""
    return {"code": DONE_BEFORE, "params": {"job": by[0], "run": by[1]}}


def done_by(state: str, reason: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """`job` and `run` that had done the work of a job which was skipped for that; None: it was not."""
    return reason["params"] if state == "skipped" and reason and reason["code"] == DONE_BEFORE else None


def plain(reason: Reason) -> dict[str, Any]:
    """As it is sent: code and numbers, and of each card that was refused."""
    gpus = [{"index": r.index, "uuid": r.uuid, "code": r.code, "params": dict(r.params)} for r in reason.gpus]
    return {**kept(reason), "gpus": gpus}


def kept(reason: Reason) -> dict[str, Any]:
    """As the store keeps it: code and numbers."""
    return {"code": reason.code, "params": dict(reason.params)}


def counted(refusals: Iterable[Refusal]) -> list[dict[str, Any]]:
    """The refusals by code, the most frequent first, with what their histogram tells: small, and can be kept as JSON."""
    groups: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault(refusal.code, []).append(refusal)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [_count(code, group) for code, group in ordered]


# of several cards the one that comes nearest speaks for all
NEAREST = {
    "available_mib": max, "needed_mib": min, "utilization": min, "most": max, "left_s": min, "idle_for_s": min, "silent_s": max,
}  # fmt: skip


def _count(code: str, group: list[Refusal]) -> dict[str, Any]:
    first = group[0].params
    counts = {
        "code": code,
        "n": len(group),
        **{key: best(values) for key, best in NEAREST.items() if (values := [r.params[key] for r in group if key in r.params])},
    }
    if "user" in first:
        users = Counter(str(r.params.get("user", "?")) for r in group)
        counts["users"] = dict(sorted(users.items(), key=lambda item: (-item[1], item[0])))
    if "job" in first:
        counts["jobs"] = list(dict.fromkeys(r.params.get("job") for r in group))
    return counts
