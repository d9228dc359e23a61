"""A batch on its way to the engine: as a new one, or into the unfinished one of the same file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.core.reasons import done_before
from jostle.core.states import UNFINISHED
from jostle.errors import Usage
from jostle.intake.checking import warn_directories
from jostle.intake.joining import joined
from jostle.intake.preparing import prepared
from jostle.intake.request import sent, warn_never
from jostle.intake.selection import Selection, selected
from jostle.wording.text import message, span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jostle.client import Client
    from jostle.intake.options import Options
    from jostle.session import Session

MAX_LINKS = 1_000_000  # between the jobs of suites that are submitted at once to run one after another


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What became of a batch that was asked for."""

    number: int | None  # None: nothing of it is to run
    rows: list[dict[str, Any]]
    selection: Selection
    new: bool = False  # else it is the unfinished one of the same file

    def plain(self) -> dict[str, Any]:
        """As `run --detach --json` gives it."""
        if self.number is None:
            return {"schema": 1, "batch": None, "ok": True, "counts": {"skipped": len(self.selection.jobs)}}
        return {"schema": 1, "batch": self.number, "ids": [row["id"] for row in self.rows]}

    def outcome(self, batch: Mapping[str, Any], options: Options, language: str) -> str:
        """What has become of it, for a person; "": it joined a batch, which was said."""
        if self.number is None:
            return self.selection.nothing_to_run(batch, options, language)
        if not self.new:
            return ""
        rest, ids = self.selection.left_out(language), span(self.rows[0]["id"], self.rows[-1]["id"])
        return message("submitted", language, batch=self.number, n=len(self.rows), ids=ids) + (f"; {rest}" if rest else "")


def taken(
    batch: dict[str, Any], client: Client, options: Options, session: Session, *, before: Sequence[int] = (),
    owner: list[int] | None = None, hint: str = "",
) -> Taken:  # fmt: skip
    """The batch as a new one, or as the one that stands for it already, after the jobs `before`. `hint`: for a person who is
    attached to it again."""
    selection = selected(batch, options, session)
    unfinished = unfinished_batch(batch, session)
    if unfinished is not None:
        number, rows = unfinished
        left = sum(row["ended_at"] is None for row in rows)
        session.say(session.message("attached", batch=number, left=left) + hint)
        rows = continued(batch, selection, number, rows, client, options, session, before)
        return Taken(number=number, rows=rows, selection=selection)
    if not selection.count("run"):
        return Taken(number=None, rows=[], selection=selection)
    jobs = after(selection.taken(), before)
    warn_directories(jobs, session)
    number, rows = submitted(batch, selection, jobs, options, session, owner)
    return Taken(number=number, rows=rows, selection=selection, new=True)


def taken_in_turn(
    batches: Sequence[dict[str, Any]], options: Options, session: Session
) -> Iterator[tuple[dict[str, Any], Taken]]:  # fmt: skip
    """All batches at once; the jobs of each come after all of the one before it."""
    client = session.client(gpus=options.devices)
    before: list[int] = []
    for batch in batches:
        receipt = taken(batch, client, options, session, before=before)
        before = [row["id"] for row in receipt.rows if row["state"] in UNFINISHED] if receipt.number is not None else before
        yield batch, receipt
    client.close()


def unfinished_batch(batch: dict[str, Any], session: Session) -> tuple[int, list[dict[str, Any]]] | None:
    """The unfinished batch of the same file, if there is one, and its rows."""
    number = session.reader.unfinished_batch(batch["key"])
    return None if number is None else (number, session.reader.jobs(batch=number))


def continued(
    batch: dict[str, Any], selection: Selection, number: int, rows: list[dict[str, Any]], client: Client, options: Options,
    session: Session, before: Sequence[int],
) -> list[dict[str, Any]]:  # fmt: skip
    """The rows of an unfinished batch with what was added to the file since; from now on it is under the rules of the options.
    What is new comes after the jobs `before`."""
    jobs, first = joined(batch, selection, number, rows, client, options, session, lambda new: after(new, before))
    _amend(number, client, options, session)
    return [*rows, *rows_of(jobs, first)]


def _amend(number: int, client: Client, options: Options, session: Session) -> None:
    """What is asked for beside the file, for a batch that is under way: applied, or named as without effect."""
    before = (session.reader.batch(number) or {}).get("policy") or {}
    new = {field: value for field, value in options.rules.items() if before.get(field) != value}
    if new:
        client.call("amend", batch=number, policy={**before, **new})
        rules = ", ".join(f"{field} {value if value is not True else 'true'}" for field, value in new.items())
        session.tell("other_rules", batch=number, rules=rules)
    idle = options.for_new_batches()
    if idle:
        session.tell("no_effect", options=", ".join(map(session.spelled, idle)), batch=number)


def submitted(
    batch: dict[str, Any], selection: Selection, jobs: list[dict[str, Any]], options: Options, session: Session,
    owner: list[int] | None,
) -> tuple[int, list[dict[str, Any]]]:  # fmt: skip
    """As a new batch: its number and rows."""
    request = prepared(batch, jobs, options, session)
    request["batch"]["owner"] = owner
    request["batch"]["about"]["whole"] = len(jobs) == len(selection.jobs)
    anew = "The same command attaches to it again"
    answer = sent(session, {**request, "strict": options.strict}, again=anew, devices=options.devices)
    warn_never(answer, session)
    return answer["batch"], rows_of(jobs, answer["ids"][0])


def rows_of(jobs: list[dict[str, Any]], first: int) -> list[dict[str, Any]]:
    """The new jobs as the store will show them, without asking it."""
    return [
        {"id": first + k, "name": job["name"], "state": "queued", "gpus": [], "started_at": None,
         **({"state": "skipped", "reason": done_before(job["done_by"])} if job.get("done_by") else {})}
        for k, job in enumerate(jobs)
    ]  # fmt: skip


def after(jobs: list[dict[str, Any]], before: Sequence[int]) -> list[dict[str, Any]]:
    """The jobs, each waiting for all of these."""
    if len(jobs) * len(before) > MAX_LINKS:
        raise Usage("suites of so many jobs cannot be submitted at once to run one after another: leave out --detach")
    links = [["job", id, True] for id in before]
    return [job if job.get("done_by") else {**job, "needs": [*job["needs"], *links]} for job in jobs] if links else jobs
