"""One entry of the uni_id file, in any shape that people's scripts have written, and whether its process runs.

Rules: what we do not understand is kept as it is and counts as nothing; a pid may be another's by now.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, NamedTuple

from jostle import proc
from jostle.core.states import ABNORMAL, NORMAL
from jostle.printable import one_line

MOST_SAID = 64  # characters of an error type
RUNNING = "running"
STATES = (RUNNING, NORMAL, ABNORMAL)
WORDS = (NORMAL, ABNORMAL)
MAX_PID = 1 << 22

Data = dict[str, Any]


class Entry(NamedTuple):
    """What the file says of one uni_id."""

    pid: int = 0  # 0: none
    state: str = RUNNING
    retry_count: int = 0
    error_type: str = ""


def entry_of(value: Any) -> Entry | None:
    """An entry in any of its shapes: a record, or (older) the bare pid; None for anything else."""
    if not isinstance(value, dict):
        pid = _integer(value)
        return None if pid is None else Entry(pid=_pid(pid))
    pid = _pid(_integer(value.get("pid")) or 0)
    state = value.get("state")
    if not isinstance(state, str):
        state = RUNNING if pid else ""
    kind = value.get("error_type")
    count = _integer(value.get("retry_count")) or 0
    return Entry(pid, state, max(0, count), short_line(kind) if isinstance(kind, str) and kind != "none" else "")


def short_line(text: str) -> str:
    """What a script wrote, as something that can be kept and shown anywhere: short, one line, and text at all."""
    return one_line(text[:MOST_SAID]).strip()


def _integer(value: Any) -> int | None:
    """17, 17.0 and "17" are 17."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and len(value) < 20 and value.strip().isdecimal():
        return int(value)
    return int(value) if isinstance(value, int) or (isinstance(value, float) and value.is_integer()) else None


def _pid(number: int) -> int:
    return number if 0 < number <= MAX_PID else 0


def with_fields(old: Any, fields: Data) -> Data:
    """The record with these fields, as a new one: other fields stay; an empty error_type, or a good end, removes the old one."""
    entry = entry_of(old)
    record = dict(old) if isinstance(old, dict) else {"pid": entry.pid} if entry else {}
    record |= fields
    if not record.get("error_type") or record.get("state") == NORMAL:
        record.pop("error_type", None)
    return record


def parsed(text: bytes) -> Data | None:
    """The object in the file; None if it is empty, half written or damaged."""
    try:
        content = json.loads(text.removeprefix(b"\xef\xbb\xbf").decode())
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def was_ours(text: bytes) -> bool:
    """Whether a text that is not understood is an object that was cut short, or zeros that a crash left, and nothing else."""
    return text.removeprefix(b"\xef\xbb\xbf").lstrip(b"\0 \t\r\n")[:1] in (b"{", b"")


# ---------------------------------------------------------------------- processes

_PER_SECOND = os.sysconf("SC_CLK_TCK")


def lives(uni_id: str, entry: Entry, written_at: float | None = None) -> bool:
    """Whether the process of an entry runs, as far as one can tell from its pid.

    Not if the pid is another's by now: another run's by its mark, or a process younger than the file that names it.
    """
    return bool(entry.pid) and alive_when(entry.pid, written_at) and proc.mark(entry.pid) in (None, uni_id)


def alive_when(pid: int, written_at: float | None) -> bool:
    """Whether a process runs that may be meant by a file written then: a younger one has only got the same pid."""
    s = proc.stat(pid)
    if s is None or s.state in "ZX":  # one that nobody has waited for yet has ended, too
        return False
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - s.ticks / _PER_SECOND
    return written_at is None or time.time() - age < written_at + 2.0


def runs(uni_id: str, entry: Entry | None, written_at: float | None = None) -> bool:
    """At `running`, and nothing speaks against it (without a pid nobody can tell)."""
    return entry is not None and entry.state == RUNNING and (not entry.pid or lives(uni_id, entry, written_at))
