"""Log files that a person has bound to a process of a config, and those of its runs (SPEC A36, RELIABILITY S18–S22, S52).

Rules: a file is named by its path only inside the log folders of the workspace and of its jobs, which the store knows; it is
reached downwards from there through no link.
"""

from __future__ import annotations

import json
import os
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from jostle.compete.board import Board
from jostle.errors import Invalid, JostleError, NotFound
from jostle.formats.workspace import BatchKey
from jostle.views import logs
from jostle.web import files, joblog
from jostle.web.site import Visit, checked_mode, visit, workspace_of
from jostle.wording.flaws import flaw

routes = APIRouter(prefix="/api/log")
Visiting = Annotated[Visit, Depends(visit)]
BINDINGS = os.path.join("control", "logs", "log_bindings.json")
COUNTED = 64 << 20  # bytes of a file whose lines are counted
LARGEST = 4 << 20  # bytes of what is shown
MOST = 10_000  # bindings
Tail = Annotated[int, Query(ge=1, le=100_000)]


class LogPlace(BaseModel):
    """Which process: of a mode, a config, a queue, by its place in it, from 0."""

    mode: str
    config_index: Annotated[int, Query(ge=0, lt=10**9)] = 0
    queue_id: Annotated[int, Query(ge=-(10**12), le=10**12)]
    process_index: Annotated[int, Query(ge=0, lt=10**6)]

    @property
    def key(self) -> str:
        return f"{checked_mode(self.mode)}_{self.config_index}_{self.queue_id}_{self.process_index}"


Placed = Annotated[LogPlace, Query()]


def roots(visit: Visit, root: str) -> list[str]:
    """Where log files may lie."""
    folders = {os.path.join(root, "logs"): None}
    real = os.path.realpath(root)
    for batch in visit.reader.batches():
        if (key := BatchKey.read(batch["key"])) is not None and key.root == real:
            folders |= {os.path.dirname(path): None for path in visit.reader.logs(batch["id"])}
    return list(folders)


def confined(visit: Visit, root: str, path: str) -> tuple[str, str]:
    """The folder that a path lies in, and the way from there; NotFound if it is none of ours."""
    if not path or len(path) > 4096 or not path.isprintable() or ".." in path.split("/"):
        raise NotFound(flaw("log_none"))
    whole = os.path.normpath(os.path.join(root, path))
    for place in roots(visit, root):
        if whole.startswith(place + os.sep):
            return place, os.path.relpath(whole, place)
    raise NotFound(flaw("log_outside"))


def bindings(root: str) -> dict[str, dict[str, Any]]:
    raw = files.content(root, BINDINGS)
    try:
        bound = json.loads(raw) if raw else {}
    except (ValueError, RecursionError):
        raise JostleError(flaw("log_bindings", file=BINDINGS)) from None
    if not isinstance(bound, dict) or not all(isinstance(entry, dict) and "log_path" in entry for entry in bound.values()):
        raise JostleError(flaw("log_bindings", file=BINDINGS))
    return dict(bound)


def keep(root: str, bound: dict[str, dict[str, Any]]) -> None:
    files.save(root, BINDINGS, json.dumps(bound, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@routes.post("/bind")
def bind(
    visit: Visiting, place: Placed, log_path: Annotated[str, Query(max_length=4096)], workspace: str | None = None
) -> dict[str, Any]:  # fmt: skip
    root = workspace_of(visit.site, workspace)
    confined(visit, root, log_path)
    bound = bindings(root)
    if place.key not in bound and len(bound) >= MOST:
        raise Invalid(f"there are {MOST:,} bindings already")
    bound[place.key] = {**place.model_dump(), "log_path": log_path, "bound_at": time.strftime("%Y-%m-%dT%H:%M:%S")}
    keep(root, bound)
    visit.note("bind", f"{place.key}: {log_path}")
    return {"success": True, "message": f"{log_path} is bound to process {place.process_index + 1} of queue {place.queue_id}"}


@routes.delete("/bind")
def unbind(visit: Visiting, place: Placed, workspace: str | None = None) -> dict[str, Any]:
    root = workspace_of(visit.site, workspace)
    bound = bindings(root)
    if bound.pop(place.key, None) is None:
        return {"success": False, "message": "no file is bound to this process"}
    keep(root, bound)
    visit.note("unbind", place.key)
    return {"success": True, "message": "the file is bound no more"}


@routes.get("/bindings")
def all_bindings(visit: Visiting, workspace: str | None = None) -> dict[str, Any]:
    visit.must_see_files()
    return bindings(workspace_of(visit.site, workspace))


@routes.get("/content")
def content(visit: Visiting, place: Placed, tail_lines: Tail = 100, workspace: str | None = None) -> dict[str, Any]:
    """The bound file; without one, what the last run of this process has printed."""
    visit.must_see_files()
    root = workspace_of(visit.site, workspace)
    bound = bindings(root).get(place.key)
    if bound is not None:
        return read_path(visit, root, str(bound["log_path"]), tail_lines)
    path = printed(visit, root, place)
    if path is None:
        return {"success": False, "message": "nothing is bound to this process, and it has not run yet", "content": "",
                "log_path": None, "total_lines": 0}  # fmt: skip
    return page(joblog.opened(path), path, tail_lines)


def printed(visit: Visit, root: str, place: LogPlace) -> str | None:
    """The log of the last run of a task of the newest batch."""
    number = visit.reader.newest_batch(str(BatchKey.of(root, place.mode, place.config_index)))
    if number is None:
        return None
    rows = {row["id"]: row for row in visit.reader.jobs(batch=number)}
    task = next(iter(Board(rows.values()).members(str(place.queue_id))[place.process_index :]), None)
    while task is not None and not task["attempt"]:
        task = rows.get(task["retry_of"])  # of one that is tried again by hand, until it runs, the try before
    run = logs.run_of(visit.reader, task["id"], None) if task is not None else None
    return str(run["log"]) if run is not None and os.path.lexists(run["log"]) else None


@routes.get("/read")
def read(
    visit: Visiting, log_path: Annotated[str, Query(max_length=4096)], tail_lines: Tail = 100, workspace: str | None = None
) -> dict[str, Any]:  # fmt: skip
    visit.must_see_files()
    return read_path(visit, workspace_of(visit.site, workspace), log_path, tail_lines)


def read_path(visit: Visit, root: str, path: str, lines: int) -> dict[str, Any]:
    place, way = confined(visit, root, path)
    if not os.path.isdir(place):
        raise NotFound(flaw("log_none"))
    return page(files.opened(place, way), path, lines)


def page(fd: int, path: str, lines: int) -> dict[str, Any]:
    with os.fdopen(fd, "rb") as f:
        size = os.fstat(fd).st_size
        start = max(logs.start_of(fd, lines), size - LARGEST)
        text = b"".join(logs.chunks(fd, start))[:LARGEST].decode("utf-8", "replace")
        total = sum(block.count(b"\n") for block in logs.chunks(fd, 0)) if size <= COUNTED else None
        f.seek(max(0, size - 1))
        if total is not None and size and f.read(1) != b"\n":
            total += 1
    return {"success": True, "message": "", "content": text, "log_path": path, "total_lines": total}
