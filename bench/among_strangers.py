"""A jostle on cards onto which strangers come by a script, and programs that work there for real and leave evidence.

The program is that of the tests (tests/e2e/elastic_job.py): it saves checkpoints, and its journal tells which cards it
worked on from when to when. A stretch of work counts if its end was told, for then it was saved; what a killed process
did last does not.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from peers.ours import Jostle
from scene import until
from tasks import HERE, Task

CARDS = 8
AT_LEAST = 2  # cards without a stranger
LOADING = 1.0  # s that the program needs before it goes on from its checkpoint
PROGRAM = os.path.join(os.path.dirname(HERE), "tests", "e2e", "elastic_job.py")
ENDED = {"succeeded", "cancelled"}  # nothing that works here may fail
Journal = Sequence[dict[str, Any]]


class Stay(NamedTuple):
    """A stranger on a card, in seconds of the script."""

    card: int
    begin: float
    end: float


class Stretch(NamedTuple):
    """A job on a card, wall time."""

    card: int
    begin: float
    end: float
    job: int


class Played(NamedTuple):
    """What came of a program, from when it was handed in until it was told to end."""

    share: float  # card-seconds of its work, of those without a stranger and without another job of ours
    beside: float  # card-seconds of its work on cards that a stranger was on, too, of the same
    changes: int  # of its cards
    stretches: int  # of work, with those of the others
    wrong: list[str]  # what must not be


def script(seed: int, seconds: float, every: float, lengths: Sequence[float]) -> list[Stay]:
    """Strangers who come one after the other onto cards without one, and stay for one of these times, more or less."""
    rng, stays = random.Random(seed), list[Stay]()
    at = rng.expovariate(1 / every)
    while at < seconds:
        taken = {stay.card for stay in stays if stay.end > at}
        free = [card for card in range(CARDS) if card not in taken]
        if len(free) > AT_LEAST:
            stays.append(Stay(rng.choice(free), at, at + rng.choice(lengths) * rng.uniform(0.5, 1.5)))
        at += rng.expovariate(1 / every)
    return stays


class AmongStrangers(Jostle):
    name = "jostle-strangers"
    stays: Sequence[Stay] = ()
    rules: ClassVar[dict[str, float]] = {}

    def gpus(self) -> str:
        return f"sim:{self._scene(())}"

    def _scene(self, stays: Sequence[Stay], at: float = 0.0) -> str:
        """Writes what the cards are to show; these stays count from this second of their world."""
        path = self.scene.path("strangers.json")
        times = [{"gpu": stay.card, "from": at + stay.begin, "to": at + stay.end} for stay in stays]
        strangers = [{"user": "bob", "used": "9GiB", "utilization": 50, **when} for when in times]
        with open(f"{path}.new", "w") as f:
            json.dump({"gpus": {"count": self.slots, "total": f"{self.gib}GiB"}, "strangers": strangers}, f)
        os.replace(f"{path}.new", path)
        return path

    def start(self, slots: int, held: bool = False) -> None:
        super().start(slots, held)
        self.evidence, self.world = self.scene.path("evidence"), os.path.join(self.home, "sim")
        os.makedirs(self.evidence)

    def begin(self, **job: Any) -> None:
        """Hands it in; the script begins."""
        with open(os.path.join(self.world, "began")) as f:
            self._scene(self.stays, time.clock_gettime(time.CLOCK_BOOTTIME) - float(f.read().split()[1]))
        self.began_at, self.id = time.time(), self._submit(**job)

    def begin_short(self) -> None:
        self.short = self._submit(gpus=[1, 1])

    def end_short(self) -> None:
        self.ask({"op": "intent", "do": "cancel", "ids": [self.short]})

    def _submit(self, **job: Any) -> int:
        request = self.request([Task(number=1, out="")])
        loads, works = ["sleep", f"{LOADING:g}"], [sys.executable, "-I", PROGRAM, self.evidence, self.world]
        request["batch"]["policy"] = self.rules
        request["jobs"][0].update(commands=[loads, works], **job)
        return int(self.ask(request)["ids"][0])

    def end(self) -> None:
        """All that works may end."""
        self.ended_at = time.time()
        open(os.path.join(self.evidence, "go"), "w").close()

    def played(self) -> Played:
        until(lambda: self.ask({"op": "hello"})["counts"].keys() <= ENDED, 30.0, "the end of all jobs")
        with open(os.path.join(self.evidence, "journal")) as f:
            journal = [json.loads(line) for line in f]
        worked = list(stretches(journal))
        all, _ = self.alone_and_beside(Stretch(card, self.began_at, self.ended_at, 0) for card in range(CARDS))
        others, _ = self.alone_and_beside(one for one in worked if one.job != self.id)
        alone, beside = self.alone_and_beside(one for one in worked if one.job == self.id)
        best = all - others
        lists = sum(line["job"] == self.id and "cards" in line for line in journal)
        found = list(wrong(journal, worked, self.ledger()))
        return Played(alone / best, beside / best, lists - 1, len(worked), found)

    def alone_and_beside(self, stretches: Iterable[Stretch]) -> tuple[float, float]:
        """Their seconds, until all were to end, without a stranger on the card, and with one."""
        whole = beside = 0.0
        for one in stretches:
            end = min(one.end, self.ended_at)
            whole += max(0.0, end - one.begin)
            for stay in (stay for stay in self.stays if stay.card == one.card):
                came, left = self.began_at + stay.begin, self.began_at + stay.end
                beside += max(0.0, min(end, left) - max(one.begin, came))
        return whole - beside, beside

    def ledger(self) -> list[Stretch]:
        """Who held what, as `gpus --history` tells."""
        cards = json.loads(self.scene.run([*self.program, "gpus", "--history", "1h", "--json"]))["gpus"]
        held = ((card["index"], span) for card in cards for span in card["spans"] if span["job"] is not None)
        return [Stretch(index, span["began_at"], span["ended_at"], span["job"]) for index, span in held]


def stretches(journal: Journal) -> Iterator[Stretch]:
    """Who worked where: from each list of cards to what the process told next."""
    by_process: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in journal:
        if line["kind"] != "overlap":
            by_process[line["pid"]].append(line)
    for told in by_process.values():
        for one, then in pairwise(told):
            yield from (Stretch(int(card), one["at"], then["at"], one["job"]) for card in one.get("cards", ()))


def wrong(journal: Journal, worked: Sequence[Stretch], held: Sequence[Stretch]) -> Iterator[str]:
    """What must not be: two at once on a card, work on a card that is not held, progress that went back."""
    yield from (f"two at once on a card, by their journal: {pair}" for pair in overlaps(worked))
    yield from (f"two at once on a card, by the ledger: {pair}" for pair in overlaps(held))
    yield from (f"work on a card that was not held: {one}" for one in worked if not any(covers(h, one) for h in held))
    steps: dict[int, int] = defaultdict(int)
    for line in journal:
        if line["kind"] == "overlap":
            yield f"two at once on a card, by its lock: {line}"
            continue
        if line["step"] < steps[line["job"]]:
            yield f"progress went back: {line}"
        steps[line["job"]] = line["step"]


def overlaps(stretches: Iterable[Stretch]) -> list[tuple[Stretch, Stretch]]:
    """None if nothing overlaps: else two that begin one after the other do, among others."""
    return [(one, then) for one, then in pairwise(sorted(stretches)) if one.card == then.card and then.begin < one.end]


def covers(held: Stretch, work: Stretch) -> bool:
    return (held.card, held.job) == (work.card, work.job) and held.begin <= work.begin and work.end <= held.end
