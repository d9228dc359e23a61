"""The conditions of one run of the bench: who takes part, how often, how long, and what went wrong."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from peers.base import Missing, Peer, on_stage

T = TypeVar("T")


@dataclass(kw_only=True)
class Lab:
    quick: bool
    reps: int
    kinds: list[type[Peer]] = field(default_factory=list)  # who can take part here
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def admit(self, kinds: list[type[Peer]]) -> None:
        for kind in kinds:
            self.say(f"preparing {kind.name}")
            try:
                kind.prepare()
            except Missing as e:
                self.notes.append(f"{kind.name} takes no part: {e}")
            else:
                self.kinds.append(kind)

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def with_skills(self, *skills: str) -> list[type[Peer]]:
        return [kind for kind in self.kinds if kind.can.issuperset(skills)]

    def quick_ones(self) -> list[type[Peer]]:
        return [kind for kind in self.kinds if kind.seconds_per_task < 0.1]

    def named(self, *names: str) -> list[type[Peer]]:
        return [kind for kind in self.kinds if kind.name in names]

    def turns(self, kinds: list[type[Peer]]) -> Iterator[tuple[int, type[Peer]]]:
        """Everyone once per repetition, each time beginning with another; slow ones only in the first of a full run."""
        for rep in range(self.reps):
            shift = rep % max(1, len(kinds))
            for kind in kinds[shift:] + kinds[:shift]:
                if kind.seconds_per_task < 0.1 or (rep == 0 and not self.quick):
                    yield rep, kind

    def attempt(self, what: str, kind: type[Peer], slots: int, held: bool, act: Callable[[Peer], T]) -> T | None:
        """Acts with a participant on stage; what fails is noted and never hidden."""
        self.say(f"{what}: {kind.name}")
        try:
            with on_stage(kind, slots, held) as peer:
                return act(peer)
        except Exception as e:
            self.fault(what, kind.name, e)
            return None

    def fault(self, what: str, name: str, error: BaseException) -> None:
        self.faults.append(f"{what}: {name} failed: {type(error).__name__}: {error}"[:400])
        self.say(self.faults[-1])

    def say(self, text: str) -> None:
        print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)
