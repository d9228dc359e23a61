"""What cards do that no event tells: they fall free, or are lost. Pure: what is kept, what is seen and when, in; what is kept and
what is to be told, out.

Rules: unknown is never good news: a card that was not read is not free, and one that nobody could ask for is not lost. What is
seen must last before it is told, and must have passed for as long before it is told again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LASTS = 60.0  # s that a card must be lost before that is told, and back before it may be told again
OUT = ("lost", "unreadable")

Kept = dict[str, Any]
Cards = Sequence[Mapping[str, Any]]


def free_cards(cards: Cards) -> list[int]:
    """Indices of those that a plain job could have now."""
    return sorted(card["index"] for card in cards if card["state"] == "ok" and card["refusal"] is None and not card["runs"])


def free(kept: Mapping[str, Any], cards: Cards | None, now: float, settings: Mapping[str, Any]) -> tuple[Kept, list[int]]:
    """Which cards to tell of, if any. Kept: since when there are enough, since when not, when it was told, and whether it was."""
    since, below, told_at, told = (kept.get(key) for key in ("since", "below", "told_at", "told"))
    if cards is None:
        return {"since": None, "below": None, "told_at": told_at, "told": told}, []
    indices = free_cards(cards)
    if len(indices) < settings["free_gpus"]:
        below = now if below is None or below > now else below
        told = bool(told) and now - below < settings["free_for"]
        return {"since": None, "below": below, "told_at": told_at, "told": told}, []
    since = now if since is None or since > now else since
    told_at = now if told_at is not None and told_at > now else told_at
    lasted = now - since >= settings["free_for"]
    rested = told_at is None or now - told_at >= settings["free_pause"]
    if told or not lasted or not rested:
        return {"since": since, "below": None, "told_at": told_at, "told": bool(told)}, []
    return {"since": since, "below": None, "told_at": now, "told": True}, indices


def lost(kept: Mapping[str, Any], cards: Cards | None, devices: str, now: float) -> tuple[Kept, list[dict[str, Any]]]:
    """The cards to tell of. Kept: of each card that was ever read, what it is called, and since when it is out or back."""
    if cards is None:
        return dict(kept), []
    known: Mapping[str, Any] = kept.get("cards") or {} if kept.get("spec") == devices else {}
    seen = {card["uuid"]: card for card in cards}
    after, losses = {}, []
    for uuid in [*seen, *(uuid for uuid in known if uuid not in seen)]:
        card, before = seen.get(uuid), known.get(uuid)
        state = "lost" if card is None else card["state"]
        if state not in OUT:
            after[uuid] = _back(before, card or {}, now)
        elif before is not None:
            after[uuid] = entry = {**before, "back": None, "out": min(now, before["out"] or now)}
            if not entry["told"] and now - entry["out"] >= LASTS:
                entry["told"] = True
                losses.append({"about": "gpu", "event": state, "at": now, "gpu": before["gpu"], "uuid": uuid})
    return {"spec": devices, "cards": after}, losses


def _back(before: Mapping[str, Any] | None, card: Mapping[str, Any], now: float) -> dict[str, Any]:
    fresh = {"gpu": card.get("index"), "out": None, "back": None, "told": False}
    if before is None or not before["told"]:
        return fresh
    back = min(now, before["back"] or now)
    return fresh if now - back >= LASTS else {**fresh, "back": back, "told": True}
