"""SPEC A13 while strangers come and go: the engine in virtual time, the rule worked out beside it by hand."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.engine.fakes import Host

FULL = 24_000  # MiB of a stranger who leaves less than 1 GB

WORKED = [  # cards, gpu_left, min_gpu, max_gpu, how many may be held with nobody else there
    (10, 1, 3, 3, 3),
    (4, 1, 3, 3, 3),
    (3, 2, 3, 3, 3),
    (10, 1, 2, 5, 5),
]


def make(tmp_path: Path, cards: int) -> Host:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return Host(str(home), gpus=cards)


def held(host: Host) -> set[str]:
    return {uuid for p in host.disk.alive(host.clock.at) for uuid in p.uuids}


def tasks(host: Host, policy: dict[str, Any], count: int = 200) -> None:
    ids = host.submit(
        *({"queue": str(k), "memory_mib": 8000} for k in range(count)),
        policy={"strangers": "share", "order": "random", **policy},
    )
    chance = random.Random(1)
    for id in ids:
        host.disk.durations[id] = (chance.uniform(3.0, 30.0), 0, "")


def guests(host: Host, chance: random.Random) -> None:
    """Strangers who fill a card, or leave it; never one that a task of ours is on, which could not happen to its memory."""
    for uuid in host.disk.uuids():
        if uuid in host.disk.strangers:
            if chance.random() < 0.2:
                del host.disk.strangers[uuid]
        elif chance.random() < 0.1 and uuid not in held(host):
            host.disk.strangers[uuid] = FULL


@pytest.mark.parametrize(("cards", "left", "least", "most", "may"), WORKED)
def test_a13_the_worked_cases_hold_with_nobody_else_there(
    tmp_path: Path, cards: int, left: int, least: int, most: int, may: int
) -> None:
    host = make(tmp_path, cards)
    tasks(host, {"gpu_left": left, "min_gpu": least, "max_gpu": most})
    counts = set()
    for _ in range(60):
        host.step(1)
        counts.add(len(held(host)))
    assert max(counts) == may


@pytest.mark.parametrize(("cards", "left", "least", "most", "may"), [*WORKED, (10, 2, 2, 7, 7)])
def test_a13_the_limit_holds_at_every_start_while_strangers_come_and_go(
    tmp_path: Path, cards: int, left: int, least: int, most: int, may: int
) -> None:
    host, chance = make(tmp_path, cards), random.Random(cards * 100 + most)
    tasks(host, {"gpu_left": left, "min_gpu": least, "max_gpu": most})
    full = 0
    for _ in range(200):
        guests(host, chance)
        before = set(host.disk.processes)
        host.step(1)
        ours = held(host)
        available = {uuid for uuid in host.disk.uuids() if uuid not in host.disk.strangers} | ours
        limit = min(most, max(least, len(available) - left))
        if set(host.disk.processes) - before:
            assert len(ours) <= limit, "a start went beyond the limit"
        assert not ours & set(host.disk.strangers), "a card that a stranger fills"
        free = available - ours
        if free and len(ours) < limit:
            host.step(0.2)  # what was just refused on an old reading is taken at the next one
            assert len(held(host)) > len(ours) or not free - held(host), "cards within the limit are taken"
        full += len(ours) == limit
    assert full > 50, "the limit was reached most of the time"
    assert may <= most


def test_a13_the_older_rule_never_uses_the_last_cards_also_while_strangers_come_and_go(tmp_path: Path) -> None:
    host, chance = make(tmp_path, 10), random.Random(5)
    tasks(host, {"gpu_left": 2})
    used: set[str] = set()
    for _ in range(200):
        guests(host, chance)
        host.step(1)
        used |= held(host)
    assert used == {f"GPU-{i}" for i in range(8)}


def test_a13_ten_cards_two_full_of_strangers_four_held_leaves_two_more(tmp_path: Path) -> None:
    host = make(tmp_path, 10)
    host.disk.strangers = {"GPU-8": FULL, "GPU-9": FULL}
    ids = host.submit(*({"queue": str(k), "memory_mib": 8000} for k in range(10)),
                      policy={"strangers": "share", "gpu_left": 2, "min_gpu": 2, "max_gpu": 7})  # fmt: skip
    for id in ids:
        host.disk.durations[id] = (1000.0, 0, "")
    for _ in range(5):
        host.step(1)
    assert len(held(host)) == 6
    assert host.why(ids[-1]) == "limit"
