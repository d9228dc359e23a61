"""One job as a plain dict of the submit request, and the checks that every way of describing a job shares.

Rules: light to import, for `jostle add` starts with it. Each check answers with the value or raises ValueError saying what
was expected. Text that people chose (names, queues, tags) is kept literally; only what would break a line or a screen is refused.
"""

from __future__ import annotations

import os
import re

from jostle import units
from jostle.core import kinds
from jostle.core.devices import EXPECTED, known
from jostle.core.fields import JOB
from jostle.core.kinds import MAX_COUNT, MAX_GPUS, MAX_NAME, Kind
from jostle.formats.nodes import TRUTHS
from jostle.printable import one_line

TYPE_CHECKING = False  # not from typing, which costs more to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_TEXT = 1_000_000

_INT = re.compile(r"[-+]?\d{1,12}\Z", re.ASCII)


FIELDS = tuple(field for field in JOB.values() if field.key and not field.into)


def job(**values: Any) -> dict[str, Any]:
    """A job with every field that a file can say; what is not said has its default."""
    return {**{field.name: field.fresh() for field in FIELDS}, "name": "", "commands": [], "workdir": "/", **values}


def label(text: str, what: str = "a name") -> str:
    """A name, queue or tag: one line that can be shown anywhere."""
    if not text.strip():
        raise ValueError(f"{what} that is not empty")
    if len(text) > MAX_NAME:
        raise ValueError(f"{what} of at most {MAX_NAME} characters")
    if not text.isprintable():
        raise ValueError(f"{what} in one line of printable characters")
    return text


def target(text: str) -> str:
    if not kinds.target(text):
        raise ValueError("the name of a target: letters, digits, _, - and .")
    return text


def name_of(commands: list[Any]) -> str:
    """A name for a job that was given none: the beginning of its command."""
    first = commands[0]
    text = " ".join(first) if isinstance(first, list) else first
    line = next((line.strip() for line in text.split("\n") if line.strip()), "job")
    shown = one_line(line[:41])
    return shown if len(shown) <= 40 else shown[:39] + "…"


def command(text: str) -> str:
    if not text.strip():
        raise ValueError("a command that is not empty")
    if "\0" in text:
        raise ValueError("a command without NUL characters")
    if len(text) > MAX_TEXT:
        raise ValueError(f"a command of at most {MAX_TEXT} characters")
    return text


def integer(text: str, low: int = 0, high: int = MAX_COUNT) -> int:
    text = text.strip()
    if not _INT.match(text) or not low <= int(text) <= high:
        raise ValueError(
            f"a whole number of at least {low}" if high >= MAX_COUNT and low >= 0 else f"a whole number from {low} to {high}"
        )
    return int(text)


def time_limit(text: str) -> float:
    value = units.seconds(text)
    if value <= 0:
        raise ValueError(units.DURATION + ", more than 0")
    return value


def variable(name: str, value: str) -> tuple[str, str]:
    """A variable of the environment; any name that the kernel can carry (LD_PRELOAD and PATH are daily bread)."""
    if not name or "=" in name or "\0" in name:
        raise ValueError("a variable's name without = and NUL")
    if "\0" in value:
        raise ValueError(f"a value of {name} without NUL")
    return name, value


def path(text: str, base: str) -> str:
    """An absolute path; relative ones start at `base`, `~` is the home directory."""
    if not text or "\0" in text:
        raise ValueError("a path")
    return os.path.normpath(os.path.join(base, os.path.expanduser(text)))


def one_of(text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise ValueError("one of " + ", ".join(choices))
    return text


def attempts(text: str) -> int | None:
    """How often a failed job is tried again; None: without limit."""
    if text in ("unlimited", "forever"):
        return None
    try:
        return integer(text)
    except ValueError:
        raise ValueError("a whole number of at least 0, or unlimited") from None


def truth(text: str) -> bool:
    if text not in TRUTHS:
        raise ValueError("true or false")
    return TRUTHS[text]


def counters(text: str, low: int = 1) -> dict[str, int]:
    """`licence=2,tape=1`; a name alone is one of it."""
    words = [word.strip().partition("=") for word in text.split(",")]
    if len({name for name, _, _ in words}) < len(words):
        raise ValueError("each name once")
    return dict(counter(name, count if equals else "1", low) for name, equals, count in words)


def counter(name: str, count: str, low: int = 1) -> tuple[str, int]:
    if not kinds.target(name):
        raise ValueError("names of letters, digits, _, - and ., each with a whole number, such as licence=1")
    return name, integer(count, low)


def indices(text: str) -> list[int]:
    numbers = units.numbers(text)
    if not numbers or max(numbers) > MAX_GPUS:
        raise ValueError("indices of GPUs such as 0-3,6")
    return numbers


def devices(text: str) -> str:
    if not known(text):
        raise ValueError(EXPECTED)
    return text


def mib(text: str) -> int:
    """The key says MiB, so a bare number is MiB here; with a unit it is any size."""
    try:
        return units.size_mib(text + "MiB" if text.strip()[-1:].isdigit() else text)
    except ValueError:
        raise ValueError("a size such as 1GiB, or a number of MiB") from None


# kind of a field (core.kinds): how people write it
READERS: dict[str, Callable[[str, Kind], Any]] = {
    "truth": lambda text, kind: truth(text),
    "whole": lambda text, kind: integer(text, kind.low, kind.high),
    "percent": lambda text, kind: integer(text.removesuffix("%"), kind.low, kind.high),
    "size": lambda text, kind: 0 if kind.low == 0 and text.strip() == "0" else units.size_mib(text),
    "duration": lambda text, kind: units.seconds(text),
    "instant": lambda text, kind: units.instant(text),
    "limit": lambda text, kind: time_limit(text),
    "choice": lambda text, kind: one_of(text, kind.words),
    "attempts": lambda text, kind: attempts(text),
    "indices": lambda text, kind: indices(text),
    "gpus": lambda text, kind: list(units.gpu_range(text)),
    "devices": lambda text, kind: devices(text),
    "mib": lambda text, kind: mib(text),
    "label": lambda text, kind: label(text, *kind.words),
    "counters": lambda text, kind: counters(text, kind.low),
    "labels": lambda text, kind: [label(word, *kind.words) for word in text.split(",")],
    "targets": lambda text, kind: list(dict.fromkeys(target(word) for word in text.split(","))),
}


def reader(kind: Kind) -> Callable[[str], Any]:
    """The check of a text that is to become a value of this kind."""
    read = READERS[kind.name]
    return lambda text: read(text, kind)
