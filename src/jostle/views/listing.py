"""The jobs: what runs, what waits and why, and what has lately ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jostle.core.states import ALL, FINAL
from jostle.errors import JostleError, NotFound, Usage
from jostle.views import estimates
from jostle.views.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostle.session import Session
    from jostle.store.reads import Reader
    from jostle.views.types import Job

LATELY = 3600.0
AT_LEAST = 10  # of the finished are shown, however old
FOLD = 100  # waiting rows; more of them say nothing in a short list
ENDED = 30  # rows of what ended lately, in a short list
FAILED = 20  # rows of what failed since FAILED_SINCE, in a short list, whatever else ended since
FAILED_SINCE = 86400.0

STATES = (*ALL, "held")  # that jobs are listed by

Row = dict[str, Any]


class Listing(NamedTuple):
    rows: list[Job]
    engine: bool  # whether one runs; taken for granted where nothing listed needs one
    hold: str = ""  # what keeps all from starting
    waiting: tuple[int, int | None] = (0, None)  # how many more wait than are listed, and the last of them
    failed: int = 0  # how many more failed lately
    ended: int = 0  # how many more ended lately

    @property
    def left_out(self) -> list[tuple[str, dict[str, Any]]]:
        """What is not listed, as messages."""
        folded, last = self.waiting
        notes: list[tuple[str, dict[str, Any]]] = []
        if folded:
            first = max(row["id"] for row in self.rows if row["state"] == "queued") + 1
            notes.append(("more_waiting", {"n": folded, "ids": f"{first}-{last}"}))
        notes += [("more_failed_lately", {"n": self.failed})] if self.failed else []
        notes += [("more_ended_lately", {"n": self.ended})] if self.ended else []
        return notes


def listing(
    session: Session, *, batch: int | None = None, everything: bool = False, states: Sequence[str] | None = None,
    short: bool = False,
) -> Listing:  # fmt: skip
    """In order of id. `short`: of what waits and of what has ended only as much as a person reads."""
    reader = session.reader
    if batch is not None and reader.batch(batch) is None:
        raise NotFound(f"there is no batch {batch}")
    rows = chosen(reader, batch=batch, everything=everything, states=states, waiting=FOLD if short else None)
    count, last = reader.waiting(batch) if short else (0, None)
    folded = max(0, count - FOLD)
    failed = reader.failures(time.time() - FAILED_SINCE, batch) if short and rows else []
    rows, ended = newest(rows, failed, reader) if short and rows else (rows, 0)
    filled = _filled(rows, session, part=bool(states or batch is not None), folded=bool(folded))
    return filled._replace(waiting=(folded, last), failed=max(0, len(failed) - FAILED), ended=ended)


def of(session: Session, ids: Sequence[int]) -> Listing:
    """These jobs; an id that is none is left out."""
    return _filled(session.reader.jobs(ids=ids), session, part=True, folded=True)


def _filled(rows: list[Row], session: Session, *, part: bool, folded: bool) -> Listing:
    """With why they wait, and what is known of when they end. The rows alone tell no places where they are a `part` of what
    waits, or the rest of it is `folded`."""
    reader, unfinished = session.reader, any(row["ended_at"] is None for row in rows)
    answer = engine_reasons(session) if unfinished else {}
    queues = reader.places() if unfinished and part else rows
    Waits(queues, answer, reader.needs, reader.ahead if folded else None).fill(rows)
    estimates.fill(rows, reader, answer or {})
    return Listing(cast("list[Job]", rows), answer is not None, (answer or {}).get("hold") or "")


def refuse_unknown(states: Sequence[str] | None, verb: str = "") -> None:
    """Usage if jobs cannot be in one of these states. `verb`: of the command line, that it is said of."""
    for state in states or ():
        if state not in STATES:
            raise Usage(f"{verb}there is no state {state[:50]!r}; expected one of {', '.join(STATES)}")


def chosen(
    reader: Reader, *, batch: int | None, everything: bool, states: Sequence[str] | None, waiting: int | None
) -> list[Row]:  # fmt: skip
    """Unfinished jobs and those that ended lately, unless others are asked for."""
    if everything or states is not None:
        if states is None or "held" not in states:
            return reader.jobs(batch=batch, states=states)
        rows = reader.jobs(batch=batch, states={"queued" if state == "held" else state for state in states})
        return [row for row in rows if row["state"] in states or (row["intent"] == "hold" and row["state"] == "queued")]
    rows = reader.jobs(batch=batch, finished_since=time.time() - LATELY, waiting=waiting)
    if sum(row["ended_at"] is not None for row in rows) < AT_LEAST:
        ids = {row["id"] for row in rows}
        rows += [row for row in reader.jobs(batch=batch, states=FINAL, newest=AT_LEAST) if row["id"] not in ids]
        rows.sort(key=lambda row: int(row["id"]))
    return rows


def newest(rows: list[Row], failed: list[int], reader: Reader) -> tuple[list[Row], int]:
    """Of the finished only the newest, but with the newest of those that failed; how many others are left out."""
    finished = sorted((row["ended_at"], row["id"]) for row in rows if row["ended_at"] is not None)
    kept, untold = set(failed[:FAILED]), set(failed[FAILED:])
    out = {id for _, id in finished[:-ENDED]} - kept - untold
    missing = kept - {row["id"] for row in rows}
    chosen_rows = [*(row for row in rows if row["id"] not in out | untold), *(reader.jobs(ids=missing) if missing else ())]
    return sorted(chosen_rows, key=lambda row: int(row["id"])), len(out)


def engine_reasons(session: Session) -> dict[str, Any] | None:
    """None: no engine runs."""
    from jostle.client import Silent

    client = session.engine_if_any()
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
