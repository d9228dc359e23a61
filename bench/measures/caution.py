"""How much of what is really free do we leave unused out of caution, on a server that others use too?

In simulated time, with the host on which the engine's tests run: decisions, rules and store are the real ones, the
clock, the cards and the processes are not. What hand-overs cost on top is measured elsewhere.
"""

from __future__ import annotations

import os
import sys

from figures import Row, below, hold_against
from lab import Lab
from scene import Scene
from tasks import HERE

GROUP = "a simulated day with strangers, 8 GPUs, always jobs waiting"
SEEDS = (1, 2, 3)


def measure(lab: Lab) -> list[Row]:
    row = Row(group=GROUP, what="free card-seconds that we left unused", unit="%")
    if not lab.named("jostle"):
        return []
    root = os.path.dirname(HERE)
    sys.path[:0] = [path for path in (f"{root}/src", root) if path not in sys.path]
    from tests.engine.day import Day

    hours, seeds = lab.size(24, 2), SEEDS[: lab.size(len(SEEDS), 1)]
    free = lost = kept = 0.0
    for seed in seeds:
        lab.say(f"caution: {hours} simulated hours, seed {seed}")
        scene = Scene("day")
        try:
            day = Day(scene.dir, seed).live(hours * 3600.0)
        finally:
            scene.close()
        free, lost, kept = free + day.free, lost + day.lost, kept + day.kept
    row.ours = 100.0 * lost / free
    row.peers["kept for a big job"] = 100.0 * kept / free
    return [hold_against(row, "<= 1 %, kept cards apart", below(row.ours, 1.0))]
