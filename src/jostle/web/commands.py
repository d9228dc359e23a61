"""The task files of a workspace, as the page of the source system knows them (SPEC A36), and for an editor (`/api/v1/commands`).

Rules: a file is saved as a person would edit it: comments, order, quotes and what is not understood stay. Nothing of it is saved
if something of it is wrong, and all of that is told at once.
"""

from __future__ import annotations

import codecs
import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from jostle.compete.running import one_of
from jostle.errors import Invalid, JostleError, NotFound, Usage
from jostle.formats import plaintext, taskfile, workspace
from jostle.formats.difference import unified
from jostle.formats.flaws import BadFiles
from jostle.formats.nodes import Flaw
from jostle.formats.taskedit import written
from jostle.formats.taskfile import Block
from jostle.formats.workspace import BatchKey
from jostle.web import files
from jostle.web.answers import Answer, etag
from jostle.web.site import Visit, checked_mode, visit, workspace_of
from jostle.wording.flaws import flaw, worded

routes = APIRouter()
Visiting = Annotated[Visit, Depends(visit)]
Index = Annotated[int, Query(ge=0, lt=10**9)]
BACKUP = ".backup"
LINES = 200_000  # of task files that are looked at for one call
BROKEN_SHOWN = FLAWS_SHOWN = 100
MOST = 100_000  # blocks that a browser sends


class Process(BaseModel):
    model_config = ConfigDict(extra="ignore")
    commands: list[Annotated[str, Field(max_length=1 << 20)]] = Field(max_length=10_000)
    memory: float = 0
    gpu_count: int = 1


class Queue(BaseModel):
    model_config = ConfigDict(extra="ignore")
    id: int
    processes: list[Process] = Field(max_length=MOST)


class Queues(BaseModel):
    model_config = ConfigDict(extra="ignore")
    queues: list[Queue] = Field(max_length=MOST)


class Text(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str = Field(max_length=4 << 20)


class Draft(Text):
    queues: list[Queue] | None = Field(None, max_length=MOST)


class ConfigFile:
    """One task file of the workspace that a call is about."""

    def __init__(self, visit: Visit, root: str, mode: str, index: int) -> None:
        self.visit, self.root, self.mode, self.index = visit, root, checked_mode(mode), index
        listed = {one.index: one for one in workspace.configs(root, mode)}
        usual = os.path.join(root, "command", f"{workspace.STEMS[mode]}_{index}.txt")
        self.path = listed[index].file_path if index in listed else usual
        self.name = f"config {index + 1}"
        self.way = files.inside(root, self.path)
        self.raw = files.content(root, self.way)

    @property
    def etag(self) -> str:
        return etag(self.raw)

    def text(self) -> tuple[str, str]:
        """And its encoding."""
        try:
            return plaintext.decoded(self.raw or b"")
        except Flaw as e:
            raise BadFiles([(self.path, e.line, e.text)]) from None

    def save(self, text: str, encoding: str, seen: str | None) -> None:
        mark = codecs.BOM_UTF8 if (self.raw or b"").startswith(codecs.BOM_UTF8) else b""
        try:
            new = mark + text.encode(encoding)
        except UnicodeEncodeError:
            raise Invalid(flaw("config_encoding", path=self.path, encoding=encoding)) from None
        files.save(self.root, self.way, new, seen=seen, backup=os.path.basename(self.path) + BACKUP)
        self.raw = new
        self.visit.note("save", self.path)

    def backup(self) -> bytes | None:
        return files.content(self.root, self.way + BACKUP)


def ends(text: str) -> int:
    return text.count("\n") + text.count("\r")


def parsed(text: str, mode: str, path: str, left: int = LINES) -> tuple[list[Block], list[tuple[int, str]]]:
    """Its blocks, and what is wrong; refused if it is so long that all others would have to wait meanwhile."""
    if ends(text) > left:
        raise JostleError(flaw("config_long", name=os.path.basename(path), most=LINES))
    return taskfile.parse(text, mode, path)


def queues_of(blocks: list[Block]) -> list[dict[str, Any]]:
    """Config → queue → process, in the order of the file."""
    by_queue: dict[int, list[dict[str, Any]]] = {}
    for block in blocks:
        processes = by_queue.setdefault(block.queue, [])
        processes.append({
            "id": len(processes) + 1, "commands": list(block.commands), "gpu_count": block.gpus, "memory": block.memory_gb,
        })  # fmt: skip
    return [{"id": queue, "processes": processes} for queue, processes in by_queue.items()]


def blocks_of(queues: list[Queue], mode: str, old: list[Block], lang: str) -> list[Block]:
    """What a file must hold; Invalid with everything that cannot be written. Where queues stood among each other in the file,
    they stay: the first task of a queue takes the place of its first one."""
    wrong, new = [], defaultdict(list)
    for queue in queues:
        for k, process in enumerate(queue.processes, 1):
            gpus = process.gpu_count if mode == "multi" else 1
            memory = int(process.memory) if process.memory == int(process.memory) else process.memory
            block = Block(queue=queue.id, commands=tuple(process.commands), memory_gb=memory, gpus=gpus)
            try:
                if not block.commands:
                    raise Invalid(flaw("task_no_command"))
                written(block, mode)
            except Invalid as e:
                wrong.append(worded(flaw("task_wrong", queue=queue.id, n=k, text=e.args[0]), lang))
            new[queue.id].append(block)
    if wrong:
        raise Invalid("\n".join(wrong))
    left = {queue: sum(block.queue == queue for block in old) for queue in new}
    ordered = []
    for block in old:
        waiting = new.get(block.queue) or []
        left[block.queue] = left.get(block.queue, 1) - 1
        take = len(waiting) if not left[block.queue] else min(1, len(waiting))
        ordered += waiting[:take]
        del waiting[:take]
    return [*ordered, *(block for queue in queues for block in _all(new[queue.id]))]


def _all(waiting: list[Block]) -> list[Block]:
    taken = waiting[:]
    waiting.clear()
    return taken


# --- the paths of the source


@routes.get("/api/commands/{mode}/list")
def list_(visit: Visiting, mode: str, workspace: str | None = None) -> dict[str, Any]:
    from jostle.formats.workspace import configs

    listed = configs(workspace_of(visit.site, workspace), checked_mode(mode))
    place = {"file_path": ""} if visit.caller.reads_only else {}
    return {"mode": mode, "configs": [{**config.__dict__, **place} for config in listed]}


@routes.get("/api/commands/{mode}/all")
def all_(visit: Visiting, mode: str, workspace: str | None = None) -> dict[str, Any]:
    root = workspace_of(visit.site, workspace)
    visit.must_see_files()
    configs, left = [], LINES
    for config in list_(visit, mode, workspace)["configs"]:
        text = ConfigFile(visit, root, mode, config["index"]).text()[0]
        blocks, _ = parsed(text, mode, config["file_name"], left)
        left -= ends(text)
        configs.append({**{key: config[key] for key in ("index", "name", "file_name")}, "queues": queues_of(blocks)})
    return {"mode": mode, "configs": configs}


@routes.get("/api/commands/{mode}")
def read(visit: Visiting, mode: str, config_index: Index = 0, workspace: str | None = None) -> Response:
    visit.must_see_files()
    config = ConfigFile(visit, workspace_of(visit.site, workspace), mode, config_index)
    blocks, flaws = parsed(config.text()[0], mode, config.path)
    answer = {
        "queues": queues_of(blocks), "mode": mode, "config_index": config_index, "config_name": config.name,
        "flaws": _rows(flaws, visit.language),
    }  # fmt: skip
    return Answer(answer, headers={"ETag": config.etag})


@routes.put("/api/commands/{mode}")
def write(
    visit: Visiting, mode: str, body: Queues, config_index: Index = 0, workspace: str | None = None,
    if_match: Annotated[str | None, Header()] = None,
) -> Response:  # fmt: skip
    config = ConfigFile(visit, workspace_of(visit.site, workspace), mode, config_index)
    old, encoding = config.text()
    blocks = blocks_of(body.queues, mode, parsed(old, mode, config.path)[0], visit.language)
    config.save(taskfile.edited(old, blocks, mode), encoding, if_match)
    answer = {
        "message": f"{os.path.basename(config.path)} is saved", "mode": mode, "config_index": config_index,
        "queues_count": len(queues_of(blocks)),
    }  # fmt: skip
    return Answer(answer, headers={"ETag": config.etag})


@routes.post("/api/commands/{mode}/new")
def new(visit: Visiting, mode: str, workspace: str | None = None) -> dict[str, Any]:
    from jostle.formats.workspace import STEMS, configs

    root, stem = workspace_of(visit.site, workspace), STEMS[checked_mode(mode)]
    taken = {config.index for config in configs(root, mode) if config.exists}
    for index in range(len(taken) + 1000):
        name = f"{stem}_{index}.txt" if index else f"{stem}.txt"
        if index not in taken and files.create(root, os.path.join("command", name)):
            path = os.path.join(root, "command", name)
            visit.note("new", path)
            config = {"index": index, "name": f"config {index + 1}", "file_path": path, "file_name": name}
            return {"message": f"{name} is new", "config": config}
    raise JostleError("no name is free for another config")


@routes.delete("/api/commands/{mode}/{index}")
def delete(visit: Visiting, mode: str, index: int, workspace: str | None = None) -> dict[str, Any]:
    if index == 0:
        raise Usage(flaw("config_one"))
    config = ConfigFile(visit, workspace_of(visit.site, workspace), mode, index)
    if config.raw is None:
        raise NotFound(flaw("config_none", n=index + 1, mode=mode))
    if one_of(visit.reader, BatchKey.of(config.root, mode, index)) is not None:
        raise JostleError(flaw("config_runs", n=index + 1))
    files.put_aside(config.root, config.way, os.path.basename(config.path) + BACKUP)
    visit.note("delete", config.path)
    name = os.path.basename(config.path)
    return {"message": f"{name} is deleted; what it was is kept as {name}{BACKUP}"}


@routes.post("/api/commands/{mode}/reset")
def reset(visit: Visiting, mode: str, config_index: Index = 0, workspace: str | None = None) -> dict[str, Any]:
    config = ConfigFile(visit, workspace_of(visit.site, workspace), mode, config_index)
    kept = config.backup()
    if kept is None:
        raise Usage(flaw("config_no_backup", name=os.path.basename(config.path)))
    files.save(config.root, config.way, kept)
    visit.note("reset", config.path)
    return {"message": f"{os.path.basename(config.path)} is as it was", "mode": mode, "config_index": config_index}


# --- for an editor


@routes.get("/api/v1/commands/{mode}")
def text_of(visit: Visiting, mode: str, config_index: Index = 0, workspace: str | None = None) -> Response:
    visit.must_see_files()
    config = ConfigFile(visit, workspace_of(visit.site, workspace), mode, config_index)
    text, encoding = config.text()
    answer = {
        **preview(config, text), "config_index": config_index, "config_name": config.name, "file_path": config.path,
        "exists": config.raw is not None, "encoding": encoding, "backup": config.backup() is not None,
    }  # fmt: skip
    return Answer(answer, headers={"ETag": config.etag})


@routes.put("/api/v1/commands/{mode}")
def save_text(
    request: Request, visit: Visiting, mode: str, body: Text, config_index: Index = 0, workspace: str | None = None
) -> Response:  # fmt: skip
    seen = request.headers.get("if-match")
    if seen is None:
        return Answer({"detail": "If-Match is needed: the ETag of what you have seen", "code": "invalid"}, 428)
    config = ConfigFile(visit, workspace_of(visit.site, workspace), mode, config_index)
    _, flaws = parsed(body.text, mode, config.path)
    if flaws:
        raise BadFiles([(config.path, line, text) for line, text in flaws])
    config.save(body.text, config.text()[1], seen)
    return Answer(preview(config, body.text), headers={"ETag": config.etag})


@routes.post("/api/v1/commands/{mode}/preview")
def previewed(visit: Visiting, mode: str, body: Draft, config_index: Index = 0, workspace: str | None = None) -> dict[str, Any]:
    """What the file would be, and what of it would be queued; with `queues`, the text with these."""
    config = ConfigFile(visit, workspace_of(visit.site, workspace), mode, config_index)
    text = body.text
    if body.queues is not None:
        text = taskfile.edited(text, blocks_of(body.queues, mode, parsed(text, mode, config.path)[0], visit.language), mode)
    return {**preview(config, text), "diff": unified(config.text()[0], text)}


def preview(config: ConfigFile, text: str) -> dict[str, Any]:
    from jostle.formats import workdir

    lang = config.visit.language
    blocks, flaws = parsed(text, config.mode, config.path)
    try:
        space = workspace.find(config.root, mode=config.mode)
        flaws = [*flaws, *((line, what) for _, line, what in workdir.flaws(space.work_dir, blocks, config.path))]
    except JostleError:
        pass  # no config 1, or settings that are wrong: not a matter of this text
    return {
        "mode": config.mode, "text": text, "queues": queues_of(blocks), "tasks": len(blocks),
        "flaws": _rows(sorted(flaws), lang),
        "lines": [block.line for block in blocks], "broken": _broken(text, config.mode, lang) if flaws else [],
    }  # fmt: skip


def _rows(flaws: Sequence[tuple[int, str]], lang: str) -> list[dict[str, Any]]:
    """Of very many those that somebody reads, and how many there are besides."""
    rows = [{"line": line, "text": worded(what, lang)} for line, what in flaws[:FLAWS_SHOWN]]
    if len(flaws) > FLAWS_SHOWN:
        rows.append({"line": flaws[FLAWS_SHOWN][0], "text": worded(flaw("more_flaws", n=len(flaws) - FLAWS_SHOWN), lang)})
    return rows


def _broken(text: str, mode: str, lang: str) -> list[dict[str, Any]]:
    """The blocks that are not understood, as they stand in the text, for a form."""
    return [
        {"line": one.line, "last": one.last, "text": one.text, "queue": one.queue,
         "flaws": [{"line": line, "text": worded(what, lang)} for line, what in one.flaws]}
        for one in taskfile.broken(text, mode)[:BROKEN_SHOWN]
    ]  # fmt: skip
