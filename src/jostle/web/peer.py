"""Who is at the other end of a connection: on a shared host everybody can reach a port of loopback (S50)."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from typing import Any

from jostle import proc
from jostle.web import sockdiag


def allowed(sock: Any, trusted: frozenset[int], lan: bool) -> bool:
    """Whether this peer may speak at all: a process of ours, of root, or of a proxy that is trusted; beyond loopback, if that is
    open, anybody who knows the token."""
    return _uid_allowed(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)) if sock.family == socket.AF_UNIX else (
        _tcp_allowed(sock, trusted, lan)
    )  # fmt: skip


def _uid_allowed(credentials: bytes) -> bool:
    return struct.unpack("3i", credentials)[1] in (0, os.getuid())


def _tcp_allowed(sock: Any, trusted: frozenset[int], lan: bool) -> bool:
    try:
        theirs, ours = sock.getpeername()[:2], sock.getsockname()[:2]
        local = ipaddress.ip_address(theirs[0].partition("%")[0]).is_loopback
    except (OSError, ValueError):
        return False
    if not local and theirs[0] != ours[0]:
        return lan
    uid = _owner(theirs, ours)
    return uid is not None and (uid in (0, os.getuid()) or uid in trusted)


def _owner(theirs: tuple[str, int], ours: tuple[str, int]) -> int | None:
    try:
        return sockdiag.owner(theirs, ours)
    except OSError:  # in some containers
        return proc.tcp_owner(theirs, ours)
