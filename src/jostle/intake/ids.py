"""Job ids as people write them: `12 3-7 1,4 last all`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from jostle.core.states import UNFINISHED
from jostle.errors import NotFound, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from jostle.store.reads import Reader

    class Ids(Protocol):
        """The part of the reader that ids need."""

        def last_id(self) -> int | None: ...


WRITTEN = "ids such as 12, 3-7, 1,4, last or all"
WRITTEN_EACH = "ids such as 12, 3-7, 1,4 or last"
WRITTEN_ONE = "an id such as 12, or last"
_ID = re.compile(r"(\d{1,15})(?:-(\d{1,15}))?\Z", re.ASCII)
MAX_RANGE = 1_000_000


def jobs(words: Sequence[str], reader: Callable[[], Ids], every: Callable[[], list[int]] | None = None) -> list[int]:
    """The ids in the order given, each once. `every` says what `all` means; the store is read only for words that need it."""
    ids: dict[int, None] = {}
    for part in (part for word in words for part in word.split(",") if part):
        if part == "last":
            ids[_last(reader())] = None
        elif part == "all" and every is not None:
            ids.update(dict.fromkeys(every()))
        else:
            ids.update(dict.fromkeys(_range(part, reader, WRITTEN if every is not None else WRITTEN_EACH)))
    return list(ids)


def unfinished(words: Sequence[str], reader: Callable[[], Reader]) -> list[int]:
    """The same; `all` means whatever has not ended."""
    return jobs(words, reader, lambda: reader().ids(UNFINISHED))


def single(word: str, reader: Callable[[], Ids]) -> int:
    ids = jobs([word], reader) if word != "all" else []
    if len(ids) != 1:
        raise Usage(f"{word!r} is not one job; expected {WRITTEN_ONE}")
    return ids[0]


def _last(reader: Ids) -> int:
    last = reader.last_id()
    if last is None:
        raise NotFound("there is no job yet")
    return last


def _range(part: str, reader: Callable[[], Ids], expected: str) -> range:
    match = _ID.match(part)
    if not match:
        raise Usage(f"{part!r} is no job id; expected {expected}")
    low, high = int(match[1]), int(match[2] or match[1])
    if low > high:
        raise Usage(f"{part!r} runs backwards; expected the smaller id first")
    if match[2]:
        high = min(high, reader().last_id() or 0)  # 5-99999 means what there is of it
        if low > high:
            raise NotFound(f"there is no job {part}")
    if high - low > MAX_RANGE:
        raise Usage(f"{part!r} names more than {MAX_RANGE} jobs")
    return range(low, high + 1)
