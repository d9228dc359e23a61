"""Allocations in the store: jobs without commands, of which a name belongs to one at a time, and the jobs inside them. Every
function works inside the caller's transaction.

Rules: a job inside names an allocation that has not ended and is not about to; when one has ended, none is queued inside it. So a
decision never meets a job that waits for cards that will not come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.core.reasons import Reason
from jostle.core.states import TO_END
from jostle.errors import Declined
from jostle.store.store import Store

NO_COMMANDS = "[]"
ALLOCATION = "commands = '[]' AND ended_at IS NULL"  # as its partial index is written


def admit(store: Store, job: Mapping[str, Any], *, beside: bool) -> None:
    """Raises why an allocation, or a job inside one, cannot be taken. `beside`: others may run inside it at the same time."""
    if not job.get("commands"):
        if (other := named(store, job["name"])) is not None:
            raise declined(Reason("name_taken", {"name": job["name"], "job": other}))
    elif job.get("inside") is not None:
        if (why := closed(store, job["inside"])) is not None:
            raise declined(why)
        if not beside and (other := program_of(store, job["inside"])) is not None:
            raise declined(Reason("program_inside", {"allocation": job["inside"], "job": other}))
        store.db.execute("UPDATE job SET awaited_by = NULL WHERE id = ?", (job["inside"],))  # somebody knows of it


def declined(why: Reason) -> Declined:
    return Declined(f"{why.code} {dict(why.params)}", why.code, dict(why.params))


def named(store: Store, name: str) -> int | None:
    """The allocation of this name that has not ended."""
    row = store.db.execute(f"SELECT id FROM job INDEXED BY job_allocation WHERE name = ? AND {ALLOCATION}", (name,)).fetchone()
    return None if row is None else int(row[0])


def with_processes(store: Store) -> list[tuple[int, int, bool, str | None, str | None]]:
    """Those that would be given up with a process: id, batch, whether it waits, what it is tied to, and who waits for it."""
    rows = store.db.execute(
        f"""SELECT id, batch, state = 'queued', tied_to, awaited_by FROM job INDEXED BY job_allocation
            WHERE {ALLOCATION} AND (awaited_by IS NOT NULL OR (tied_to IS NOT NULL AND state = 'queued'))"""
    )
    return [(id, batch, bool(queued), tied, awaited) for id, batch, queued, tied, awaited in rows.fetchall()]


def program_of(store: Store, allocation: int) -> int | None:
    """A job inside it that has not ended."""
    row = store.db.execute("SELECT min(id) FROM job WHERE inside = ? AND ended_at IS NULL", (allocation,)).fetchone()
    return None if row[0] is None else int(row[0])


def closed(store: Store, allocation: int) -> Reason | None:
    """Why nothing more can be asked for inside it; None: it can."""
    row = store.db.execute("SELECT commands, ended_at, intent FROM job WHERE id = ?", (allocation,)).fetchone()
    if row is None or row[0] != NO_COMMANDS:
        return Reason("no_allocation", {"allocation": allocation})
    if row[1] is not None:
        return Reason("allocation_ended", {"allocation": allocation})
    return Reason("allocation_leaves", {"allocation": allocation}) if row[2] in TO_END else None


def ended(store: Store, allocation: int) -> bool:
    row = store.db.execute("SELECT ended_at FROM job WHERE id = ?", (allocation,)).fetchone()
    return row is None or row[0] is not None


def of_job(store: Store, id: int) -> tuple[bool, int | None]:
    """Whether a job is an allocation, and the one that it is inside of."""
    commands, inside = store.db.execute("SELECT commands, inside FROM job WHERE id = ?", (id,)).fetchone()
    return commands == NO_COMMANDS, inside


def no_new_name(store: Store, id: int, values: Mapping[str, Any]) -> Reason | None:
    """Why an allocation cannot be called so."""
    other = named(store, values["name"]) if "name" in values else None
    return None if other in (None, id) else Reason("name_taken", {"name": values["name"], "job": other})


def no_retry(store: Store, id: int) -> Reason | None:
    """Why it cannot be tried again."""
    allocation, inside = of_job(store, id)
    if allocation:
        return Reason("not_retried", {"job": id})
    return closed(store, inside) if inside is not None else None
