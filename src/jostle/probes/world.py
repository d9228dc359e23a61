"""The directories of a simulated world (see sim.py): its beginning, what processes say they use, the claims of runs."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Collection
from typing import NamedTuple

from jostle import proc
from jostle.backends.local import claims as claim_names


class HeldCard(NamedTuple):
    """A run's claim on one GPU, alive or lately ended."""

    uuid: str
    mib: int | None  # None: the whole card
    pid: int
    age: float
    gone_for: float | None = None  # since its end
    still: bool = False  # its processes are stopped


class ProcessUse(NamedTuple):
    """What a process says that it uses of a GPU, named by place or UUID."""

    pid: int
    gpu: str
    mib: int
    utilization: int = 0


class SimWorld:
    """The directory."""

    def __init__(self, path: str) -> None:
        self._use_dir = os.path.join(path, "use")
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)  # not what it lies in: a home that was removed is not to come back as an empty one
        _make_shared(self._use_dir)
        self.began_at = _began(path)
        self._first_ticks: dict[int, int] = {}
        self._texts: dict[int, tuple[tuple[int, int, int], list[ProcessUse]]] = {}

    def uses(self) -> tuple[list[ProcessUse], dict[int, proc.Stat]]:
        """What living processes say they use, and who they are."""
        uses: list[ProcessUse] = []
        stats: dict[int, proc.Stat] = {}
        for name in os.listdir(self._use_dir):
            if not name.isdecimal():
                continue
            pid, path = int(name), os.path.join(self._use_dir, name)
            stat = _alive(pid)
            if stat is None or self._first_ticks.setdefault(pid, stat.ticks) != stat.ticks:
                self._forget(pid, path)
                continue
            stats[pid] = stat
            says = self._text(pid, path)
            uses += [use._replace(utilization=0) for use in says] if stat.state == "T" else says
        return uses, stats

    def _text(self, pid: int, path: str) -> list[ProcessUse]:
        current = version(path)
        cached = self._texts.get(pid)
        if current is None:
            return []
        if cached is None or cached[0] != current:
            cached = self._texts[pid] = (current, _uses_of(pid, path))
        return cached[1]

    def _forget(self, pid: int, path: str) -> None:
        self._first_ticks.pop(pid, None)
        self._texts.pop(pid, None)
        try:
            os.unlink(path)
        except OSError:
            pass  # another user's: theirs to remove


def _uses_of(pid: int, path: str) -> list[ProcessUse]:
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = f.read(65536).splitlines()
    except OSError:
        return []
    return [use for use in (_use_of(pid, line.split()) for line in lines) if use is not None]


def _use_of(pid: int, words: list[str]) -> ProcessUse | None:
    """One line of a use file; None for anything that is not one."""
    if not 2 <= len(words) <= 3 or max(map(len, words)) > 96:
        return None
    if not all(word.isdecimal() and len(word) < 10 for word in words[1:]):
        return None
    return ProcessUse(pid, words[0], int(words[1]), int(words[2]) if len(words) == 3 else 0)


class Claims:
    """The live claims of a lease directory, and those that ended lately."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._tracked: dict[str, _Tracked] = {}
        self._others: set[str] = set()  # names of no claim on these cards
        self._uuids: Collection[str] = ()

    def look(self, free_lag: float, stats: dict[int, proc.Stat], uuids: Collection[str]) -> list[HeldCard]:
        """The claims now, but those of the sessions in `stats`, to which it adds the holders."""
        now, speaking = boottime(), {stat.sid for stat in stats.values()}
        held = []
        for claim in self._listed(uuids):
            holder = claim.check(now)
            if holder is not None:
                stats[holder.pid] = holder
                if claim.claim.sid not in speaking and not claim.holds_only:
                    age = now - claim.born_at
                    held.append(HeldCard(claim.claim.uuid, claim.claim.mib, holder.pid, age, still=claim.stands_still(now)))
        return held + self._ended(free_lag, now)

    def _listed(self, uuids: Collection[str]) -> list[_Tracked]:
        try:
            names = os.listdir(self._path)
        except OSError:
            names = []  # no lease was ever taken
        listed = []
        self._others = self._others.intersection(names) if uuids == self._uuids else set()
        self._uuids = uuids
        for name in names:
            tracked = self._tracked.get(name)
            if tracked is None and name not in self._others:
                claim = claim_names.parse(name)
                if claim is None or claim.uuid not in uuids:
                    self._others.add(name)
                else:
                    tracked = _track(self._path, name, claim)
            if tracked is not None:
                self._tracked[name] = tracked
                listed.append(tracked)
        for name in self._tracked.keys() - set(names):
            self._tracked[name].close()
        return listed

    def _ended(self, free_lag: float, now: float) -> list[HeldCard]:
        ghosts = []
        for name, tracked in list(self._tracked.items()):
            if tracked.fd >= 0:
                continue
            tracked.ended_at = tracked.ended_at or now
            if tracked.born_at == 0.0 or tracked.holds_only or now - tracked.ended_at >= free_lag:
                del self._tracked[name]
                continue
            claim, age = tracked.claim, tracked.ended_at - tracked.born_at
            ghosts.append(HeldCard(claim.uuid, claim.mib, claim.sid, age, now - tracked.ended_at))
        return ghosts


class _Tracked:
    """A claim whose file is kept open, for a try of its lock is all that a look at it then costs."""

    def __init__(self, claim: claim_names.Claim, fd: int) -> None:
        self.claim = claim
        self.fd = fd
        self.born_at = 0.0  # 0: no holder was seen yet
        self.ended_at = 0.0  # 0: it lives
        self.holds_only = False  # an allocation: nothing runs there by it
        self._holder: proc.Stat | None = None
        self._next_check_at = 0.0
        self._still = False
        self._still_check_at = 0.0

    def check(self, now: float) -> proc.Stat | None:
        """Who holds it: a process of its session while it is locked. (A lock alone may be a mere test of it.)"""
        if self.fd < 0 or not _is_locked(self.fd):
            self.close()
            return None
        if now >= self._next_check_at:
            self._holder = _member(self.claim.sid)
            self.holds_only = self._holder is not None and self._holder.name == claim_names.HOLDER
            self._next_check_at = now + (_HOLDER_CHECK if self._holder else _NO_HOLDER_CHECK)
            if self._holder is not None and self.born_at == 0.0:
                self.born_at = now - _age(self.fd, self._holder, now)
                self._still_check_at = self.born_at + _LOAD_LAG
        return self._holder

    def stands_still(self, now: float) -> bool:
        if now >= self._still_check_at and self._holder is not None:
            self._still, self._still_check_at = _stands_still(self._holder.pid), now + _LOAD_LAG
        return self._still

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


_HOLDER_CHECK = 0.1  # s; who holds a lock that is held changes only when a leader dies before its session
_NO_HOLDER_CHECK = 1.0  # s; reading all of /proc takes milliseconds
_LOAD_LAG = 0.5  # s until a card shows that its run was stopped or goes on, as a driver's load is that of a while


def _track(path: str, name: str, claim: claim_names.Claim) -> _Tracked | None:
    try:
        fd = os.open(os.path.join(path, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    return _Tracked(claim, fd)


def _is_locked(fd: int) -> bool:
    """A shared try-lock: two who test at once do not see each other. Who gets it must close the file."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as e:
        return e.errno == errno.EWOULDBLOCK
    return False


def _member(sid: int) -> proc.Stat | None:
    """The session's leader, or another process of it where the leader has died and the lock lives on."""
    leader = _alive(sid)
    if leader is not None:
        return leader
    return next((stat for stat in map(_alive, proc.pids()) if stat is not None and stat.sid == sid), None)


def _stands_still(shim: int) -> bool:
    """Whether all that it started is stopped: who computes nothing keeps its memory all the same."""
    states = [stat.state for stat in proc.children(shim) if stat.state not in "ZX"]
    return bool(states) and set(states) == {"T"}


def _alive(pid: int) -> proc.Stat | None:
    stat = proc.stat(pid)
    return None if stat is None or stat.state in "ZX" else stat


def _age(fd: int, holder: proc.Stat, now: float) -> float:
    age = time.time() - os.fstat(fd).st_mtime
    return max(0.0, min(age, now - holder.ticks / os.sysconf("SC_CLK_TCK")))


def version(path: str | None) -> tuple[int, int, int] | None:
    if path is None:
        return None
    try:
        s = os.stat(path)
    except OSError:
        return None
    return s.st_mtime_ns, s.st_size, s.st_ino


def _make_shared(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
        if os.stat(os.path.dirname(path)).st_mode & 0o077:
            os.chmod(path, 0o1777)  # like /tmp: anyone who gets there may say what they use
    except FileExistsError:
        pass


def _began(path: str) -> float:
    """The world's time zero, which the first of all its probes in this boot sets."""
    file, boot = os.path.join(path, "began"), proc.boot_id()
    began_at = _read_began(file, boot)
    if began_at is not None:
        return began_at
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        began_at = _read_began(file, boot)  # another may have been first
        return _write_began(file, boot) if began_at is None else began_at
    finally:
        os.close(lock)


def _read_began(file: str, boot: str) -> float | None:
    """None if there is none of this boot: BOOTTIME of another means nothing now."""
    try:
        with open(file) as f:
            of_boot, _, second = f.read().partition(" ")
        return float(second) if of_boot == boot else None
    except (FileNotFoundError, ValueError):
        return None


def _write_began(file: str, boot: str) -> float:
    now = round(boottime(), 6)
    fd = os.open(file + ".new", os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, f"{boot} {now}\n".encode())
        os.fchmod(fd, 0o644)  # whatever the umask
    finally:
        os.close(fd)
    os.rename(file + ".new", file)  # who reads without the lock finds it whole
    return now


def boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _home() -> str:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.environ.get("JOSTLE_HOME") or os.path.join(state, "jostle")


def world_dir() -> str:
    return os.environ.get("JOSTLE_SIM_DIR") or os.path.join(_home(), "sim")


def lease_dir() -> str:
    return os.environ.get("JOSTLE_LEASE_DIR") or os.path.join(_home(), "leases")
