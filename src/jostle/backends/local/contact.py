"""The engine's end of a shim: a spare, what is reserved for it, the run it carries, and the message that hands it over."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jostle.backends.local import leases, shim
from jostle.backends.local.legs import uuid_of
from jostle.backends.local.recorded import NO_HANDLE, Handle
from jostle.core.model import Exit, RunId
from jostle.port import Footing


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
    held: tuple[leases.HeldClaim, ...]
    handle: Handle
    automatic: bool = False  # nobody asked for it by hand

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(lease.name for lease in self.held)


@dataclass(slots=True, eq=False)
class Contact:
    """A run this engine started or adopted, and the descriptors that watch it."""

    run: RunId
    uni_id: str = ""
    handle: Handle = NO_HANDLE
    spare: Spare | None = None  # what it was started with
    sock: socket.socket | None = None  # open: the shim lives
    pidfd: int | None = None
    watched: bool = False  # whether the loop watches the pidfd
    heard: bytes = b""
    begun: bool = False  # its shim has made the claim, or the store says that it had
    ended: Exit | None = None
    background: tuple[int, ...] = ()  # what its commands left running, and it waits for
    inodes: dict[str, int | None] = field(default_factory=dict)  # of its claims, by name; None: not seen yet
    republished: list[leases.HeldClaim] = field(default_factory=list)
    automatic: bool = False  # nobody asked for its cards by hand
    ordered: int = 0  # the last order to it; 0: it keeps the cards it has
    footing: Footing | None = None  # of one that may get others, as its shim has told
    control: socket.socket | None = None  # open: its shim hears us there

    @classmethod
    def of(cls, r: Reservation, uni_id: str, *, resizable: bool = False) -> Contact:
        spare = r.spare
        inodes: dict[str, int | None] = {lease.name: lease.inode for lease in r.held}
        contact = cls(r.run, uni_id, r.handle, spare, spare.sock, spare.pidfd, inodes=inodes, automatic=r.automatic)
        if resizable:
            contact.ordered, contact.footing = 1, Footing(1, 1, True, tuple(uuid_of(name) for name in r.names))
        return contact

    @property
    def shim(self) -> tuple[int, int] | None:
        return None if self.handle.pid is None or self.handle.ticks is None else (self.handle.pid, self.handle.ticks)


def host_of(spec: Mapping[str, Any], contacts: Mapping[RunId, Contact], runs: str) -> dict[str, Any] | None:
    """The allocation that a run is inside of: where its end will be written, and its shim; one that is gone has none, and then
    the run does not begin."""
    if spec.get("inside") is None:
        return None
    for run, contact in contacts.items():
        if run[0] == spec["inside"]:
            return {"dir": f"{runs}/{run[0]}.{run[1]}", "shim": contact.shim}
    return {"dir": "", "shim": None}


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
    descriptors, extra = list(fds), None
    try:
        if len(text) > shim.INLINE:
            extra = os.memfd_create("spec", os.MFD_CLOEXEC)
            with open(extra, "wb", closefd=False) as f:
                f.write(text)
            descriptors.append(extra)
            text = b""
        header = len(text).to_bytes(4, "big") + (b"\1" if extra is not None else b"\0")
        if socket.send_fds(sock, [header + text], descriptors) < len(header) + len(text):
            sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    finally:
        if extra is not None:
            os.close(extra)
