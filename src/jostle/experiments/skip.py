"""Which jobs of a batch run, and which are left: done before, or not failed (SPEC B7).

Rules: done is a recorded success of the same fingerprint whose log still exists, at the path that this job names (one that names
none: wherever the run that did it has its log), and that read what is there now (fresh.py); everything else runs, and so does
what comes after a job that runs. `redo` runs all, `redo_changed` also what other code did; `trust_logs` takes a log at the job's
place as done, whoever wrote it and however it ended; `only_failed` takes those whose newest run failed, done before or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.core.reasons import done_by
from jostle.core.states import RAN, SUCCEEDED
from jostle.store.reads import LastRun, RealPaths

LastRuns = Mapping[str, Sequence[LastRun]]
"""By fingerprint: the last run for each log, the newest first."""

Unchanged = Callable[[Mapping[str, Any], LastRun], bool]

RUN, DONE, LOGGED, NOT_FAILED = "run", "done", "log", "not_failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    what: str  # RUN | DONE: recorded as skipped | LOGGED, NOT_FAILED: left out of the batch
    by: tuple[int, int] | None = None  # the job and run that did it
    code: tuple[str, str] | None = None  # what code did it, and what code there is now, where they differ


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    redo: bool = False
    redo_changed: bool = False
    trust_logs: bool = False
    only_failed: bool = False


def judged(
    jobs: Sequence[Mapping[str, Any]],
    rule: Rule,
    ran: LastRuns,
    failed: frozenset[str] = frozenset(),
    exists: Callable[[str], bool] = os.path.isfile,
    unchanged: Unchanged = lambda job, run: True,
    code: Callable[[LastRun], tuple[str, str] | None] = lambda run: None,
) -> list[Verdict]:
    """One verdict per job, in their order; `failed` are the names of those that failed when they last ran; `unchanged` says
    whether a run has read what its job is made of now, `code` whether its code was another than that of now."""
    if rule.only_failed:
        return [Verdict(what=RUN if job["name"] in failed else NOT_FAILED) for job in jobs]
    if rule.redo:
        return [Verdict(what=RUN)] * len(jobs)
    place = RealPaths()
    verdicts = []
    for job in jobs:
        good = [run for run in _own(job, ran, place) if run.outcome == SUCCEEDED and exists(run.log) and unchanged(job, run)]
        other = code(good[0]) if good else None
        if good and not (other and rule.redo_changed):
            verdicts.append(Verdict(what=DONE, by=good[0].id, code=other))
        elif rule.trust_logs and job["log"] and exists(job["log"]):
            verdicts.append(Verdict(what=LOGGED))
        else:
            verdicts.append(Verdict(what=RUN))
    _after_those_that_run(jobs, verdicts)
    return verdicts


def _own(job: Mapping[str, Any], ran: LastRuns, place: RealPaths) -> Sequence[LastRun]:
    """The runs that can stand for this job: what wrote the log that it names; of one that names none, what has a log of its own,
    else whatever computed the same."""
    runs = ran.get(job.get("fingerprint") or "", ())
    if job["log"]:
        return [run for run in runs if run.named and place(run.named) == place(job["log"])]
    return [run for run in runs if not run.named] or runs


def _after_those_that_run(jobs: Sequence[Mapping[str, Any]], verdicts: list[Verdict]) -> None:
    """What a job before it makes anew, a job must see anew; as `make` does."""
    followers: dict[int, list[int]] = {}
    for place, job in enumerate(jobs):
        for kind, at, _ in job["needs"]:
            if kind == "index":
                followers.setdefault(at, []).append(place)
    todo = [place for place, verdict in enumerate(verdicts) if verdict.what == RUN]
    while todo:
        for place in followers.get(todo.pop(), ()):
            if verdicts[place].what != RUN:
                verdicts[place] = Verdict(what=RUN)
                todo.append(place)


def taken(jobs: Sequence[Mapping[str, Any]], verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """The jobs to submit: those that run, and those that are recorded as done. Whoever came after one that is left out need not
    wait for it."""
    places = [place for place, verdict in enumerate(verdicts) if verdict.what in (RUN, DONE)]
    new = {old: place for place, old in enumerate(places)}
    jobs_taken = []
    for old in places:
        job = dict(jobs[old])
        if job["needs"] and len(places) < len(jobs):
            job["needs"] = [
                [kind, new[at], any_end] if kind == "index" else [kind, at, any_end]
                for kind, at, any_end in job["needs"]
                if kind != "index" or at in new
            ]
        by = verdicts[old].by
        if by is not None:
            job["done_by"] = list(by)
        jobs_taken.append(job)
    return jobs_taken


def failed_names(batches: Iterable[Iterable[Mapping[str, Any]]], names: Iterable[str]) -> frozenset[str]:
    """The names of those that failed when they last ran; batches of rows come newest first, and only as far as needed."""
    open_names = set(names)
    failed = set()
    for rows in batches:
        newest = {row["name"]: row for row in rows if row["name"] in open_names and _tells(row)}
        failed |= {name for name, row in newest.items() if row["state"] == "failed"}
        open_names -= set(newest)
        if not open_names:
            break
    return frozenset(failed)


def _tells(row: Mapping[str, Any]) -> bool:
    """Whether a row says how the job does: a cancelled one, or one that another's failure kept from running, does not."""
    return row["state"] in RAN or done_by(row["state"], row["reason"]) is not None
