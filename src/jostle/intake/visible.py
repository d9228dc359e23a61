"""An inherited CUDA_VISIBLE_DEVICES restricts what is submitted under it (SPEC A12), and a person is told so.

Inside a run it is that run's own and says nothing about others. What hides everything or cannot be understood is only warned of.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.core.runvariables import VISIBLE, within
from jostle.units import is_gpu_index
from jostle.wording.text import gpus

if TYPE_CHECKING:
    from jostle.client import Client
    from jostle.session import Session

Cards = Sequence[Mapping[str, Any]]


def inherited() -> str | None:
    """None: it is not set, or a run's own."""
    return None if within(os.environ) else os.environ.get(VISIBLE)


def with_indices(client: Client) -> str | None:
    """The same with indices for the UUIDs of cards that are here."""
    value = inherited()
    return indices(value, client.call("gpus")["gpus"]) if value is not None and "GPU-" in value else value


def restricted(session: Session, allowed: Sequence[int] | None = None, *, devices: str | None = None) -> list[int] | None:
    """The indices that may be used, said to the person; None: it does not say. `allowed`: those of the file or the settings."""
    value = inherited()
    if value is None:
        return None
    if allowed is None:
        from jostle import config

        allowed = (config.load(session.home).get("policy") or {}).get("gpus")
    words = (indices(value, looked(session, devices)) if "GPU-" in value else value).replace(" ", "").split(",")
    cards = sorted({int(word) for word in words if is_gpu_index(word)})
    if not value.strip() or words[0] == "-1":
        session.tell("visible_hide_all", name=VISIBLE, value=value)
    elif not all(map(is_gpu_index, words)):
        session.tell("visible_unknown", name=VISIBLE, value=value)
    else:
        allowed_cards = cards if allowed is None else [card for card in cards if card in allowed]
        code, shown = ("visible_restrict", allowed_cards) if allowed_cards else ("visible_none_left", list(allowed or ()))
        session.tell(code, name=VISIBLE, value=value, cards=gpus(shown))
        return allowed_cards
    return None


def rules(session: Session) -> dict[str, Any]:
    """Of a batch: cards that this shell does not see are not used (SPEC A12)."""
    cards = restricted(session)
    return {} if cards is None else {"gpus": cards}


def looked(session: Session, devices: str | None) -> Cards:
    client = session.client(gpus=devices)
    try:
        return list(client.call("gpus")["gpus"])
    finally:
        client.close()


def indices(visible: str, gpus: Cards) -> str:
    """UUIDs, or beginnings of one, as the indices of the cards that are here; what is not understood stays."""
    words = []
    for word in (word.strip() for word in visible.split(",")):
        alike = [gpu["index"] for gpu in gpus if word.startswith("GPU-") and gpu["uuid"].startswith(word)]
        words.append(str(alike[0]) if len(alike) == 1 else word)
    return ",".join(words)
