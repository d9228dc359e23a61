"""Runs that get other cards while they live: the engine's end of their control sockets.

Rules. Whoever connects says first which orders were recorded before: what of them has not arrived never will, and its cards are
not the run's. So an order whose fate is unknown (its engine died, the socket broke) is never sent again. What was reserved is
given away with the order, or given back.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from jostle.backends.local import control, leases
from jostle.backends.local.contact import Contact
from jostle.backends.local.leasedir import Directory
from jostle.backends.local.legs import uuid_of
from jostle.backends.local.records import leg_ends
from jostle.core.model import RunId
from jostle.failpoint import failpoint
from jostle.port import Denied, Footing, Recipient, Resizing, Tenure, Watcher

UNREACHABLE = "unreachable"
AGAIN = 1.0  # s between two tries to reach a shim


class ResizeOrders:
    listener: Recipient

    def __init__(self, *, runs: str, directory: Directory, watcher: Watcher) -> None:
        self._runs, self._directory, self._watcher = runs, directory, watcher
        self._more: dict[RunId, list[leases.HeldClaim]] = {}  # reserved beyond what a run has
        self._try_at = 0.0

    # ------------------------------------------------------------------ reserve

    def reserve(
        self, contact: Contact | None, wants: Sequence[tuple[str, int | None]], claim_names: frozenset[str], *,
        alone: bool, tenure: Tenure,
    ) -> Denied | None:  # fmt: skip
        if contact is None or contact.ended is not None or contact.handle.pid is None or not self._reached(contact):
            return Denied.REFUSED
        held = self._directory.claim_cards(
            contact.run, contact.handle.pid, wants, claim_names, alone=alone, tenure=tenure
        )
        if held is None:
            return Denied.REFUSED
        self._more[contact.run] = held
        failpoint("resize.reserved")
        return None

    def withdraw(self, run: RunId) -> None:
        leases.withdraw(self._directory.path, self._more.pop(run, []))

    # ------------------------------------------------------------------ orders

    def resize(self, contact: Contact, order: Resizing) -> None:
        held = self._more.pop(order.run, [])
        self._reached(contact)
        contact.ordered = order.number
        names = [lease.name for lease in held]
        message = {"resize": order.number, "cards": list(order.cards), "claims": names, "env": dict(order.env)}
        failpoint("resize.before_order")
        sock = contact.control
        if sock is not None and control.sent(sock, message, [lease.fd for lease in held]):
            failpoint("resize.ordered")
            contact.inodes.update({lease.name: lease.inode for lease in held})
            for lease in held:
                os.close(lease.fd)
            return
        leases.withdraw(self._directory.path, held)
        if sock is not None:
            self._hang_up(contact)
        if contact.footing is not None:
            contact.footing = contact.footing._replace(order=order.number, taken=False, why=UNREACHABLE)
        self.listener.changed(contact.run)

    def give_up(self, contact: Contact, order: int, cards: Collection[str]) -> None:
        if self._reached(contact) and contact.control is not None:
            failpoint("resize.before_give_up")
            control.sent(contact.control, {"drop": order, "cards": sorted(cards)})

    # ------------------------------------------------------------------ contact

    def _reached(self, contact: Contact) -> bool:
        """Whether its shim hears us; says first what must not be obeyed any more."""
        if contact.control is not None:
            return True
        if not contact.ordered or not contact.begun or contact.ended is not None:
            return False
        sock = control.connected(f"{self._runs}/{contact.run[0]}.{contact.run[1]}")
        if sock is None:
            return False
        if not control.sent(sock, {"fence": contact.ordered}):
            sock.close()
            return False
        contact.control = sock
        self._watcher.watch(sock.fileno(), partial(self._hear, contact))
        return True

    def tick(self, now: float, contacts: Collection[Contact]) -> float | None:
        """Tries to reach those whose shims have not told what they have; when to come again."""
        mute = [c for c in contacts if c.ordered and c.ended is None and c.control is None and not settled(c)]
        if not mute:
            return None
        if now >= self._try_at:
            self._try_at = now + AGAIN
            for contact in mute:
                self._reached(contact)
        return self._try_at

    def _hear(self, contact: Contact) -> None:
        assert contact.control is not None
        messages = control.received(contact.control)
        if messages is None:
            self._hang_up(contact)
        for message in messages or ():
            self._learn(contact, message)
        self.listener.changed(contact.run)

    def _learn(self, contact: Contact, message: Mapping[str, Any]) -> None:
        try:
            footing, claims = footing_of(message, contact.ordered)
        except (KeyError, TypeError, ValueError):
            return  # nothing that our shim would say
        contact.footing = footing
        if footing.order < contact.ordered:
            return  # the cards of an order that was not answered yet may be its own any moment
        for name in [name for name in contact.inodes if uuid_of(name) not in footing.cards]:
            del contact.inodes[name]
        known = {uuid_of(name) for name in contact.inodes}
        contact.inodes.update({
            name: None if (claim := self._directory.own(name)) is None else claim.inode
            for name in claims if uuid_of(name) not in known
        })
        gone = [held for held in contact.republished if held.name not in contact.inodes]
        contact.republished = [held for held in contact.republished if held.name in contact.inodes]
        leases.withdraw(self._directory.path, gone)

    def _hang_up(self, contact: Contact) -> None:
        if contact.control is not None:
            self._watcher.unwatch(contact.control.fileno())
            contact.control.close()
            contact.control = None

    def release(self, contact: Contact) -> None:
        self.withdraw(contact.run)
        self._hang_up(contact)


def settled(contact: Contact) -> bool:
    """Whether it is known what became of the last order."""
    footing = contact.footing
    return footing is not None and footing.order == contact.ordered and (not footing.taken or footing.effective == footing.order)


def footing_of(message: Mapping[str, Any], ordered: int) -> tuple[Footing, list[str]]:
    """What a shim has told, and the names of its claims; raises if it is not what one tells."""
    effective, order, taken, claims = (message[key] for key in ("leg", "order", "taken", "claims"))
    if not all(type(n) is int and 0 <= n < 1 << 31 for n in (effective, order, taken)):
        raise ValueError("no number")
    if not isinstance(claims, list) or not all(isinstance(name, str) for name in claims):
        raise ValueError("no claims")
    why = str(message.get("why", "")) if message.get("refused") == ordered else ""
    if why:
        order = ordered
    elif order == ordered and taken < ordered:
        why = "lost"  # it has not arrived, and will not be taken any more
    cards = tuple(uuid_of(name) for name in claims)
    return Footing(effective, min(order, ordered), not why, cards, why, leg_ends(message.get("ended"))), claims
