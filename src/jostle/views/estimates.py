"""When runs will have ended, cards will be free and jobs may start: as far as runs that were like them tell."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jostle.core.states import OPEN

if TYPE_CHECKING:
    from jostle.core.estimate import Took
    from jostle.session import Session
    from jostle.store.reads import Reader
    from jostle.views.types import Estimate

MOST = 200  # runs that are asked about at once
ALIKE = 30  # the newest runs that are like one

Row = dict[str, Any]


def fill(rows: Iterable[Row], reader: Reader, engine: Mapping[str, Any]) -> None:
    """Sets `estimate` on rows of jobs that run, and of those that wait for nothing but cards that ours will leave. Of what the
    engine says: `models` of cards by UUID, and who is `next`."""
    rows, models = list(rows), engine.get("models") or {}
    running = [row for row in rows if row["state"] in OPEN and row["started_at"] is not None][:MOST]
    if running:
        _fill_ends(running, reader, models)
        _fill_starts(rows, engine.get("next") or [])


def _fill_ends(rows: list[Row], reader: Reader, models: Mapping[str, str]) -> None:
    from jostle.core.commandkey import command_key  # what it needs would cost every command its start-up time
    from jostle.core.estimate import expected
    from jostle.store import pastruns

    now, still = time.time(), pastruns.stood_still(reader, [row["id"] for row in rows if row["when_stranger"] == "pause"])
    known: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        uuids = row["gpu_uuids"]
        durations: list[float] = []
        if all(uuid in models for uuid in uuids):
            alike = (command_key(row["commands"]), models[uuids[0]] if uuids else "", row["workdir"], len(uuids))
            if alike not in known:
                known[alike] = pastruns.alike(reader, *alike, ALIKE)
            durations = known[alike]
        stands, paused_s = still.get(row["id"], (False, 0.0))
        began = row["started_at"] + paused_s  # that time does not count
        took = None if stands else expected(durations, now - began)
        row["estimate"] = of_run(began, None if stands else row["time_limit"], took)


def of_run(began: float, limit: float | None, took: Took | None) -> Estimate:
    return {
        "starts_at": None, "gpus": None, "ends_at": took and round(began + took.median),
        "earliest_at": took and round(began + took.low), "latest_at": took and round(began + took.high),
        "runs": took.runs if took else 0, "limit_at": None if limit is None else round(began + limit),
    }  # fmt: skip


def _fill_starts(rows: list[Row], order: list[int]) -> None:
    """Only where jobs of one shape wait, and for our own runs alone: what another would take first nobody can tell."""
    from jostle.core.estimate import starts

    reason = next((row["reason"] for row in rows if order and row["id"] == order[0]), None)
    if not reason or reason["code"] != "gpus":
        return
    ends = {row["id"]: row["estimate"]["ends_at"] for row in rows if row["state"] in OPEN and row["estimate"]}
    taken = [(no["index"], ends.get(no["params"].get("job"))) for no in reason.get("gpus") or () if no["code"] == "taken"]
    free_at = {index: at for index, at in taken if at is not None}
    if len(free_at) < len(taken):
        return  # one of which nothing is known may be the first
    foreseen = starts(order, reason["params"]["needed"], reason["params"]["fit"], free_at)
    for row in rows:
        if row["id"] in foreseen:
            at, gpus = foreseen[row["id"]]
            row["estimate"] = {**of_run(at, None, None), "starts_at": at, "gpus": gpus}


def free(cards: Iterable[Row], session: Session) -> None:
    """Sets on cards when they will be free: `free_at` about, `free_by` at the latest. Of strangers nothing is known."""
    cards = list(cards)
    jobs = {int(run.partition(".")[0]) for card in cards for run in card.get("runs") or ()}
    estimates = {}
    if jobs:  # else the store need not be opened
        rows = session.reader.jobs(ids=jobs)
        fill(rows, session.reader, {"models": {card["uuid"]: card["name"] for card in cards}})
        estimates = {row["id"]: row["estimate"] for row in rows}
    for card in cards:
        held = [estimates.get(int(run.partition(".")[0])) for run in card.get("runs") or ()]
        others = any(holder["run"] is None for holder in card.get("holders") or ())
        for name, of in (("free_at", "ends_at"), ("free_by", "limit_at")):
            ends = [one[of] for one in held if one and one[of] is not None]
            card[name] = max(ends) if ends and len(ends) == len(held) and not others else None
