"""`/api/v1`: the verbs that read files a caller names, ask drivers or call git: each is the command itself, in a process of its
own that is ended with its time (RELIABILITY S57). What it prints as JSON is the answer.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from jostle.client import own_environment
from jostle.errors import Forbidden, Invalid, JostleError, NoEngine, NotFound, Usage
from jostle.web import files
from jostle.web.answers import Flag
from jostle.web.site import Visit, checked_mode, visit, workspace_of

if TYPE_CHECKING:
    from collections.abc import Sequence

routes = APIRouter(prefix="/api/v1")
Visiting = Annotated[Visit, Depends(visit)]
WITHIN = 60.0  # s
PROCESSOR = 45  # s
MEMORY = 4 << 30  # bytes of address space
LARGEST = 32 << 20  # bytes of an answer
BY_EXIT: dict[int, type[JostleError]] = {2: Usage, 3: NoEngine, 4: NotFound, 5: Forbidden, 6: Invalid}
File = Annotated[str, Field(min_length=1, max_length=4096)]


def verb(visit: Visit, words: Sequence[str], *, bounded: bool = True, text: str = "", good: tuple[int, ...] = (0, 1)) -> str:
    """What the command prints. `bounded`: also in processor time and memory, unless it submits: jobs inherit such limits."""
    if any("\0" in word for word in words):
        raise Invalid("a value has a NUL in it, which no command can be given")
    env = {**own_environment(), "JOSTLE_HOME": visit.home, "JOSTLE_LANG": visit.language, "NO_COLOR": "1"}
    temporary = tempfile.TemporaryFile
    with visit.lengthy(), temporary() as out, temporary() as err, temporary() as given:
        given.write(text.encode())
        given.seek(0)
        argv = [sys.executable, "-m", "jostle", *words]
        child = subprocess.Popen(argv, stdin=given, stdout=out, stderr=err, env=env, cwd="/", start_new_session=True)
        if bounded:
            resource.prlimit(child.pid, resource.RLIMIT_CPU, (PROCESSOR, PROCESSOR))
            resource.prlimit(child.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            code = child.wait(WITHIN)
        except subprocess.TimeoutExpired:
            raise JostleError(f"`jostle {words[0]}` took longer than {WITHIN:.0f} s and was ended") from None
        finally:
            _end(child)
        printed, messages = _content(out), _content(err)
    for line in messages.splitlines():
        visit.say(line.removeprefix("jostle: "))
    if code not in good:
        raise BY_EXIT.get(code, JostleError)(messages.strip().removeprefix("jostle: ") or f"`jostle {words[0]}` failed ({code})")
    return printed


def _end(child: subprocess.Popen[bytes]) -> None:
    """It, and whatever it has left behind in its session; an engine that it started has a session of its own."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def _content(file: Any) -> str:
    file.seek(0)
    raw: bytes = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise JostleError("the answer is too large: ask the command line")
    return raw.decode("utf-8", "replace")


def one(printed: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed)
    return found


@routes.get("/doctor")
def doctor(visit: Visiting) -> dict[str, Any]:
    """Who may only look gets the verdicts."""
    checks = one(verb(visit, ["doctor", "--json"]))["checks"]
    shown = [{**check, "found": "", "advice": ""} for check in checks] if visit.caller.reads_only else checks
    return {"schema": 1, "ok": all(check["verdict"] != "bad" for check in checks), "checks": shown}


@routes.get("/results")
def results(
    visit: Visiting, target: Annotated[list[str] | None, Query(max_length=50)] = None,
    metric: Annotated[list[str] | None, Query(max_length=50)] = None, across: str | None = None, by: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    if visit.caller.reads_only:
        raise Forbidden("this token may not see what jobs print")
    options = [f"--metric={name}" for name in metric or ()]
    options += [f"--{name}={value}" for name, value in (("across", across), ("by", by)) if value is not None]
    return {**one(verb(visit, ["results", "--json", *options, "--", *(target or ())])), "messages": visit.said}


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
def run(visit: Visiting, given: Run, dry_run: Flag = False) -> dict[str, Any]:
    if dry_run:
        return {**one(verb(visit, ["run", "--dry-run", "--json", *given.words()])), "messages": visit.said}
    visit.client().close()  # an engine runs before: one that the child started would have its environment
    visit.note("run", given.file)
    printed = verb(visit, ["run", "--detach", "--json", *given.words()], bounded=False)
    return {"batches": [json.loads(line) for line in printed.splitlines() if line], "messages": visit.said}


class Validate(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    file: File


@routes.post("/validate")
def validate(visit: Visiting, given: Validate) -> dict[str, Any]:
    return {**one(verb(visit, ["validate", "--json", "--", absolute(given.file)], good=(0, 6))), "messages": visit.said}


class Import(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    mode: str = "single"
    config_index: Annotated[int, Field(ge=0, lt=1 << 31)] = 0


@routes.post("/import")
def import_(visit: Visiting, given: Import, workspace: str | None = None) -> dict[str, Any]:
    root = workspace_of(visit.site, workspace)
    files.must_be_plain(root, checked_mode(given.mode), given.config_index)
    words = ["import", f"--mode={given.mode}", f"--config-index={given.config_index}", "--", root]
    return {"text": verb(visit, words), "messages": visit.said}


class Clean(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    older_than: Annotated[str, Field(max_length=50)] = "30d"
    dry_run: bool = True


@routes.post("/clean")
def clean(visit: Visiting, given: Clean) -> dict[str, Any]:
    if not given.dry_run:
        visit.note("clean", given.older_than)
    verb(visit, ["clean", f"--older-than={given.older_than}", *(["--dry-run"] if given.dry_run else [])], good=(0,))
    return {"messages": visit.said}


@routes.get("/uni-id")
def uni_id(visit: Visiting, mode: str = "single", workspace: str | None = None) -> dict[str, Any]:
    """The entries of the workspace's uni_id file."""
    from jostle.formats.workspace import find

    visit.must_see_files()
    space = find(workspace_of(visit.site, workspace), mode=mode)
    return one(verb(visit, ["uni-id", "list", "--json", f"--file={space.uni_id_file}"]))
