"""One connection: who is at its other end is asked before a byte is read, and nobody may keep it without saying anything.

What uvicorn leaves to proxies: a head that never ends, an answer that is never read, bare line feeds, more connections than we
have descriptors for.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from jostle.web import peer

HEAD_WITHIN = 15.0  # s until the first request, or the next, is there
READ_WITHIN = 60.0  # s in which at least something of an answer is read
MOST = 400  # connections at once; streams and pages of several tabs have a few each
REFUSED = b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Connection(H11Protocol):
    trusted: frozenset[int] = frozenset()
    lan = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.patience: asyncio.TimerHandle | None = None
        self.unread: asyncio.TimerHandle | None = None
        self.refused = False
        self.line = b""  # of the head, what has come of it without an end

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if not peer.allowed(sock, self.trusted, self.lan):
            self._refuse(b"403 Forbidden")
        elif len(self.connections) > MOST:
            self._refuse(b"503 Service Unavailable")
        else:
            self._await_head()

    def _refuse(self, status: bytes) -> None:
        self.refused = True
        self.transport.write(REFUSED % status)
        self.transport.close()

    def _await_head(self) -> None:
        self._heard()
        self.patience = self.loop.call_later(HEAD_WITHIN, self._lose_patience)

    def _heard(self) -> None:
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None

    def _lose_patience(self) -> None:
        if not self.transport.is_closing():
            self._refuse(b"408 Request Timeout")

    def data_received(self, data: bytes) -> None:
        if self.refused:
            return
        if self.conn.their_state is h11.IDLE and self._bare(data):
            self._refuse(b"400 Bad Request")
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._heard()
            self.line = b""

    def _bare(self, data: bytes) -> bool:
        """A line of the head that ends with a line feed alone: others before us might read it otherwise."""
        head = (self.line + data).partition(b"\r\n\r\n")[0]
        self.line = head[-1:]
        return head.count(b"\n") != head.count(b"\r\n")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._await_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader(0)

    def _await_reader(self, before: int) -> None:
        """Who reads slowly is waited for, who does not read at all is not."""
        left = self.transport.get_write_buffer_size()
        if left == before:
            self.transport.abort()
        else:
            self.unread = self.loop.call_later(READ_WITHIN, self._await_reader, left)

    def resume_writing(self) -> None:
        self._was_read()
        super().resume_writing()

    def _was_read(self) -> None:
        if self.unread is not None:
            self.unread.cancel()
            self.unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._heard()
        self._was_read()
        super().connection_lost(exc)
