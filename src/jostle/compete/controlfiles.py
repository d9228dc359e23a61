"""`control/logs/` of a workspace (SPEC A39): the files by which the source's own scripts know what runs.

`pid.json` has an entry for each console of the workspace, `app_status.json` one for each scheduler. Rules: they are for others,
and nothing of ours depends on them: what cannot be written now is left. Changed under a lock of the folder, which no link leads
to, written whole and renamed. An entry whose process is gone is dropped by the next who writes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from jostle import proc

WAY = ("control", "logs")
CONSOLES, SCHEDULERS = "pid.json", "app_status.json"
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LARGEST = 1 << 20  # bytes


@contextlib.contextmanager
def console(root: str | None, *, port: int, host: str, started_at: float) -> Iterator[None]:
    """While this process is a console of the workspace."""
    pid = os.getpid()
    entry = {
        "instance": 0, "pid": pid, "port": port, "host": host, "ip": host, "url": f"http://{_shown(host)}:{port}",
        "start_time": datetime.fromtimestamp(started_at).isoformat(), "start_timestamp": int(started_at),
    }  # fmt: skip
    with _entered(root, CONSOLES, lambda data: _consoles(data, pid, [entry]), lambda data: _consoles(data, pid, []), make=True):
        yield


@contextlib.contextmanager
def scheduler(root: str | None, mode: str, index: int) -> Iterator[None]:
    """While this process runs a config of the workspace; told where a console has been, as the source does."""
    pid, key = os.getpid(), f"{mode}_{index}"
    entry = {key: {"pid": pid, "running": True}}
    with _entered(root, SCHEDULERS, lambda data: {**_living(data, pid), **entry}, lambda data: _living(data, pid), make=False):
        yield


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _consoles(data: dict[str, Any], pid: int, more: list[dict[str, Any]]) -> dict[str, Any]:
    """Numbered from 1, as the source does it; none: no file."""
    known = data.get("instances")
    kept = [entry for entry in known if _lives(entry, pid)] if isinstance(known, list) else []
    entries = [{**entry, "instance": k} for k, entry in enumerate([*kept, *more], 1)]
    return {"instances": entries} if entries else {}


def _living(data: dict[str, Any], pid: int) -> dict[str, Any]:
    return {key: entry for key, entry in data.items() if _lives(entry, pid)}


def _lives(entry: Any, but: int) -> bool:
    pid = entry.get("pid") if isinstance(entry, dict) else None
    if type(pid) is not int or pid in (0, but):
        return False
    found = proc.stat(pid)
    return found is not None and found.state not in "ZX"  # one that nobody has waited for yet has ended, too


Edit = Callable[[dict[str, Any]], dict[str, Any]]


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
        fcntl.flock(at, fcntl.LOCK_EX)
        new = edit(_read(at, name))
        if new:
            _write(at, name, json.dumps(new, indent=2, ensure_ascii=False).encode())
        else:
            os.unlink(name, dir_fd=at)


def _read(folder: int, name: str) -> dict[str, Any]:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return {}
    with os.fdopen(fd, "rb") as f:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return {}
        try:
            data = json.loads(f.read(LARGEST))
        except (ValueError, RecursionError):
            return {}
    return data if isinstance(data, dict) else {}


def _write(folder: int, name: str, text: bytes) -> None:
    fresh = f".{name}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder)
    with os.fdopen(fd, "wb") as f:
        f.write(text)
    os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
