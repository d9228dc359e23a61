"""The directory of a run, read from outside: its lock, and what its shim wrote there (`claim`, `exit`, `registered`,
`background`); only the claim that voids a run is written here.

The job runs as the same user and could have put anything there, so nothing is followed, waited for or believed unless it
has the right shape. A damaged claim is a claim all the same (the run must not start again), of no boot we know.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jostle import proc
from jostle.backends.local import process
from jostle.backends.local.recorded import FAR, is_pid, is_ticks, read, record
from jostle.backends.local.sparedir import SpareDir
from jostle.core.model import Exit, LegEnd, RunId
from jostle.uniid.entries import WORDS, entry_of, short_line
from jostle.uniid.file import look

INPUTS = ("same", "other", "unknown")
RELEASED = ("asked", "time", "process")
VOID = b'{"void": true}'
LATE = 1 << 37
"""No clock shows that, and of much later moments no date can be made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunClaim:
    """The content of a run's `claim`."""

    pid: int = 0
    ticks: int = -1
    boot: str = ""
    uni_id: str = ""
    leases: tuple[str, ...] = ()
    void: bool = False
    life: bool = False  # its shim has handed a lock on this very file to all its commands; those of older versions did not

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> RunClaim:
        if record.get("void") is True:
            return cls(void=True)
        names = record.get("leases")
        pid, ticks, boot, uni_id = (record.get(k) for k in ("pid", "ticks", "boot", "uni_id"))
        if not (is_pid(pid) and is_ticks(ticks) and isinstance(boot, str) and isinstance(uni_id, str)):
            return cls()
        named = names if isinstance(names, list) else []
        kept = tuple(n for n in named if isinstance(n, str) and n.isascii() and n.isprintable())
        return cls(pid=pid, ticks=ticks, boot=boot, uni_id=uni_id, leases=kept, life=record.get("life") is True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Registered:
    """The uni_id file of a run, and the processes that were registered there."""

    file: str = ""
    pids: Mapping[int, int] = field(default_factory=dict)  # pid -> start ticks

    @property
    def living(self) -> list[int]:
        return [pid for pid, ticks in self.pids.items() if proc.alive(pid, ticks)]

    def word(self, uni_id: str) -> Exit | None:
        """The end of a run whose shim did not live to see it, if its script has told it (SPEC A22)."""
        if not self.file:
            return None
        try:
            content = look(self.file)
        except OSError:
            return None
        if content.fd >= 0:
            os.close(content.fd)
        entry = entry_of((content.data or {}).get(uni_id))
        return Exit(said=entry.state, said_type=entry.error_type) if entry is not None and entry.state in WORDS else None


class RunDir:
    """The directory of one run."""

    def __init__(self, runs: str, run: RunId) -> None:
        self.runs, self.path = runs, f"{runs}/{run[0]}.{run[1]}"

    def void(self) -> bool:
        """Claims the run for nobody; True: it will never start; False: it has, or the disk does not let us say so."""
        try:
            sparedir = SpareDir(self.runs)
        except OSError:
            return False
        try:
            if sparedir.take(self.path, VOID):
                sparedir.close()
                return True
            os.link(f"{sparedir.path}/claim", f"{self.path}/claim")  # if it has none: made by an older version, then left
        except OSError:
            pass
        sparedir.discard()
        claim = self.claim()
        return claim is not None and claim.void

    def claim(self) -> RunClaim | None:
        text = read(f"{self.path}/claim")
        return None if text is None else RunClaim.of(record(text))

    def exists(self) -> bool:
        """Whether there is anything by its name: of a database that was put back, another run has been here."""
        return os.path.lexists(self.path)

    def exit(self) -> Exit | None:
        text = read(f"{self.path}/exit")
        return None if text is None else exit_of(record(text))

    def registered(self) -> Registered:
        """What the run's scripts told of themselves in a uni_id file, as its shim noted it."""
        noted = record(read(f"{self.path}/registered") or b"")
        file, pids = noted.get("file"), noted.get("pids")
        ticks_of = pids if isinstance(pids, dict) else {}
        processes = {
            int(pid): ticks for pid, ticks in ticks_of.items() if pid.isdecimal() and len(pid) < 10 and isinstance(ticks, int)
        }
        return Registered(file=file if isinstance(file, str) else "", pids=processes)

    def background(self) -> tuple[int, ...]:
        """What its commands left running and its shim waits for; nothing while they have not ended."""
        return pids_of(record(read(f"{self.path}/background") or b"").get("pids"))

    def locked(self, claim: RunClaim | None, boot: str) -> bool:
        """Whether a shim holds the run's lock. The claim is read before, and the exit record after."""
        try:
            fd = os.open(f"{self.path}/lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            # never made, or removed by the job itself: then only the process can tell
            return claim is not None and claim.boot == boot and proc.alive(claim.pid, claim.ticks)
        except OSError as e:
            # a file system that does not answer is no bad news; but something else in its place is not a lock
            return e.errno not in (errno.ELOOP, errno.ENXIO, errno.ENOTDIR)
        return _is_locked(fd)

    def is_of_shim(self, pid: int) -> bool:
        """Whether this process has the run's lock open, as only its shim has for life: be it that somebody removed the file."""
        lock = os.path.join(os.path.realpath(self.runs), os.path.basename(self.path), "lock")
        return not proc.open_files(pid).isdisjoint((lock, f"{lock} (deleted)"))

    def lives(self, claim: RunClaim) -> bool | None:
        """Whether any process of the run lives, by the lock that all of them inherit; None: that cannot be said."""
        if not claim.life:
            return None
        try:
            fd = os.open(f"{self.path}/claim", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        return _is_locked(fd)

    def deserted(self, sid: int) -> bool:
        """Whether surely nobody lives of the run that was made here in this session (one of an earlier home had another)."""
        claim = self.claim()
        if claim is None or claim.pid != sid or self.lives(claim) is not False:
            return False
        return not process.members(claim.uni_id)


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def pids_of(value: Any) -> tuple[int, ...]:
    return tuple(pid for pid in value if is_pid(pid)) if isinstance(value, list) else ()


def leg_ends(value: Any) -> tuple[LegEnd, ...]:
    """How legs ended, of what has the right shape."""
    ends = []
    for one in value if isinstance(value, list) else ():
        if not isinstance(one, dict):
            continue
        order, code, number, at = (one.get(key) for key in ("leg", "code", "signal", "at"))
        whole = all(n is None or (type(n) is int and abs(n) < FAR) for n in (order, code, number))
        if whole and order is not None and isinstance(at, int | float) and 0 <= at < LATE:
            ends.append(LegEnd(order, code, number, at))
    return tuple(ends)


EXIT: dict[str, tuple[type, ...]] = {
    "code": (int, type(None)),
    "signal": (int, type(None)),
    "timed_out": (bool,),
    "stopped": (bool,),
    "error": (str,),
    "unable": (bool,),
    "tail": (str,),
    "started_at": (int, float, type(None)),
    "ended_at": (int, float, type(None)),
    "ran_for": (int, float, type(None)),
    "rss_mib": (int, type(None)),
    "leftovers": (list,),
    "said": (str,),
    "said_type": (str,),
    "inputs": (str,),
    "released": (str,),
}


def exit_of(record: Any) -> Exit | None:
    """An exit record that has the right shape, or None."""
    if not isinstance(record, dict) or "code" not in record or "ended_at" not in record:
        return None
    fields = {k: record[k] for k in EXIT if k in record}
    if not all(isinstance(v, EXIT[k]) for k, v in fields.items()):
        return None
    if not all(-FAR < v < FAR for v in fields.values() if isinstance(v, int | float)):
        return None  # nothing that anybody wrote honestly; NaN is among them
    if not all(0 <= (fields.get(moment) or 0) < LATE for moment in ("started_at", "ended_at")):
        return None
    fields = {k: v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for k, v in fields.items()}
    fields["said"] = fields.get("said", "") if fields.get("said") in WORDS else ""
    fields["inputs"] = fields.get("inputs", "") if fields.get("inputs") in INPUTS else ""
    fields["released"] = fields.get("released", "") if fields.get("released") in RELEASED else ""
    fields["said_type"] = short_line(fields.get("said_type", ""))
    left = fields.pop("leftovers", [])
    if not all(isinstance(pid, int) and abs(pid) < FAR for pid in left):
        return None
    return Exit(**fields, leftovers=tuple(left), legs=leg_ends(record.get("legs")))
