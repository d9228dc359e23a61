"""Decisions about runs into the store, inside the caller's transaction: ends, new tries, jobs that are given up, and states."""

from __future__ import annotations

from collections.abc import Mapping

from jostle.core.model import Exit, RunId
from jostle.core.plan import Continue, Fail, Finish, Pause, Plan, Requeue, Stop, Yield
from jostle.core.reasons import kept
from jostle.engine.cards import KnownCards
from jostle.engine.open import Open
from jostle.failpoint import failpoint
from jostle.store import ends as store_ends
from jostle.store import legs, runs
from jostle.store.store import Store


def ends(store: Store, plan: Plan, open_runs: Mapping[RunId, Open], cards: KnownCards, at: float, now: float) -> dict[RunId, str]:
    """Which runs have ended by it, and how."""
    ended = {}
    for d in plan.decisions:
        if isinstance(d, Finish | Requeue):
            run = open_runs[d.run]
            exit = run.exit or Exit()
            reason = kept(d.reason) if d.reason else None
            if isinstance(d, Finish):
                ended[d.run] = runs.finish(
                    store, d.run, batch=run.batch, state=d.state, exit=exit, error_type=d.error_type, reason=reason,
                    closes_queue=d.closes_queue, peak_mib=cards.peak_mib(d.run), at=at, now=now,
                )  # fmt: skip
            else:
                ended[d.run] = outcome = (
                    "voided" if run.voided or exit.unable else "yielded" if d.yielded else "lost" if exit.lost else "failed"
                )
                runs.requeue(
                    store, d.run, outcome=outcome, exit=exit, counts=d.counts, excused=d.excused, yielded=d.yielded,
                    not_before=d.not_before, error_type=d.error_type, memory_mib=d.memory_mib, avoid=d.avoid, reason=reason,
                    peak_mib=cards.peak_mib(d.run), at=at, now=now,
                )  # fmt: skip
        elif isinstance(d, Fail):
            store_ends.end_queued(store, d.job, d.state, kept(d.reason), at=at, now=now, error_type=d.error_type)
            if d.closes_queue:
                store_ends.close_queue(store, d.job, at=at, now=now)
    if ended:
        failpoint("engine.ends_recorded")
    return ended


def batches_left(plan: Plan, open_runs: Mapping[RunId, Open]) -> set[int]:
    """Batches of which something has ended."""
    gone = {d.batch for d in plan.decisions if isinstance(d, Fail)}
    return gone | {open_runs[d.run].batch for d in plan.decisions if isinstance(d, Finish | Requeue)}


def states(store: Store, plan: Plan, open_runs: Mapping[RunId, Open], at: float, now: float) -> None:
    for run in open_runs.values():
        if run.claimed and run.state == "starting" and run.exit is None:
            runs.running(store, run.id, run.batch, at)
        if run.handle_changed:
            runs.handle(store, run.id, run.handle)
    for d in plan.decisions:
        if isinstance(d, Stop) and open_runs[d.run].state != "stopping":
            runs.stopping(store, d.run, open_runs[d.run].batch, at)
        elif isinstance(d, Yield):
            legs.yielding(store, d.run, open_runs[d.run].batch, kept(d.reason), at)
        elif isinstance(d, Pause):
            legs.paused(store, d.run, open_runs[d.run].batch, d.times, kept(d.reason), at, now)
        elif isinstance(d, Continue):
            its = open_runs[d.run].stillness
            assert its is not None
            legs.continued(store, d.run, open_runs[d.run].batch, its.times, now - its.since, kept(d.reason), at, now)
