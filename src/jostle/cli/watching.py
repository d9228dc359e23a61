"""The live picture of a batch on a terminal, with how the GPUs stand."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.cli.attached import Live
from jostle.errors import JostleError

if TYPE_CHECKING:
    from jostle.cli.desk import Desk
    from jostle.cli.progress import Progress

LOOK = 2.0  # s between two looks at the GPUs


class Watched(Live):
    def __init__(self, desk: Desk, progress: Progress) -> None:
        self.looked_at = float("-inf")
        self.last = False  # whether it was the last look
        super().__init__(desk, progress)

    def draw(self) -> None:
        """Looks with every picture, not only when nothing happens: where much happens the cards change most. And once more when
        all is over, so that no card is said to be ours that is not."""
        if time.monotonic() - self.looked_at > LOOK or (self.progress.over and not self.last):
            self.looked_at, self.last = time.monotonic(), self.progress.over
            self.progress.cards = occupancy(self.desk)
        super().draw()


def occupancy(desk: Desk) -> str:
    """How the cards stand, in words; nothing when the engine cannot be asked."""
    try:
        client = desk.client(start=False)
        gpus = client.call("gpus")["gpus"]
        client.close()
    except (JostleError, OSError):
        return ""
    return told(gpus)


def told(gpus: Sequence[Mapping[str, Any]]) -> str:
    """`4 GPUs: 2 ours, 1 of others, 1 free`."""
    ours = sum(bool(gpu["runs"]) for gpu in gpus)
    free = sum(not gpu["runs"] and gpu["refusal"] is None for gpu in gpus)
    parts = [(ours, "ours"), (len(gpus) - ours - free, "not to be had"), (free, "free")]
    said = ", ".join(f"{count} {words}" for count, words in parts if count)
    return f"{len(gpus)} GPU{'' if len(gpus) == 1 else 's'}: {said}" if gpus else ""
