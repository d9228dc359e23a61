"""How much of what strangers leave free does one long program use, if its cards change while it runs, and if not?

In simulated time, with the host on which the engine's tests run. The best possible is every second of every card
without a stranger.
"""

from __future__ import annotations

import os
import sys

from figures import Row, hold_against
from lab import Lab
from scene import Scene
from tasks import HERE

GROUP = "a simulated day of one program, 8 GPUs, strangers who come and go"
SEEDS = (1, 2, 3)
FIXED = (2, 4, 6)


def measure(lab: Lab) -> list[Row]:
    if not lab.named("jostle"):
        return []
    root = os.path.dirname(HERE)
    sys.path[:0] = [path for path in (f"{root}/src", root) if path not in sys.path]
    from tests.engine.elastic_day import ElasticDay, Used

    hours, seeds = lab.size(24, 4), SEEDS[: lab.size(len(SEEDS), 1)]

    def lived(**job: object) -> Used:
        whole = Used()
        for seed in seeds:
            scene = Scene("day")
            try:
                day = ElasticDay(scene.dir, seed, **job).live(hours * 3600.0)
            finally:
                scene.close()
            whole.best, whole.ours = whole.best + day.best, whole.ours + day.ours
            whole.changes += day.changes
        return whole

    lab.say(f"elastic: {hours} simulated hours, {len(seeds)} seeds, 1 to 8 cards")
    elastic = lived(gpus=[1, 8], resize="restart")
    row = Row(group=GROUP, what="card-seconds used of the best possible", unit="%", ours=100.0 * elastic.share)
    for cards in FIXED:
        lab.say(f"elastic: the same with {cards} cards")
        row.peers[f"always {cards} cards"] = 100.0 * lived(gpus=[cards, cards]).share
    often = Row(group=GROUP, what="changes of its cards an hour", unit="", ours=elastic.changes / (hours * len(seeds)))
    best = max(row.peers.values())
    return [
        hold_against(row, "more than with any fixed number", row.ours is not None and row.ours > best),
        hold_against(often, "<= 12", often.ours is not None and often.ours <= 12),
    ]
