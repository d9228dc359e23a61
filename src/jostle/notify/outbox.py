"""One channel at work: events are read and gathered into messages, messages are sent until they are taken.

Rules: a message is on the disk before it is sent, together with the place up to which it tells; so nobody's death loses one. It
is forgotten when it was taken, and that is on the disk before the next one is sent: only one whose answer was lost can come
twice, with the same id. While many wait, no more are made: events stay in the store, and come in one message later. Whatever
is given up is counted and told. Time comes in as a value.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jostle.errors import JostleError
from jostle.failpoint import failpoint
from jostle.notify import happenings, spool, watch
from jostle.notify.deliver import Channel
from jostle.notify.message import Message, of
from jostle.notify.trouble import Undelivered
from jostle.printable import one_line
from jostle.store.reads import Reader
from jostle.wording import notices

MOST = 20  # messages that wait; beyond that events wait in the store
PENDING = 5000  # events that one message tells of at the most
PAGE = 1000
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 3600.0  # s between tries
LEAST_FAILURES = 10  # in a row, before a message is too old
REFUSED_TRIES = 5  # of a message that is refused as such
KEEP_EACH = 60.0  # s after which a place without messages is written down, too
LOOK_EACH = 1.0  # s between looks at the store


class ShownCards(NamedTuple):
    """The cards as the engine showed them."""

    cards: Sequence[Mapping[str, Any]]
    devices: str


def pause(failures: int) -> float:
    """Ever longer, and never the same for all."""
    return min(FIRST_PAUSE * 2.0 ** min(failures - 1, 20), LONGEST_PAUSE) * random.uniform(0.9, 1.1)


class Outbox:
    def __init__(
        self, home: str, channel: Channel, settings: Mapping[str, Any], deliver: Callable[[Channel, Message], None], host: str
    ) -> None:  # fmt: skip
        self.home, self.channel, self.settings, self.deliver, self.host = home, channel, settings, deliver, host
        self.language = str(settings["language"])
        self.reader = Reader(home)
        self.path = spool.path_of(home, channel.name)
        self.unsaved = False  # what is so is not what the disk has
        self.kept, self.notes = self._begun()
        self.cursor: int = self.kept["position"][0]  # up to here events were looked at
        self.pending: list[Mapping[str, Any]] = []  # of those after the position, what is to be told
        self.pending_since = 0.0
        self.saved_at, self.saved_position = 0.0, self.kept["position"]

    def close(self) -> None:
        self.reader.close()

    # --- where it begins

    def _begun(self) -> tuple[spool.Kept, list[str]]:
        """What was kept; a new channel begins with what happens from now on."""
        notes: list[str] = []
        try:
            kept = spool.load(self.path)
        except ValueError as e:
            say(f"{self.channel.name}: {self.path} cannot be read ({e}): put aside as {spool.put_aside(self.path)}")
            kept = None
        if kept is None or kept["position"] is None:
            newest = self.reader.event(self.reader.last_seq())
            kept = {**spool.FRESH, "position": [newest["seq"], newest["at"]] if newest else [0, 0.0]}
            spool.save(self.path, kept)
        else:
            kept["position"] = self._same_place(*kept["position"])
            kept["next_at"] = 0.0  # whoever starts anew tries at once: perhaps that is why
            following = self.reader.events(after=kept["position"][0], limit=1)
            if following and following[0]["seq"] != kept["position"][0] + 1:
                notes.append(notices.gone(self.language))
        return kept, notes

    def _same_place(self, seq: int, at: float) -> list[Any]:
        """The place in the events of this database: an older copy, or a loss of power, may have taken some, and others have
        their numbers now."""
        event = self.reader.event(seq)
        changed = seq > self.reader.last_seq() if event is None else event["at"] != at
        return [self.reader.seq_until(at), at] if changed else [seq, at]

    # --- one round

    def step(self, now: float, seen: ShownCards | None) -> float:
        """Whatever is due; when the next round is. `seen`: the cards, None if nobody knows."""
        if self.unsaved and not self._save():
            return now + FIRST_PAUSE
        try:
            self._read(now)
            self._watch(now, seen)
        except JostleError as e:
            say(f"{self.channel.name}: {e}")
            return now + FIRST_PAUSE
        self._give_up(now)
        self._send(now)
        if self.kept["position"] != self.saved_position and not 0 <= now - self.saved_at < KEEP_EACH:
            self.saved_at = now
            self._move(self.kept)
        return now + LOOK_EACH

    def idle(self) -> bool:
        """Whether all that has happened is told."""
        return not self.kept["queue"] and not self.pending and self.cursor >= self.reader.last_seq()

    # --- events

    def _read(self, now: float) -> None:
        if len(self.kept["queue"]) >= MOST:
            return
        while len(self.pending) < PENDING:
            page = self.reader.events(after=self.cursor, limit=PAGE)
            if not page:
                break
            fresh = [event for event in page if happenings.wanted(event, self.channel.events)]
            self.pending_since = self.pending_since if self.pending else min([now, *(event["at"] for event in fresh)])
            self.pending += fresh
            self.cursor = page[-1]["seq"]
            if not self.pending:
                self.kept["position"] = [self.cursor, page[-1]["at"]]
        if self.pending and (now - self.pending_since >= self.settings["gather"] or len(self.pending) >= PENDING):
            self._tell_events(now)

    def _tell_events(self, now: float) -> None:
        upto = self.reader.event(self.cursor) or self.pending[-1]
        position = [upto["seq"], upto["at"]]
        young = [event for event in self.pending if event["at"] >= now - self.settings["keep_for"]]
        kept = {**self.kept, "position": position}
        if old := len(self.pending) - len(young):
            kept |= self._dropped(kept, old, {"code": "too_old", "params": {"age": self.settings["keep_for"]}})
        entries = happenings.entries(self.reader, young, self.channel.events)
        entries = happenings.with_tables(entries, self.home, self.settings["metrics"], self.language)
        if self._queued(kept, entries, now):
            self.cursor = max(self.cursor, position[0])
            self.pending = []

    def _queued(self, kept: spool.Kept, entries: Sequence[happenings.Entry], now: float) -> bool:
        """A message about these is on the disk, with all that is kept beside it. False: the disk takes nothing."""
        if entries:
            notes = [*self.notes]
            if kept["dropped_untold"]:
                notes.append(notices.dropped(kept["dropped_untold"], kept["dropped_why"], self.language))
            message = happenings.message(entries, host=self.host, at=now, language=self.language, notes=notes)
            waiting = {**message.plain(), "tries": 0, "next_at": 0.0}
            kept = {**kept, "queue": [*kept["queue"], waiting], "dropped_untold": 0}
        if not self._move(kept, or_else_stay=True):
            return False
        if entries:
            self.notes = []
        return True

    # --- cards

    def _watch(self, now: float, seen: ShownCards | None) -> None:
        if len(self.kept["queue"]) >= MOST:
            return
        entries: list[happenings.Entry] = []
        kept = dict(self.kept)
        if "free" in self.channel.events:
            kept["free"], indices = watch.free(kept["free"], seen and seen.cards, now, self.settings)
            entries += [{"about": "free", "event": "free", "at": now, "gpus": indices}] if indices else []
        if "gpu" in self.channel.events:
            kept["lost"], out = watch.lost(kept["lost"], seen and seen.cards, seen.devices if seen else "", now)
            entries += out
        if entries:
            self._queued(kept, entries, now)
        elif kept["free"].get("told") != self.kept["free"].get("told"):
            self._move(kept)
        else:
            self.kept = kept

    # --- sending

    def _send(self, now: float) -> None:
        if now < self.kept["next_at"] <= now + LONGEST_PAUSE * 2:  # a clock that was set back makes nobody wait for years
            return
        for waiting in list(self.kept["queue"]):
            if now < waiting["next_at"] <= now + LONGEST_PAUSE * 2:
                continue
            trouble = self._tried(waiting)
            if not self._record(waiting, trouble, now) or (trouble is not None and trouble.whole):
                return

    def _tried(self, waiting: Mapping[str, Any]) -> Undelivered | None:
        message = of({key: value for key, value in waiting.items() if key not in ("tries", "next_at")})
        failpoint("notify.before_send")
        try:
            self.deliver(self.channel, message)
        except Undelivered as e:
            return e
        except Exception as e:  # no word of it: it may hold what was to be sent, or a secret
            return Undelivered("failed_inside", error=f"{type(e).__name__} {place_of(e)}")
        failpoint("notify.sent")
        return None

    def _record(self, waiting: Mapping[str, Any], trouble: Undelivered | None, now: float) -> bool:
        kept, rest = self.kept, [one for one in self.kept["queue"] if one["id"] != waiting["id"]]
        if trouble is None:
            if kept["failing_since"] is not None:
                say(f"{self.channel.name}: delivered again")
            well = {"failures": 0, "next_at": 0.0, "failing_since": None}
            return self._move({**kept, **well, "queue": rest, "sent": kept["sent"] + 1, "sent_at": now})
        if kept["error"] != trouble.plain or kept["failing_since"] is None:
            say(f"{self.channel.name}: {notices.trouble(trouble.plain, 'en')}")
        after = {"error": trouble.plain, "error_at": now, "failing_since": kept["failing_since"] or now}
        if trouble.whole:
            failures = kept["failures"] + 1
            after |= {"failures": failures, "next_at": now + max(trouble.wait or 0.0, pause(failures))}
            return self._move({**kept, **after})
        again = {**waiting, "tries": waiting["tries"] + 1, "next_at": now + pause(waiting["tries"] + 1)}
        if again["tries"] >= REFUSED_TRIES:
            after |= self._dropped(kept, 1, {"code": "refused_often", "params": {"tries": REFUSED_TRIES}})
            return self._move({**kept, **after, "queue": rest})
        queue = [again if one["id"] == waiting["id"] else one for one in kept["queue"]]
        return self._move({**kept, **after, "queue": queue})

    def _give_up(self, now: float) -> None:
        """What is too old by the clock was also tried often: a clock that jumps drops nothing."""
        if self.kept["failures"] < LEAST_FAILURES:
            return
        young = [one for one in self.kept["queue"] if one["made_at"] >= now - self.settings["keep_for"]]
        if old := len(self.kept["queue"]) - len(young):
            why = {"code": "too_old", "params": {"age": self.settings["keep_for"]}}
            self._move({**self.kept, "queue": young, **self._dropped(self.kept, old, why)})

    def _dropped(self, kept: Mapping[str, Any], n: int, why: Mapping[str, Any]) -> dict[str, Any]:
        say(f"{self.channel.name}: {n} dropped: {notices.trouble(why, 'en')}")
        return {"dropped": kept["dropped"] + n, "dropped_why": dict(why), "dropped_untold": kept["dropped_untold"] + n}

    # --- what is kept

    def _move(self, kept: spool.Kept, *, or_else_stay: bool = False) -> bool:
        """This is so now, here and on the disk. What the disk does not take is so here all the same, and is written as soon as it
        can be, unless it is to stay as it was."""
        before, self.kept = self.kept, kept
        if self._save():
            return True
        if or_else_stay:
            self.kept, self.unsaved = before, False
        return False

    def _save(self) -> bool:
        try:
            spool.save(self.path, self.kept)
        except OSError as e:
            if not self.unsaved:
                say(f"{self.channel.name}: {self.path} cannot be written: {e.strerror}")
            self.unsaved = True
            return False
        self.unsaved, self.saved_position = False, self.kept["position"]
        return True


def place_of(e: BaseException) -> str:
    """Where an error came from: a file of ours and a line."""
    at = e.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{at.tb_frame.f_code.co_filename.rpartition('/')[2]}:{at.tb_lineno}" if at is not None else ""


def say(text: str) -> None:
    """A line of the log."""
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {one_line(text)[:500]}\n")
    sys.stderr.flush()
