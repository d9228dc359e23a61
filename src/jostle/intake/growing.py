"""An allocation that lives gets more cards (SPEC C2): it is asked for, waited for, and taken back where it is not to be had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jostle.core.states import UNFINISHED
from jostle.errors import Declined, Invalid, JostleError, NotFound
from jostle.intake.allocations import Applicant, of_name, reason, variables
from jostle.wording.declined import declined
from jostle.wording.sentences import worded

if TYPE_CHECKING:
    from jostle.session import Session

UNDER_WAY = "resizing"


class Growth(NamedTuple):
    """An allocation that is to have so many cards, and what it asked for before."""

    id: int
    cards: int
    before: tuple[int, int]


def grow(session: Session, name: str, count: int) -> Growth | None:
    """Asks for so many cards in all, for the allocation of this name; None: there is none. One that has more keeps them."""
    try:
        row = of_name(session, name)
    except NotFound:
        return None
    low, high = row["gpu_request"]
    growth = Growth(int(row["id"]), max(count, len(row["gpus"])), (low, high))
    if growth.cards > max(low, len(row["gpus"])):
        _refuse_what_can_never_be(session, row, growth.cards)
        _set(session, growth.id, [growth.cards, growth.cards])
    return growth


def take_back(session: Session, growth: Growth) -> None:
    """It is to have what it had."""
    _set(session, growth.id, list(growth.before))


def grown(
    session: Session, growth: Growth, *, now: bool = False, tell: Callable[[str], None] = lambda why: None
) -> dict[str, str]:
    """Waits until it holds them; what a program is to be told of them, as variables. `tell` hears why it waits, whenever that
    changes. `now`: takes it back and raises why, if they cannot be had at once."""
    waiting = Applicant(session, tell, now=now)
    while (row := session.reader.job(growth.id)) is not None and row["state"] in UNFINISHED:
        why = reason(session, growth.id)
        under_way = why is not None and why["code"] == UNDER_WAY
        if row["state"] == "running" and len(row["gpus"]) >= growth.cards and not under_way:
            return variables(session, growth.id)
        if why is not None and not under_way:
            waiting.hear(row["name"], because(why), lambda: take_back(session, growth), at_least=1.0)
        waiting.pause()
    raise JostleError(session.message("alloc_ended", name=row["name"] if row else "?", id=growth.id, why="?"))


def because(why: Mapping[str, Any]) -> Mapping[str, Any]:
    """What keeps a run from other cards, where that is what is said of it."""
    inner = (why.get("params") or {}).get("because")
    return inner if isinstance(inner, dict) and "code" in inner else why


def _refuse_what_can_never_be(session: Session, row: Mapping[str, Any], count: int) -> None:
    """Raises why these cards could never give so much."""
    job = {"name": row["name"], "commands": [], "gpus": [count, count], "memory_mib": row["memory_mib"]}
    rules = (session.reader.batch(row["batch"]) or {}).get("policy") or {}
    client = session.client()
    try:
        never = client.call("check", batch={"policy": rules}, context={}, jobs=[job])["never"]
    finally:
        client.close()
    if never:
        raise Invalid(f"{row['name']}: {worded(never[0]['reason'], session.language)['text']}")


def _set(session: Session, id: int, gpus: list[int]) -> None:
    client = session.client()
    try:
        answer = client.call("intent", ids=[id], batch=None, do="set", values={"gpus": gpus})
    finally:
        client.close()
    for _, why in answer["refused"]:
        raise Declined(declined(why, session.language), why["code"], why["params"])
