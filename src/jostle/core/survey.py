"""How cards stand for jobs that are not there yet: for a plain one, what `jostle gpus` shows; and for whom they can never do."""

from __future__ import annotations

from collections.abc import Iterable

from jostle.core.ledger import available_mib
from jostle.core.model import Job, World
from jostle.core.place import Places, nowhere
from jostle.core.reasons import Reason, Refusal

Asked = tuple[int, int | None, tuple[str, ...]]
"""How many cards, how much of each, and where."""


def survey(world: World) -> dict[str, tuple[int, Refusal | None]]:
    """By UUID: the memory that is neither used nor promised, and why the card is not to be had (None: it is)."""
    plain, answers = Job(id=0), {}
    for table in Places(world).tables:
        view = table.view(plain, table.scope(0))
        answers.update({card.gpu.uuid: no for card, no in zip(table.cards, view.refusals, strict=True)})
        answer = table.hold(plain) or table.place(plain)  # a card that fits may still be one too many
        if isinstance(answer, Reason) and not world.hold:
            answers.update({refusal.uuid: refusal for refusal in answer.gpus})
    return {uuid: (mib, answers[uuid]) for uuid, mib in available_mib(world).items()}


def never(world: World, asked: Iterable[Asked]) -> dict[Asked, Reason]:
    """Of what is asked for, what no rearrangement of these cards could ever give."""
    places, never_of = Places(world), {}
    for request in asked:
        count, mib, on = request
        job = Job(id=0, gpus_min=count, gpus_max=count, memory_mib=mib, on=on)
        reasons = {place: reason for place in places.of(job) if (reason := place.never(job)) is not None}
        if len(reasons) == len(places.of(job)):
            never_of[request] = nowhere(reasons)
    return never_of
