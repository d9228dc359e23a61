"""What is asked of results, as people write it: `METRIC=100`, `loss=min`, `OLD=NEW`, `64KiB`. Unfit says of which, and what was
expected."""

from __future__ import annotations

import math
import re

from jostle.errors import Unfit


def pattern(regex: str) -> re.Pattern[str]:
    try:
        return re.compile(regex)
    except re.error as e:
        raise Unfit("names", f"{regex!r} is no regular expression: {e}") from None


def number(text: str, what: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12 and low <= int(text) <= high):
        raise Unfit(what, f"{text!r} is not understood; expected a number from {low} to {high}")
    return int(text)


def size(text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,15})\s*(|[kmg])(?:i?b)?", text.strip().lower())
    if match is None or not int(match[1]):
        raise Unfit("tail", f"{text!r} is not understood; expected a size such as 64KiB or 1MiB")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2]]


def listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def renames(texts: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (old, equals, _) in zip(texts, pairs, strict=True):
        if not old or not equals:
            raise Unfit("rename", f"{text!r} is not understood; expected OLD=NEW")
    return {old: new for old, _, new in pairs}


def scales(texts: list[str], names: list[str]) -> dict[str, float]:
    """By metric; one that names none is for all."""
    factors: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            factor = float(value)
        except ValueError:
            factor = 0.0
        if not factor or not math.isfinite(factor) or (equals and name not in names):
            expected = f"a number such as 100, or METRIC=100 with METRIC of {', '.join(names)}"
            raise Unfit("scale", f"{text!r} is not understood; expected {expected}")
        factors |= {name: factor} if equals else dict.fromkeys(names, factor)
    return factors


def directions(texts: list[str], names: list[str]) -> dict[str, str]:
    ways: dict[str, str] = {}
    for text in texts:
        name, equals, way = text.rpartition("=")
        if way not in ("max", "min") or (equals and name not in names):
            listed = ", ".join(names)
            raise Unfit("best", f"{text!r} is not understood; expected max, min, or METRIC=max with METRIC of {listed}")
        ways |= {name: way} if equals else dict.fromkeys(names, way)
    return ways
