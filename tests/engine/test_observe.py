"""What readings say of foreign processes over time."""

from __future__ import annotations

import json
from typing import Any

from jostle.engine.observe import Observer

ME, ALICE = 1000, 1001
U = "GPU-0"


def process(**more: Any) -> dict[str, Any]:
    who = {"uid": ALICE, "user": "alice", "name": "python", "sid": None, "mark": None, "ticks": 5}
    return {"pid": 7, "used_mib": 300, **who, **more}


class Card:
    """One card, read every second."""

    def __init__(self) -> None:
        self.seen, self.now = Observer(ME), 1000.0

    def small_for(self, *procs: dict[str, Any], load: int | None = 0, used: int = 300, seconds: int = 1) -> list[float]:
        card = {"uuid": U, "index": 0, "name": "", "state": "ok", "total_mib": 24576, "used_mib": used, "free_mib": 24576 - used,
                "utilization": load, "procs": list(procs)}  # fmt: skip
        for _ in range(seconds):
            self.now += 1.0
            self.seen.hear(json.dumps({"gpus": [card]}).encode(), self.now)
        (gpu,) = self.seen.gpus(self.now)
        return [h.small_for for h in gpu.holders]


def test_a_process_has_been_small_since_it_was_first_seen_so() -> None:
    card = Card()
    assert card.small_for(process()) == [0.0]
    assert card.small_for(process(), seconds=30) == [30.0]
    assert card.small_for(process(), process(pid=8), seconds=10) == [40.0, 9.0]


def test_load_growth_and_another_life_of_the_pid_begin_it_anew() -> None:
    usual, grown, other = (process(),), (process(used_mib=512),), (process(ticks=6),)
    for procs, load in ((usual, 6), (usual, None), (grown, 0), ((), 0), (other, 0)):
        card = Card()
        card.small_for(process(), seconds=60)
        card.small_for(*procs, load=load)
        assert card.small_for(process()) == [0.0]


def test_where_the_driver_does_not_say_how_much_the_cards_use_bounds_it() -> None:
    card = Card()
    assert card.small_for(process(used_mib=None), used=500, seconds=20) == [19.0]
    assert card.small_for(process(used_mib=None), used=600) == [0.0]


def test_the_load_of_a_run_of_ours_is_not_theirs() -> None:
    """Else a small idle process would cost two minutes after each of our runs beside it."""
    card = Card()
    card.small_for(process(), seconds=60)
    card.seen.run_opened((1, 1), "mark", 99, [U])
    assert card.small_for(process(), load=95, seconds=60) == [119.0]
    card.seen.distrust([U], 0, card.now)
    card.seen.run_ended((1, 1), card.now)
    assert card.small_for(process(), load=95) == [120.0], "what the driver shows is the load of a moment ago"
    assert card.small_for(process(), load=0, seconds=9) == [129.0]
    assert card.small_for(process(), load=95) == [0.0]


def reading(at: float, **more: Any) -> dict[str, Any]:
    card = {"uuid": U, "index": 0, "name": "", "state": "ok", "total_mib": 24576, "used_mib": 0, "free_mib": 24576,
            "utilization": 0, "procs": [], "read_at": at}  # fmt: skip
    return {**card, **more}


def idle_for(seen: Observer, first: float, last: float, every: float = 1.0, **more: Any) -> float:
    """Hears readings from one moment to another; for how long the card has been idle then."""
    while first <= last:
        seen.hear(json.dumps({"at": first, "gpus": [reading(first, **more)]}).encode(), first)
        first += every
    return seen.gpus(last)[0].idle_for


def test_a_card_is_idle_since_a_stranger_was_last_seen_there_whoever_looked_meanwhile() -> None:
    seen = Observer(ME)
    idle_for(seen, 1000.0, 1000.0, procs=[process()])
    for k in range(1, 600):  # nothing changes, so nobody decides anything
        seen.hear(json.dumps({"at": 1000.0 + k, "gpus": [reading(1000.0 + k, procs=[process()])]}).encode(), 1000.0 + k)
    assert idle_for(seen, 1600.0, 1600.0) <= 1.0
    assert idle_for(seen, 1601.0, 1660.0) == 61.0


def test_a_card_that_could_not_be_read_was_not_idle_meanwhile() -> None:
    for blind in ("unreadable", "lost", "starting"):
        seen = Observer(ME)
        assert idle_for(seen, 1000.0, 1300.0) == 300.0
        idle_for(seen, 1301.0, 1900.0, state=blind)
        assert idle_for(seen, 1901.0, 1901.0) == 0.0 and idle_for(seen, 1902.0, 1910.0) == 9.0


def test_a_card_of_which_nothing_was_heard_was_not_idle_meanwhile() -> None:
    """The probe hung, the host slept; an engine at rest, which looks every ten seconds, has seen enough."""
    seen = Observer(ME)
    assert idle_for(seen, 1000.0, 1300.0, every=10.0) == 300.0
    assert idle_for(seen, 1400.0, 1400.0) == 0.0


def test_a_card_that_is_late_is_counted_by_its_own_readings() -> None:
    """The others are read on; its last reading says nothing about now."""
    seen = Observer(ME)
    idle_for(seen, 1000.0, 1005.0, utilization=90, used_mib=8000, free_mib=16576)
    for k in range(6, 11):  # late: the same reading again and again
        line = {"at": 1000.0 + k, "gpus": [reading(1005.0, utilization=90, used_mib=8000, free_mib=16576)]}
        seen.hear(json.dumps(line).encode(), 1000.0 + k)
    seen.hear(json.dumps({"at": 1011.0, "gpus": [reading(1011.0)]}).encode(), 1011.0)
    (gpu,) = seen.gpus(1011.0)
    assert (gpu.state, gpu.mean_used_mib, gpu.mean_utilization) == ("ok", 0, 0), "the averages are of what was read lately"
