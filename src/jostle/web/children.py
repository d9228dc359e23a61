"""`/api/v1`: the verbs that read files a caller names, ask drivers or call git: each is one of the deeds (deeds.py), done in a
process of its own that is ended with its time (RELIABILITY S57).
"""

from __future__ import annotations

import json
import os
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from jostle import units
from jostle.bounded import Bounds, child
from jostle.client import own_environment
from jostle.errors import JostleError, Usage
from jostle.web import files
from jostle.web.answers import Flag
from jostle.web.deeds import raised
from jostle.web.site import Visit, checked_mode, visit, workspace_of
from jostle.wording.flaws import flaw

ONCE = Bounds(60.0, 45, 4 << 30)
OFTEN = Bounds(30.0, 10, 2 << 30)  # what a page asks for again and again
routes = APIRouter(prefix="/api/v1")
Visiting = Annotated[Visit, Depends(visit)]
Word = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]*$")]  # no system takes a NUL in a name
File = Annotated[Word, Field(min_length=1)]


def perform(
    visit: Visit, deed: str, options: dict[str, Any], *, bounded: bool = True, bounds: Bounds = ONCE, name: str = ""
) -> dict[str, Any]:  # fmt: skip
    """Its answer; what it says to a person is said here, and an error of it raised. `bounded`: also in processor time and memory,
    unless it submits: jobs inherit such limits. `name`: of the command that does as much, if it is another."""
    env = {**own_environment(), "JOSTLE_HOME": visit.home, "JOSTLE_LANG": visit.language, "NO_COLOR": "1"}
    words, text, name = ["jostle.web.deeds", deed], json.dumps(options), f"jostle {name or deed}"
    with visit.lengthy():
        code, printed, trouble = child(words, bounds, env, bounded=bounded, text=text, name=name)
    if code:
        raise JostleError(trouble.strip().rpartition("\n")[2] or f"`{name}` failed ({code})")
    outcome: dict[str, Any] = json.loads(printed)
    for message in outcome["messages"]:
        visit.say(message)
    if "error" in outcome:
        raise raised(outcome["error"])
    answer: dict[str, Any] = outcome["answer"]
    return answer


@routes.get("/doctor")
def doctor(visit: Visiting) -> dict[str, Any]:
    """Who may only look gets the verdicts."""
    checks = perform(visit, "doctor", {})["checks"]
    shown = [{**check, "found": "", "advice": ""} for check in checks] if visit.caller.reads_only else checks
    return {"schema": 1, "ok": all(check["verdict"] != "bad" for check in checks), "checks": shown}


class ResultsOptions(BaseModel):
    """The options of `jostle results` that read; a plot is drawn by the page."""

    model_config = ConfigDict(extra="ignore")
    target: list[Word] = Field([], max_length=50)
    metric: list[Word] = Field([], max_length=50)
    best: list[Word] = Field([], max_length=50)
    scale: list[Word] = Field([], max_length=50)
    rename: list[Word] = Field([], max_length=50)
    across: Word | None = None
    by: Word | None = None
    last: Word | None = None
    seed_key: Word = "seed"
    names: Word | None = None
    tail: Word | None = None
    decimals: Word = "2"
    any_state: Flag = False
    format: Literal["json", "markdown", "latex", "csv"] = "json"


@routes.get("/results")
def results(visit: Visiting, query: Annotated[ResultsOptions, Query()]) -> dict[str, Any]:
    """The table of `results --json`; with another `format` its text."""
    visit.must_see_output()
    return {**perform(visit, "results", query.model_dump(), bounds=OFTEN), "messages": visit.messages}


class Run(BaseModel):
    """A file on this host, and the options of `jostle run`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    file: File
    suites: list[Word] = []
    mode: Literal["single", "multi"] | None = None
    strict: bool = False
    skip_done: bool = False
    redo: bool = False
    redo_changed: bool = False
    only_failed: bool = False
    trust_logs: bool = False


def absolute(path: str) -> str:
    if not os.path.isabs(path):
        raise Usage(flaw("asked_absolute"))
    return path


@routes.post("/run")
def run(visit: Visiting, body: Run, dry_run: Flag = False) -> dict[str, Any]:
    options = {**body.model_dump(), "file": absolute(body.file), "dry_run": dry_run}
    if not dry_run:
        visit.client().close()  # an engine runs before: one that the child started would have its environment
        visit.note("run", body.file)
    return {**perform(visit, "run", options, bounded=dry_run), "messages": visit.messages}


class Validate(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    file: File


@routes.post("/validate")
def validate(visit: Visiting, body: Validate) -> dict[str, Any]:
    return {**perform(visit, "validate", {"file": absolute(body.file)}), "messages": visit.messages}


class Import(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    mode: str = "single"
    config_index: Annotated[int, Field(ge=0, lt=1 << 31)] = 0


@routes.post("/import")
def import_(visit: Visiting, body: Import, workspace: str | None = None) -> dict[str, Any]:
    root = workspace_of(visit.site, workspace)
    files.must_be_plain(root, checked_mode(body.mode), body.config_index)
    return {**perform(visit, "import", {"source": root, **body.model_dump()}), "messages": visit.messages}


class Clean(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    older_than: Annotated[str, Field(max_length=50)] = "30d"
    dry_run: bool = True


@routes.post("/clean")
def clean(visit: Visiting, body: Clean) -> dict[str, Any]:
    """What is, or would be, removed."""
    try:
        before = time.time() - units.seconds(body.older_than)
    except ValueError as e:
        raise Usage(flaw("value_odd", key="older_than", value=repr(body.older_than), expected=str(e))) from e
    if not body.dry_run:
        visit.note("clean", body.older_than)
    return {**perform(visit, "clean", {"before": before, "dry_run": body.dry_run}), "messages": visit.messages}


@routes.get("/uni-id")
def uni_id(visit: Visiting, mode: str = "single", workspace: str | None = None) -> dict[str, Any]:
    """The entries of the workspace's uni_id file."""
    from jostle.formats.workspace import find

    visit.must_see_files()
    space = find(workspace_of(visit.site, workspace), mode=mode)
    return perform(visit, "uni-id", {"file": space.uni_id_file})
