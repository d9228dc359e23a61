"""Sizes, durations and instants as people write them, and back.

Rules: a size is MiB, a duration seconds, an instant seconds since the epoch. GB and GiB are the same 1024 MiB: people copy
the number that nvidia-smi shows. Text that is not understood raises ValueError with what was expected; nothing is guessed.
"""

from __future__ import annotations

import math
import re
import time

from jostle.core.kinds import MAX_GPUS, MAX_MIB, MAX_SECONDS

TYPE_CHECKING = False  # not from typing, which costs more to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable

SIZE = "a size such as 20GiB, 500MiB or 20 (GB)"
DURATION = "a duration such as 90, 45s, 30m or 2h30m"
INSTANT = "a time such as 2031-05-01T18:30, 18:30 or +10m"
COUNT = "a count of GPUs such as 2, or a range such as 1-4"

MAX_NUMBERS = 10_000  # that one text may name

_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]i?B?|B)?\Z", re.IGNORECASE | re.ASCII)
_IN_MIB = {"B": 1 / (1 << 20), "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024.0}
_DURATION = re.compile(
    r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?:in)?)?(?:(\d+(?:\.\d+)?)s)?\Z",
    re.IGNORECASE | re.ASCII,
)
_NUMBER = re.compile(r"\d+(?:\.\d*)?\Z", re.ASCII)
_CLOCK = re.compile(r"(\d+):([0-5]\d):([0-5]\d)\Z", re.ASCII)
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\Z", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?\Z", re.ASCII)


def size_mib(text: str) -> int:
    """`20GiB`, `500MiB`, `1.5GB`, or a bare number of GB, in whole MiB, rounded up."""
    mib = in_mib(text, "G")
    if not 0 < mib <= MAX_MIB:
        raise ValueError(SIZE + ", more than 0 and at most 1024 TiB")
    if mib < _IN_MIB["K"]:
        raise ValueError(SIZE + ", not a number of bytes")
    return math.ceil(mib)


def in_mib(text: str, bare: str) -> float:
    """The one reading of sizes: `20GiB`, `1.5G`, `500 kb`, `4096B`; a number alone is in the unit `bare`."""
    match = _SIZE.match(text.strip())
    if not match:
        raise ValueError(SIZE)
    return float(match[1]) * _IN_MIB[(match[2] or bare)[0].upper()]


def seconds(text: str) -> float:
    """`90`, `45s`, `2h30m`, `1d`, or `1:30:00`."""
    text = text.strip()
    if _NUMBER.match(text):
        value = float(text)
    elif clock := _CLOCK.match(text):
        value = int(clock[1]) * 3600.0 + int(clock[2]) * 60 + int(clock[3])
    else:
        match = _DURATION.match(text) if text else None
        if not match:
            raise ValueError(DURATION)
        value = sum(float(n or 0) * s for n, s in zip(match.groups(), (86400, 3600, 60, 1), strict=True))
    if value > MAX_SECONDS:
        raise ValueError(DURATION + ", at most 100 years")
    return value


def instant(text: str, now: float | None = None) -> float:
    """An ISO date and time (local unless it has a zone), the next such time of day, or `+10m` from now."""
    now = time.time() if now is None else now
    text = text.strip()
    if text.startswith("+"):
        try:
            return now + seconds(text[1:])
        except ValueError:
            raise ValueError(INSTANT) from None
    if clock := _TIME_OF_DAY.match(text):
        today = time.localtime(now)
        at = time.mktime((*today[:3], int(clock[1]), int(clock[2]), 0, 0, 0, -1))
        return at if at > now else time.mktime((*today[:2], today[2] + 1, int(clock[1]), int(clock[2]), 0, 0, 0, -1))
    from datetime import datetime  # only here: it costs the start-up of every command otherwise

    try:
        # Python 3.10 does not know Z
        return datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "Zz" and text else text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(INSTANT) from None


def gpu_range(text: str) -> tuple[int, int]:
    """`2` or `1-4` as (min, max); 0 means no GPU."""
    match = _RANGE.match(text.strip())
    if not match:
        raise ValueError(COUNT)
    low, high = int(match[1]), int(match[2] or match[1])
    if low > high or high > MAX_GPUS or (low == 0 and high > 0):
        raise ValueError(COUNT + f", the smaller number first, at most {MAX_GPUS}")
    return low, high


def is_gpu_index(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 5 and int(word) <= MAX_GPUS


def numbers(text: str) -> list[int]:
    """`0,2-4` as [0, 2, 3, 4]."""
    numbers_named: dict[int, None] = {}
    spanned = 0
    for part in text.replace(" ", ",").split(","):
        if not part:
            continue
        match = _RANGE.match(part)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise ValueError("numbers such as 3, 0,2 or 4-7")
        span = range(int(match[1]), int(match[2] or match[1]) + 1)
        spanned += len(span)
        if spanned > MAX_NUMBERS:
            raise ValueError(f"at most {MAX_NUMBERS:,} numbers, such as 3, 0,2 or 4-7")
        numbers_named.update(dict.fromkeys(span))
    return list(numbers_named)


def ranges(indices: Iterable[int]) -> str:
    """[0, 1, 2, 5] as `0-2,5`."""
    parts: list[list[int]] = []
    for index in sorted(indices):
        if parts and index == parts[-1][-1] + 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" if len(p) > 2 else f"{p[0]},{p[1]}" for p in parts)


def show_size(mib: float | None) -> str:
    """`-`, `4 KiB`, `500 MiB`, `20 GiB`, `1.5 GiB`."""
    if mib is None:
        return "-"
    if 0 < mib < 1:
        return f"{mib * 1024:.0f} KiB"
    if mib < 1024:
        return f"{mib:.0f} MiB"
    return f"{mib / 1024:.1f}".removesuffix(".0") + " GiB"


def show_duration(value: float | None) -> str:
    """The two largest parts: `0.4s`, `12s`, `3m05s`, `2h30m`, `4d03h`."""
    if value is None:
        return "-"
    value = max(0.0, value)
    if value < 9.95:
        return f"{value:.1f}s"
    seconds_left = round(value)
    for unit, below, size in (("d", "h", 86400), ("h", "m", 3600), ("m", "s", 60)):
        if seconds_left >= size:
            return f"{seconds_left // size}{unit}{seconds_left % size * (24 if unit == 'd' else 60) // size:02d}{below}"
    return f"{seconds_left}s"


def show_instant(at: float | None, now: float | None = None) -> str:
    """Local time; the date only when it is not today's."""
    if at is None:
        return "-"
    then, today = time.localtime(at), time.localtime(now)
    same_day = then[:3] == today[:3]
    return time.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S", then)
