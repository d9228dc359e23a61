"""What of a submit can never run on this host, as far as its cards were ever read: told when it is asked for, not when its turn
has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.core.model import Gpu, Limits, Policy, Target, World
from jostle.core.reasons import Reason, kept
from jostle.core.survey import Asked, never
from jostle.errors import Invalid

SHOWN = 8  # ids of jobs that are alike

Never = dict[Asked, Reason] | None
"""What can never run here and why, by what is asked for; None where nothing is known of the cards."""


class Hopeless(Invalid):
    """A job of a submit can never run here. Whoever asked words it."""

    def __init__(self, number: int, name: str, reason: Reason) -> None:
        super().__init__(f"job {number} ({name}): {reason.code}. Nothing was queued (--strict)")
        at_once = reason._replace(params={**reason.params, "refused_at_once": True})
        self.about = {"job": number, "name": name, "reason": kept(at_once)}


def asked(job: Mapping[str, Any]) -> Asked:
    counters = tuple(sorted(job["counters"].items()))
    return Asked(job["gpus"][0], job["memory_mib"], tuple(job["on"]), job["cpus"], job["host_memory_mib"], counters)


def counts(job: Mapping[str, Any]) -> bool:
    """Whether it is to run on cards that are to be found yet: not what is done, nor what runs on those of an allocation."""
    return not job.get("done_by") and job.get("inside") is None


def demanding(jobs: Any) -> bool:
    """Whether anything but single cards is asked for, so that it is worth waiting a moment for what there is."""
    each = jobs if isinstance(jobs, list) else []
    return any(j.get("memory_mib") or j.get("gpus", [1, 1]) != [1, 1] for j in each if isinstance(j, dict))


def cards(readings: Sequence[Mapping[str, Any]]) -> tuple[Gpu, ...]:
    """As far as they were ever read."""
    return tuple(
        Gpu(
            uuid=g["uuid"],
            index=g["index"],
            state=g["state"],
            total_mib=g["total_mib"],
            reserved_mib=g.get("reserved_mib") or 0,
            mig_slice=bool(g.get("mig_slice")),
        )
        for g in readings
    )


def hopeless(
    targets: tuple[Target, ...], policy: Policy, limits: Limits, counters: Mapping[str, int], jobs: Sequence[Mapping[str, Any]]
) -> Never:
    world = World(now=0.0, uid=0, targets=targets, policy=policy, limits=limits, counters=counters)
    reasons = never(world, {asked(job) for job in jobs if counts(job)})
    return reasons if reasons or any(g.state == "ok" for g in world.gpus) else None


def refuse(reasons: Never, jobs: Sequence[Mapping[str, Any]]) -> None:
    """For those who want to hear of it as an error."""
    for k, job in enumerate(jobs):
        if reasons and counts(job) and (reason := reasons.get(asked(job))) is not None:
            raise Hopeless(k + 1, job["name"], reason)


def listed(reasons: Never, jobs: Sequence[Mapping[str, Any]], first: int = 1) -> list[dict[str, Any]]:
    """Each reason with the jobs that it holds for; `first` is the number of the first of them."""
    if not reasons:
        return []
    alike: dict[Asked, list[int]] = {}
    for k, job in enumerate(jobs):
        if asked(job) in reasons and counts(job):
            alike.setdefault(asked(job), []).append(first + k)
    return [{"jobs": ids[:SHOWN], "count": len(ids), "reason": kept(reasons[key])} for key, ids in alike.items()]
