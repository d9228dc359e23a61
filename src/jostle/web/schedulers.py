"""Schedulers of a workspace: started, listed and stopped (SPEC A36), as `jostle compete` processes of their own.

Rules: which process is one says the store (the owner of a batch: pid and start ticks) and the kernel (ours, and alive), never a
state file, which anybody may have put there (RELIABILITY S25, S53). One is started by a list of arguments, never through a shell,
and with no secret of ours (S58). It does not end with us.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from jostle import proc
from jostle.client import own_environment
from jostle.compete import statefile
from jostle.errors import Forbidden, Invalid, JostleError, NotFound
from jostle.formats import workspace as spaces
from jostle.uniid.file import make_directory
from jostle.web import files, hidden
from jostle.web.site import Visit, checked_mode, known_workspaces, visit, workspace_of

if TYPE_CHECKING:
    from collections.abc import Iterator

routes = APIRouter()
Visiting = Annotated[Visit, Depends(visit)]
Index = Annotated[int, Query(ge=0, lt=10**9)]
START_WITHIN = 15.0  # s until it has its batch
STOP_WITHIN = 20.0  # s until it is gone; then it is said that it is stopping
LOOK = 0.05
HIDDEN = ("last_log_lines", "last_error", "config_file")


@dataclass(frozen=True)
class Running:
    pid: int
    ticks: int
    batch: int
    root: str
    mode: str
    index: int | None  # None: a file that is no config of its workspace

    def proven(self, pid: int) -> bool:
        same = pid == self.pid and proc.alive(pid, self.ticks) and proc.uid(pid) == os.getuid()
        return same and "compete" in proc.command_line(pid).split()  # also if the pid and ticks are those of another boot


def running(visit: Visit, root: str | None = None) -> Iterator[Running]:
    """The schedulers that run here, of one workspace or of all."""
    newest: dict[str, int] = {}
    for batch in visit.reader.batches():
        key = str(batch["key"] or "")
        if key.startswith("compete:"):
            newest[key] = batch["id"]
    real = os.path.realpath(root) if root is not None else None
    for key, number in newest.items():
        owner = (visit.reader.batch(number) or {}).get("owner")
        if not owner or not owner[0]:
            continue
        at, mode, which = _parts(key)
        scheduler = Running(owner[0], owner[1], number, at, mode, int(which) if which.isdecimal() else None)
        if scheduler.proven(scheduler.pid) and real in (None, at):
            yield scheduler


def _parts(key: str) -> tuple[str, str, str]:
    """Root, mode, and the index or file of a batch's key."""
    rest = key.removeprefix("compete:")
    for mode in spaces.STEMS:
        root, there, which = rest.rpartition(f":{mode}:")
        if there:
            return root, mode, which
    return rest, "", ""


def one_of(visit: Visit, root: str, mode: str, index: int) -> Running | None:
    return next((scheduler for scheduler in running(visit, root) if (scheduler.mode, scheduler.index) == (mode, index)), None)


def state_of(visit: Visit, scheduler: Running) -> dict[str, Any]:
    """What its state file says, if it is its own."""
    try:
        folder = os.path.join(spaces.find(scheduler.root, mode=scheduler.mode).log_dir, "state")
    except JostleError:
        folder = os.path.join(scheduler.root, "logs", "state")
    for content in statefile.read_all(folder):
        names = (content["pid"], content.get("start_ticks"), content.get("batch"))
        if names == (scheduler.pid, scheduler.ticks, scheduler.batch) and statefile.complete(content):
            return shown(visit, {**content, "workspace": scheduler.root})
    bare = {
        "pid": scheduler.pid, "mode": scheduler.mode, "config_index": scheduler.index, "state": "starting",
        "batch": scheduler.batch, "queues": {},
    }  # fmt: skip
    return shown(visit, {**bare, "workspace": scheduler.root})


def shown(visit: Visit, content: dict[str, Any]) -> dict[str, Any]:
    if not visit.caller.reads_only:
        return content
    queues = {
        name: {
            **queue, "current_task": None, "last_error": None,
            "processes": [{**process, "commands": [], "last_error": None} for process in queue.get("processes") or ()],
        }
        for name, queue in content["queues"].items()
    }  # fmt: skip
    return {**content, "queues": queues, **dict.fromkeys(HIDDEN), "workspace": hidden.base(content["workspace"])}


def start(visit: Visit, root: str, mode: str, index: int, more: tuple[str, ...] = ()) -> dict[str, Any]:
    with visit.lengthy():
        return _started(visit, root, mode, index, more)


def _started(visit: Visit, root: str, mode: str, index: int, more: tuple[str, ...]) -> dict[str, Any]:
    files.must_be_plain(root, checked_mode(mode), index)
    try:
        space, blocks, _ = spaces.tasks(root, mode=mode, index=index, lenient="--lenient" in more)
    except NotFound as e:
        raise Invalid(str(e)) from None
    if not blocks:
        raise Invalid(visit.message("scheduler_no_tasks", path=space.command_file))
    before = one_of(visit, root, mode, index)
    if before is not None:
        raise Invalid(visit.message("scheduler_runs", pid=before.pid, batch=before.batch))
    log = os.path.join(space.log_dir, f"scheduler_{mode}_{index}.log")
    make_directory(space.log_dir)
    try:
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise Forbidden(f"cannot write {log}: {e.strerror}") from None
    argv = [sys.executable, "-m", "jostle", "compete", *more, "--mode", mode, "--config-index", str(index), "--", root]
    env = {**own_environment(), "JOSTLE_HOME": visit.home}
    visit.note("start", f"{mode} config {index + 1} of {root}")
    visit.client().close()  # an engine, if none runs
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=fd, stderr=fd, cwd=root, env=env, start_new_session=True,
    )  # fmt: skip
    os.close(fd)
    visit.site.children[space.key] = child
    end = time.monotonic() + START_WITHIN
    while child.poll() is None and time.monotonic() < end:
        begun = one_of(visit, root, mode, index)
        if begun is not None and begun.pid == child.pid:
            break
        time.sleep(LOOK)
    if child.poll() is not None:
        raise Invalid(visit.message("scheduler_ended", code=child.returncode, last=_last(log)))
    return {
        "success": True, "message": f"the scheduler of {space.label} ({mode}) runs: process {child.pid}", "pid": child.pid,
        "log_file": log, "config_file": space.command_file,
    }  # fmt: skip


def _last(log: str) -> str:
    with open(log, "rb") as f:
        f.seek(max(0, os.path.getsize(log) - 4096))
        lines = f.read().decode("utf-8", "replace").strip().splitlines()
    return " ".join(lines[-3:])[-500:] or f"see {log}"


def stop(visit: Visit, scheduler: Running) -> dict[str, Any]:
    """It and its tasks; it ends as by Ctrl-C."""
    with visit.lengthy():
        return _stopped(visit, scheduler)


def _stopped(visit: Visit, scheduler: Running) -> dict[str, Any]:
    visit.note("stop", f"scheduler {scheduler.pid}, batch {scheduler.batch}")
    if not proc.signal_proven(scheduler.pid, signal.SIGTERM, scheduler.proven):
        raise NotFound(visit.message("scheduler_gone", pid=scheduler.pid))
    end = time.monotonic() + STOP_WITHIN
    while scheduler.proven(scheduler.pid) and time.monotonic() < end:
        for child in visit.site.children.values():
            child.poll()  # a process of ours that has ended is there until it is asked for
        time.sleep(LOOK)
    gone = not scheduler.proven(scheduler.pid)
    return {"success": True, "message": f"scheduler {scheduler.pid} {'has ended' if gone else 'is stopping its tasks'}"}


def brief(visit: Visit, root: str, mode: str, index: int) -> dict[str, Any]:
    scheduler = one_of(visit, root, mode, index)
    child = visit.site.children.get(f"compete:{os.path.realpath(root)}:{mode}:{index}")
    if scheduler is None and child is not None and child.poll() is None:
        return {"running": True, "pid": child.pid, "exit_code": None}  # about to begin, or to end
    code = child.returncode if scheduler is None and child is not None else None
    return {"running": scheduler is not None, "pid": scheduler.pid if scheduler else None, "exit_code": code}


# --- the paths of the source


@routes.get("/api/scheduler/status")
@routes.get("/api/scheduler/state")
def status(visit: Visiting, workspace: str | None = None) -> dict[str, Any]:
    root = workspace_of(visit.site, workspace)
    return {
        mode: {str(config.index): brief(visit, root, mode, config.index) for config in spaces.configs(root, mode)}
        for mode in spaces.STEMS
    }


@routes.get("/api/scheduler/running")
def running_ones(visit: Visiting, workspace: str | None = None) -> dict[str, Any]:
    return {"schedulers": [state_of(visit, scheduler) for scheduler in running(visit, workspace_of(visit.site, workspace))]}


@routes.post("/api/scheduler/stop/{pid}")
def stop_pid(visit: Visiting, pid: int) -> dict[str, Any]:
    for scheduler in running(visit):
        if scheduler.pid == pid:
            return stop(visit, scheduler)
    raise NotFound(visit.message("scheduler_gone", pid=pid))


@routes.post("/api/scheduler/{mode}/start")
def start_mode(visit: Visiting, mode: str, config_index: Index = 0, workspace: str | None = None) -> dict[str, Any]:
    return start(visit, workspace_of(visit.site, workspace), checked_mode(mode), config_index)


@routes.post("/api/scheduler/{mode}/stop")
def stop_mode(visit: Visiting, mode: str, config_index: Index = 0, workspace: str | None = None) -> dict[str, Any]:
    scheduler = one_of(visit, workspace_of(visit.site, workspace), checked_mode(mode), config_index)
    if scheduler is None:
        raise Invalid(visit.message("scheduler_not", n=config_index + 1, mode=mode))
    return stop(visit, scheduler)


@routes.get("/api/scheduler/{mode}/state")
@routes.get("/api/scheduler/{mode}/status")
def state_mode(visit: Visiting, mode: str, config_index: Index = 0, workspace: str | None = None) -> dict[str, Any]:
    root = workspace_of(visit.site, workspace)
    scheduler = one_of(visit, root, checked_mode(mode), config_index)
    return {**(state_of(visit, scheduler) if scheduler is not None else {}), **brief(visit, root, mode, config_index)}


# --- the verb


class Compete(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    mode: str = "single"
    config_index: Annotated[int, Field(ge=0, lt=10**9)] = 0
    fresh: bool = False
    lenient: bool = False


class Stop(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    pid: Annotated[int, Field(ge=1, lt=1 << 31)]


@routes.get("/api/v1/compete")
def competing(visit: Visiting) -> dict[str, Any]:
    """Those of all known workspaces."""
    known = {os.path.realpath(path) for path in known_workspaces(visit.site)}
    return {"schedulers": [state_of(visit, scheduler) for scheduler in running(visit) if scheduler.root in known]}


@routes.post("/api/v1/compete")
def compete(visit: Visiting, body: Compete, workspace: str | None = None) -> dict[str, Any]:
    more = tuple(f"--{name}" for name in ("fresh", "lenient") if getattr(body, name))
    return start(visit, workspace_of(visit.site, workspace), body.mode, body.config_index, more)


@routes.post("/api/v1/compete/stop")
def stop_one(visit: Visiting, body: Stop) -> dict[str, Any]:
    return stop_pid(visit, body.pid)
