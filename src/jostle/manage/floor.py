"""The automatic floor (SPEC C6): how many cards to take or give back now. Pure; monitor.py does it.

Rules. It counts everything that the person holds: where jobs of theirs run, it holds less or nothing. To the minimum at once,
then one card at a time, while any are free; never more than courtesy and the limits let the person hold, and what is too much is
given back at once. Own jobs that wait for cards come first: then it holds nothing. It keeps no card with another person on it.
When nothing of the person has run for so long, it ends, until something does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jostle.core import courtesy


@dataclass(frozen=True, kw_only=True, slots=True)
class Aim:
    """What the floor is to be."""

    least: int = 1
    most: int = 2
    idle_limit: float = 1800.0  # s without anything of the person, and it ends
    off: str = ""  # why there is to be none; "": there is


@dataclass(frozen=True, kw_only=True, slots=True)
class FloorCard:
    """A card of the floor: an allocation of one."""

    id: int
    holds: bool  # False: it waits for its card
    crowded: bool = False  # another person is on its card


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    now: float
    kept: tuple[FloorCard, ...] = ()
    held: int = 0  # cards that the person holds in all, the floor's among them
    may: int | None = None  # … and may hold, by courtesy and limits; None: any number
    may_keep: int | None = None  # … for all that is known: what cannot be read for a moment may be free
    free: int = 0  # cards that could be taken
    waiting: bool = False  # a job of theirs waits for cards
    active_at: float = 0.0  # when something of theirs was last seen to run, come or end
    again_at: float = 0.0  # nothing is taken before: what was asked for last was not had
    grow_at: float = 0.0  # … and nothing beyond the minimum


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    take: int = 0
    give: tuple[int, ...] = ()
    why: str = ""  # of giving: off | waiting | idle | crowded | enough | not_had


def rules(own: Mapping[str, Any], aim: Aim) -> dict[str, Any]:
    """Under which the floor takes cards: those of the person, by courtesy in any case (SPEC A13). Where the person has not said
    how many they leave to others, it is one."""
    bounds = [own.get(key) for key in ("min_gpu", "max_gpu")]
    least = courtesy.DEFAULT_MIN if bounds[0] is None else bounds[0]
    most = courtesy.DEFAULT_MAX if bounds[1] is None else bounds[1]
    unsaid = bounds == [None, None]
    return {
        "min_gpu": aim.least if unsaid else min(aim.least, least), "max_gpu": min(aim.most, most),
        "gpu_left": 1 if unsaid and not own.get("gpu_left") else own.get("gpu_left", 0),
        "strangers": "avoid", "share": False, "automatic": True,
    }  # fmt: skip


def step(seen: Situation, aim: Aim) -> Step:
    """What to do now."""
    everything = tuple(kept.id for kept in seen.kept)
    why = (aim.off and "off") or (seen.waiting and "waiting") or (seen.now - seen.active_at >= aim.idle_limit and "idle") or ""
    if why:
        return Step(give=everything, why=why)
    late = tuple(kept.id for kept in seen.kept if not kept.holds)
    crowded = tuple(kept.id for kept in seen.kept if kept.holds and kept.crowded)
    if late or crowded:  # what is given back counts as held until it is gone
        return Step(give=(*late, *crowded), why="crowded" if crowded else "not_had")
    return _sized(seen, aim, everything)


def _sized(seen: Situation, aim: Aim, floor: tuple[int, ...]) -> Step:
    beside = max(0, seen.held - len(floor))  # by jobs, allocations and other homes
    most, keep = (aim.most if n is None else min(aim.most, n) for n in (seen.may, seen.may_keep))
    room, kept = max(0, most - beside), max(0, keep - beside)
    if len(floor) > kept:
        return Step(give=floor[kept:], why="enough")
    total = beside + len(floor)
    wanted = aim.least - total if total < aim.least else int(seen.now >= seen.grow_at)
    return Step(take=max(0, min(wanted, room - len(floor), seen.free)) if seen.now >= seen.again_at else 0)
