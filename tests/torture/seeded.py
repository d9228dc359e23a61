"""Which bugs are seeded, and where the engine must be killed so that each shows within a few kills.

Random moments alone are not enough for some (see RELIABILITY, "Lesson from a trial harness"): those get a failpoint.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import harness


@dataclass(frozen=True, kw_only=True)
class Hunt:
    points: tuple[str, ...] = ()  # failpoints to be killed at, in turn; none: random moments
    kills: int = 8  # by when it must have been caught
    kinds: tuple[int, ...] = ()  # of jobs, see Torture.new_jobs; none: all
    longer: float = 0.0  # s that every job runs longer
    neighbour_for: float = 0.1  # s that the neighbour's jobs run
    neighbour_gpus: int = 1  # cards each of them takes; if it wants all, any run it cannot see is an overlap
    harmless: bool = False  # a fault that the protocol survives: nothing may be found


BUGS: dict[str, Hunt] = {
    "ack_before_commit": Hunt(points=("service.before_commit=kill@1",), kills=3),
    "adopts_nothing": Hunt(kills=4),
    "cancel_forgotten": Hunt(points=tuple(f"cancel:store.before_commit=kill@{k}" for k in (2, 3, 4)), kills=3),
    "double_spawn": Hunt(kills=8, harmless=True),
    "exit_before_lock": Hunt(kills=8, kinds=(11,), longer=0.3),  # many runs are open at each restart, and some end while it looks
    "exit_code_always_zero": Hunt(kills=3, kinds=(7,)),
    "exit_not_written": Hunt(kills=3),
    "final_not_final": Hunt(kills=4),
    "forget_leases": Hunt(
        points=("engine.after_spawn=kill@1",), kills=4, kinds=(0,), longer=0.6, neighbour_for=0.3, neighbour_gpus=4,
    ),
    "ignore_neighbours": Hunt(
        points=("engine.ends_recorded=kill@3",), kills=4, kinds=(0,), longer=0.3, neighbour_for=3.0, neighbour_gpus=4,
    ),
    "leases_die_with_engine": Hunt(
        points=("engine.after_spawn=kill@1",), kills=4, kinds=(0,), longer=0.6, neighbour_for=0.3, neighbour_gpus=4,
    ),
    "ledger_forgets": Hunt(kills=3),
    "lost_dependants": Hunt(kills=3, kinds=(10,)),
    "mark_failed_on_restart": Hunt(kills=4),
    "next_of_queue_forgotten": Hunt(kills=3, kinds=(0,)),
    "no_claim": Hunt(kills=3),
    "no_subreaper": Hunt(kills=3, kinds=(8,)),
    "no_sweep": Hunt(kills=3, kinds=(8,)),
    "once_ignored": Hunt(points=("service.after_commit=kill@1",), kills=3),
    "queue_not_serial": Hunt(kills=3, kinds=(0,)),
    "requeue_on_restart": Hunt(kills=4),
    "requeue_without_void": Hunt(points=harness.SLOW, kills=3),
    "shim_dies_with_nursery": Hunt(kills=4),
    "spawn_before_commit": Hunt(points=("engine.reserved=kill@1",), kills=4),
    "stop_with_engine": Hunt(kills=4),
    "void_is_failure": Hunt(points=("engine.before_spawn=kill@1",), kills=4),
}

EACH_COMMIT = ("ack_before_commit", "exit_code_always_zero", "no_claim", "requeue_on_restart", "spawn_before_commit")


def hunt(name: str, seed: int, verbose: bool = False, seeded: bool = True) -> dict[str, Any]:
    """One run of the harness against an engine with this bug; `caught_by` names the invariants that did not hold.

    Without the bug (`seeded=False`) the same plan must find nothing, or it proves nothing about the bug.
    """
    plan = BUGS[name]
    began = time.monotonic()
    whole = harness.Torture(seed, name if seeded else None, verbose)
    try:
        whole.kinds, whole.longer = plan.kinds, plan.longer
        whole.neighbour_for, whole.neighbour_gpus = plan.neighbour_for, plan.neighbour_gpus
        points = plan.points or ("",)
        found = whole.run([points[k % len(points)] for k in range(plan.kills)], shims=False)
        report = whole.report(time.monotonic() - began, found)
    finally:
        whole.close()
    stale = [v.text for v in found if v.invariant == "engine"]
    assert not stale, f"the seeded bug {name} does not fit the engine any more: {stale[0]}"
    return {**report, "caught_by": sorted({v.invariant for v in found}), "harmless": plan.harmless or not seeded}

