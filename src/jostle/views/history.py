"""What cards showed over a stretch of time, who had them, and since when they are free or stand idle.

Our runs come from the store, which knows them to the second; others, and what the cards showed, from the history, whose newest
minute only the engine has. What nobody has read is unknown (None), not idle.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from jostle.errors import JostleError, Usage
from jostle.store import pastruns
from jostle.store.history import FINE, MONTH, SET_BACK, Mean, Stay
from jostle.store.historyreads import HistoryReader, KnownCard

if TYPE_CHECKING:
    from jostle.session import Session
    from jostle.views.historytypes import CardHistory, Span
    from jostle.views.historytypes import History as Plain

POINTS = 200  # a card, at the most
STEPS = (1, FINE, 30, 60, 300, 600, 1800, 3600, 14400)
LEAST = 60.0
SPANS = 200  # a card: of more, the longest
BEFORE = 7 * 86400.0  # how far back it is looked for who had a card before
THERE = 45.0  # s since somebody was last seen there, who counts as being there
APART = 60.0  # s between two sights of the same user that are one stay
IDLE_LOAD = 1.0  # percent, as a mean: below it nothing is done
IDLE_FOR = 60.0  # s before it is worth a word
UNREAD = 60.0  # s without a reading, over which nothing is claimed

Row = dict[str, Any]


class History(NamedTuple):
    cards: list[CardHistory]
    at: float  # now
    began_at: float
    ended_at: float
    step_s: int
    engine: bool
    error: str  # why the history cannot be read

    def plain(self) -> Plain:
        return {
            "engine": self.engine, "at": self.at, "began_at": self.began_at, "ended_at": self.ended_at, "step_s": self.step_s,
            "error": self.error, "gpus": self.cards,
        }  # fmt: skip


def history(session: Session, seconds: float) -> History:
    if not LEAST <= seconds <= MONTH:
        raise Usage("the history reaches from one minute (1m) to thirty days (30d)")
    now = time.time()
    tail = _tail(session, seconds)
    step = next(step for step in STEPS if seconds / step <= POINTS and (tail is not None or step >= FINE))
    end = math.ceil(now / step) * step
    begin = end - math.ceil(seconds / step) * step
    ours = _runs(session, min(begin, now - BEFORE))
    reader = HistoryReader(session.home)
    try:
        cards = [
            _card(known, fresh, reader, ours.get(known.uuid, []), range(begin, end, step), now)
            for known, fresh in _known(reader.cards(begin), tail or [])
        ]
        return History(cards, now, begin, end, step, tail is not None, reader.error)
    finally:
        reader.close()


def _tail(session: Session, seconds: float) -> list[Row] | None:
    """What the engine has not written yet; None: none runs, or none answers."""
    client = session.engine_if_any()
    if client is None:
        return None
    try:
        cards: list[Row] = client.call("history", seconds=seconds <= POINTS)["cards"]
        return cards
    except JostleError:
        return None
    finally:
        client.close()


def _known(written: Sequence[KnownCard], tail: Sequence[Row]) -> Iterator[tuple[KnownCard, Row | None]]:
    """The cards that there are, each with what is new of it; where no engine says so, those of the history. One that has gone is
    not shown under a number that another has now."""
    ids = {card.uuid: card.id for card in written}
    if tail:
        for row in tail:
            yield KnownCard(ids.get(row["uuid"], 0), row["uuid"], row["index"], row["name"], row["total_mib"]), row
        return
    by_index: dict[int, KnownCard] = {}
    for card in written:
        by_index.setdefault(card.index, card)
    yield from ((card, None) for card in by_index.values())


def _card(known: KnownCard, fresh: Row | None, reader: HistoryReader, ours: list[Span], times: range, now: float) -> CardHistory:
    means = [Mean(*mean) for mean in fresh["means"]] if fresh else []
    if times.step < FINE and fresh:
        shown = list(seconds(fresh["recent"]))
    else:
        shown = [*reader.means(known.id, times.start, times.stop, times.step), *means]
    points = slots(shown, times)
    held = [*reader.held(known.id, now - BEFORE), *(Stay(*one) for one in (fresh["held"] if fresh else ()))]
    spans = sorted([*ours, *stays(held, now, live=fresh is not None)], key=lambda span: span["began_at"])
    newest = ((mean.at, mean.at + FINE, mean.load) for mean in reversed(means))
    read = chain(newest, reader.backwards(known.id, means[0].at if means else now))
    there = [span["began_at"] for span in spans if span["ended_at"] is None]
    before = max((span for span in spans if span["ended_at"] is not None), key=lambda span: span["ended_at"] or 0.0, default=None)
    kept, left_out = longest([span for span in spans if (span["ended_at"] or now) > times.start], now)
    return {
        "index": known.index, "uuid": known.uuid, "name": known.name, "total_mib": known.total_mib,
        "load": [p and p.load for p in points], "used_mib": [p and p.used_mib for p in points],
        "temperature": [p and p.temperature for p in points], "power_w": [p and p.power_w for p in points],
        "spans": kept, "left_out": left_out, "before": before,
        "free_since": before["ended_at"] if before is not None and not there else None,
        "idle_since": idle_since(read, min(there), now) if there else None,
    }  # fmt: skip


def seconds(recent: Iterable[tuple[float, int | None, int]]) -> Iterator[Mean]:
    """Of samples each second that they speak for: all since the one before, unless nobody looked for long."""
    last = None
    for at, load, used in recent:
        first = int(at) if last is None or at - last > UNREAD / 2 else min(int(at), int(last) + 1)
        yield from (Mean(second, 1.0, load, used, None, None) for second in range(first, int(at) + 1))
        last = at


class Point(NamedTuple):
    load: int | None
    used_mib: int
    temperature: int | None
    power_w: int | None


def slots(means: Iterable[Mean], times: range) -> list[Point | None]:
    """One point for each of these times, of all the means that begin in its stretch."""
    parts: dict[int, list[Mean]] = {}
    for mean in means:
        if times.start <= mean.at < times.stop:
            parts.setdefault((mean.at - times.start) // times.step, []).append(mean)
    return [_point(parts[k]) if k in parts else None for k in range(len(times))]


def _point(means: Sequence[Mean]) -> Point:
    def weighed(values: Iterable[float | None]) -> int | None:
        pairs = [(value, mean.covered) for value, mean in zip(values, means, strict=True) if value is not None]
        whole = sum(covered for _, covered in pairs)
        return round(sum(value * covered for value, covered in pairs) / whole) if whole else None

    return Point(
        weighed(m.load for m in means), weighed(m.used_mib for m in means) or 0, weighed(m.temperature for m in means),
        weighed(m.power_w for m in means),
    )  # fmt: skip


def stays(held: Iterable[Stay], now: float, *, live: bool) -> list[Span]:
    """Others' times on a card, those of a user that follow each other closely as one; `live`: somebody looks now. A time that is
    yet to come was seen before the clock was set back."""
    open_stays: dict[str, Stay] = {}
    whole: list[Stay] = []
    for one in sorted(held):
        before = open_stays.get(one.who)
        if before is not None and one.began - before.seen <= APART:
            seen = max(before.seen, one.seen, key=lambda at: (at <= now + SET_BACK, at))
            open_stays[one.who] = before._replace(seen=seen, pid=before.pid if one.pid is None else one.pid)
            continue
        if before is not None:
            whole.append(before)
        open_stays[one.who] = one
    whole += open_stays.values()
    ends = [None if live and -SET_BACK <= now - one.seen <= THERE else min(one.seen, max(now, one.began)) for one in whole]
    return [_span(one.began, ended, user=one.who, pid=one.pid) for one, ended in zip(whole, ends, strict=True)]


def _span(began: float, ended: float | None, **who: Any) -> Span:
    nobody: Span = {
        "began_at": began, "ended_at": ended, "job": None, "run": None, "name": None, "outcome": None, "user": None, "pid": None,
    }  # fmt: skip
    return {**nobody, **who}  # type: ignore[typeddict-item]


def _runs(session: Session, since: float) -> dict[str, list[Span]]:
    """Our runs by card."""
    by_card: dict[str, list[Span]] = {}
    for row in pastruns.since(session.reader, since):
        who = {"job": row["job"], "run": row["n"], "name": row["name"], "outcome": row["outcome"]}
        by_card.setdefault(row["uuid"], []).append(_span(row["started_at"], row["ended_at"], **who))
    return by_card


def longest(spans: list[Span], now: float) -> tuple[list[Span], int]:
    """Those that are there to be seen, in their order, and how many others there are."""
    by_length = sorted(range(len(spans)), key=lambda k: spans[k]["began_at"] - (spans[k]["ended_at"] or now))
    return [spans[k] for k in sorted(by_length[:SPANS])], max(0, len(spans) - SPANS)


def idle_since(read: Iterable[tuple[float, float, float | None]], held_since: float, now: float) -> float | None:
    """Since when a card that somebody holds has done nothing, by what was read of it, the newest first: beginning, end, load."""
    since = now
    for began, ended, load in read:
        if since - ended > UNREAD or load is None or load >= IDLE_LOAD or since <= held_since:
            break
        since = began
    since = max(since, held_since)
    return since if now - since >= IDLE_FOR else None
