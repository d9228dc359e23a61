"""What cards showed lately, and who else was on them: seconds in memory, means of ten of them once a minute into the history.

Rules: a reading speaks for the time since the one before it, unless nobody looked for long. Nothing here holds up a tick: it is
written in small pieces between ticks, nothing is waited for, and a history that fails costs itself alone.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jostle.core.ledger import ORDINARY_UID
from jostle.core.model import RunId
from jostle.engine.observe import SAMPLES_APART, UNSEEN, Observer
from jostle.engine.open import Open
from jostle.engine.ports import Timer
from jostle.engine.profiles import Profiles, RunUse, believable, text
from jostle.errors import Unwritten
from jostle.store import runs
from jostle.store.history import FINE, SET_BACK, CardPage, HistoryFile, Later, Mean, Spoilt, Stay
from jostle.store.store import Store

RECENT = 300  # samples that are kept as they are
FIRST, WRITE_EACH = 1.0, 60.0  # s from the first reading to the first look into the file, and from write to write
PIECE = 8  # cards, or runs, that are written at once
PAUSE = 0.05  # s between two pieces
KEPT, LEFT = 60, 200  # means a card, and stays on it that have ended, that wait while nothing can be written
RECORD_AFTER = 0.05  # s from the end of a run until it is recorded how it used its cards: after the hand-over, before the next
ENDED, MOST_ENDED = 8, 1000  # runs of which that is recorded at once, or waits for a disk
PATIENCE = 10  # tries, one a minute, before a history that cannot be written is begun anew
SAME_PROCESS = 600.0  # s without a look after which the same process on the same card counts as one that has stayed
UNSEEN_USE = 512  # MiB that a card shows for nobody to be seen, when somebody is there


class Sums:
    """A mean in the making: what was shown, times how long."""

    __slots__ = ("covered", "load", "power", "temperature", "used")

    def __init__(self) -> None:
        self.covered = self.used = 0.0
        self.load, self.temperature, self.power = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]

    def add(self, seconds: float, g: Mapping[str, Any]) -> None:
        self.covered += seconds
        self.used += seconds * g["used_mib"]
        read = (self.load, g["utilization"]), (self.temperature, g.get("temperature")), (self.power, g.get("power_w"))
        for sums, value in read:
            if value is not None:
                sums[0] += seconds * value
                sums[1] += seconds

    def mean(self, at: int) -> Mean:
        load, temperature, power = (round(s / w, 1) if w else None for s, w in (self.load, self.temperature, self.power))
        return Mean(at, round(self.covered, 2), load, round(self.used / self.covered, 1), temperature, power)


@dataclass(slots=True)
class Track:
    """One card."""

    uuid: str
    index: int = 0
    name: str = ""
    total_mib: int = 0
    at: float = 0.0  # of the last sample, by the engine's clock
    sums: dict[int, Sums] = field(default_factory=dict)  # by the beginning of their ten seconds, in order
    recent: deque[tuple[float, int | None, int]] = field(default_factory=lambda: deque(maxlen=RECENT))  # at, load, used
    held: dict[str, Stay] = field(default_factory=dict)  # by user: who is there
    left: deque[Stay] = field(default_factory=lambda: deque(maxlen=LEFT))  # who was, since the last write
    others: tuple[str, ...] = ()  # who else was there at the last sample
    loaded: bool | None = None  # whether the last sample showed load; None: the driver does not say
    quiet_since: float | None = None  # from which on each sample has shown none, by the engine's clock

    def sample(self, g: Mapping[str, Any], at: float, wall: float) -> None:
        self.index, self.name, self.total_mib = g["index"], text(g["name"]), g["total_mib"]
        seen = at - self.at <= UNSEEN
        seconds = at - self.at if seen else 1.0
        self.at = at
        self.loaded = None if g["utilization"] is None else g["utilization"] > 0
        if self.loaded is not False:
            self.quiet_since = None
        elif self.quiet_since is None or not seen:
            self.quiet_since = at  # nobody knows of the time in which nobody looked
        self.recent.append((round(wall, 1), g["utilization"], g["used_mib"]))
        for begin, part in parts(wall - seconds, wall):
            if begin not in self.sums:
                self.sums[begin] = Sums()
                while len(self.sums) > KEPT:
                    del self.sums[next(iter(self.sums))]
            self.sums[begin].add(part, g)

    def see(self, others: Mapping[str, int | None], wall: float) -> None:
        """Who else is there now, with a process of theirs."""
        self.others = tuple(others)
        for who, pid in others.items():
            before = self.held.get(who)
            if before is None or not _stayed(before, pid, wall):
                if before is not None:
                    self.left.append(before)
                self.held[who] = Stay(wall, who, pid, wall)
            else:
                self.held[who] = before._replace(seen=wall, pid=before.pid if pid is None else pid)
        for who in [who for who, held in self.held.items() if not -SET_BACK <= wall - held.seen <= UNSEEN]:
            self.left.append(self.held.pop(who))

    def page(self, wall: float, *, whole: bool) -> CardPage:
        """What is new; `whole`: also the mean that is still in the making."""
        means = [sums.mean(at) for at, sums in self.sums.items() if sums.covered and (whole or at + FINE <= wall)]
        return CardPage(self.uuid, self.index, self.name, self.total_mib, means, [*self.left, *self.held.values()])

    def written(self, page: CardPage) -> None:
        for mean in page.means:
            self.sums.pop(mean.at, None)
        self.left.clear()


def parts(began: float, ended: float) -> Iterator[tuple[int, float]]:
    """A stretch of time by the ten seconds that it falls into."""
    while began < ended:
        begin = int(began // FINE) * FINE
        until = min(ended, begin + FINE)
        yield begin, until - began
        began = until


def _stayed(held: Stay, pid: int | None, wall: float) -> bool:
    gap = wall - held.seen
    return 0 <= gap <= UNSEEN or (0 <= gap <= SAME_PROCESS and pid is not None and pid == held.pid)


def others(g: Mapping[str, Any], observer: Observer, *, ours: bool) -> dict[str, int | None]:
    """Who is on a card besides our runs (`ours`: some hold it): by user, each with the process that uses most."""
    most: dict[str, tuple[int, int]] = {}
    for p in g["procs"]:
        system = p["uid"] is not None and p["uid"] < ORDINARY_UID and p["uid"] != observer.uid
        if system or observer.run_of(p, g["uuid"]) is not None:
            continue
        who, use = text(p["user"]), (p["used_mib"] or 0, p["pid"])
        most[who] = max(use, most.get(who, use))
    if not g["procs"] and not ours and g["used_mib"] - (g.get("reserved_mib") or 0) > UNSEEN_USE:
        return {"": None}
    return {who: pid for who, (_, pid) in most.items()}


class HistoryWriter:
    def __init__(self, *, home: str, store: Store, clock: Timer) -> None:
        self._store, self._clock = store, clock
        self._file = HistoryFile(home)
        self._tracks: dict[str, Track] = {}
        self._profiles = Profiles()
        self._ended: list[tuple[RunId, RunUse]] = []  # runs of which is not recorded yet how they used their cards
        self._record_at = 0.0
        self._pieces: list[Callable[[], None]] = []  # that are still to be written
        self._failed = 0  # tries in vain, one after the other
        self._known = False  # whether what an earlier engine had written was looked at
        self._due_at: float | None = None  # when something is to be written; None: there is nothing

    def adopt(self, runs: Mapping[RunId, Open], observer: Observer) -> None:
        """Takes up what an earlier engine has seen of runs that live."""
        if runs and self._store.in_place():
            try:
                self._profiles.seen_before(self._file.open_runs(), runs, observer)
            except (Later, Spoilt) as e:
                self._fail(e)

    def heard(self, observer: Observer, runs: Mapping[RunId, Open]) -> None:
        """The cards have been read."""
        now, wall = self._clock.now(), self._clock.wall()
        for g in observer.snapshot["gpus"]:
            at, track = observer.card_read_at(g), self._tracks.get(g["uuid"])
            if (track is not None and at - track.at < SAMPLES_APART) or g["state"] != "ok" or not believable(g):
                continue
            if track is None:
                track = self._tracks[g["uuid"]] = Track(g["uuid"])
            shown = wall - (now - at)
            track.sample(g, at, shown)
            track.see(others(g, observer, ours=observer.is_ours(g["uuid"])), shown)
            if self._due_at is None:
                self._due_at = now + FIRST
        if runs:
            self._profiles.heard(observer, runs.values(), now, self._others_on)

    def _others_on(self, uuid: str) -> tuple[str, ...]:
        """Who was on a card besides our runs when it was last sampled."""
        track = self._tracks.get(uuid)
        return () if track is None else track.others

    def so_far(self, run: RunId) -> dict[str, Any] | None:
        """How a run that lives has used its cards until now."""
        return self._profiles.so_far(run)

    def on_cards(self, run: RunId, observer: Observer) -> list[dict[str, Any]]:
        return self._profiles.on_cards(run, observer)

    # --- of runs that have ended

    def run_ended(self, run: Open, now: float) -> float:
        """When `step` is to be called: how it used its cards is recorded a little later, together with that of others."""
        if not self._ended:
            self._record_at = now + RECORD_AFTER
        self._ended.append((run.id, self._profiles.ended(run.id)))
        return self._record_at

    def _record_ended(self, now: float) -> None:
        """Of a few runs; in a transaction of its own, for no card waits for it."""
        some = self._ended[:ENDED]
        try:
            with self._store.transaction(durable=False):
                for id, use in some:
                    runs.profile(self._store, id, use.gpu_name, use.profile())
            del self._ended[: len(some)]
            self._record_at = now + PAUSE
        except Unwritten:  # that the disk takes nothing is said by whoever must be recorded
            del self._ended[:-MOST_ENDED]
            self._record_at = now + WRITE_EACH

    # --- into the file

    def step(self, now: float) -> float | None:
        """If it is time, a piece of what is to be written; when to come again."""
        if self._ended and now >= self._record_at:
            self._record_ended(now)
        written = self._written(now)
        return min(self._record_at, written or self._record_at) if self._ended else written

    def _written(self, now: float) -> float | None:
        if self._due_at is None or now < self._due_at:
            return self._due_at
        if not self._pieces:
            self._pieces = self._all_pieces()
        if not self._done(self._pieces.pop(0)):
            self._pieces.clear()
        if self._pieces:
            self._due_at = now + PAUSE
        else:
            self._forget_cards(now)
            self._due_at = now + WRITE_EACH if self._tracks else None
        return self._due_at

    def close(self) -> None:
        """Writes what is left."""
        for _ in range(0, len(self._ended), ENDED):
            self._record_ended(self._clock.now())
        if self._tracks:
            all(self._done(piece) for piece in self._all_pieces(whole=True))
        self._file.close()

    def _all_pieces(self, *, whole: bool = False) -> list[Callable[[], None]]:
        """A few cards each, then a few of the runs that live, then what is too old."""
        cards, runs = list(self._tracks), list(self._profiles.open_runs())
        pieces = [partial(self._write_cards, cards[k : k + PIECE], whole) for k in range(0, len(cards), PIECE)]
        pieces += [partial(self._write_runs, runs[k : k + PIECE]) for k in range(0, len(runs), PIECE)]
        return [*([] if self._known else [self._take_up]), *pieces, self._prune]

    def _done(self, piece: Callable[[], None]) -> bool:
        if not self._store.in_place():
            return False  # that home is another's now
        try:
            piece()
        except (Later, Spoilt) as e:
            self._fail(e)
            return False
        self._failed = 0
        return True

    def _write_cards(self, cards: list[str], whole: bool) -> None:
        wall = self._clock.wall()
        pages = [self._tracks[uuid].page(wall, whole=whole) for uuid in cards]
        self._file.write(pages)
        for page in pages:
            self._tracks[page.uuid].written(page)

    def _write_runs(self, runs: list[RunId]) -> None:
        self._file.keep_open(self._profiles.uses(runs))

    def _prune(self) -> None:
        self._file.prune(self._clock.wall(), self._profiles.open_runs())

    def _take_up(self) -> None:
        """Who was on a card when an earlier engine ended, and is there now, has stayed."""
        wall = self._clock.wall()
        for uuid, before in self._file.still_held(wall - SAME_PROCESS - WRITE_EACH).items():
            there = self._tracks[uuid].held if uuid in self._tracks else {}
            for held in before:
                now = there.get(held.who)
                if now is not None and _stayed(held, now.pid, now.began):
                    there[held.who] = now._replace(began=held.began)
        self._known = True

    def _fail(self, e: Later | Spoilt) -> None:
        """Said once; what passes by itself is waited out for a while."""
        self._failed += 1
        if isinstance(e, Later) and self._failed < PATIENCE:
            if self._failed == 1:
                print(f"the history of the cards cannot be written ({e}); it is tried again", file=sys.stderr, flush=True)
            return
        try:
            self._file.begin_anew()
        except Later as other:
            if self._failed % PATIENCE == 1:
                print(f"the history of the cards cannot be begun anew ({other})", file=sys.stderr, flush=True)
            return
        self._failed = 0
        print(f"the history of the cards is begun anew: {self._file.path}: {e}", file=sys.stderr, flush=True)

    def _forget_cards(self, now: float) -> None:
        """Those that are gone."""
        for uuid in [uuid for uuid, track in self._tracks.items() if now - track.at > SAME_PROCESS and not track.sums]:
            del self._tracks[uuid]

    # --- what people ask about

    def track(self, uuid: str) -> Track | None:
        return self._tracks.get(uuid)

    def tail(self, *, seconds: bool) -> list[dict[str, Any]]:
        """Of each card what is not written yet, and who else is there; `seconds`: also the last samples as they were."""
        wall = self._clock.wall()
        cards = []
        for track in sorted(self._tracks.values(), key=lambda track: track.index):
            page = track.page(wall, whole=True)
            cards.append({
                "uuid": page.uuid, "index": page.index, "name": page.name, "total_mib": page.total_mib, "means": page.means,
                "held": page.held, "recent": list(track.recent) if seconds else [],
            })  # fmt: skip
        return cards
