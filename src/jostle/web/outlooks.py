"""What would become of the tasks of a workspace if they were started now: `POST /api/v1/commands/{mode}/outlook`.

Asked of the engine, which decides as it would then; nothing is queued or saved, and no engine is started for it.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from jostle.errors import JostleError
from jostle.formats import taskfile, taskjobs, workspace
from jostle.intake.previewing import previewed
from jostle.web.commands import ConfigFile, Index, Text, parsed
from jostle.web.site import Visit, visit, workspace_of

routes = APIRouter()
Visiting = Annotated[Visit, Depends(visit)]
NOTHING: dict[str, Any] = {"tasks": [], "more": 0, "never": [], "drawn": "", "known": False}


@routes.post("/api/v1/commands/{mode}/outlook")
def outlook(visit: Visiting, mode: str, body: Text, config_index: Index = 0, workspace: str | None = None) -> dict[str, Any]:
    """Of the tasks that can be read, also where others cannot. `known`: whether an engine was there to say it."""
    visit.must_see_files()
    config = ConfigFile(visit, workspace_of(visit.site, workspace), mode, config_index)
    blocks, _ = parsed(body.text, mode, config.path)
    client = visit.engine_if_any() if blocks else None
    if client is None:
        return NOTHING
    try:
        batch = _batch(config, blocks)
        head = {"key": None, "name": batch["name"], "policy": batch["policy"], "queues": batch["queues"]}
        preview = previewed(client, head, batch["jobs"], visit.language)
    except JostleError:
        return NOTHING  # settings that are wrong, or an engine that is older or silent: told where it matters
    finally:
        client.close()
    tasks = [
        {"queue": block.queue, "line": block.line, **{key: job[key] for key in ("starts", "chance", "gpus", "after", "text")}}
        for block, job in zip(blocks, preview["jobs"], strict=False)
    ]  # fmt: skip
    return {"tasks": tasks, "known": True, **{key: preview[key] for key in ("more", "never", "drawn")}}


def _batch(config: ConfigFile, blocks: list[taskfile.Block]) -> dict[str, Any]:
    space = workspace.find(config.root, mode=config.mode, index=config.index)
    return taskjobs.batch(space, blocks, visible=None)
