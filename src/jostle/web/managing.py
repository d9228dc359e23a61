"""`/api/v1`: the picture of the source's resource manager (SPEC C9), as values and in its own words.

Its file is the one that was loaded last: there is no present directory here. What `jostle manage` does is here by the verbs that
do it: `alloc`, `release`, `start`. The floor is kept by a process that its user starts: a page has no business holding cards of
its own accord.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends

from jostle.formats.flaws import BadFiles
from jostle.formats.managerfile import ManagerConfig
from jostle.manage.board import ManagerBoard, board
from jostle.manage.loading import of_engine
from jostle.manage.statustext import lines
from jostle.web import hidden
from jostle.web.site import Visit, visit
from jostle.wording.reasons import trouble

if TYPE_CHECKING:
    from jostle.manage.board import Task

routes = APIRouter(prefix="/api/v1")
Visiting = Annotated[Visit, Depends(visit)]


@routes.get("/manage")
@routes.get("/monitor")
def manage(visit: Visiting) -> dict[str, Any]:
    """Nodes with their cards, who holds what where, what runs and waits; `text` as `jostle manage --status` prints it, but
    for the host, which other answers have."""
    visit.must_have_engine()  # else we would look at the cards ourselves, and a driver that hangs would hold up the console
    seen = board(visit, _config(visit))
    if visit.caller.reads_only:
        seen = _for_readers(visit, seen)
    error = trouble(seen.error, visit.language) if seen.error else ""
    return {"schema": 1, **asdict(seen), "error": error, "text": "\n".join(lines(seen)) + "\n"}


def _config(visit: Visit) -> ManagerConfig:
    """One that is being edited is no reason to show nothing: then without what it says of names."""
    try:
        return of_engine(visit)
    except BadFiles:
        return ManagerConfig()


def _for_readers(visit: Visit, seen: ManagerBoard) -> ManagerBoard:
    """Without what jobs run: a name may be the beginning of a command."""
    rows = {row["id"]: row for row in visit.reader.jobs(ids=[task.id for task in seen.tasks])} if seen.tasks else {}

    def named(task: Task) -> Task:
        row = rows.get(task.id)
        shown = hidden.name(row) if row else f"job {task.id}"
        return task if task.allocation or (row and shown == row["name"]) else replace(task, name=shown)

    return replace(seen, tasks=tuple(map(named, seen.tasks)), error=hidden.words(seen.error))
