"""`/api/v1`: the verbs that change something. Each is one request to the engine, recorded together with who asked for it."""

from __future__ import annotations

import os
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from jostle.core.kinds import MAX_GPUS, MAX_ID
from jostle.errors import Invalid, JostleError, Usage
from jostle.formats import jobfile
from jostle.intake.intents import chosen, setting
from jostle.intake.previewing import previewed
from jostle.intake.request import request, sent
from jostle.web.answers import Flag, Values
from jostle.web.site import Visit, visit
from jostle.wording import sentences
from jostle.wording.declined import declined
from jostle.wording.flaws import flaw

routes = APIRouter(prefix="/api/v1")
Visiting = Annotated[Visit, Depends(visit)]
Id = Annotated[int, Field(ge=1, le=MAX_ID)]
Word = Annotated[str, Field(min_length=1, max_length=1000)]
SHOWN = 100  # refusals


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Jobs(Strict):
    """Which jobs: numbers, or words as the command line takes them (`3-7`, `last`, `all`); or a batch."""

    ids: list[Id | Word] | Word | None = Field(None, max_length=100_000)
    batch: Id | None = None


class Cancel(Jobs):
    now: bool = False


class Move(Strict):
    id: Id
    to: str | dict[str, Id]


class Set(Jobs):
    values: dict[str, str | int | float | bool | list[str] | None] = Field(min_length=1)


class Cards(Strict):
    exclude: list[Annotated[int, Field(ge=0, lt=MAX_GPUS)]] = []
    include: list[Annotated[int, Field(ge=0, lt=MAX_GPUS)]] = []


class AllRefused(JostleError):
    """Nothing of what was asked for is to be had as things stand."""

    code = "refused"

    def __init__(self, refused: list[dict[str, Any]]) -> None:
        super().__init__("; ".join(one["text"] for one in refused[:10]))
        self.refused = refused


def intend(visit: Visit, verb: str, jobs: Jobs, **fields: Any) -> dict[str, Any]:
    if (jobs.ids is None) == (jobs.batch is None):
        raise Usage(flaw("asked_ids"))
    if jobs.batch is not None:
        meant: list[int] | None = None
        what = f"batch {jobs.batch}"
    else:
        words = [jobs.ids] if isinstance(jobs.ids, str) else [str(one) for one in jobs.ids or ()]
        meant, what = chosen(verb, words, visit, fields.get("values", ())), " ".join(words)
        if not meant:
            return {"done": [], "refused": [], "new": {}}
    answer = visit.ask("intent", did=verb, what=what, ids=meant, batch=jobs.batch, do=verb, **fields)
    refused = [{"id": id, **why, "text": declined(why, visit.language)} for id, why in answer["refused"][:SHOWN]]
    if refused and not answer["done"]:
        raise AllRefused(refused)
    return {"done": sorted(answer["done"]), "refused": refused, "new": answer["new"]}


@routes.post("/cancel")
def cancel(visit: Visiting, body: Cancel) -> dict[str, Any]:
    return intend(visit, "cancel", body, now=body.now)


@routes.post("/hold")
def hold(visit: Visiting, body: Jobs) -> dict[str, Any]:
    return intend(visit, "hold", body)


@routes.post("/unhold")
def unhold(visit: Visiting, body: Jobs) -> dict[str, Any]:
    return intend(visit, "unhold", body)


@routes.post("/retry")
def retry(visit: Visiting, body: Jobs) -> dict[str, Any]:
    """Final states are final, so a retry is a new job: `new` maps the old number to the new one."""
    return intend(visit, "retry", body)


@routes.post("/move")
def move(visit: Visiting, body: Move) -> dict[str, Any]:
    place = body.to if isinstance(body.to, str) else next(iter(body.to), "")
    good = ("first", "last") if isinstance(body.to, str) else ("before", "after")
    if place not in good or (isinstance(body.to, dict) and len(body.to) != 1):
        raise Usage(flaw("asked_place"))
    return intend(visit, "move", Jobs(ids=[body.id]), to=body.to)


@routes.post("/set")
def set_(visit: Visiting, body: Set) -> dict[str, Any]:
    values = dict(setting(key, written(value)) for key, value in body.values.items())
    return intend(visit, "set", body, values=values)


def written(value: Any) -> str:
    """A value of JSON as a person would type it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list) else str(value)


@routes.post("/gpus")
def gpus(visit: Visiting, body: Cards) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for numbers, on in ((body.exclude, True), (body.include, False)):
        if numbers:
            did, what = "exclude" if on else "include", ",".join(map(str, numbers))
            answer = visit.ask("exclude", did=did, what=what, gpus=numbers, on=on)
    if not answer:
        raise Usage(flaw("asked_cards"))
    return {"excluded": answer["excluded"], "faulty": answer.get("faulty") or []}


@routes.post("/add")
def add(visit: Visiting, body: Values, dry_run: Flag = False) -> dict[str, Any]:
    """One job, in the words of a job file; `hold` and `once` as `jostle add` has them."""
    asks = dict(body)
    hold, once = asks.pop("hold", False), asks.pop("once", None)
    if not isinstance(hold, bool) or not isinstance(once, str | None):
        raise Invalid(flaw("asked_hold"))
    base = asks.get("workdir")
    if not isinstance(base, str) or not os.path.isabs(base):
        raise Invalid(flaw("asked_workdir"))
    if not os.path.isdir(base):
        raise Invalid(flaw("asked_no_folder", path=base[:200]))
    (job,) = jobfile.of_values({"jobs": [asks]}, base)["jobs"]
    if hold:
        job["intent"] = "hold"
    head = {"key": "add", "name": "add", "join": True, "policy": {}}
    if dry_run:
        return outlook(visit, head, job)
    asked = request(head, [job], once=once)
    asked["by"] = visit.site.audit(visit.caller.who, "add", job["name"] or "")
    answer = sent(visit, asked, again=f"the same with once: {asked['once']!r} asks again and takes it once only")
    return {"id": answer["ids"][0], "batch": answer["batch"], "warnings": sentences.never(answer, visit.language)}


def outlook(visit: Visit, head: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    keys = ("commands", "name", "workdir", "gpus", "memory_mib", "share", "queue", "priority")
    return {"job": {key: job[key] for key in keys}, **would_become(visit, head, job)}


def would_become(visit: Visit, head: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """What would become of a job now, by `decide` itself; nothing is queued."""
    client = visit.client()
    try:
        preview = previewed(client, head, [job], visit.language)
    finally:
        client.close()
    would = preview["jobs"][0]
    return {
        **{key: preview[key] for key in ("never", "checked", "holds", "cards")}, "needed": job["gpus"][0],
        "starts_now": would["starts"], **{key: would[key] for key in ("gpus", "text", "reason")},
    }  # fmt: skip
