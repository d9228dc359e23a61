"""How cards stand for jobs that are not there yet: for a plain one, what `jostle gpus` shows; and for whom they can never do."""

from __future__ import annotations

from collections.abc import Iterable

from jostle.core.ledger import available_mib
from jostle.core.model import Gpu, Job, Policy, World
from jostle.core.place import Table
from jostle.core.reasons import Reason, Refusal

Asked = tuple[int, int | None]
"""How many cards, and how much of each."""


def survey(world: World) -> dict[str, tuple[int, Refusal | None]]:
    """By UUID: the memory that is neither used nor promised, and why the card is not to be had (None: it is)."""
    table, plain = Table(world), Job(id=0)
    view = table.view(plain, table.scope(0))
    found = {card.gpu.uuid: no for card, no in zip(table.cards, view.refusals, strict=True)}
    answer = table.place(plain)  # a card that fits may still be one too many
    if isinstance(answer, Reason):
        found.update({refusal.uuid: refusal for refusal in answer.gpus})
    return {uuid: (mib, found[uuid]) for uuid, mib in available_mib(world).items()}


def never(gpus: tuple[Gpu, ...], policy: Policy, asked: Iterable[Asked]) -> dict[Asked, Reason]:
    """Of what is asked for, what no rearrangement of these cards could ever give."""
    table = Table(World(now=0.0, uid=0, gpus=gpus, policy=policy))
    found = {}
    for count, mib in asked:
        reason = table.impossible(Job(id=0, gpus_min=count, gpus_max=count, memory_mib=mib), table.scope(0))
        if reason is not None:
            found[count, mib] = reason
    return found
