"""`jostle ps`: what runs, what waits and why, and what has lately ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jostle import units
from jostle.cli import render, waits
from jostle.errors import JostleError, NotFound, Usage
from jostle.wording import sentences

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.desk import Desk
    from jostle.cli.parse import Parser

LATELY = 3600.0
AT_LEAST = 10  # of the finished are shown, however old
FOLD = 100  # waiting rows; more of them say nothing in a table
ENDED = 30  # rows of what ended lately, in a table
FAILED = 20  # rows of what failed since FAILED_SINCE, in a table, whatever else ended since
FAILED_SINCE = 86400.0
HEAD = ("ID", "NAME", "QUEUE", "STATE", "GPUS", "TRY", "TIME", "WHY")
FINISHED = ("succeeded", "failed", "cancelled", "skipped")


def ps_options(p: Parser) -> None:
    p.example("""
        jostle ps
        jostle ps --all --json""")
    p.add_argument("-a", "--all", action="store_true", help="also what ended long ago, and every waiting job")
    p.add_argument("-b", "--batch", metavar="N", help="only jobs of this batch")
    p.add_argument("-s", "--state", action="append", metavar="STATE", help="only jobs in this state")
    p.json_option()


def ps(args: Namespace, desk: Desk) -> int:
    batch = batch_of(args.batch)
    if batch is not None and desk.reader.batch(batch) is None:
        raise NotFound(f"there is no batch {batch}")
    few = not (args.all or args.state or args.json)  # a table that need not list every waiting job
    rows = listed(desk, batch=batch, everything=args.all, states=states_of(args.state), waiting=FOLD if few else None)
    unfinished = any(row["ended_at"] is None for row in rows)
    told = engine_reasons(desk) if unfinished else {}
    count, last = desk.reader.waiting(batch) if few else (0, None)
    folded = max(0, count - FOLD)
    queues = desk.reader.places() if unfinished and (args.state or batch is not None) else rows  # a part tells no places
    reasons = waits.Waits(queues, told, desk.language, desk.reader.needs, desk.reader.ahead if folded else None)
    if args.json:
        reasons.fill(rows)
        desk.put_json({"schema": 1, "engine": told is not None if unfinished else desk.engine_runs(), "jobs": rows})
        return 0
    if not rows:
        asked_for = args.state or batch is not None
        desk.say("no such jobs" if asked_for else "no jobs: `jostle add -- COMMAND` queues one")
        return 0
    failed = desk.reader.failures(time.time() - FAILED_SINCE, batch) if few else []
    rows, ended = newest(rows, failed, desk) if few else (rows, 0)
    reasons.fill(rows)
    if told is None:
        desk.say(desk.no_engine())
    elif unwritten(told.get("hold")):  # an end cannot be recorded then, and the table shows it as running
        desk.say(sentences.on_hold(told["hold"], desk.language))
    for line in sentences.set_aside(desk.reader.meta("health"), desk.language):
        desk.say(line)
    now = time.time()
    lines = [row_of(row, now) for row in rows]
    desk.put(render.table(HEAD, lines, columns=desk.width, right=(0, 5, 6), paint_column=3, colours=desk.colours))
    if folded:
        first = max(row["id"] for row in rows if row["state"] == "queued") + 1
        desk.put(f"… and {render.count(folded, 'more job')} waiting ({first}-{last}); `jostle ps --all` lists them")
    if len(failed) > FAILED:
        desk.put(f"… and {len(failed) - FAILED:,} more that failed in the last day; `jostle ps --state failed` lists them")
    if ended:
        desk.put(f"… and {ended:,} more that ended lately; `jostle ps --all` lists them")
    return 0


def unwritten(hold: str | None) -> bool:
    if not hold:
        return False
    from jostle.core.reasons import UNWRITTEN

    return hold in UNWRITTEN


def newest(rows: list[dict[str, Any]], failed: list[int], desk: Desk) -> tuple[list[dict[str, Any]], int]:
    """Of the finished only the newest, but with the newest of those that failed; how many others are left out."""
    finished = sorted((row["ended_at"], row["id"]) for row in rows if row["ended_at"] is not None)
    kept, untold = set(failed[:FAILED]), set(failed[FAILED:])
    out = {id for _, id in finished[:-ENDED]} - kept - untold
    missing = kept - {row["id"] for row in rows}
    found = [*(row for row in rows if row["id"] not in out | untold), *(desk.reader.jobs(ids=missing) if missing else ())]
    return sorted(found, key=lambda row: int(row["id"])), len(out)


def batch_of(text: str | None) -> int | None:
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Usage(f"ps: --batch {text!r} is not understood; expected the number of a batch")
    return None if text is None else int(text)


def states_of(given: list[str] | None) -> list[str] | None:
    from jostle.core.states import ALL

    for state in given or ():
        if state not in (*ALL, "held"):
            raise Usage(f"ps: there is no state {state!r}; expected one of {', '.join((*ALL, 'held'))}")
    return given


def listed(
    desk: Desk, *, batch: int | None, everything: bool, states: list[str] | None, waiting: int | None
) -> list[dict[str, Any]]:
    """Unfinished jobs and those that ended lately, in order of id."""
    reader = desk.reader
    if everything or states is not None:
        if states is None or "held" not in states:
            return reader.jobs(batch=batch, states=states)
        rows = reader.jobs(batch=batch, states={"queued" if state == "held" else state for state in states})
        return [row for row in rows if row["state"] in states or (row["intent"] == "hold" and row["state"] == "queued")]
    rows = reader.jobs(batch=batch, finished_since=time.time() - LATELY, waiting=waiting)
    if sum(row["ended_at"] is not None for row in rows) < AT_LEAST:
        known = {row["id"] for row in rows}
        rows += [row for row in reader.jobs(batch=batch, states=FINISHED, newest=AT_LEAST) if row["id"] not in known]
        rows.sort(key=lambda row: int(row["id"]))
    return rows


def engine_reasons(desk: Desk) -> dict[str, Any] | None:
    """None: no engine runs."""
    from jostle.client import Silent

    client = desk.engine_if_any()
    if client is None:
        return None
    try:
        return client.call("reasons")
    except Silent:
        return {}  # which was said
    except JostleError:
        return None  # it went away while we asked
    finally:
        client.close()


def row_of(row: dict[str, Any], now: float) -> tuple[str, ...]:
    why = sentences.beside(row["reason"])
    if row["state"] == "failed" and not why:
        why = row["error_type"] or (f"exit code {row['exit_code']}" if row["exit_code"] is not None else "")
    state = "held" if row["state"] == "queued" and row["intent"] == "hold" else row["state"]
    return (
        str(row["id"]), row["name"], row["queue"] or "-", state, render.gpus(row["gpus"]) if holds(row) else asked(row),
        str(row["attempt"] or "-"), units.show_duration(elapsed(row, now)), why,
    )  # fmt: skip


def holds(row: dict[str, Any]) -> bool:
    return bool(row["gpus"]) and row["state"] != "queued"


def asked(row: dict[str, Any]) -> str:
    """What a job without cards wants: `×2`, `×1-4`."""
    low, high = row["gpu_request"]
    return "-" if row["ended_at"] is not None or not high else f"×{low}" if low == high else f"×{low}-{high}"


def elapsed(row: dict[str, Any], now: float) -> float | None:
    """How long it ran, runs, or waits."""
    if row["state"] == "queued":
        return now - float(row["submitted_at"])
    if row["started_at"] is None:
        return None
    return now - float(row["started_at"]) if row["ended_at"] is None else row["ran_s"]
