"""How much of what strangers leave free does one long program use, if its cards change while it runs, and if not?

Twice: through days, in simulated time with the host on which the engine's tests run; and for some minutes with a real
engine and real processes, where strangers come by a script as on one of those days, but faster, and short jobs of ours
are in between. Fixed counts stand beside it, all at the same time. The best possible is every second of every card
without a stranger, and in the second case without a job of ours. That nothing overlaps is computed from the ledger and
from what the programs wrote down.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack

from among_strangers import CARDS, LOADING, AmongStrangers, Played, script
from figures import Row, hold_against
from lab import Lab
from peers.base import on_stage
from peers.ours import Jostle
from scene import Scene
from tasks import HERE

GROUP = "a simulated day of one program, 8 GPUs, strangers who come and go"
REAL = "real processes of one program, 8 simulated GPUs, strangers and short jobs of ours by a script"
SEEDS = (1, 2, 3)
FIXED = (2, 4, 6)
STRANGERS = 5  # that come in such a run, more or less; how often and for how long is in proportion as on those days
RULES = {"resize_interval": 2 * LOADING, "yield_after": 0.5}
SHORT, PAUSE = 3.0, 45.0  # s that a job in between is there; s from one to the next
CHANGING = ("restart", "signal")


def measure(lab: Lab) -> list[Row]:
    if not lab.named("jostle"):
        return []
    root = os.path.dirname(HERE)
    sys.path[:0] = [path for path in (f"{root}/src", root) if path not in sys.path]
    rows = days(lab)
    try:
        return rows + minutes(lab)
    except Exception as e:
        lab.fault("elastic, real processes", "jostle", e)
        return rows


def days(lab: Lab) -> list[Row]:
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


def minutes(lab: Lab) -> list[Row]:
    from tests.engine.elastic_day import EVERY, STAYS

    seconds = lab.size(300, 30)
    AmongStrangers.program = Jostle.program
    every = seconds / STRANGERS
    AmongStrangers.stays = script(SEEDS[0], seconds, every, [stay * every / EVERY for stay in STAYS])
    AmongStrangers.rules = RULES
    jobs: dict[str, dict[str, object]] = {how: {"gpus": [1, CARDS], "resize": how} for how in CHANGING}
    jobs |= {f"always {cards} cards": {"gpus": [cards, cards]} for cards in FIXED}
    lab.say(f"elastic, real processes: {len(jobs)} side by side, {seconds} s, {len(AmongStrangers.stays)} strangers")
    with ExitStack() as stage:
        peers = {name: staged(stage) for name in jobs}
        for name, peer in peers.items():
            peer.begin(**jobs[name])
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > SHORT:
            time.sleep(min(left - SHORT, PAUSE, seconds / 2))
            for peer in peers.values():
                peer.begin_short()
            time.sleep(SHORT)
            for peer in peers.values():
                peer.end_short()
        for peer in peers.values():
            peer.end()
        played = {name: peer.played() for name, peer in peers.items()}
    for name, one in played.items():
        for text in one.wrong:
            lab.faults.append(f"elastic, real processes: jostle, {name}: {text}")
    return judged(played, seconds)


def staged(stage: ExitStack) -> AmongStrangers:
    peer = stage.enter_context(on_stage(AmongStrangers, CARDS))
    assert isinstance(peer, AmongStrangers)
    return peer


def judged(played: dict[str, Played], seconds: int) -> list[Row]:
    """The fixed numbers stand beside each of the two ways to change."""
    fixed = [name for name in played if name not in CHANGING]
    rows = []
    for how in CHANGING:
        row = Row(group=REAL, what=f"card-seconds of progress of the best possible, {how}", unit="%")
        row.ours, row.peers = 100 * played[how].share, {name: 100 * played[name].share for name in fixed}
        rows.append(hold_against(row, "more than with any fixed number", row.ours > max(row.peers.values())))
    for how in CHANGING:
        row = Row(group=REAL, what=f"card-seconds beside a stranger, {how}", unit="%")
        row.ours, row.peers = 100 * played[how].beside, {name: 100 * played[name].beside for name in fixed}
        rows.append(row)
    for how in CHANGING:
        what = f"changes of its cards in {seconds} s, {how}"
        rows.append(Row(group=REAL, what=what, unit="", ours=played[how].changes))
    worked = sum(one.stretches for one in played.values())
    wrong = sum(len(one.wrong) for one in played.values())
    what = f"two at once on a card, work without a lease, lost progress; of {worked} stretches"
    return [*rows, hold_against(Row(group=REAL, what=what, unit="", ours=wrong), "none", wrong == 0)]
