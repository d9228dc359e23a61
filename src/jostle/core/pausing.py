"""Which runs stand still while somebody else is on their cards, and when they go on: only those whose jobs say so.

Rules. Who can do without the card, or on another, does that first. A run goes on when readings of all its cards have shown nobody
else for a while, and not sooner than a pause after it was told to stand still: that doubles each time it is told so soon again,
so that who comes and goes cannot make it flap. What cannot be read says neither that somebody came nor that he left. Who is to
end is told that, and goes on for it. A run that nobody looks after any more goes on: nobody could be sure to continue it later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jostle.core.model import Pausing, Policy, Run, World
from jostle.core.place import Places
from jostle.core.plan import Continue, Pause
from jostle.core.reasons import Reason
from jostle.core.resize import is_at_work, who_came
from jostle.core.retry import CALM_S, MOST_YIELD_S

QUIET, LEAST_QUIET_S = 6.0, 1.0  # who came after `yield_after` has left after so many times that, but not sooner than this
MOST_DOUBLED = 12


def quiet_s(policy: Policy) -> float:
    """How long nobody else must have been on its cards."""
    return max(QUIET * policy.yield_after, LEAST_QUIET_S)


def left_s(policy: Policy, its: Pausing, now: float) -> float | None:
    """How long it stands still yet if nobody comes; None: somebody is there, or that is not known."""
    if its.quiet_s is None:
        return None
    first = quiet_s(policy)
    pause = max(first, min(first * 2.0 ** min(max(0, its.times - 1), MOST_DOUBLED), MOST_YIELD_S))
    return max(0.0, first - its.quiet_s, its.since + pause - now)


def times(its: Pausing, now: float) -> int:
    """How often it has stood still lately, if it does now; who could work for long begins anew."""
    return 1 if now - its.since >= CALM_S else its.times + 1


def decided(places: Places, leaves: Callable[[Run], bool]) -> Iterator[Pause | Continue]:
    """`leaves`: whether a run is told to do without the cards that somebody has come onto."""
    for run in places.runs.values():
        if run.pausing is None or run.state != "running" or run.cancel or run.evicted:
            continue
        if run.pausing.now:
            if (reason := _goes_on(places.world, run, run.pausing)) is not None:
                yield Continue(run=run.id, reason=reason)
        elif _is_to_stand(run, run.pausing) and not leaves(run) and (reason := who_came(places, run)) is not None:
            yield Pause(run=run.id, times=times(run.pausing, places.world.now), reason=reason)


def _goes_on(world: World, run: Run, its: Pausing) -> Reason | None:
    if not its.supervised:
        return Reason("unwatched")
    left = left_s(world.policy_of(run.batch), its, world.now)
    return Reason("quiet_again", {"quiet_s": its.quiet_s}) if left is not None and left <= 0 else None


def _is_to_stand(run: Run, its: Pausing) -> bool:
    """Not while it is getting other cards: what it was told must be heard first."""
    changes = run.elastic is not None and run.elastic.busy is not None and run.elastic.busy.code == "resizing"
    return bool(run.intruded) and its.supervised and is_at_work(run) and not changes
