"""Who holds cards and lets them stand idle: for as long as `idle_after` says, each reading of a card has shown no load; or, where
an allocation holds it, no process of ours (engine.allocations), for who holds a card need not compute yet.

Rules: what the driver does not say, and time in which nobody looked, speak against nobody. A card counts from when its holder
came. An event is told once in a spell, `idle` when it has lasted long enough and `busy_again` with the first load after it; what
an earlier engine has told is taken up, until a reading shows otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jostle.core.fields import SETTINGS
from jostle.core.model import RunId
from jostle.core.reasons import Reason
from jostle.engine.history import HistoryWriter
from jostle.engine.journal import Journal
from jostle.engine.open import Open
from jostle.engine.ports import Timer
from jostle.store import runs
from jostle.store.store import Store

EACH = 1.0  # s between two looks, however often cards are read


class Idleness:
    def __init__(self, *, history: HistoryWriter, store: Store, clock: Timer, journal: Journal) -> None:
        self._history, self._store, self._clock, self._journal = history, store, clock, journal
        self._after: float = SETTINGS["idle_after"].default
        self._look_at = 0.0
        self._spells: dict[RunId, Collection[str]] = {}  # runs of which was told that they are idle, and on which cards
        self._before: dict[str, float] = {}  # by card: since when an earlier engine has seen no load

    def adopt(self, open_runs: Mapping[RunId, Open]) -> None:
        """Takes up what an earlier engine has told."""
        now, wall = self._clock.now(), self._clock.wall()
        for id in open_runs:
            if (event := runs.told_idle(self._store, id)) is not None:
                at, uuids, idle_s = event
                self._spells[id] = uuids
                self._before.update(dict.fromkeys(uuids, now - max(0.0, wall - at) - idle_s))

    def heard(self, open_runs: Mapping[RunId, Open], settings: Mapping[str, Any]) -> None:
        """The cards have been read."""
        now = self._clock.now()
        if now < self._look_at:
            return
        self._look_at, self._after = now + EACH, settings.get("idle_after", SETTINGS["idle_after"].default)
        self._spells = {id: uuids for id, uuids in self._spells.items() if id in open_runs}
        for run in open_runs.values():
            run.idle = self._idle(run) if self._after and not run.over and not run.paused else {}
            if run.idle and run.id not in self._spells:
                self._spells[run.id] = tuple(run.idle)
                cards = [lease.index for lease in run.leases if lease.uuid in run.idle]
                self._journal.of_run("idle", run, gpus=cards, uuids=list(run.idle), idle_s=round(max(run.idle.values()), 1))
            elif not run.idle and run.id in self._spells and self._busy(run, now):
                del self._spells[run.id]
                self._journal.of_run("busy_again", run)

    def _idle(self, run: Open) -> dict[str, float]:
        """Its cards that have stood idle for long, and for how long."""
        if run.allocation:
            idle_s = 0.0 if run.idle_since is None else self._clock.now() - run.idle_since
            return {lease.uuid: idle_s for lease in run.leases} if idle_s >= self._after else {}
        idle = {lease.uuid: self._idle_for(lease.uuid, _at_work_since(run)) for lease in run.leases}
        return {uuid: seconds for uuid, seconds in idle.items() if seconds is not None and seconds >= self._after}

    def _idle_for(self, uuid: str, held_since: float) -> float | None:
        """At the last reading; None: there was load, or nobody knows."""
        track = self._history.track(uuid)
        if track is None or track.quiet_since is None:
            if track is not None:
                self._before.pop(uuid, None)
            return None
        since = min(track.quiet_since, self._before.get(uuid, track.quiet_since))
        return max(0.0, track.at - max(since, held_since))

    def _busy(self, run: Open, now: float) -> bool:
        """Whether a reading shows that a spell which was told is over: that nothing is known of it is no end."""
        tracks = [self._history.track(uuid) for uuid in self._spells[run.id]]
        if run.allocation:
            return run.idle_since is None and all(track is not None and now - track.at <= EACH for track in tracks)
        return all(track is not None and track.loaded for track in tracks)

    # --- what people are told

    def remarks(self, open_runs: Collection[Open]) -> dict[int, Reason]:
        """By job, what is remarkable of a run: cards of it stand idle. Of an allocation engine.allocations tells it."""
        return {run.id[0]: _no_load(run) for run in open_runs if run.idle and not run.allocation}

    def of_card(self, uuid: str, ours: Sequence[Open]) -> float | None:
        """How long a card has stood idle though somebody holds it, a stranger perhaps; None: not for long, or nobody does."""
        now, wall, track = self._clock.now(), self._clock.wall(), self._history.track(uuid)
        strangers = track.held.values() if track is not None else ()
        held_since = [_at_work_since(run) for run in ours if not run.paused]
        held_since += [now - max(0.0, wall - held.began) for held in strangers]
        idle = self._idle_for(uuid, min(held_since)) if held_since else None
        return round(idle, 1) if idle is not None and self._after and idle >= self._after else None


def _at_work_since(run: Open) -> float:
    """Who stood still for somebody else was not idle."""
    return run.clock_at if run.stillness is None else max(run.clock_at, run.stillness.since)


def _no_load(run: Open) -> Reason:
    cards = [lease.index for lease in run.leases if lease.uuid in run.idle]
    return Reason(code="no_load", params={"cards": cards, "of": len(run.leases), "idle_s": min(run.idle.values())})
