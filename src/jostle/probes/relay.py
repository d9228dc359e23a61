"""Cards read one after another, such that one which does not answer holds up only itself.

One thread leads: it reads all cards itself, so that nothing is handed over while they answer. Another stands by. When the
reading of a card has not come back in PATIENCE, the one that stands by leads from there on. The thread that is stuck keeps that
card from then on: it reads it again whenever the leader wants it, says when it has, and gives the card back once it has answered
quickly a few times. A thread that is stuck in a driver can be ended by nobody; it needs nothing that the others need.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import NamedTuple

from jostle.core.devices import LEAST_STARTING, SILENT, STARTING
from jostle.core.states import READ
from jostle.probes.snapshot import GpuReading, Relieved, blind

PATIENCE = 0.25  # s that all wait for one card, once
CHECK = 0.05  # s between the looks of the one that stands by, while readings are taken
_REST = 1.0  # s without a reading after which it sleeps until the next
_QUICK, _ENOUGH = 0.05, 5  # s, and how many such answers in a row bring a card back


class LastReading(NamedTuple):
    """The last reading of a card, with its slices: when it began, and the newest look that had been asked for by then."""

    gpus: list[GpuReading]
    at: float
    look: int


class _Turn(NamedTuple):
    """What the leader is at."""

    card: int
    began: float
    look: int


class _SlowCard:
    """A card that is read apart."""

    def __init__(self, turn: _Turn) -> None:
        self.began: float | None = turn.began  # of the reading under way
        self.look = turn.look
        self.since: float | None = turn.began  # since when there was no good answer
        self.quick = 0
        self.error: Exception | None = None  # what ends all readings
        self.read_again = allocate_lock()
        self.read_again.acquire()


class Relay:
    def __init__(self, read: Callable[[int], list[GpuReading]]) -> None:
        self._read = read
        self._lock = allocate_lock()  # over who leads
        self._turn: _Turn | None = None
        self._slow: dict[int, _SlowCard] = {}
        self._last: dict[int, LastReading] = {}
        self._led_at = 0.0
        self._rests = False
        self._woken = allocate_lock()
        self._woken.acquire()
        self.news, self._tell = os.pipe()  # a byte for each card that answered late
        os.set_blocking(self._tell, False)

    def card(self, number: int, look: int, count: int, *, again: bool) -> list[GpuReading]:
        """The card with its slices as it is now, or as it was last seen; `again`: one that is late is to be read once more."""
        slow = self._slow.get(number)
        if slow is not None:
            return self._late(number, slow, look, count, again)
        turn = self._turn = _Turn(number, time.monotonic(), look)
        self._led_at = turn.began
        if self._rests and self._woken.locked():
            self._woken.release()
        gpus, error = self._tried(number)
        with self._lock:
            leads = self._turn is turn
            if leads:
                self._turn = None
        if leads and error is None:
            self._last[number] = LastReading(gpus, turn.began, look)
            return gpus
        if leads and error is not None:
            raise error
        self._keep(number, gpus, error)
        raise Relieved

    def stand_by(self) -> None:
        """Comes back when this thread is to lead."""
        while True:
            time.sleep(CHECK)
            turn, now = self._turn, time.monotonic()
            if turn is None and now - self._led_at > _REST:
                self._sleep()
            elif turn is not None and now - turn.began >= PATIENCE:
                with self._lock:
                    if self._turn is turn:
                        self._turn = None
                        self._slow[turn.card] = _SlowCard(turn)
                        return

    def _sleep(self) -> None:
        self._rests = True
        if self._turn is None:
            self._woken.acquire()
        self._rests = False

    def _tried(self, number: int) -> tuple[list[GpuReading], Exception | None]:
        try:
            return self._read(number), None
        except Exception as e:
            return [], e

    def _keep(self, number: int, gpus: list[GpuReading], error: Exception | None) -> None:
        """The rest of a thread that was stuck: it keeps the card until that answers quickly."""
        slow = self._slow[number]
        while True:
            assert slow.began is not None
            if error is None:
                self._last[number] = LastReading(gpus, slow.began, slow.look)
                slow.since = None if gpus[0]["state"] in READ else slow.since
                slow.quick = slow.quick + 1 if time.monotonic() - slow.began < _QUICK else 0
            slow.error, slow.began = error, None
            if slow.quick >= _ENOUGH:
                del self._slow[number]
            try:
                os.write(self._tell, b".")
            except BlockingIOError:
                pass  # it has been told often enough
            if slow.quick >= _ENOUGH:
                return
            slow.read_again.acquire()
            gpus, error = self._tried(number)

    def _late(self, number: int, slow: _SlowCard, look: int, count: int, again: bool) -> list[GpuReading]:
        if slow.error is not None:
            raise slow.error
        now = time.monotonic()
        if slow.began is None and again:
            slow.look, slow.since, slow.began = look, slow.since or now, now
            slow.read_again.release()
        began, since = slow.began, slow.since  # the other thread may have it by now
        return late(number, self._last.get(number), now if began is None else began, since or now, now, count)


def all_silent(gpus: list[GpuReading]) -> bool:
    return bool(gpus) and all(gpu["state"] == "unreadable" and "silent_since" in gpu for gpu in gpus)


def late(number: int, last: LastReading | None, began: float, since: float, now: float, count: int) -> list[GpuReading]:
    """What is shown of a card that is being read since `began`, and of which there is no good answer since `since`."""
    if last is None:
        starting = now - since < max(LEAST_STARTING, STARTING * count)
        state, error = ("starting", "the driver is starting") if starting else ("unreadable", "no answer")
        gpus = [blind(number, "", "", state, error)]
    elif now - began >= SILENT:
        gpus = [blind(number, g["uuid"], g["name"], "unreadable", "no answer", g["total_mib"], g["mig_slice"]) for g in last.gpus]
    else:
        gpus = [g.copy() for g in last.gpus]
        for gpu in gpus:
            gpu["read_at"], gpu["asked"] = last.at, last.look
    for gpu in gpus:
        if gpu["state"] not in READ:
            gpu["silent_since"] = since
    return gpus
