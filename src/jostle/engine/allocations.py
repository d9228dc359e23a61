"""Allocations as the engine sees them between decisions: whether anybody uses their cards, and who else came onto them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jostle.core.model import RunId
from jostle.core.reasons import Reason
from jostle.core.states import TO_END
from jostle.engine.observe import Observer
from jostle.engine.open import Open
from jostle.engine.ports import Timer

SAID_AFTER = 60.0  # s: who has just got cards, or is between two programs, need not be told
Intruder = tuple[RunId, str, int]


def look(runs: Iterable[Open], observer: Observer, intruders: Sequence[Intruder], now: float) -> None:
    """Takes in what a reading of the cards shows. Idle is an allocation on whose cards no process of ours is, and in which
    nothing runs; where a card cannot be read nobody knows."""
    held = [run for run in runs if run.allocation and not run.over]
    if not held:
        return
    read = {g["uuid"]: g for g in observer.snapshot["gpus"] if g["state"] == "ok"}
    busy = {run.inside for run in runs if not run.over}
    for run in held:
        uuids = [lease.uuid for lease in run.leases]
        there = [(p, u) for u in uuids if u in read for p in read[u]["procs"] if p["pid"] != run.session]  # its keeper is nobody
        run.used = any(observer.run_of(p, u) == run.id for p, u in there)
        if run.used or run.id[0] in busy or run.state == "starting":
            run.idle_since = None
        elif run.idle_since is None and all(uuid in read for uuid in uuids):
            run.idle_since = now
        run.visitor = next((_visitor(observer, uuid, pid) for id, uuid, pid in intruders if id == run.id), None)


def _visitor(observer: Observer, uuid: str, pid: int) -> dict[str, object]:
    user = next((p["user"] for p in observer.processes.get(uuid, ()) if p["pid"] == pid and p["user"]), None)
    return {"gpu": observer.index(uuid), "user": user or "?", "pid": pid}


def remarks(runs: Iterable[Open], clock: Timer) -> dict[int, Reason]:
    """By job, what is remarkable of an allocation: it is about to go, a stranger came before anything was started, it is idle."""
    reasons: dict[int, Reason] = {}
    busy = {run.inside: run.id[0] for run in runs if run.inside is not None and not run.over}
    for run in runs:
        if not run.allocation or run.over:
            continue
        if run.intent in TO_END and run.id[0] in busy:
            reasons[run.id[0]] = Reason(code="releasing", params={"job": busy[run.id[0]]})
        elif run.visitor is not None and run.idle_since is not None:
            reasons[run.id[0]] = Reason(code="visited", params=run.visitor)
        elif run.idle_since is not None and clock.now() - run.idle_since >= SAID_AFTER and not _wants_more(run):
            reasons[run.id[0]] = _idle(run, clock.now() - run.idle_since)
    return reasons


def _wants_more(run: Open) -> bool:
    """Somebody waits for more cards of it, and is told what it lacks, not that it could be given back."""
    return run.elasticity is not None and len(run.leases) < run.elasticity.least


def _idle(run: Open, idle_s: float) -> Reason:
    if run.idle_release is None:
        return Reason(code="held_idle", params={"idle_s": idle_s})
    left = max(0.0, run.idle_release - idle_s)
    return Reason(code="held_idle_until", params={"idle_s": idle_s, "left_s": left})
