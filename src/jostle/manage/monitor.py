"""The manager at work (SPEC C1, C6): shows the status each interval, reads its file again, and keeps the floor if it is told to.

It holds cards only through allocations of one card each, which end with this process whatever becomes of it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jostle import config as settings
from jostle.core.fields import SETTINGS
from jostle.core.states import OPEN, UNFINISHED
from jostle.errors import INTERRUPTED, Declined, JostleError
from jostle.follow.feed import Feed
from jostle.intake import allocations
from jostle.manage import floor, statustext, system
from jostle.manage.board import board
from jostle.store import allocationreads
from jostle.wording.limits import limit_by

if TYPE_CHECKING:
    from jostle.manage.loading import Loaded
    from jostle.manage.managerlog import ManagerLog
    from jostle.session import Session

TAG = "floor"
LAST = -(1 << 31)  # the priority of what comes after everything else
OFTEN = 1.0  # s between looks at the floor, whose cards somebody may need
WHY = {
    "off": "floor_why_off", "waiting": "floor_why_waiting", "idle": "floor_why_idle", "crowded": "floor_why_crowded",
    "enough": "floor_why_enough", "not_had": "floor_why_not_had",
}  # fmt: skip
AGAIN_AFTER = 60.0  # s until cards are asked for again that were not had


class Monitor:
    def __init__(
        self, session: Session, loaded: Loaded, *, manages: bool, put: Callable[[str], None], log: ManagerLog
    ) -> None:
        self._session, self._loaded, self._manages, self._put, self._log = session, loaded, manages, put, log
        self._system = system.SystemMonitor(session.home)
        self._process = allocations.process(session, os.getpid())
        self._active_at = time.monotonic()
        self._again_at = self._grow_at = 0.0
        self._last_text = ""  # what was said of the floor last
        self._lock = -1

    def run(self, ready: Callable[[], None] = lambda: None) -> int:
        """Until it is told to end: the exit code."""
        if self._manages:
            self._lock = lock(self._session)
        session = self._session
        heard = [signal.SIGTERM, *(n for n in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN)]
        signals = Feed(session.client, after=0, batch=None)  # it is not begun: signals are all that is heard
        signals.catch(*heard)
        self._guarded(self._begin)
        self._system.look()
        ready()
        show_at = time.monotonic()
        try:
            while True:
                self._guarded(self._reload)
                if self._manages:
                    self._guarded(self._keep)
                if time.monotonic() >= show_at:
                    self._guarded(self._show)
                    show_at = time.monotonic() + (self._loaded.interval or self._loaded.config.monitor_interval)
                due = min(show_at, time.monotonic() + OFTEN) if self._manages else show_at
                item = signals.next(max(0.0, due - time.monotonic()))
                if item is not None:
                    return INTERRUPTED if item[1] == signal.SIGINT else 0
        finally:
            self._guarded(self._leave)
            signals.close()

    def _begin(self) -> None:
        self._loaded.declare()
        if self._manages:
            self._session.client().close()  # there is to be an engine; but who ends it later means that
            self._session.starts_engine = False  # also in the midst of asking it for cards

    def _reload(self) -> None:
        if (news := self._loaded.reload()) is not None:
            self._tell(news[0], **news[1])

    def _guarded(self, act: Callable[[], None]) -> None:
        """What fails for a moment is told, and tried again at the next look."""
        try:
            act()
        except (JostleError, OSError) as e:
            if isinstance(e, BrokenPipeError):
                raise
            self._log.write(str(e), "ERROR")
            self._session.say(str(e))

    def _show(self) -> None:
        seen = board(self._session, self._loaded.config)
        self._put("\n".join([*statustext.lines(seen), system.line(self._system.look()), ""]))

    # --- the floor

    def _aim(self, room: dict[str, Any]) -> floor.Aim:
        config = self._loaded.config
        own = settings.load(self._session.home)
        cap = room["max_reserved_gpus"]
        off = "" if config.auto_manage else self._session.message("floor_off_file", file=config.path)
        if not off and cap is not None and cap["most"] == 0:
            off = self._session.message("floor_off_limit", by=limit_by(cap["source"], int(self._session.language == "zh")))
        most = config.max_reserved_gpus if cap is None else min(cap["most"], config.max_reserved_gpus)
        idle = own.get("floor_idle", SETTINGS["floor_idle"].default)
        return floor.Aim(least=min(config.min_reserved_gpus, most), most=most, idle_limit=idle, off=off)

    def _keep(self) -> None:
        session, config = self._session, self._loaded.config
        own = settings.load(session.home).get("policy") or {}
        wanted = floor.Aim(least=min(config.min_reserved_gpus, config.max_reserved_gpus), most=config.max_reserved_gpus)
        policy = floor.rules(own, wanted)
        client = session.engine_if_any()
        if client is None:
            self._say_once("floor_no_engine", {})
            return
        try:
            room = client.call("room", policy=policy)
        finally:
            client.close()
        aim = self._aim(room)
        self._say_once(*(("floor_off", {"why": aim.off}) if aim.off else ("floor_on", {"least": aim.least, "most": aim.most})))
        seen = self._seen(room)
        done = floor.step(seen, aim)
        if done.give:
            self._give(done)
        if done.take and not room["blind"]:
            self._take(done.take, policy)

    def _seen(self, room: dict[str, Any]) -> floor.Situation:
        now, crowded = time.monotonic(), set(room["crowded"])
        rows = self._rows()
        used = {*room["used"], *(row["inside"] for row in self._session.reader.jobs(states=UNFINISHED))}
        kept = tuple(
            floor.FloorCard(id=row["id"], holds=row["state"] != "queued", crowded=bool(crowded & set(row["gpu_uuids"])))
            for row in rows
            if row["intent"] == "run" and row["id"] not in used  # else it is given back already, or its person's for so long
        )
        ours = {row["id"] for row in rows}
        if room["waiting"] or any(row["id"] not in ours and row["commands"] for row in self._session.reader.jobs(states=OPEN)):
            self._active_at = now
        return floor.Situation(
            now=now, kept=kept, held=room["held"], may=room["may"], may_keep=room["may_keep"], free=room["free"],
            waiting=bool(room["waiting"]), active_at=self._active_at, again_at=self._again_at, grow_at=self._grow_at,
        )  # fmt: skip

    def _rows(self) -> list[dict[str, Any]]:
        return [row for row in allocationreads.allocations(self._session.reader) if TAG in row["tags"]]

    def _take(self, count: int, policy: dict[str, Any]) -> None:
        self._tell("floor_takes", n=count)
        self._grow_at = time.monotonic() + self._loaded.config.monitor_interval
        names = {row["name"] for row in allocationreads.allocations(self._session.reader)}
        free = (name for n in range(1, len(names) + count + 1) if (name := f"{TAG}-{n}") not in names)
        for name in [next(free) for _ in range(count)]:
            try:
                allocations.allocate(
                    self._session, name, tied_to=self._process, priority=LAST, tags=[TAG], policy=policy
                )
            except Declined as e:
                self._again_at = time.monotonic() + AGAIN_AFTER
                self._log.write(str(e), "WARNING")

    def _give(self, done: floor.Step) -> None:
        self._tell("floor_gives", n=len(done.give), why=(WHY[done.why], {}))
        if done.why == "not_had":
            self._again_at = time.monotonic() + AGAIN_AFTER
        for id in done.give:
            allocations.give_up(self._session, id)

    def _leave(self) -> None:
        if self._manages and self._session.engine_runs():  # else it ends with this process all the same
            for row in self._rows():
                allocations.give_up(self._session, row["id"])

    # --- what is said

    def _say_once(self, code: str, values: dict[str, Any]) -> None:
        text = self._session.message(code, **values)
        if text != self._last_text:
            self._last_text = text
            self._tell(code, **values)

    def _tell(self, code: str, **values: Any) -> None:
        text = self._session.message(code, **values)
        self._log.write(text)
        self._session.say(text)


def lock(session: Session) -> int:
    """One process keeps the floor of a home."""
    fd = os.open(os.path.join(session.home, "manage.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "?"
        os.close(fd)
        raise Declined(session.message("manage_floor_taken", pid=holder), "floor_taken") from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, str(os.getpid()).encode(), 0)
    return fd
