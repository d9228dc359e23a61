"""An entry as it is shown, and until its last word. Apart from the package's start: shims have no use for it."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from jostle.core.states import NORMAL
from jostle.uniid.entries import RUNNING, WORDS, Entry, lives
from jostle.uniid.file import UniIdFile

LOOK = 0.1
LAST_WORD = 2.0  # s; a script says its word a moment after its program has ended


class Awaited(NamedTuple):
    entry: Entry | None  # None: it was cleaned away, which only a success is
    in_time: bool = True

    @property
    def state(self) -> str:
        return NORMAL if self.entry is None else self.entry.state

    @property
    def wordless(self) -> bool:
        """The process has ended and did not say how."""
        return self.in_time and self.state not in WORDS


def awaited(file: UniIdFile, uni_id: str, timeout: float | None) -> Awaited | None:
    """Until there is a word, or the entry is cleaned away after success, or the process has ended without a word. None: there is
    no such entry."""
    entry = file.get(uni_id)
    if entry is None:
        return None
    deadline = None if timeout is None else time.monotonic() + timeout
    gone_at: float | None = None
    while entry is not None and entry.state not in WORDS:
        now = time.monotonic()
        alive = not entry.pid or lives(uni_id, entry, file.written_at)
        gone_at = None if alive else now if gone_at is None else gone_at
        if gone_at is not None and now - gone_at > LAST_WORD:
            break
        if deadline is not None and now >= deadline:
            return Awaited(entry, in_time=False)
        time.sleep(LOOK if deadline is None else max(0.0, min(LOOK, deadline - now)))
        entry = file.get(uni_id)
    return Awaited(entry)


def listed(file: UniIdFile) -> dict[str, Any]:
    """All entries, as `uni-id list --json` gives them."""
    return {"schema": 1, "file": file.path, "entries": [shown(name, entry, file) for name, entry in file.read().items()]}


def shown(uni_id: str, entry: Entry, file: UniIdFile) -> dict[str, Any]:
    """The entry as plain values; `alive` is None where it says nothing of a process."""
    alive = lives(uni_id, entry, file.written_at) if entry.pid and entry.state == RUNNING else None
    return {"uni_id": uni_id, **entry._asdict(), "alive": alive, "error_type": entry.error_type or None}
