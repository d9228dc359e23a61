"""One message, as it is kept until somebody took it. Its id never changes: whoever gets it twice can tell."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

LONGEST, LONGEST_TITLE = 24 << 10, 500  # bytes of a text, of a title
MORE = "…"


@dataclass(frozen=True, kw_only=True)
class Message:
    id: str
    made_at: float
    about: tuple[str, ...]  # which of core.kinds.NOTICES, each once
    title: str  # one line
    text: str
    items: tuple[Mapping[str, Any], ...] = ()  # the same for programs

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def made(at: float, about: Sequence[str], title: str, text: str, items: Sequence[Mapping[str, Any]] = ()) -> Message:
    return Message(
        id=secrets.token_hex(16), made_at=at, about=tuple(dict.fromkeys(about)), title=cut(title, LONGEST_TITLE),
        text=cut(text, LONGEST), items=tuple(items),
    )  # fmt: skip


def of(kept: Mapping[str, Any]) -> Message:
    """As it was kept."""
    return Message(**{**kept, "about": tuple(kept["about"]), "items": tuple(kept["items"])})


def cut(text: str, most: int) -> str:
    """At most so many bytes of UTF-8, and a sign where something is missing."""
    raw = text.encode("utf-8", "replace")  # what was never text cannot be sent
    if len(raw) <= most:
        return raw.decode()
    return raw[: most - len(MORE.encode())].decode("utf-8", "ignore") + MORE
