"""Events to those who follow: once the disk has them, and no faster than they read."""

from __future__ import annotations

import json
import sys

from jostle.engine.server import Peer, Server
from jostle.errors import JostleError, Unwritten
from jostle.store.reads import Reader
from jostle.store.store import Store

PAGE = 1000


class Followers:
    def __init__(self, store: Store, reader: Reader, server: Server) -> None:
        self.store, self.reader, self.server = store, reader, server
        self.seq = 0  # the newest event that the disk is known to have
        server.drained = self._go_on
        self.push()

    def push(self) -> None:
        """Something was committed."""
        try:
            self.store.sync()
        except Unwritten:
            return  # the engine's own try will tell
        before, self.seq = self.seq, self.store.last_seq()
        if self.seq > before:
            for peer in [p for p in self.server.peers.values() if p.following]:
                self._go_on(peer)

    def add(self, peer: Peer, after: int, batch: int | None, *, rows: bool = True) -> None:
        """Without `rows` it hears how far it has come, and reads the store itself: that costs us next to nothing."""
        peer.following, peer.batch, peer.rows = True, batch, rows
        peer.seq = max(0, min(after, self.store.last_seq()))
        self.server.answer(peer, {"ok": True, "seq": self.seq})
        self._go_on(peer)

    def _go_on(self, peer: Peer) -> None:
        """One page of what it has not heard; the next when there is room, so that one who is far behind keeps nobody waiting."""
        if not peer.following or peer.out or peer.seq >= self.seq:
            return
        if not peer.rows:
            peer.seq = self.seq
            self.server.answer(peer, {"seq": self.seq})
            return
        try:
            rows = self.reader.events(after=peer.seq, batch=peer.batch, limit=PAGE)
        except JostleError as e:  # a disk that cannot be read now: it comes again, and hears it then
            print(f"{e}", file=sys.stderr, flush=True)
            self.server.drop(peer)
            return
        durable = [row for row in rows if row["seq"] <= self.seq]
        peer.seq = durable[-1]["seq"] if len(durable) == PAGE else self.seq
        if durable:
            self.server.send(peer, b"".join(json.dumps(row).encode() + b"\n" for row in durable))
        if peer.seq < self.seq:
            self.server.await_room(peer)
