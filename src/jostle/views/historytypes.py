"""The history of cards in its plain form (docs/json.md); the rules are those of types.py."""

from __future__ import annotations

from typing import TypedDict


class Span(TypedDict):
    """Somebody's time on a card: a run of ours, or another user."""

    began_at: float
    ended_at: float | None  # None: still there
    job: int | None
    run: int | None
    name: str | None
    outcome: str | None
    user: str | None  # "": nobody could see who
    pid: int | None


class CardHistory(TypedDict):
    index: int
    uuid: str
    name: str
    total_mib: int
    load: list[int | None]
    used_mib: list[int | None]
    temperature: list[int | None]
    power_w: list[int | None]
    spans: list[Span]
    left_out: int
    before: Span | None
    free_since: float | None
    idle_since: float | None


class History(TypedDict):
    engine: bool
    at: float
    began_at: float
    ended_at: float
    step_s: int
    error: str
    gpus: list[CardHistory]
