"""The engine's socket: JSON lines from processes of the same user, one answer per request, and events to those who follow.

Nothing a client does may hold up the engine: reads and writes never block, requests and unread answers are bounded, and one
who does not read is dropped. The kernel says who is at the other end (SO_PEERCRED); only our own uid is heard.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

from jostle.address import SOCKET, address
from jostle.engine.loop import Loop

MAX_REQUEST = 64 << 20
MAX_UNREAD = 32 << 20
STRANGERS = 1000  # whose uids are kept until they are told of
MAX_CLIENTS = 1024
"""At the most; and never more than half of the descriptors we may have, for runs need some, too."""


class Peer:
    """One connected client."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.parts: list[bytes] = []
        self.size = 0
        self.out = bytearray()  # not yet sent
        self.following = False
        self.batch: int | None = None
        self.rows = True  # events are told, not only that there are some
        self.seq = 0


class Server:
    def __init__(self, loop: Loop, home: str, request: Callable[[Peer, dict[str, Any]], None]) -> None:
        self.loop, self.home, self.request = loop, home, request
        self.peers: dict[int, Peer] = {}
        self.refused: Counter[int] = Counter()  # strangers who knocked, by uid, for the audit
        self.listener: socket.socket | None = None
        self.most = min(MAX_CLIENTS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self.drained: Callable[[Peer], None] = lambda peer: None  # it has read all that was sent
        self.deaf = False  # no descriptor was left for one more client

    def open(self) -> None:
        """Called by the one who holds the lock of the directory that is there now: a socket found in it is a dead engine's."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with address(self.home) as path:
                try:
                    os.unlink(path)
                except FileNotFoundError:
                    pass
                listener.bind(path)
                os.chmod(path, 0o600)
            self.file = self._identity()
            listener.listen(512)
        except OSError:
            listener.close()
            raise
        listener.setblocking(False)
        self.loop.watch(listener.fileno(), self._accept)
        self.listener = listener

    def _identity(self) -> tuple[int, int]:
        s = os.stat(os.path.join(self.home, SOCKET))
        return s.st_dev, s.st_ino

    def present(self) -> bool:
        """Whether the socket is still where clients look for it (cleaners and logouts remove things)."""
        try:
            return self._identity() == self.file
        except OSError:
            return False

    def listen_again(self) -> None:
        if self.deaf and self.listener is not None:
            self.deaf = False
            self.loop.watch(self.listener.fileno(), self._accept)

    def reopen(self) -> None:
        old = self.listener
        self.open()
        if old is not None:
            self.loop.unwatch(old.fileno())
            old.close()

    def _accept(self) -> None:
        assert self.listener is not None
        try:
            sock, _ = self.listener.accept()
        except BlockingIOError:
            return
        except OSError:  # out of descriptors: whoever knocks stays at the door, and must not keep us running there
            self.loop.unwatch(self.listener.fileno())
            self.deaf = True
            return
        uid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        sock.setblocking(False)
        if uid != os.getuid() or len(self.peers) >= self.most:
            if uid != os.getuid():
                self._note_stranger(uid)
            else:
                crowd = failure("failed", f"the engine has {self.most} clients, as many as it takes: try again in a moment")
                self.send(Peer(sock), json.dumps(crowd).encode() + b"\n")
            sock.close()
            return
        peer = Peer(sock)
        self.peers[sock.fileno()] = peer
        self.loop.watch(sock.fileno(), lambda: self._readable(peer))

    def _note_stranger(self, uid: int) -> None:
        """However often they knock, and however many they are, what is kept of it is bounded."""
        if uid in self.refused or len(self.refused) < STRANGERS:
            self.refused[uid] += 1

    def _readable(self, peer: Peer) -> None:
        try:
            data = peer.sock.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.drop(peer)
            return
        peer.size += len(data)
        if peer.size > MAX_REQUEST:
            self.answer(peer, failure("invalid", f"a request may have at most {MAX_REQUEST >> 20} MiB"))
            self.drop(peer)
            return
        peer.parts.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(peer.parts).split(b"\n")
            peer.parts, peer.size = ([rest], len(rest)) if rest else ([], 0)
            for line in lines:
                self._line(peer, line)

    def _line(self, peer: Peer, line: bytes) -> None:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            self.answer(peer, failure("invalid", "a request is one JSON object on one line"))
            return
        if not isinstance(request, dict) or not isinstance(request.get("op"), str):
            self.answer(peer, failure("invalid", 'a request is a JSON object with an "op"'))
            return
        self.request(peer, request)

    def answer(self, peer: Peer, message: dict[str, Any]) -> None:
        self.send(peer, json.dumps(message).encode("utf-8", "surrogateescape") + b"\n")

    def send(self, peer: Peer, data: bytes) -> None:
        if peer.sock.fileno() < 0:
            return  # dropped meanwhile
        if not peer.out:
            try:
                data = data[peer.sock.send(data) :]
            except BlockingIOError:
                pass
            except OSError:
                self.drop(peer)
                return
        if not data:
            return
        if len(peer.out) + len(data) > MAX_UNREAD:
            self.drop(peer)
            return
        if not peer.out:
            self.await_room(peer)
        peer.out += data

    def await_room(self, peer: Peer) -> None:
        """`drained` is called when it takes more."""
        if peer.sock.fileno() >= 0:
            self.loop.watch_write(peer.sock.fileno(), lambda: self._readable(peer), lambda: self._writable(peer))

    def _writable(self, peer: Peer) -> None:
        try:
            if peer.out:
                del peer.out[: peer.sock.send(peer.out)]
        except BlockingIOError:
            return
        except OSError:
            self.drop(peer)
            return
        if not peer.out:
            self.loop.watch_write(peer.sock.fileno(), lambda: self._readable(peer), None)
            self.drained(peer)

    def drop(self, peer: Peer) -> None:
        fd = peer.sock.fileno()
        if fd >= 0:
            self.loop.unwatch(fd)
            self.peers.pop(fd, None)
            peer.sock.close()

    def close(self) -> None:
        """The listener goes first, so that nobody new arrives; clients see the end last of all."""
        if self.listener is not None:
            if self.present():
                with contextlib.suppress(OSError), address(self.home) as path:
                    os.unlink(path)
            self.loop.unwatch(self.listener.fileno())
            self.listener.close()


def failure(code: str, text: str, about: dict[str, Any] | None = None) -> dict[str, Any]:
    """`about`: codes and numbers of what is wrong, where whoever asked has better words for it."""
    return {"ok": False, "error": {"code": code, "text": text, **(about or {})}}
