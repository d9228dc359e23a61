"""`/api/v1`: the verbs that read files a caller names, ask drivers or call git: each is the command itself, in a process of its
own that is ended with its time (RELIABILITY S57). What it prints as JSON is the answer.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from jostle.bounded import Bounds
from jostle.bounded import child as bounded_child
from jostle.client import own_environment
from jostle.errors import Forbidden, Invalid, JostleError, NoEngine, NotFound, Usage
from jostle.web import files
from jostle.web.answers import Flag
from jostle.web.site import Visit, checked_mode, visit, workspace_of

if TYPE_CHECKING:
    from collections.abc import Sequence


ONCE = Bounds(60.0, 45, 4 << 30)
OFTEN = Bounds(30.0, 10, 2 << 30)  # what a page asks for again and again
routes = APIRouter(prefix="/api/v1")
Visiting = Annotated[Visit, Depends(visit)]
BY_EXIT: dict[int, type[JostleError]] = {2: Usage, 3: NoEngine, 4: NotFound, 5: Forbidden, 6: Invalid}
File = Annotated[str, Field(min_length=1, max_length=4096)]
Word = Annotated[str, Field(max_length=4096)]


def verb(
    visit: Visit, words: Sequence[str], *, bounded: bool = True, bounds: Bounds = ONCE, good: tuple[int, ...] = (0, 1)
) -> str:  # fmt: skip
    """What the command prints. `bounded`: also in processor time and memory, unless it submits: jobs inherit such limits."""
    if any("\0" in word for word in words):
        raise Invalid("a value has a NUL in it, which no command can be given")
    code, printed, messages = child(visit, ["jostle", *words], bounds, bounded=bounded)
    for line in messages.splitlines():
        visit.say(line.removeprefix("jostle: "))
    if code not in good or (code and not printed):
        raise BY_EXIT.get(code, JostleError)(messages.strip().removeprefix("jostle: ") or f"`jostle {words[0]}` failed ({code})")
    return printed


def child(
    visit: Visit, words: Sequence[str], bounds: Bounds, *, bounded: bool = True, text: str = ""
) -> tuple[int, str, str]:  # fmt: skip
    """A module of ours in a process of its own: its exit code, what it printed, and what it said."""
    env = {**own_environment(), "JOSTLE_HOME": visit.home, "JOSTLE_LANG": visit.language, "NO_COLOR": "1"}
    with visit.lengthy():
        return bounded_child(words, bounds, env, bounded=bounded, text=text)


def one(printed: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(printed)
    return answer


@routes.get("/doctor")
def doctor(visit: Visiting) -> dict[str, Any]:
    """Who may only look gets the verdicts."""
    checks = one(verb(visit, ["doctor", "--json"]))["checks"]
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
    seed_key: Word | None = None
    names: Word | None = None
    tail: Word | None = None
    decimals: Word | None = None
    any_state: Flag = False
    format: Literal["json", "markdown", "latex", "csv"] = "json"

    def words(self) -> list[str]:
        repeated = [f"--{name}={value}" for name in ("metric", "best", "scale", "rename") for value in getattr(self, name)]
        named = ("across", "by", "last", "seed_key", "names", "tail", "decimals")
        single = [f"--{name.replace('_', '-')}={value}" for name in named if (value := getattr(self, name)) is not None]
        return [*repeated, *single, *(["--any-state"] if self.any_state else []), "--", *self.target]


@routes.get("/results")
def results(visit: Visiting, query: Annotated[ResultsOptions, Query()]) -> dict[str, Any]:
    """The table of `results --json`; with another `format` its text."""
    if visit.caller.reads_only:
        raise Forbidden("this token may not see what jobs print")
    form = "--json" if query.format == "json" else f"--format={query.format}"
    printed = verb(visit, ["results", form, *query.words()], bounds=OFTEN)
    table = one(printed) if query.format == "json" else {"text": printed}
    return {**table, "messages": visit.messages}


class Run(BaseModel):
    """A file on this host, and the options of `jostle run`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    file: File
    suites: list[str] = []
    mode: str | None = None
    strict: bool = False
    skip_done: bool = False
    redo: bool = False
    redo_changed: bool = False
    only_failed: bool = False
    trust_logs: bool = False

    def words(self) -> list[str]:
        flags = ("strict", "skip_done", "redo", "redo_changed", "only_failed", "trust_logs")
        return [
            *(f"--{name.replace('_', '-')}" for name in flags if getattr(self, name)),
            *(f"--suite={name}" for name in self.suites), *([f"--mode={self.mode}"] if self.mode else []),
            "--", absolute(self.file),
        ]  # fmt: skip


def absolute(path: str) -> str:
    if not os.path.isabs(path) or "\0" in path:
        raise Usage("expected the absolute path of a file on this host")
    return path


@routes.post("/run")
def run(visit: Visiting, body: Run, dry_run: Flag = False) -> dict[str, Any]:
    if dry_run:
        return {**one(verb(visit, ["run", "--dry-run", "--json", *body.words()])), "messages": visit.messages}
    visit.client().close()  # an engine runs before: one that the child started would have its environment
    visit.note("run", body.file)
    printed = verb(visit, ["run", "--detach", "--json", *body.words()], bounded=False)
    return {"batches": [json.loads(line) for line in printed.splitlines() if line], "messages": visit.messages}


class Validate(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    file: File


@routes.post("/validate")
def validate(visit: Visiting, body: Validate) -> dict[str, Any]:
    return {**one(verb(visit, ["validate", "--json", "--", absolute(body.file)], good=(0, 6))), "messages": visit.messages}


class Import(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    mode: str = "single"
    config_index: Annotated[int, Field(ge=0, lt=1 << 31)] = 0


@routes.post("/import")
def import_(visit: Visiting, body: Import, workspace: str | None = None) -> dict[str, Any]:
    root = workspace_of(visit.site, workspace)
    files.must_be_plain(root, checked_mode(body.mode), body.config_index)
    words = ["import", f"--mode={body.mode}", f"--config-index={body.config_index}", "--", root]
    return {"text": verb(visit, words), "messages": visit.messages}


class Clean(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    older_than: Annotated[str, Field(max_length=50)] = "30d"
    dry_run: bool = True


@routes.post("/clean")
def clean(visit: Visiting, body: Clean) -> dict[str, Any]:
    if not body.dry_run:
        visit.note("clean", body.older_than)
    verb(visit, ["clean", f"--older-than={body.older_than}", *(["--dry-run"] if body.dry_run else [])], good=(0,))
    return {"messages": visit.messages}


@routes.get("/uni-id")
def uni_id(visit: Visiting, mode: str = "single", workspace: str | None = None) -> dict[str, Any]:
    """The entries of the workspace's uni_id file."""
    from jostle.formats.workspace import find

    visit.must_see_files()
    space = find(workspace_of(visit.site, workspace), mode=mode)
    return one(verb(visit, ["uni-id", "list", "--json", f"--file={space.uni_id_file}"]))
