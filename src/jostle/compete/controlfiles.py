"""`control/logs/` of a workspace (SPEC A39): the files by which the source's own scripts know what runs.

`pid.json` has an entry for each console of the workspace, `app_status.json` one for each scheduler. Rules: they are for others,
and nothing of ours depends on them: what cannot be written now is left. Changed under a lock of the folder, which no link leads
to, written whole and renamed. An entry whose process is gone, or younger than the file, is dropped by the next who writes.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from jostle.uniid.entries import alive_when
from jostle.uniid.file import locked_within

WAY = ("control", "logs")
CONSOLES, SCHEDULERS = "pid.json", "app_status.json"
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LARGEST = 1 << 20  # bytes
PATIENCE = 0.5  # s for the lock, which whoever may read the folder could keep


@contextlib.contextmanager
def console(root: str | None, *, port: int, host: str, started_at: float) -> Iterator[None]:
    """While this process is a console of the workspace."""
    pid = os.getpid()
    entry = {
        "instance": 0, "pid": pid, "port": port, "host": host, "ip": host, "url": f"http://{_shown(host)}:{port}",
        "start_time": datetime.fromtimestamp(started_at).isoformat(), "start_timestamp": int(started_at),
    }  # fmt: skip
    with _entered(root, CONSOLES, lambda old: _consoles(old, pid, [entry]), lambda old: _consoles(old, pid, []), make=True):
        yield


@contextlib.contextmanager
def scheduler(root: str | None, mode: str, index: int) -> Iterator[None]:
    """While this process runs a config of the workspace; told where a console has been, as the source does."""
    pid, key = os.getpid(), f"{mode}_{index}"
    entry = {key: {"pid": pid, "running": True}}
    with _entered(root, SCHEDULERS, lambda old: {**_living(old, pid), **entry}, lambda old: _living(old, pid), make=False):
        yield


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class Old(NamedTuple):
    """What a file says now."""

    data: dict[str, Any]
    written_at: float


def _consoles(old: Old, pid: int, more: list[dict[str, Any]]) -> dict[str, Any]:
    """Numbered from 1, as the source does it; none: no file."""
    known = old.data.get("instances")
    kept = [entry for entry in known if _lives(entry, old.written_at, pid)] if isinstance(known, list) else []
    entries = [{**entry, "instance": k} for k, entry in enumerate([*kept, *more], 1)]
    return {"instances": entries} if entries else {}


def _living(old: Old, pid: int) -> dict[str, Any]:
    return {key: entry for key, entry in old.data.items() if _lives(entry, old.written_at, pid)}


def _lives(entry: Any, written_at: float, but: int) -> bool:
    pid = entry.get("pid") if isinstance(entry, dict) else None
    return type(pid) is int and pid not in (0, but) and alive_when(pid, written_at)


Edit = Callable[[Old], dict[str, Any]]


@contextlib.contextmanager
def _entered(root: str | None, name: str, enter: Edit, leave: Edit, *, make: bool) -> Iterator[None]:
    if root is None:
        yield
        return
    _change(root, name, enter, make=make)
    try:
        yield
    finally:
        _change(root, name, leave, make=False)


def _change(root: str, name: str, edit: Edit, *, make: bool) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        at = os.open(root, FOLDER & ~os.O_NOFOLLOW)
        opened.callback(os.close, at)
        for step in WAY:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(step, 0o755, dir_fd=at)
            at = os.open(step, FOLDER, dir_fd=at)
            opened.callback(os.close, at)
        if not locked_within(at, PATIENCE):
            return
        new = edit(_read(at, name))
        if new:
            _write(at, name, json.dumps(new, indent=2, ensure_ascii=False).encode())
        else:
            os.unlink(name, dir_fd=at)


def _read(folder: int, name: str) -> Old:
    nothing = Old({}, 0.0)
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return nothing
    with os.fdopen(fd, "rb") as f:
        s = os.fstat(fd)
        if not stat.S_ISREG(s.st_mode):
            return nothing
        try:
            data = json.loads(f.read(LARGEST))
        except (ValueError, RecursionError):
            return nothing
    return Old(data, s.st_mtime) if isinstance(data, dict) else nothing


def _write(folder: int, name: str, text: bytes) -> None:
    fresh = f".{name}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder)
    with os.fdopen(fd, "wb") as f:
        f.write(text)
    os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
