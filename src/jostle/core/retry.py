"""What becomes of a job whose run has ended: done, tried again, or failed for good.

Rules: exit code 0 (or the program's own word, where it gives one) is success whatever was wanted; a cancelled job is never
tried again; nor one whose allocation was released. A run that never started, or gave way to somebody else, is no try. Every
`backoff_after`-th failure waits `backoff`; a run that failed within seconds waits a little, twice as long each time, so that a
broken command cannot spin. Out of GPU memory is told apart by what was measured: squeezed, more than was asked for, or more than
any card has; the last is final whatever tries are left.
"""

from __future__ import annotations

from dataclasses import replace

from jostle.core import courtesy, failure, health, inside
from jostle.core.ledger import offer_mib, takes_whole
from jostle.core.model import Exit, Gpu, Node, Retry, Run, World
from jostle.core.plan import Finish, Requeue
from jostle.core.reasons import Reason
from jostle.core.states import ABNORMAL

MOST_S = 60.0
FULL = 0.9  # a run that used this much of what it had was not squeezed by others
ALL = 0.95  # … and one that used this much of the card had all of it
STEP_MIB = 256
YIELD_S, MOST_YIELD_S = 30.0, 3600.0  # how long who gave way stays away: first, and at the most
CALM_S = 1800.0  # who could work for so long has not come back too soon


def error_type(end: Exit) -> str:
    return failure.error_type(**{name: getattr(end, name) for name in failure.FACTS})


def finish_or_requeue(world: World, run: Run) -> Finish | Requeue:
    """The decision for a run that has ended, or never began."""
    end = run.ended
    if end is not None and not run.voided and failure.succeeded(end.code, end.said, end.stopped):
        return Finish(run=run.id, state="succeeded", reason=released(world, run, end))
    told_to_end = run.cancel or run.state == "stopping"
    if run.inside is not None and (told_to_end or (end is not None and end.stopped)) and run.id in inside.evicted(world):
        return Finish(run=run.id, state="cancelled", reason=Reason(code="allocation_over", params={"job": run.inside}))
    if told_to_end:
        return Finish(run=run.id, state="cancelled", reason=Reason(code="cancelled"))
    if run.voided or end is None:
        wait = pause_after_void(run)
        return Requeue(
            run=run.id,
            counts=False,
            not_before=world.now + wait if wait else 0.0,
            memory_mib=run.memory_mib,
            reason=Reason(code="not_started"),
        )
    if run.yielding:
        return _yielded(world, run, end)
    if end.unable:
        wait = pause_after_want(run)
        return Requeue(
            run=run.id,
            counts=False,
            not_before=world.now + wait,
            memory_mib=run.memory_mib,
            reason=Reason(code="no_process", params={"error": end.error, "left_s": wait}),
        )
    return next_try(world, run, end)


def released(world: World, run: Run, end: Exit) -> Reason | None:
    """Why an allocation ended; of work that went well there is nothing to say."""
    if not end.released:
        return None
    if end.released == "time":
        return Reason(code="released_time", params={"limit_s": run.time_limit or end.ran_for or 0.0})
    if end.released == "process":
        return Reason(code="released_process")
    if run.id[0] in world.orphans:
        return inside.alone(world.orphans[run.id[0]])
    if not run.cancel and run.idle_release is not None:
        return Reason(code="released_idle", params={"idle_s": run.idle_release})
    return Reason(code="released")


def _yielded(world: World, run: Run, end: Exit) -> Requeue:
    """It gave way to somebody else: no try, and back when it is quiet; later each time, unless it could work for long."""
    lately = 0 if (end.ran_for or 0.0) >= CALM_S else run.yielded_lately
    wait = min(YIELD_S * 2.0 ** min(lately, 10), MOST_YIELD_S)
    reason = Reason(code="yielded", params={"left_s": wait, "times": lately + 1})
    return Requeue(
        run=run.id, counts=False, yielded=True, not_before=world.now + wait, memory_mib=run.memory_mib, reason=reason
    )


def _voids(run: Run) -> int:
    """Runs of its job so far that were no tries, this one included."""
    return run.id[1] - run.failures - run.excused - run.yielded


def pause_after_void(run: Run) -> float:
    """One start may go wrong; where none succeeds (a disk on which nothing can be claimed) tries must become rare."""
    return 0.0 if _voids(run) <= 2 else min(0.05 * 2.0 ** min(_voids(run), 12), 30.0)


def pause_after_want(run: Run) -> float:
    """A host without processes was waited for already; others may have the card meanwhile."""
    return min(2.0 ** min(_voids(run), 10), MOST_S) * (1 + 0.25 * jitter(run.uni_id))


def next_try(world: World, run: Run, end: Exit) -> Finish | Requeue:
    kind = error_type(end)
    if run.excused < health.EXCUSED and (cards := health.blamed(world, run, end, kind)):
        return _excused(world, run, kind, cards)
    if kind == "oom" and run.uuids:
        return _after_oom(world, run, end)
    return _again(world, run, end, kind)


def _excused(world: World, run: Run, kind: str, cards: tuple[str, ...]) -> Requeue:
    """A faulty card failed it: tried again at once, elsewhere if there is another, and not counted."""
    indices = sorted(g.index for g in world.gpus if g.uuid in cards)
    params = {"card": ", ".join(map(str, indices)) or "?", "error_type": kind}
    reason = Reason(code="card_failed", params=params)
    return Requeue(
        run=run.id, counts=False, excused=True, error_type=kind, memory_mib=run.memory_mib, avoid=cards, reason=reason
    )


def _again(world: World, run: Run, end: Exit, kind: str) -> Finish | Requeue:
    """The plain answer: the same request again, if tries are left."""
    failures, retry = run.failures + 1, _retry(world, run)
    if retry.max is not None and failures > retry.max:
        return _failed(world, run, kind, _final(world, run, end, kind))
    wait = pause(run, end, retry)
    params = {"failures": failures, "error_type": kind, "left_s": wait}
    return Requeue(
        run=run.id,
        not_before=world.now + wait if wait else 0.0,
        error_type=kind,
        memory_mib=run.memory_mib,
        avoid=health.suspected(run, end, kind),
        reason=Reason(code="backoff" if wait else "retry", params=params),
    )


def _retry(world: World, run: Run) -> Retry:
    return world.policy_of(run.batch).retry if run.retry is None else run.retry


def _failed(world: World, run: Run, kind: str, reason: Reason) -> Finish:
    """For good; the policy says what that means for its queue."""
    closes = world.policy_of(run.batch).on_failure == "stop"
    return Finish(run=run.id, state="failed", error_type=kind, reason=reason, closes_queue=closes)


def _final(world: World, run: Run, end: Exit, kind: str) -> Reason:
    code, params = _cause(run, end, kind, world.policy_of(run.batch).command_limit)
    return Reason(code=code, params={**params, "failures": run.failures + 1})


def _cause(run: Run, end: Exit, kind: str, limit: float | None) -> tuple[str, dict[str, object]]:
    if end.lost:
        return end.lost, {}
    if kind == "start_failed":
        return "start_failed", {"error": end.error}
    if kind == "timeout":
        return "time_limit", {"limit_s": run.time_limit or limit or end.ran_for or 0.0}
    if kind == "oom":
        return "oom", {"peak_mib": run.peak_mib or None}
    if end.said == ABNORMAL and not end.code:
        return "reported", {"exit_code": end.code, "error_type": kind}
    if end.code is None and end.signal is None:
        return "exit_unknown", {}
    if end.signal is not None or kind == "signal_15":
        return "signal", {"signal": end.signal or 15, "error_type": kind}
    return "exit_code", {"exit_code": end.code, "error_type": kind}


def pause(run: Run, end: Exit, retry: Retry) -> float:
    """How long the job waits after this failure, in seconds."""
    failures = run.failures + 1
    if retry.backoff_after > 0 and failures % retry.backoff_after == 0:
        return retry.backoff
    if end.ran_for is not None and end.ran_for >= health.QUICK_S:
        return 0.0
    return min(2.0 ** min(failures - 1, 10), MOST_S) * (1 + 0.25 * jitter(run.uni_id))


def jitter(text: str) -> float:
    """A number in [0, 1) that looks like chance and is always the same for one text."""
    value = 2166136261
    for char in text:
        value = (value ^ ord(char)) * 16777619 % 2**32
    return (value >> 8) / 2**24


def _after_oom(world: World, run: Run, end: Exit) -> Finish | Requeue:
    cards = {g.uuid: g for g in world.gpus}
    own = [cards[u] for u in run.uuids if u in cards and cards[u].total_mib > 0]
    if len(own) < len(run.uuids) or run.peak_mib <= 0:
        return _again(world, run, end, "oom")  # a card is gone from sight, or its use was never measured: nothing to learn
    if _squeezed(world, run, own):
        return _changed(_again(world, run, end, "oom"), "oom_squeezed", run, run.memory_mib, (_crowded(own).uuid,))
    small = min(own, key=lambda g: g.total_mib)
    if not _had_all(world, run, small):
        return _changed(_again(world, run, end, "oom"), "oom_raised", run, _raised(world, run))
    if _larger_elsewhere(world, run, small.total_mib, len(own)):
        return _changed(_again(world, run, end, "oom"), "oom_larger_card", run, small.total_mib + 1)
    params = {"peak_mib": run.peak_mib, "largest_mib": max(g.total_mib for g in own)}
    return _failed(world, run, "oom", Reason(code="oom_beyond_any_card", params=params))


def _larger_elsewhere(world: World, run: Run, mib: int, count: int) -> bool:
    """Whether a node that its job may go to has enough larger cards; of a target that chooses itself nobody can deny it."""
    if any(target.name in run.on and not target.places for target in world.targets):
        return True
    nodes = [node for target, node in world.nodes if target in run.on]
    return any(sum(g.total_mib > mib for g in _in_range(world, run, node)) >= count for node in nodes)


def _in_range(world: World, run: Run, node: Node) -> list[Gpu]:
    return courtesy.in_range(world.policy_of(run.batch), node.gpus)


def _range(world: World, run: Run) -> list[Gpu]:
    """The cards that its job may have, of all nodes that it may go to."""
    return [gpu for target, node in world.nodes if target in run.on for gpu in _in_range(world, run, node)]


def _squeezed(world: World, run: Run, own: list[Gpu]) -> bool:
    """It used less than it was promised and someone else is seen there: alone on its cards it asked for too much at once."""
    small = world.policy_of(run.batch).small_mib
    return any(run.peak_mib < FULL * (run.memory_mib or g.total_mib) and _someone(run, g, small) for g in own)


def _someone(run: Run, gpu: Gpu, small_mib: int) -> bool:
    return any(h.run != run.id and (h.used_mib is None or h.used_mib >= small_mib) for h in gpu.holders)


def _had_all(world: World, run: Run, gpu: Gpu) -> bool:
    """The card itself was too small. Where sizes differ use tells it too, or a job would go round and round them."""
    mixed = len({g.total_mib for g in _range(world, run)}) > 1
    return takes_whole(offer_mib(gpu), run.memory_mib) or (mixed and run.peak_mib >= ALL * gpu.total_mib)


def _crowded(own: list[Gpu]) -> Gpu:
    return min(own, key=lambda g: (g.free_mib, g.index))


def _raised(world: World, run: Run) -> int | None:
    """The request that would have sufficed, in steps; None, the whole card, when no card has more."""
    needed = max(float(run.peak_mib), (run.memory_mib or 0) * 1.25)
    mib = -int(-needed // STEP_MIB) * STEP_MIB
    largest = max((g.total_mib for g in _range(world, run)), default=0)
    return mib if mib <= largest else None


def _changed(
    again: Finish | Requeue, code: str, run: Run, memory_mib: int | None, avoid: tuple[str, ...] = ()
) -> Finish | Requeue:
    """The plain answer with another request; a final answer stays as it is."""
    if isinstance(again, Finish):
        return again
    base = again.reason.params if again.reason else {}
    params = {**base, "asked_mib": run.memory_mib, "peak_mib": run.peak_mib, "next_mib": memory_mib}
    return replace(again, memory_mib=memory_mib, avoid=avoid, reason=Reason(code=code, params=params))
