"""`/api/v1`: what a person holds and may hold: allocations, programs on them, limits.

An allocation is asked for and answered at once, with why it waits; the stream tells of its job. Only `now` waits, for as long as
a card that is about to be known or free takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from shlex import quote
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import Field

from jostle.core.fields import JOB, LIMITS
from jostle.core.kinds import MAX_GPUS
from jostle.errors import Invalid, Usage
from jostle.formats import spec
from jostle.intake import allocations
from jostle.intake.limits import clearing, setting
from jostle.manage.program import of_task
from jostle.views.allocations import allocations as allocations_of
from jostle.views.limits import limits as limits_of
from jostle.web import hidden
from jostle.web.answers import Flag
from jostle.web.changing import Strict, would_become, written
from jostle.web.site import Visit, visit
from jostle.wording import sentences
from jostle.wording.flaws import flaw
from jostle.wording.limits import source
from jostle.wording.reasons import trouble

routes = APIRouter(prefix="/api/v1")
Visiting = Annotated[Visit, Depends(visit)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Size = Annotated[int, Field(ge=0, lt=1 << 53)] | Annotated[float, Field(ge=0, lt=1 << 53, allow_inf_nan=False)] | Name
Line = Annotated[str, Field(min_length=1, max_length=1 << 20)]
Number = Annotated[int, Field(ge=0, le=MAX_GPUS)]
Count = Number | Annotated[list[Number], Field(min_length=2, max_length=2)] | Name


class Alloc(Strict):
    """In the words of `jostle alloc`; sizes, times and counts as they are written there."""

    name: Name
    gpus: Count = 1
    memory: Size | None = None
    time: Annotated[Size | None, Field(alias="for")] = None
    release_idle: Size | None = None
    priority: Annotated[int, Field(ge=JOB["priority"].kind.low, le=JOB["priority"].kind.high)] = 0
    tags: list[Name] = Field([], max_length=100)
    now: bool = False
    once: Name | None = None


class Release(Strict):
    names: list[Name] | Name = Field(max_length=1000)
    now: bool = False


class Start(Strict):
    """`run`: a command, or a program with its arguments; without it the program of the manager's configuration."""

    name: Name
    run: Line | Annotated[list[str], Field(min_length=1, max_length=10_000)] | None = None
    workdir: Annotated[str, Field(max_length=4096)]
    beside: bool = False
    gpus: Count | None = None
    memory: Size | None = None
    label: Name | None = None
    time_limit: Size | None = None
    env: dict[Name, Annotated[str, Field(max_length=1 << 17)]] = Field({}, max_length=1000)
    once: Name | None = None


@routes.get("/alloc")
def listed(visit: Visiting) -> dict[str, Any]:
    """Those that have not ended."""
    return {"schema": 1, "allocations": shown(visit)}


def shown(visit: Visit) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = [{**one} for one in allocations_of(visit)]
    if visit.caller.reads_only:
        ids = [program["id"] for one in seen for program in one["programs"]]
        rows = {row["id"]: row for row in visit.reader.jobs(ids=ids)} if ids else {}
        seen = [hidden.allocation(one, rows) for one in seen]
    return [{**one, "reason": sentences.worded(one["reason"], visit.language) if one["reason"] else None} for one in seen]


@routes.post("/alloc")
def alloc(visit: Visiting, body: Alloc, dry_run: Flag = False) -> dict[str, Any]:
    """The allocation as it is then; with `now` one that holds its cards, or 409 with the reason."""
    if dry_run:
        memory = read("memory", "memory_mib", body.memory)
        job = allocations.wanted(label("name", body.name), read("gpus", "gpus", body.gpus), memory, body.priority)
        return would_become(visit, allocations.HEAD, job)
    id = allocations.allocate(
        visit, label("name", body.name), gpus=read("gpus", "gpus", body.gpus),
        memory_mib=read("memory", "memory_mib", body.memory), time_limit=read("for", "time_limit", body.time),
        idle_release=read("release_idle", "time_limit", body.release_idle),
        priority=body.priority, tags=[label("tags", tag) for tag in body.tags], once=body.once,
        by=visit.site.audit(visit.caller.who, "alloc", body.name),
    )  # fmt: skip
    if body.now:
        with visit.lengthy():
            allocations.held(visit, id, now=True)
    return {"id": id, "allocation": next((one for one in shown(visit) if one["id"] == id), None)}


@routes.post("/release")
def release(visit: Visiting, body: Release) -> dict[str, Any]:
    """Asks for their ends; each is over when its job has ended."""
    names = [body.names] if isinstance(body.names, str) else body.names
    ids = [int(allocations.of_name(visit, name)["id"]) for name in names]  # all are known before one is touched
    for name, id in zip(names, ids, strict=True):
        allocations.give_up(visit, id, now=body.now, by=visit.site.audit(visit.caller.who, "release", name))
    return {"ids": ids}


@routes.post("/start")
def start(visit: Visiting, body: Start) -> dict[str, Any]:
    """A program inside an allocation, on all of its cards unless `gpus` says otherwise: its job."""
    if not os.path.isabs(body.workdir) or not os.path.isdir(body.workdir):
        raise Invalid(flaw("asked_no_folder", path=body.workdir[:200]))
    run, variables, retry = (body.run, {}, None) if body.run is not None else of_task(visit, body.name)
    command = [checked("run", spec.command, run)] if isinstance(run, str) else [quote(run[0])] if len(run) == 1 else run
    for name, value in body.env.items():
        checked("env", lambda text, name=name: spec.variable(name, text), value)  # type: ignore[misc]
    id = allocations.start(
        visit, body.name, command, beside=body.beside, gpus=read("gpus", "gpus", body.gpus),
        memory_mib=read("memory", "memory_mib", body.memory), workdir=body.workdir,
        env={**variables, **body.env},
        label=label("label", body.label) if body.label is not None else None,
        time_limit=read("time_limit", "time_limit", body.time_limit), retry=retry, once=body.once,
        by=visit.site.audit(visit.caller.who, "start", body.name),
    )  # fmt: skip
    return {"id": id, "messages": visit.messages}


def read(key: str, field: str, value: Any) -> Any:
    """A value as its field is read in a job file; None where nothing is said."""
    if value is None:
        return None
    text = f"{value[0]}-{value[1]}" if isinstance(value, list) else str(value)
    return checked(key, spec.reader(JOB[field].kind), text)


def label(key: str, text: str) -> str:
    return str(checked(key, lambda value: spec.label(value, "a name"), text))


def checked(key: str, check: Callable[[str], Any], text: str) -> Any:
    try:
        return check(text)
    except ValueError as e:
        raise Invalid(flaw("value_odd", key=key, value=repr(text[:100]), expected=str(e))) from None


class Limits(Strict):
    """`set`: by name, null takes one back; `clear`: names, or `manager` for what the manager's file said."""

    set: dict[Name, Annotated[int, Field(ge=0, lt=1 << 31)] | None] = Field({}, max_length=len(LIMITS))
    clear: list[Name] = Field([], max_length=len(LIMITS) + 1)


@routes.get("/limits")
def limits(visit: Visiting) -> dict[str, Any]:
    """As `jostle limits --json`; with who has set each, in words. Who may only look is not told where files lie."""
    visit.must_have_engine()
    view: dict[str, Any] = {**limits_of(visit)}
    if visit.caller.reads_only:
        view |= {"lab_file": "", "manager_file": "", "hold": hidden.words(view["hold"])}
    each = [{**limit, "by": source(limit, view, visit.language)} for limit in view["limits"]]
    return {"schema": 1, **view, "limits": each, "hold_text": trouble(view["hold"], visit.language) if view["hold"] else ""}


@routes.post("/limits")
def set_limits(visit: Visiting, body: Limits) -> dict[str, Any]:
    """The answer is what they are then."""
    if not body.set and not body.clear:
        raise Usage("expected `set` or `clear`")
    change = {**(clearing(visit, body.clear) if body.clear else {})}
    if body.set:
        change |= setting(visit, [f"{name}={written(most)}" for name, most in body.set.items()])
    changes = [*(f"{name}={written(most)}" for name, most in body.set.items()), *(f"clear {name}" for name in body.clear)]
    visit.ask("set_limits", did="limits", what=" ".join(changes), **change)
    return limits(visit)
