"""An inherited CUDA_VISIBLE_DEVICES restricts what is submitted under it (SPEC A12), and a person is told so.

Inside a run it is that run's own and says nothing about others. What hides everything or cannot be understood is only warned of.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.core.variables import ALLOCATION
from jostle.units import is_gpu_index
from jostle.wording.text import gpus

if TYPE_CHECKING:
    from jostle.client import Client
    from jostle.session import Session

NAME = "CUDA_VISIBLE_DEVICES"
Cards = Sequence[Mapping[str, Any]]

# what is said: (English, Chinese)
RESTRICTED = ("{name}={value} is set here: only GPU {cards} may be used", "此处设置了 {name}={value}：只使用 GPU {cards}")
NONE_LEFT = (
    "warning: {name}={value} is set here, and none of these is among the cards that the settings allow ({cards})",
    "警告：此处设置了 {name}={value}，但设置允许的卡（{cards}）中没有它们",
)
HIDES_ALL = (
    "warning: {name}={value} hides all GPUs from CUDA; it restricts nothing here. A job without GPUs is asked for with -g 0",
    "警告：{name}={value} 对 CUDA 隐藏所有 GPU；此处不作限制。不需要 GPU 的任务请用 -g 0",
)
UNKNOWN = (
    "warning: {name}={value} is not understood and restricts nothing; expected indices such as 0,1, or UUIDs of cards here",
    "警告：无法理解 {name}={value}，不作限制；应为 0,1 这样的编号，或本机 GPU 的 UUID",
)


def inherited() -> str | None:
    """None: it is not set, or a run's own."""
    return None if "JOSTLE_UNI_ID" in os.environ or ALLOCATION in os.environ else os.environ.get(NAME)


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
        _say(session, HIDES_ALL, value)
    elif not all(map(is_gpu_index, words)):
        _say(session, UNKNOWN, value)
    else:
        allowed_cards = cards if allowed is None else [card for card in cards if card in allowed]
        _say(session, RESTRICTED if allowed_cards else NONE_LEFT, value, gpus(allowed_cards or list(allowed or ())))
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


def _say(session: Session, words: tuple[str, str], value: str, cards: str = "") -> None:
    session.say(words[session.language == "zh"].format(name=NAME, value=value, cards=cards))


def indices(visible: str, gpus: Cards) -> str:
    """UUIDs, or beginnings of one, as the indices of the cards that are here; what is not understood stays."""
    words = []
    for word in (word.strip() for word in visible.split(",")):
        alike = [gpu["index"] for gpu in gpus if word.startswith("GPU-") and gpu["uuid"].startswith(word)]
        words.append(str(alike[0]) if len(alike) == 1 else word)
    return ",".join(words)
