"""How long does a person wait for the prompt? The status command with 0, 1,000 and 10,000 jobs in the queue."""

from __future__ import annotations

from contextlib import ExitStack

from figures import Row, Series, below, hold_against
from lab import Lab
from measures.submit import PYTHON_START, on_stages
from peers.base import Peer
from scene import Scene
from tasks import Sheet

GROUP = "status command (jostle ps)"
SIZES = (0, 1_000, 10_000)


def measure(lab: Lab) -> list[Row]:
    """The queues grow while all stay on stage; a round asks each once."""
    by_size = {size: Series() for size in SIZES}
    with ExitStack() as stage:
        bare = Scene("python")
        stage.callback(bare.close)
        peers = on_stages(lab, stage, lab.with_skills("hold", "status"))
        had = 0
        for size, series in by_size.items():
            lab.say(f"status with {size:,} jobs: all in turn")
            asked = [p for p, sheet in peers if filled(lab, p, sheet, size - had)]
            had = size
            rounds(lab, series, bare, asked)
    return judged(by_size)


def filled(lab: Lab, peer: Peer, sheet: Sheet, more: int) -> bool:
    """Whether the participant could be given that many more; one that holds a little under 1,000 gets what it holds."""
    if more == 1_000:
        more = min(more, peer.most_queued)
    if more > peer.most_queued or (more > 1000 and peer.seconds_per_task > 0.1 and lab.quick):
        return False
    try:
        if more:
            peer.submit(sheet.tasks(more))
    except Exception as e:
        lab.fault("status", peer.name, e)
        return False
    return True


def rounds(lab: Lab, series: Series, bare: Scene, peers: list[Peer]) -> None:
    for turn in range(lab.size(15, 5)):
        series.add("python start", turn, bare.timed(PYTHON_START) * 1e3)
        for peer in peers:
            series.add(peer.name, turn, peer.scene.timed(peer.status_argv()) * 1e3)


def judged(by_size: dict[int, Series]) -> list[Row]:
    rows = {size: series.row(GROUP, f"{size:,} jobs", "ms", floor="python start") for size, series in by_size.items()}
    empty = rows[0].ratio  # against the start of Python in the same round, so the load of the machine cancels out
    hold_against(rows[0], "<= 3x python start", below(empty, 3.0))
    hold_against(rows[1_000], "<= 1.2x that with 0 jobs", below(rows[1_000].ratio, 1.2 * empty if empty else None))
    hold_against(rows[10_000], "<= 2x that with 0 jobs", below(rows[10_000].ratio, 2.0 * empty if empty else None))
    return list(rows.values())
