"""Schedulers of a workspace: started, listed and stopped (SPEC A36), as `jostle compete` processes of their own.

Rules: which process is one, compete.running says. One is started by a list of arguments, never through a shell, and with no
secret of ours (S58). It does not end with us.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from jostle import proc
from jostle.client import own_environment
from jostle.compete.running import Running, one_of, running
from jostle.errors import Forbidden, Invalid, JostleError, NotFound
from jostle.formats import workspace as spaces
from jostle.formats.workspace import BatchKey
from jostle.uniid.file import make_directory
from jostle.web import files, hidden
from jostle.web.site import Visit, checked_mode, known_workspaces, visit, workspace_of

routes = APIRouter()
Visiting = Annotated[Visit, Depends(visit)]
Index = Annotated[int, Query(ge=0, lt=10**9)]
START_WITHIN = 15.0  # s until it has its batch
STOP_WITHIN = 20.0  # s until it is gone; then it is said that it is stopping
LOOK = 0.05
HIDDEN = ("last_log_lines", "last_error", "config_file")


def state_of(visit: Visit, scheduler: Running) -> dict[str, Any]:
    root, mode = scheduler.key.root, scheduler.key.mode
    try:
        folder = spaces.find(root, mode=mode).state_dir
    except JostleError:
        folder = os.path.join(root, "logs", "state")
    return shown(visit, {**scheduler.state(folder), "workspace": root})


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
    key = BatchKey.of(root, mode, index)
    before = one_of(visit.reader, key)
    if before is not None:
        raise Invalid(visit.message("scheduler_runs", pid=before.pid, batch=before.batch))
    log = os.path.join(space.log_dir, f"scheduler_{mode}_{index}.log")
    make_directory(space.log_dir)
    try:
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise Forbidden(visit.message("scheduler_log", path=log, why=e.strerror)) from None
    argv = [sys.executable, "-m", "jostle", "compete", *more, "--mode", mode, "--config-index", str(index), "--", root]
    env = {**own_environment(), "JOSTLE_HOME": visit.home}
    visit.note("start", f"{mode} config {index + 1} of {root}")
    visit.client().close()  # an engine, if none runs
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=fd, stderr=fd, cwd=root, env=env, start_new_session=True,
    )  # fmt: skip
    os.close(fd)
    visit.site.children[key] = child
    end = time.monotonic() + START_WITHIN
    while child.poll() is None and time.monotonic() < end:
        begun = one_of(visit.reader, key)
        if begun is not None and begun.pid == child.pid:
            break
        time.sleep(LOOK)
    if child.poll() is not None:
        raise Invalid(visit.message("scheduler_ended", code=child.returncode, last=_last(log)))
    return {
        "success": True, "message": visit.message("scheduler_begun", n=index + 1, mode=mode, pid=child.pid), "pid": child.pid,
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
    code = "scheduler_stopping" if scheduler.proven(scheduler.pid) else "scheduler_stopped"
    return {"success": True, "message": visit.message(code, pid=scheduler.pid)}


def brief(visit: Visit, root: str, mode: str, index: int) -> dict[str, Any]:
    key = BatchKey.of(root, mode, index)
    scheduler, child = one_of(visit.reader, key), visit.site.children.get(key)
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
    root = workspace_of(visit.site, workspace)
    return {"schedulers": [state_of(visit, scheduler) for scheduler in running(visit.reader, root)]}


@routes.post("/api/scheduler/stop/{pid}")
def stop_pid(visit: Visiting, pid: int) -> dict[str, Any]:
    for scheduler in running(visit.reader):
        if scheduler.pid == pid:
            return stop(visit, scheduler)
    raise NotFound(visit.message("scheduler_gone", pid=pid))


@routes.post("/api/scheduler/{mode}/start")
def start_mode(visit: Visiting, mode: str, config_index: Index = 0, workspace: str | None = None) -> dict[str, Any]:
    return start(visit, workspace_of(visit.site, workspace), checked_mode(mode), config_index)


@routes.post("/api/scheduler/{mode}/stop")
def stop_mode(visit: Visiting, mode: str, config_index: Index = 0, workspace: str | None = None) -> dict[str, Any]:
    scheduler = one_of(visit.reader, BatchKey.of(workspace_of(visit.site, workspace), checked_mode(mode), config_index))
    if scheduler is None:
        raise Invalid(visit.message("scheduler_not", n=config_index + 1, mode=mode))
    return stop(visit, scheduler)


@routes.get("/api/scheduler/{mode}/state")
@routes.get("/api/scheduler/{mode}/status")
def state_mode(visit: Visiting, mode: str, config_index: Index = 0, workspace: str | None = None) -> dict[str, Any]:
    root = workspace_of(visit.site, workspace)
    scheduler = one_of(visit.reader, BatchKey.of(root, checked_mode(mode), config_index))
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
    return {"schedulers": [state_of(visit, scheduler) for scheduler in running(visit.reader) if scheduler.key.root in known]}


@routes.post("/api/v1/compete")
def compete(visit: Visiting, body: Compete, workspace: str | None = None) -> dict[str, Any]:
    more = tuple(f"--{name}" for name in ("fresh", "lenient") if getattr(body, name))
    return start(visit, workspace_of(visit.site, workspace), body.mode, body.config_index, more)


@routes.post("/api/v1/compete/stop")
def stop_one(visit: Visiting, body: Stop) -> dict[str, Any]:
    return stop_pid(visit, body.pid)
