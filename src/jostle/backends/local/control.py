"""The control socket of a run: how any engine of its user, also the next one, reaches the shim. Both ends are here.

Rules. It lies in the run's directory, which is private, and listens to its own user only. A message is one packet of JSON,
perhaps with descriptors, and is taken whole or not at all: what is too long or has too many descriptors is refused, and those are
closed. Nobody waits for anybody: the shim hears of a packet by a signal, the engine by its loop.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

NAME = "control"
MOST_BYTES = 1 << 16
MOST_CARDS = 253  # descriptors that fit into one message
MOST_PEERS = 4
AT_ONCE = 16  # messages that are heard in one go
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid

Message = tuple[socket.socket, dict[str, Any], list[int]]


class ControlSocket:
    """The shim's end."""

    def __init__(self, directory: str) -> None:
        """Raises OSError if it cannot be had."""
        self._path = f"{directory}/{NAME}"
        self._peers: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with _short(directory) as path:
                self._listener.bind(path)
                os.chmod(path, 0o600)
            self._listener.listen(MOST_PEERS)
            _signalled(self._listener)
        except OSError:
            self.close()
            raise
        self.more = False  # whether there may be messages that were not heard yet

    def heard(self) -> Iterator[Message]:
        """What was said since the last call. The descriptors are the caller's."""
        left = AT_ONCE
        for peers in (list(self._peers), self._accepted()):
            for peer in peers:
                while left and (message := self._receive(peer)) is not None:
                    left -= 1
                    yield message
        self.more = not left

    def _accepted(self) -> Iterator[socket.socket]:
        for _ in range(AT_ONCE):
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            try:
                _signalled(peer)
                trusted = _is_own(peer)
            except OSError:
                trusted = False
            if not trusted:
                peer.close()
                continue
            self._peers.append(peer)
            if len(self._peers) > MOST_PEERS:
                self._hang_up(self._peers[0])  # who still wants something comes again
            yield peer

    def _receive(self, peer: socket.socket) -> Message | None:
        while True:
            try:
                data, fds, flags, _ = socket.recv_fds(peer, MOST_BYTES, MOST_CARDS, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return None
            except OSError:
                data, fds, flags = b"", [], 0
            if not data:
                close_all(fds)
                self._hang_up(peer)
                return None
            message = None if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) else _object(data)
            if message is not None:
                return peer, message, fds
            close_all(fds)
            self.tell({"refused": 0, "why": "unreadable"}, peer)

    def tell(self, message: Mapping[str, Any], peer: socket.socket | None = None) -> None:
        """To one who listens, or to all; who does not read what is said is not waited for."""
        text = json.dumps(message).encode()
        for one in list(self._peers) if peer is None else [peer]:
            try:
                one.send(text, socket.MSG_NOSIGNAL)
            except OSError:
                self._hang_up(one)

    def _hang_up(self, peer: socket.socket) -> None:
        if peer in self._peers:
            self._peers.remove(peer)
        peer.close()

    def close(self) -> None:
        for peer in [*self._peers, self._listener]:
            peer.close()
        self._peers = []
        try:
            os.unlink(self._path)
        except OSError:
            pass


def connected(directory: str) -> socket.socket | None:
    """The engine's end; None: nobody listens there, or nobody whom we could trust."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.setblocking(False)
    try:
        with _short(directory) as path:
            sock.connect(path)
        if _is_own(sock):
            return sock
    except OSError:
        pass
    sock.close()
    return None


def sent(sock: socket.socket, message: Mapping[str, Any], fds: Sequence[int] = ()) -> bool:
    try:
        socket.send_fds(sock, [json.dumps(message).encode()], fds, socket.MSG_NOSIGNAL)
    except OSError:
        return False
    return True


def received(sock: socket.socket) -> list[dict[str, Any]] | None:
    """What the shim has said; None: it has hung up."""
    messages: list[dict[str, Any]] = []
    while True:
        try:
            data = sock.recv(MOST_BYTES)
        except BlockingIOError:
            return messages
        except OSError:
            data = b""
        if not data:
            return messages or None
        messages += [message] if (message := _object(data)) is not None else []


def close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


class _short:
    """A path to bind and connect, however long that of the directory is."""

    def __init__(self, directory: str) -> None:
        self._fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def __enter__(self) -> str:
        return f"/proc/self/fd/{self._fd}/{NAME}"

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def _signalled(sock: socket.socket) -> None:
    """What comes there is heard as SIGIO."""
    fcntl.fcntl(sock.fileno(), fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(sock.fileno(), fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    sock.settimeout(0)


def _is_own(sock: socket.socket) -> bool:
    _, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return bool(uid == os.geteuid())


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
