"""The engine's end of a shim: a spare, what is reserved for it, the run it carries, and the message that hands it over."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jostle.backends.local import leases, shim
from jostle.core.model import Exit, RunId


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What is known of a run now."""

    kind: str  # alive | ended | gone | not_started | voided | unsupervised
    exit: Exit | None = None  # for ended
    pids: tuple[int, ...] = ()  # unsupervised: its processes that still live; alive: what its commands left and it waits for
    why: str = ""  # gone: what we can say about it
    claimed: bool = False  # alive: its shim has made the claim, so it has really started
    pid: int | None = None  # its shim's, where that is known


@dataclass(slots=True, eq=False)
class Spare:
    """The engine's end of one shim, from its birth in the nursery on."""

    pid: int
    ticks: int
    sock: socket.socket
    pidfd: int | None
    run: RunId | None = None
    runs: int = 0  # that it has carried to their end


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """A spare and the published claims of one run that is about to start."""

    run: RunId
    spare: Spare
    held: tuple[leases.Held, ...]

    @property
    def pid(self) -> int:
        return self.spare.pid

    @property
    def ticks(self) -> int:
        return self.spare.ticks

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.held)


@dataclass(slots=True, eq=False)
class Known:
    """A run this engine started or adopted, and the descriptors that watch it."""

    run: RunId
    pid: int | None = None
    ticks: int | None = None
    spare: Spare | None = None  # what it was started with
    sock: socket.socket | None = None  # open: the shim lives
    pidfd: int | None = None
    watched: bool = False  # whether the loop watches the pidfd
    heard: bytes = b""
    claimed: bool = False
    ended: Exit | None = None
    background: tuple[int, ...] = ()  # what its commands left running, and it waits for
    inodes: dict[str, int | None] = field(default_factory=dict)  # of its claims, by name; None: not seen yet
    republished: list[leases.Held] = field(default_factory=list)

    @classmethod
    def of(cls, r: Reservation) -> Known:
        spare = r.spare
        inodes: dict[str, int | None] = {one.name: one.inode for one in r.held}
        return cls(r.run, spare.pid, spare.ticks, spare, spare.sock, spare.pidfd, inodes=inodes)

    @property
    def shim(self) -> tuple[int, int] | None:
        return (self.pid, self.ticks) if self.pid is not None and self.ticks is not None else None


def hung_up(sock: socket.socket) -> bool:
    try:
        return not sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def send_spec(sock: socket.socket, spec: Mapping[str, Any], fds: Iterable[int]) -> None:
    """One message that never waits; if it does not go out whole, the spare sees a torn one and leaves."""
    text = json.dumps(spec).encode()
    given, extra = list(fds), None
    try:
        if len(text) > shim.INLINE:
            extra = os.memfd_create("spec", os.MFD_CLOEXEC)
            with open(extra, "wb", closefd=False) as f:
                f.write(text)
            given.append(extra)
            text = b""
        header = len(text).to_bytes(4, "big") + (b"\1" if extra is not None else b"\0")
        if socket.send_fds(sock, [header + text], given) < len(header) + len(text):
            sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    finally:
        if extra is not None:
            os.close(extra)
