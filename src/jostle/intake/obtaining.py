"""Cards that somebody asks for and waits for (SPEC C2): whatever ends the waiting gives them up."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jostle.intake import visible
from jostle.intake.allocations import Process, allocate, give_up, held, process

if TYPE_CHECKING:
    from jostle.session import Session

GIVE_UP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def asked(session: Session, name: str, *, pid: int | None = None, **wanted: Any) -> int:
    """Asks for it as `allocate` does: of the cards that this shell sees, and tied to the process of this number."""
    tied_to = process(session, pid) if pid is not None else None
    return allocate(session, name, tied_to=tied_to, policy=visible.rules(session), **wanted)


def obtained(
    session: Session, name: str, *, gpus: Sequence[int], now: bool = False, grow: bool = False, pid: int | None = None,
    awaited_by: Process | None = None, **wanted: Any,
) -> tuple[int, dict[str, str]]:  # fmt: skip
    """Its job, and its variables when it has its cards; Ctrl-C gives it up, or what it was to have more. `grow`: one of this name
    that lives is to have so many in all. `awaited_by`: whose end gives it up, too, until `keep`."""
    from jostle.intake import growing  # the other verbs of allocations start without it

    once = os.urandom(16).hex()
    heard = [number for number in GIVE_UP if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN]  # nohup
    before = [signal.signal(number, signal.default_int_handler) for number in heard]
    growth = None
    try:
        growth = growing.grow(session, name, gpus[1]) if grow else None
        if growth is not None:
            id = growth.id
        else:
            id = asked(session, name, pid=pid, gpus=gpus, once=once, awaited_by=awaited_by, **wanted)

        def tell(why: str) -> None:
            session.tell("alloc_waits", name=name, id=id, why=why)

        return id, growing.grown(session, growth, now=now, tell=tell) if growth else held(session, id, now=now, tell=tell)
    except KeyboardInterrupt:
        for number in heard:
            signal.signal(number, signal.SIG_IGN)
        if growth is not None:
            growing.take_back(session, growth)
        elif (taken := session.reader.taken(once)) is not None:
            give_up(session, taken["ids"][0])
        session.tell("alloc_given_up", name=name)
        raise
    finally:
        for number, handler in zip(heard, before, strict=True):
            signal.signal(number, handler)
