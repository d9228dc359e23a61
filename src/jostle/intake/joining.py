"""Jobs that were added to the file of a batch that is not finished: they join it, or it is said why they do not.

Rules: a job of the file is a job of the batch if its name is, with the same work (its fingerprint, else its commands). Only what
was added is taken over: where the file lost or changed jobs too, nobody can tell what is to become of those that wait, so nothing
is done and that is said. Nothing of a file is left out without a word.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from shlex import join as shell_text
from typing import TYPE_CHECKING, Any

from jostle.core.reasons import done_by
from jostle.intake.preparing import prepared
from jostle.intake.selection import Selection
from jostle.wording.text import listed, span

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jostle.client import Client
    from jostle.intake.options import Options
    from jostle.session import Session

Job = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A file and the batch that was made of it."""

    same: dict[int, Mapping[str, Any]]  # place in the file: the row of the batch
    new: list[int]  # places in the file
    gone: list[int]  # ids of jobs that the file does not hold any more


def difference(jobs: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> Difference:
    """Copies made by `retry` stand for what they copy."""
    newest = {row["retry_of"]: row for row in rows if row["retry_of"] is not None}
    by_work: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["retry_of"] is None:
            by_work.setdefault(_work(row), []).append(row)
    same: dict[int, Mapping[str, Any]] = {}
    new = []
    for k, job in enumerate(jobs):
        same_work = by_work.get(_work(job))
        if not same_work:
            new.append(k)
            continue
        row = same_work.pop(0)
        while row["id"] in newest:
            row = newest[row["id"]]
        same[k] = row
    return Difference(same=same, new=new, gone=[row["id"] for left in by_work.values() for row in left])


def _work(job: Mapping[str, Any]) -> Any:
    commands = tuple(c if isinstance(c, str) else shell_text(c) for c in job["commands"])
    return (job["name"], job["fingerprint"]) if job.get("fingerprint") else (job["name"], *commands)


def joined(
    batch: dict[str, Any], selection: Selection, number: int, rows: list[dict[str, Any]], client: Client, options: Options,
    session: Session, linked: Callable[[list[Job]], list[Job]],
) -> tuple[list[Job], int]:  # fmt: skip
    """The jobs that joined the batch, and the id of the first; `linked` adds what they wait for besides."""
    changes = difference(batch["jobs"], rows)
    joining = [k for k in changes.new if selection.verdicts[k].what in ("run", "done")]  # the others were left out by an option
    why = _hindrance(number, changes, options, session)
    if why and (joining or changes.gone):
        session.tell("file_changed", batch=number, why=why)
    if why or not joining:
        return [], 0
    jobs = linked(_needing(joining, changes, selection))
    request = prepared(batch, jobs, options, session)
    works = repr([number, len(rows), [_work(job) for job in jobs]])  # of two who add the same at once, one does
    answer = client.call(
        "amend", batch=number, jobs=request["jobs"], context=request["context"], queues=batch["queues"],
        order=_order(joining, changes), once=hashlib.sha256(works.encode("utf-8", "backslashreplace")).hexdigest(),
    )  # fmt: skip
    first, last = answer["ids"]
    session.tell("joined", n=len(jobs), ids=span(first, last), batch=number)
    return jobs, first


def _hindrance(number: int, changes: Difference, options: Options, session: Session) -> str:
    """Why what is new cannot join; nothing if it can."""
    about = (session.reader.batch(number) or {}).get("about") or {}
    say = session.message
    new, later = say("not_in_batch", n=len(changes.new)), say("run_it_later")
    if changes.gone:
        lost = say("not_in_file", n=len(changes.gone))
        return listed([lost, *([new + later] if changes.new else [])], session.language)
    if about.get("frozen") or options.freeze:
        return new + say("batch_frozen" if about.get("frozen") else "freeze_is_for_new") + later
    return "" if about.get("whole") else new + later  # of some of its jobs only, or by a jostle that did not say


def _needing(joining: list[int], changes: Difference, selection: Selection) -> list[Job]:
    """The new jobs; what they come after is in the batch, or new too. What is done need not be waited for."""
    jobs = []
    for k in joining:
        needs = []
        for kind, at, any_end in selection.jobs[k]["needs"]:
            if kind != "index":
                needs.append([kind, at, any_end])
            elif at in joining:
                needs.append(["index", joining.index(at), any_end])
            elif at in changes.same and not _done(changes.same[at]):
                needs.append(["job", changes.same[at]["id"], any_end])
        by = selection.verdicts[k].by
        jobs.append({**selection.jobs[k], "needs": needs, **({"done_by": list(by)} if by is not None else {})})
    return jobs


def _done(row: Mapping[str, Any]) -> bool:
    return row["state"] == "succeeded" or done_by(row["state"], row["reason"]) is not None


def _order(joining: list[int], changes: Difference) -> list[list[Any]] | None:
    """All that wait, in the order of the file; None where what is new comes last in any case."""
    waiting = [k for k, row in changes.same.items() if row["state"] == "queued"]
    if not waiting or max(waiting) < min(joining):
        return None
    places = sorted([*waiting, *joining])
    return [["index", joining.index(k)] if k in joining else ["job", changes.same[k]["id"]] for k in places]
