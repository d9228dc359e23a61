"""What anybody sees of a run of this host without asking an engine: its shim, its processes, its log, whether it is over.

Rules: only looks, changes nothing; and imports little, for people wait for the commands that show this.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from jostle import proc
from jostle.backends.local.recorded import Handle, read, record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    class Recorded(Protocol):
        """The store's reader."""

        path: str

        def runs(self, id: int) -> list[dict[str, Any]]: ...


_RUN = re.compile(r"(\d{1,15})\.(\d{1,9})\Z", re.ASCII)
MOST = 1000  # files put aside beside one path that are looked at


def runs_of(reader: Recorded, id: int) -> list[dict[str, Any]]:
    """The runs of a job: of each that is this host's, in place of its handle, the pid of its shim, and where its log lies now."""
    return [_seen(os.path.dirname(reader.path), id, run) for run in reader.runs(id)]


def _seen(home: str, id: int, run: dict[str, Any]) -> dict[str, Any]:
    here = run.pop("backend") == "local"
    seen = {("shim_pid" if key == "handle" else key): value for key, value in run.items()}
    seen["shim_pid"] = Handle.of(run["handle"]).pid if here else None
    if here:
        seen["log"] = _log_of(run_dir(home, id, run["n"]), run["log"])
    return seen


def runs_dir(home: str) -> str:
    return os.path.join(home, "runs")


def run_dir(home: str, id: int, n: int) -> str:
    return os.path.join(runs_dir(home), f"{id}.{n}")


def runs_left(home: str) -> list[tuple[int, int]]:
    """The runs that have a directory."""
    try:
        names = os.listdir(runs_dir(home))
    except FileNotFoundError:
        return []
    return sorted((int(run[1]), int(run[2])) for run in map(_RUN.match, names) if run)


def remains(home: str) -> str:
    """Where runs have left something; "": none have."""
    return runs_dir(home) if runs_left(home) else ""


def is_over(home: str, id: int, run: Mapping[str, Any]) -> bool:
    """As far as can be seen: it left its record, or its shim is gone."""
    gone = run["shim_pid"] is not None and proc.gone(run["shim_pid"])
    return run["ended_at"] is not None or gone or os.path.exists(os.path.join(run_dir(home, id, run["n"]), "exit"))


def members(shim: int | None, uni_id: str) -> list[int]:
    """The living processes of a run: the descendants of its shim, which is known by the run's mark in one of them (a number
    alone may be another's by now); where the shim is gone, those that carry the mark."""
    tree = proc.tree(shim) if shim is not None else ()
    if not any(proc.mark(pid) == uni_id for pid in tree):
        from jostle.backends.local import process

        return [pid for pid, _ in process.members(uni_id)]
    return [stat.pid for stat in map(proc.stat, tree) if stat is not None and stat.state not in "ZX"]


def _log_of(directory: str, path: str) -> str:
    """The path itself where nothing better is known. A later run that writes to the same path puts the older file aside as
    PATH.1, PATH.2 …; the shim notes in its exit record which file it wrote, so that is found whatever its name is by now."""
    if os.path.dirname(path) == directory:
        return path  # of this run alone
    identity = record(read(os.path.join(directory, "exit")) or b"").get("log_id")
    if not isinstance(identity, list) or _identity(path) == identity:
        return path
    for k in range(1, MOST):
        other = _identity(f"{path}.{k}")
        if other == identity:
            return f"{path}.{k}"
        if other is None:
            break
    return path


def _identity(path: str) -> list[int] | None:
    try:
        s = os.stat(path)
    except OSError:
        return None
    return [s.st_dev, s.st_ino]
