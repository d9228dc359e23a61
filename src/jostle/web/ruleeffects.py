"""What saving rules would do: `POST /api/v1/rules/preview`.

The difference of the file, what the rules mean for the cards that there are now, counted by the engine, and which waiting tasks
of the workspace would start. Nothing is saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends

from jostle.errors import Invalid, JostleError
from jostle.formats import gpumanage, workspace
from jostle.formats.difference import unified
from jostle.web.answers import Values
from jostle.web.rules import RulesFile
from jostle.web.site import Visit, visit, workspace_of
from jostle.wording import sentences

if TYPE_CHECKING:
    from jostle.client import Client

routes = APIRouter()
Visiting = Annotated[Visit, Depends(visit)]
SHOWN = 20  # tasks that wait


@routes.post("/api/v1/rules/preview")
def preview(visit: Visiting, body: Values, workspace: str | None = None) -> dict[str, Any]:
    """With nothing changed: what the rules mean as they are."""
    visit.must_see_files()
    rules = RulesFile(workspace_of(visit.site, workspace))
    text = rules.changed(body)
    diff = unified(rules.text, text)
    client = visit.engine_if_any()
    if client is None:
        return {"diff": diff, "before": None, "after": None, "waiting": [], "running": 0}
    try:
        return {"diff": diff, **_effect(visit, client, rules, text)}
    finally:
        client.close()


def _effect(visit: Visit, client: Client, rules: RulesFile, text: str) -> dict[str, Any]:
    """By the engine, before and after."""
    now, new = rules.read(rules.text)[0], rules.read(text)[0]
    batches = _batches(visit, rules.root)
    then = {number: _policy(new, now, mode, stored) for number, (mode, stored) in batches.items()}
    stored = {number: policy for number, (_, policy) in batches.items()}
    before = client.call("what_if", policy=gpumanage.policy(now, "single", None), batches=stored)
    after = client.call("what_if", policy=gpumanage.policy(new, "single", None), batches=then)
    names = {row["id"]: row for row in visit.reader.jobs(ids=[job["id"] for job in after["waiting"][:SHOWN]])}
    earlier = {job["id"]: job for job in before["waiting"]}
    waiting = [
        {"id": job["id"], "name": names[job["id"]]["name"], "needed": job["needed"], "starts": job["starts"], "gpus": job["gpus"],
         "reason": sentences.worded(job["reason"], visit.language) if job["reason"] else None,
         "started": job["id"] in earlier and earlier[job["id"]]["starts"]}
        for job in after["waiting"] if job["id"] in names
    ]  # fmt: skip
    running = sum(visit.reader.counts(number).get("running", 0) for number in batches)
    return {"before": before["courtesy"], "after": after["courtesy"], "waiting": waiting, "running": running}


def _batches(visit: Visit, root: str) -> dict[int, tuple[str, dict[str, Any]]]:
    """The unfinished batches of a workspace, by number: mode, and the rules that they are under."""
    batches = {}
    for mode in workspace.STEMS:
        for config in workspace.configs(root, mode):
            number = visit.reader.unfinished_batch(str(workspace.BatchKey.of(root, mode, config.index)))
            if number is not None:
                batches[number] = (mode, dict((visit.reader.batch(number) or {}).get("policy") or {}))
    return batches


def _policy(new: gpumanage.Settings, now: gpumanage.Settings, mode: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The rules that a scheduler would give its batch; which cards its own surroundings show it, only it knows."""
    try:
        policy = gpumanage.policy(new, mode, None)
        if stored.get("gpus") != gpumanage.policy(now, mode, None)["gpus"]:
            policy["gpus"] = stored.get("gpus")
    except JostleError as e:
        raise Invalid(str(e)) from None
    return policy
