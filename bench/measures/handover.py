"""How long does a slot stand empty between two jobs?

Saturated: tasks of 200 ms in 1, 4 and 8 slots, so that with 8 slots eight tasks end at about the same time. Sparse:
tasks of 11 s in 2 slots, ends half a task apart, all participants side by side: daemons that slept are slower to
react.
"""

from __future__ import annotations

from contextlib import ExitStack

from figures import Row, Series, below, hold_against
from lab import Lab
from peers.base import Peer, on_stage
from peers.ours import Jostle, JostleLate
from tasks import Sheet, Task, gaps_ms, quantile

GROUP = "hand-over: a slot's idle time between two jobs"
GOALS = {1: 3.5, 4: 4.0, 8: 5.0}  # by slots: it does not get worse (docs/decisions.md says why 2.5 is not pursued)
COUNTS = {1: (30, 10), 4: (100, 32), 8: (200, 64)}  # slots: tasks in a full and in a quick run


def measure(lab: Lab) -> list[Row]:
    rows = []
    for slots in COUNTS:
        rows += saturated(lab, slots)
    return rows + sparse(lab) + late(lab)


def saturated(lab: Lab, slots: int) -> list[Row]:
    mid, tail = Series(), Series()
    for rep, kind in lab.turns(lab.kinds):
        count = lab.size(*COUNTS[slots]) if kind.seconds_per_task < 0.1 else 3 * slots

        def act(peer: Peer, count: int = count) -> list[float]:
            sheet = Sheet(peer.scene.path("sheet"))
            peer.submit(sheet.tasks(count, ms=200.0))
            budget = 20 + count * (0.3 + peer.seconds_per_task) / slots * 2
            return gaps_ms(sheet.wait(count, budget), slots)

        gaps = lab.attempt(f"hand-over, {slots} slots, {rep + 1}/{lab.reps}", kind, slots, False, act)
        if gaps:
            mid.add(kind.name, rep, quantile(gaps, 0.5))
            tail.add(kind.name, rep, quantile(gaps, 0.95))
    return judged(f"{slots} slot{'s' if slots > 1 else ''}, 200 ms tasks", mid, tail, GOALS[slots])


def judged(what: str, mid: Series, tail: Series, most: float) -> list[Row]:
    middle = mid.row(GROUP, f"{what}, median", "ms", floor="floor-py")
    hold_against(middle, f"<= {most}x floor-py", below(middle.ratio, most))
    slow = tail.row(GROUP, f"{what}, p95", "ms", floor="floor-py")
    hold_against(slow, "<= 10x floor-py", below(slow.ratio, 10.0))
    return [middle, slow]


def sparse(lab: Lab) -> list[Row]:
    """All on stage at once, each beginning a little later than the one before."""
    seconds, rounds = lab.size(11, 3), lab.size(5, 3)
    mid = Series()
    lab.say(f"hand-over, sparse: all side by side, {seconds * rounds} s")
    with ExitStack() as stage:
        running: list[tuple[Peer, Sheet, int]] = []
        for place, kind in enumerate(lab.kinds if not lab.quick else lab.quick_ones()):
            try:
                peer = stage.enter_context(on_stage(kind, 2))
                sheet = Sheet(peer.scene.path("sheet"))
                tasks = offset_tasks(sheet, seconds * 1e3 + 70 * place, 2 * rounds)
                peer.submit(tasks)
                running.append((peer, sheet, len(tasks)))
            except Exception as e:
                lab.fault("hand-over, sparse", kind.name, e)
        for peer, sheet, count in running:
            try:
                slack = 20 + count * peer.seconds_per_task
                gaps = gaps_ms(sheet.wait(count, seconds * (rounds + 1) + slack), 2)
                mid.add(peer.name, 0, quantile(gaps, 0.5))
            except Exception as e:
                lab.fault("hand-over, sparse", peer.name, e)
    row = mid.row(GROUP, f"2 slots, {seconds} s tasks (sparse), median", "ms", floor="floor-py")
    return [hold_against(row, "<= 4.6x floor-py", below(row.ratio, 4.6))]


def late(lab: Lab) -> list[Row]:
    """What is added to the driver's own delay when memory shows on after a job's end."""
    if not lab.named("jostle"):
        return []
    JostleLate.program = Jostle.program

    def act(peer: Peer) -> list[float]:
        sheet = Sheet(peer.scene.path("sheet"))
        peer.submit(sheet.tasks(20, ms=200.0))
        return gaps_ms(sheet.wait(20, 40.0), 4)

    gaps = lab.attempt("hand-over, memory that shows on", JostleLate, 4, False, act)
    delay = JostleLate.free_lag * 1e3
    row = Row(
        group=GROUP, what=f"memory shows {delay:g} ms longer, median", unit="ms", floor=delay, floor_name="driver"
    )
    if gaps:
        row.ours = quantile(gaps, 0.5)
        row.ratio = row.ours / delay
    return [hold_against(row, "<= the driver's delay + 50 ms", below(row.ours, delay + 50))]


def offset_tasks(sheet: Sheet, ms: float, count: int) -> list[Task]:
    """The first is half as long, so that from then on the two slots end in turn."""
    return [Task(number=i + 1, out=sheet.path, ms=ms / 2 if i == 0 else ms) for i in range(count)]
