"""What a file says and batches of other files have done: `run` found nothing to do, so there is no batch of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jostle.core.reasons import done_before
from jostle.errors import JostleError
from jostle.experiments import skip
from jostle.experiments.absence import Absence
from jostle.experiments.collect import Codes, named, of_job
from jostle.experiments.fingerprint import fingerprinted
from jostle.experiments.fresh import Unchanged
from jostle.experiments.grouping import Trial
from jostle.experiments.load import load
from jostle.experiments.skip import DONE, Verdict

if TYPE_CHECKING:
    from jostle.store.reads import Reader


@dataclass(kw_only=True, slots=True)
class OtherBatches:
    done: list[tuple[str | None, list[Trial]]] = field(default_factory=list)  # by suite (None: the file is one)
    never: list[str] = field(default_factory=list)  # suites of which nothing was done
    old: list[int] = field(default_factory=list)  # batches of this file that are of another content than it has now


def done_by_other_batches(
    reader: Reader, path: str, numbers: Iterable[int], names: re.Pattern[str], *, instead: bool = True
) -> OtherBatches:  # fmt: skip
    """Of the suites of a file that have no batch among these, or one of other content (`instead` of which it counts), since other
    batches had done all they say: what these did."""
    others = OtherBatches()
    by_suite = {((reader.batch(number) or {}).get("about") or {}).get("suite"): number for number in numbers}
    try:
        batches = load([path])
    except JostleError:
        return others  # it is no such file, or no longer one
    if None in by_suite and (len(batches) > 1 or batches[0]["about"]["suite"] is not None):
        return others  # it had no suites then
    for batch in batches:
        suite = batch["about"]["suite"]
        verdicts = _verdicts(reader, batch)
        number = by_suite.get(suite)
        if number is None and not any(verdict.by for verdict in verdicts):
            others.never.append(suite or batch["name"] or path)
        elif number is None or (instead and _old(reader, number, batch, verdicts)):
            others.done.append((suite, _trials(reader, batch, verdicts, names)))
            others.old += [number] if number is not None else []
    return others


def _verdicts(reader: Reader, batch: Mapping[str, Any]) -> list[Verdict]:
    fingerprinted(batch)
    ran = reader.last_runs(job["fingerprint"] for job in batch["jobs"])
    return skip.judged(batch["jobs"], skip.Rule(), ran, unchanged=Unchanged())


def _old(reader: Reader, number: int, batch: Mapping[str, Any], verdicts: Iterable[Verdict]) -> bool:
    """Whether the file says other jobs than this batch of it has, and all of them are done. (Of a file that was edited but not
    run yet, the batch is what there is.)"""
    now = {job["fingerprint"] for job in batch["jobs"]}
    then = {row["fingerprint"] for row in reader.jobs(batch=number)}
    return None not in then and not then <= now and not now <= then and all(verdict.what == DONE for verdict in verdicts)


def _trials(
    reader: Reader, batch: Mapping[str, Any], verdicts: Iterable[Verdict], names: re.Pattern[str]
) -> list[Trial]:  # fmt: skip
    """The jobs of a batch that was never submitted, as what they would be now."""
    trials, codes = [], Codes(reader)
    for job, verdict in zip(batch["jobs"], verdicts, strict=True):
        row = reader.job(verdict.by[0]) if verdict.by else None
        if row is None or verdict.by is None:
            params = job["params"] or named(job["name"], names)
            trials.append(Trial(label=job["name"], params=params, why_not=Absence("not_as_now")))
            continue
        row = {**row, "name": job["name"], "params": job["params"], "state": "skipped", "reason": done_before(verdict.by)}
        trials.append(of_job(reader, row, None, names, False, codes))
    return trials
