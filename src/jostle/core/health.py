"""Which cards are set aside as faulty, and which failures are a card's fault and not the job's.

Rules: a card is set aside by a fact of the driver (errors of its memory that came while we watched, a row that could not be
replaced), by words of a fixed list (failure.CARD_WORDS) at the end of a failed log, or by three jobs that failed on it within
seconds and then ran longer on another, while no run has lasted or gone well on it. Never the last card of a node that can be
used; and what only jobs speak against is still given to a job for which the other cards could never suffice (scope.py). A
failure on a faulty card is no try of its job, up to three times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from jostle.core import failure
from jostle.core.model import Exit, Gpu, Run, World
from jostle.core.plan import Decision, Doubt, Quarantine
from jostle.core.reasons import Reason

QUICK_S = 10.0  # a run that failed sooner may have met a faulty card
EXCUSED = 3  # tries of a job that are laid to faulty cards and not counted
WITNESSES = 3  # jobs that it takes where there are neither facts nor words

OWN_FAULT = frozenset({"start_failed", "timeout", "oom", "signal_15", "exit_code_126", "exit_code_127", "unknown"})
"""Kinds of failure that say nothing about the card."""

CRASHES = frozenset({4, 5, 6, 7, 8, 11, 31})
"""Signals that a program brings upon itself; all others are sent, by a person or for want of memory."""


def fact(gpu: Gpu) -> Reason | None:
    """What the driver says against a card."""
    if gpu.remap_failed:
        return Reason(code="faulty_row")
    return Reason(code="faulty_memory", params={"errors": gpu.new_errors}) if gpu.new_errors > 0 else None


def usable(gpu: Gpu) -> bool:
    """Whether it could be given to anyone, now or at the next reading."""
    good = gpu.state in ("ok", "unknown") and gpu.compute_mode != "prohibited"
    return good and not gpu.excluded and gpu.faulty is None


def suspect(gpu: Gpu) -> bool:
    """Set aside without a fact of the driver and without its words: by jobs that failed there and not elsewhere."""
    return gpu.faulty is not None and gpu.faulty.code == "faulty_jobs"


def tells(kind: str) -> bool:
    """Whether a failure of this kind may be the card's doing."""
    name, _, number = kind.rpartition("_")
    sent = int(number) if name in ("signal", "exit_code") and number.isdecimal() else 0
    if name == "exit_code":
        sent = sent - 128 if 128 < sent <= 192 else 0  # how a shell tells of a signal
    return kind not in OWN_FAULT and (not sent or sent in CRASHES)


def blamed(world: World, run: Run, end: Exit, kind: str) -> tuple[str, ...]:
    """The cards that a failure of this kind is laid to; none: it is the job's own."""
    cards = {g.uuid: g for g in world.gpus}
    sick = tuple(u for u in run.uuids if u in cards and (cards[u].faulty is not None or fact(cards[u]) is not None))
    if failure.card_words(end.tail):
        return sick or run.uuids
    return sick if kind not in OWN_FAULT else ()


def suspected(run: Run, end: Exit, kind: str) -> tuple[str, ...]:
    """The card on which the job is not tried again at once: it failed there within seconds, and of one card we know which."""
    quick = end.ran_for is not None and end.ran_for < QUICK_S and tells(kind) and not end.stopped
    return run.uuids if quick and len(run.uuids) == 1 else ()


def set_aside(gpus: tuple[Gpu, ...], decisions: Iterable[Decision]) -> tuple[Gpu, ...]:
    """The cards as they are once these decisions hold."""
    faulty = {d.uuid: d.reason for d in decisions if isinstance(d, Quarantine)}
    return tuple(replace(g, faulty=faulty[g.uuid]) if g.uuid in faulty else g for g in gpus) if faulty else gpus


def without_faulty(world: World, decisions: Iterable[Decision]) -> World:
    """The World as it is once these decisions hold."""
    aside = [d for d in decisions if isinstance(d, Quarantine)]
    if not aside:
        return world
    nodes = {t.name: tuple(replace(n, gpus=set_aside(n.gpus, aside)) for n in t.nodes) for t in world.targets}
    return replace(world, targets=tuple(replace(t, nodes=nodes[t.name]) for t in world.targets))


def verdicts(world: World) -> list[Decision]:
    """Cards to set aside, and what else is held against cards from now on."""
    reasons: dict[str, tuple[Reason, Run | None]] = {}
    for gpu in world.gpus:
        if (reason := fact(gpu)) is not None:
            reasons[gpu.uuid] = (reason, None)
    for run in world.runs:
        if run.ended is not None and (words := _words_against(run, run.ended)) is not None:
            reasons.setdefault(run.uuids[0], (words, run))
    doubts = _doubts(world) if world.doubts or any(run.tried for run in world.runs) else {}
    for uuid, jobs in doubts.items():
        if len(jobs) >= WITNESSES:
            reasons.setdefault(uuid, (Reason(code="faulty_jobs", params={"failed": ", ".join(map(str, jobs))}), None))
    decisions = [d for _, node in world.nodes for d in _without_the_last(node.gpus, reasons)] if reasons else []
    gone = {d.uuid for d in decisions if isinstance(d, Quarantine)}
    before = world.doubts
    return decisions + [Doubt(uuid=u, jobs=jobs) for u, jobs in doubts.items() if u not in gone and jobs != before.get(u, ())]


def _without_the_last(gpus: Sequence[Gpu], reasons: Mapping[str, tuple[Reason, Run | None]]) -> list[Decision]:
    decisions: list[Decision] = []
    left = {g.uuid for g in gpus if usable(g)}
    for gpu in gpus:
        reason, run = reasons.get(gpu.uuid, (None, None))
        new = gpu.faulty is None or (suspect(gpu) and reason is not None and reason.code != gpu.faulty.code)
        if reason is not None and new and left - {gpu.uuid}:
            left.discard(gpu.uuid)
            by, batch = (run.id, run.batch) if run is not None else (None, None)
            decisions.append(Quarantine(uuid=gpu.uuid, index=gpu.index, reason=reason, run=by, batch=batch))
    return decisions


def _words_against(run: Run, end: Exit) -> Reason | None:
    """What the log of a failed run says against its card; of several cards nobody can say which."""
    if run.cancel or len(run.uuids) != 1 or _succeeded(end):
        return None
    words = failure.card_words(end.tail)
    return Reason(code="faulty_said", params={"job": run.id[0], "run": run.id[1], "words": words}) if words else None


def _succeeded(end: Exit) -> bool:
    return failure.succeeded(end.code, end.said, end.stopped)


def age(run: Run, now: float) -> float:
    """How long it runs, or ran; one that waits for its first process has not begun."""
    if run.ended is not None:
        return 0.0 if run.ended.unable else run.ended.ran_for or 0.0
    return 0.0 if run.state == "starting" else now - run.started_at


def clears(run: Run, now: float) -> bool:
    """Whether it shows that its cards can be used: it has lasted, or gone well. An allocation computes nothing."""
    if run.voided or run.allocation:
        return False
    return age(run, now) >= QUICK_S or (run.ended is not None and _succeeded(run.ended))


def _doubts(world: World) -> dict[str, tuple[int, ...]]:
    """By card: the jobs that failed there within seconds and ran longer on another, since a run last went well there."""
    good = {u for r in world.runs if clears(r, world.now) for u in r.uuids}
    faulty = {g.uuid for g in world.gpus if g.faulty is not None}
    doubts = {uuid: () if uuid in good else jobs for uuid, jobs in world.doubts.items()}
    for run in world.runs:
        for uuid in _fled(world, run):
            jobs = doubts.get(uuid, ())
            if uuid not in good and uuid not in faulty and run.id[0] not in jobs:
                doubts[uuid] = (*jobs, run.id[0])
    return doubts


def _fled(world: World, run: Run) -> Iterator[str]:
    """The cards on which this job's earlier tries failed at once, if this one does better elsewhere."""
    if not run.tried or not clears(run, world.now):
        return
    for uuid, seconds, kind in run.tried:
        if uuid not in run.uuids and 0 <= seconds < min(age(run, world.now), QUICK_S) and tells(kind):
            yield uuid


def look_again_at(world: World) -> float | None:
    """When a run will have lasted, of a job that failed at once elsewhere."""
    due = [r.started_at + QUICK_S for r in world.runs if r.tried and r.ended is None and not r.voided]
    return min((at for at in due if at > world.now), default=None)
