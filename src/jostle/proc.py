"""Processes as Linux shows them: the only reader of /proc.

A process is known by (boot id, pid, start ticks): the pid alone may be someone else's by now. Anything may vanish or be
denied between two looks; then the answer is None, which means "not known", never "not there".
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

MARK = "JOSTLE_UNI_ID"
"""The variable in a run's environment by which its processes are recognised."""


class Stat(NamedTuple):
    pid: int
    name: str
    state: str
    ppid: int
    pgid: int
    sid: int
    ticks: int  # start time since boot, field 22: immune to clock changes


def boot_id() -> str:
    override = os.environ.get("JOSTLE_TEST_BOOT_ID")
    if override:
        return override
    with open("/proc/sys/kernel/random/boot_id") as f:
        return f.read().strip()


def stat(pid: int) -> Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            text = f.read()
    except OSError:
        return None
    # the name may hold spaces and parentheses: fields are counted from the last one
    left, right = text.index(b"("), text.rindex(b")")
    rest = text[right + 2 :].split()
    return Stat(
        pid,
        text[left + 1 : right].decode(errors="replace"),
        rest[0].decode(),
        int(rest[1]),
        int(rest[2]),
        int(rest[3]),
        int(rest[19]),
    )


def alive(pid: int, ticks: int) -> bool:
    """Whether this very process runs (a zombie does not)."""
    s = stat(pid)
    return s is not None and s.ticks == ticks and s.state not in "ZX"


def uid(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def pids() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def environ(pid: int) -> dict[str, str] | None:
    """The environment the process was started with, if we may see it."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            raw = f.read()
    except OSError:
        return None
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if entry)
    return {os.fsdecode(k): os.fsdecode(v) for k, _, v in pairs}


def mark(pid: int) -> str | None:
    env = environ(pid)
    return env.get(MARK) if env else None


def exe(pid: int) -> str:
    """The base name of the file that the process executes, whatever it calls itself; "" if we may not see it."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    except OSError:
        return ""


def tree(root: int) -> list[int]:
    """All descendants of a process, the nearest first."""
    children: dict[int, list[int]] = {}
    for pid in pids():
        s = stat(pid)
        if s is not None:
            children.setdefault(s.ppid, []).append(pid)
    members, todo = [], [root]
    while todo:
        todo = [kid for pid in todo for kid in children.get(pid, ())]
        members += todo
    return members
