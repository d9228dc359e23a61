"""`/api/v1`: the verbs that look. They answer as `--json` does (docs/json.md), with what a caller may see."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from jostle import units
from jostle.core.fields import JOB, RULES, Field
from jostle.errors import Forbidden, Invalid
from jostle.views.batches import batches as batches_of
from jostle.views.cards import CardReading, cards, remembered
from jostle.views.history import history as past_of
from jostle.views.listing import listing, refuse_unknown
from jostle.views.listing import of as jobs_of
from jostle.views.logs import MOST, LogPage, named_run
from jostle.views.status import status as engine_status
from jostle.views.story import story
from jostle.views.why import explained
from jostle.web import hidden, instances
from jostle.web.answers import Answer, Flag, large, takes_gzip
from jostle.web.cards import foremost
from jostle.web.joblog import LINES, page
from jostle.web.site import Visit, known_workspaces, visit
from jostle.wording import sentences
from jostle.wording.flaws import flaw
from jostle.wording.reasons import trouble

routes = APIRouter(prefix="/api/v1")
Visiting = Annotated[Visit, Depends(visit)]
Id = Annotated[int, Query(ge=1, lt=1 << 53)]
AT_ONCE = 500  # rows that are asked for by their ids


def shown(visit: Visit, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of jobs with their words; who may only look does not see what they run, and where."""
    return sentences.jobs([hidden.job(row) for row in rows] if visit.caller.reads_only else rows, visit.language)


def worded_event(visit: Visit, event: Mapping[str, Any]) -> dict[str, Any]:
    """An event with its words, as far as the caller may hear of it."""
    return sentences.event(hidden.event(event) if visit.caller.reads_only else event, visit.language)


@routes.get("/ps")
def ps(
    request: Request, visit: Visiting, all: Flag = False, short: Flag = False,
    batch: Annotated[int | None, Query(ge=1, lt=1 << 53)] = None,
    state: Annotated[list[str] | None, Query()] = None, id: Annotated[list[Id] | None, Query(max_length=AT_ONCE)] = None,
) -> Response:  # fmt: skip
    refuse_unknown(state)
    short = short and not (all or state)
    listed = jobs_of(visit, id) if id is not None else listing(visit, batch=batch, everything=all, states=state, short=short)
    waiting, last = listed.waiting
    more = {"waiting": waiting, "last": last, "failed": listed.failed, "ended": listed.ended}
    hold = hidden.words(listed.hold) if visit.caller.reads_only else listed.hold
    rows = shown(visit, [dict(row) for row in listed.rows])
    answer = {"schema": 1, "engine": listed.engine, "hold": hold, "jobs": rows, "more": more}
    return large(answer, packed=takes_gzip(request))


@routes.get("/batches")
def batches(visit: Visiting, all: Flag = False) -> Response:
    """As `ps --batches` lists them; who may only look gets names for paths."""
    listed = batches_of(visit, everything=all)
    shown = [{**one, "file": hidden.base(one["file"]) or None} for one in listed] if visit.caller.reads_only else listed
    return Answer({"schema": 1, "batches": shown})


@routes.get("/show/{id}")
def show(visit: Visiting, id: int) -> Response:
    whole = story(visit, id)
    (job,) = shown(visit, [dict(whole.why.job)])
    events = [worded_event(visit, event) for event in whole.events]
    answer = {"schema": 1, **whole.plain(), "job": job, "events": events}
    if visit.caller.reads_only:
        before = shown(visit, visit.reader.jobs(ids=[need["id"] for need in whole.needs])) if whole.needs else []
        names = {row["id"]: row["name"] for row in before}
        answer["needs"] = [{**need, "name": names[need["id"]]} for need in whole.needs]
        answer["runs"] = [{**run, "log": "", "command_key": None} for run in whole.runs]
        answer["processes"] = [{**process, "command": ""} for process in whole.processes]
    return Answer(answer)


@routes.get("/why/{id}")
def why(visit: Visiting, id: int) -> Response:
    answer: dict[str, Any] = {**explained(visit, id).plain(visit.engine_runs())}
    if visit.caller.reads_only:
        answer["reason"] = hidden.reason(answer["reason"])
    return Answer({"schema": 1, **sentences.explained(answer, visit.language)})


@routes.get("/gpus")
def gpus(visit: Visiting) -> Response:
    seen = worded_cards(cards_now(visit), visit.language)
    return Answer(hidden.cards(seen) if visit.caller.reads_only else seen)


@routes.get("/history")
def history(visit: Visiting, since: Annotated[str, Query(max_length=20)] = "24h") -> Response:
    """What the cards showed, and who had them."""
    try:
        seconds = units.seconds(since)
    except ValueError as e:
        raise Invalid(flaw("value_odd", key="since", value=repr(since), expected=str(e))) from e
    past = past_of(visit, seconds).plain()
    spans = [span for card in past["gpus"] for span in (*card["spans"], card["before"]) if span is not None]
    if visit.caller.reads_only:
        past["error"] = hidden.words(past["error"] or "")
        ids = sorted({span["job"] for span in spans if span["job"] is not None})
        names = {row["id"]: hidden.name(row) for row in visit.reader.jobs(ids=ids)}
        for span in spans:
            span["name"] = names.get(span["job"]) if span["job"] is not None else None
    return Answer({"schema": 1, **past})


def cards_now(visit: Visit) -> CardReading:
    """What the engine says of the cards. Without one nobody looks: a driver that hangs must not hold up the console."""
    if visit.engine_runs():
        return cards(visit)
    return remembered(CardReading([], visit.reader.meta("spec") or "", None, "no_engine", False), visit)


def worded_cards(seen: CardReading, language: str) -> dict[str, Any]:
    gpus = [sentences.card({**gpu, "holders": foremost(gpu["holders"])}, language) for gpu in seen.gpus]
    return {"schema": 1, **seen.plain(), "gpus": gpus, "error": trouble(seen.error, language)}


@routes.get("/status")
def status(visit: Visiting) -> dict[str, Any]:
    engine = engine_status(visit, instances.listed(visit.home))
    seen: dict[str, Any] = hidden.status(engine) if visit.caller.reads_only else {**engine}
    more = {"seq": visit.reader.last_seq(), "user": _user(), "host": os.uname().nodename}
    return {"schema": 1, **sentences.status(seen, visit.language), **more}


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


@routes.get("/logs/{id}")
def logs(
    request: Request, visit: Visiting, id: int, run: Annotated[int | None, Query(ge=1, lt=1 << 31)] = None,
    lines: Annotated[int, Query(ge=0, le=100_000)] = LINES,
    start: Annotated[int | None, Query(alias="from", ge=0, lt=1 << 62)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 1 << 16,
) -> Response:  # fmt: skip
    """The end of what a run has printed; with `from`, what it printed from there on."""
    part: LogPage = page(visit, id, run, lines=None if start is not None else lines, start=start or 0, limit=limit)
    return large({"schema": 1, **part.plain()}, packed=takes_gzip(request))


@routes.post("/logs/{id}/ticket")
def ticket(visit: Visiting, id: int, run: Annotated[int | None, Query(ge=1, lt=1 << 31)] = None) -> dict[str, str]:
    """A download for a browser, which cannot send the key: good once, for 30 s, for this session."""
    visit.must_see_output()
    named = named_run(visit, id, run)
    if visit.caller.session is None:
        raise Invalid("a ticket is for a session in a browser; with a token read /api/v1/logs")
    name = f"jostle-{id}.{named['n']}.log"
    return {"url": "/api/v1/download/" + visit.site.tickets.make(named["log"], name, visit.caller.session.digest)}


@routes.get("/download/{ticket}")
def download(visit: Visiting, ticket: str) -> Response:
    if visit.caller.session is None:
        raise Forbidden("a ticket is good for the session that made it")
    return visit.site.tickets.redeem(ticket, visit.caller.session.digest)




@routes.get("/workspaces")
def workspaces(visit: Visiting) -> dict[str, Any]:
    """Who may only look gets names for paths."""
    listed = [
        {"path": path, "name": os.path.basename(path) or path, "current": k == 0, "exists": os.path.isdir(path)}
        for k, path in enumerate(known_workspaces(visit.site))
    ]
    return {"workspaces": [{**one, "path": one["name"]} for one in listed] if visit.caller.reads_only else listed}


@routes.get("/fields")
def fields(visit: Visiting) -> dict[str, Any]:
    """The tables that forms are made of."""
    zh = visit.language == "zh"

    def entry(field: Field) -> dict[str, Any]:
        kind = field.kind
        return {
            "name": field.name, "key": field.key, "kind": kind.name, "unit": kind.unit, "low": kind.low, "high": kind.high,
            "words": list(kind.words), "default": field.fresh(), "what": field.what_zh if zh else field.what,
            "absent": field.absent_zh if zh else field.absent, "settable": field.settable,
        }  # fmt: skip

    return {"rules": [entry(field) for field in RULES.values()], "job": [entry(field) for field in JOB.values() if field.key]}


@routes.get("/openapi.json", include_in_schema=False)
def openapi(request: Request) -> dict[str, Any]:
    made: dict[str, Any] = request.app.openapi()
    return made
