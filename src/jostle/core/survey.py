"""How each card stands for a plain job that wants a whole one: what `jostle gpus` shows."""

from __future__ import annotations

from jostle.core.ledger import available_mib
from jostle.core.model import Job, World
from jostle.core.place import Table
from jostle.core.reasons import Reason, Refusal


def survey(world: World) -> dict[str, tuple[int, Refusal | None]]:
    """By UUID: the memory that is neither used nor promised, and why the card is not to be had (None: it is)."""
    table, plain = Table(world), Job(id=0)
    view = table.view(plain, table.scope(0))
    found = {card.gpu.uuid: no for card, no in zip(table.cards, view.refusals, strict=True)}
    answer = table.place(plain)  # a card that fits may still be one too many
    if isinstance(answer, Reason):
        found.update({refusal.uuid: refusal for refusal in answer.gpus})
    return {uuid: (mib, found[uuid]) for uuid, mib in available_mib(world).items()}
