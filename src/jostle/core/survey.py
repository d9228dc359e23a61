"""How each card stands for a plain job that wants a whole one: what `jostle gpus` shows."""

from __future__ import annotations

from jostle.core.ledger import available_mib
from jostle.core.model import Job, World
from jostle.core.place import Table
from jostle.core.reasons import Refusal


def survey(world: World) -> dict[str, tuple[int, Refusal | None]]:
    """By UUID: the memory that is neither used nor promised, and why the card is not to be had (None: it is)."""
    table = Table(world)
    view = table.view(Job(id=0), table.scope(0))
    room = available_mib(world)
    return {card.gpu.uuid: (room[card.gpu.uuid], no) for card, no in zip(table.cards, view.refusals, strict=True)}
