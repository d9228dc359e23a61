"""What a file says and batches of other files have done: `run` found nothing to do, so there is no batch of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jostle.errors import JostleError
from jostle.experiments import skip
from jostle.experiments.collect import named, of_job
from jostle.experiments.fingerprint import fingerprinted
from jostle.experiments.fresh import Unchanged
from jostle.experiments.grouping import Trial
from jostle.experiments.load import load

if TYPE_CHECKING:
    from jostle.store.reads import Reader


def done_elsewhere(
    reader: Reader, path: str, numbers: Iterable[int], names: re.Pattern[str]
) -> tuple[list[tuple[str | None, list[Trial]]], list[str]]:  # fmt: skip
    """Suites of a file (None: it is one) of which there is no batch, since other batches had done all they say: what these did.
    And the suites of which nothing was done."""
    found: list[tuple[str | None, list[Trial]]] = []
    never: list[str] = []
    there = {((reader.batch(number) or {}).get("about") or {}).get("suite") for number in numbers}
    try:
        batches = load([path])
    except JostleError:
        return found, never  # it is no such file, or no longer one
    if None in there:
        return found, never
    for batch in batches:
        suite = batch["about"]["suite"]
        if suite in there:
            continue
        trials = _done(reader, batch, names)
        if trials:
            found.append((suite, trials))
        else:
            never.append(suite or batch["name"] or path)
    return found, never


def _done(reader: Reader, batch: Mapping[str, Any], names: re.Pattern[str]) -> list[Trial]:
    """The jobs of a batch that was never submitted, as what they would be now; none, if not one of them was done."""
    fingerprinted(batch)
    done = reader.done(job["fingerprint"] for job in batch["jobs"])
    verdicts = skip.judged(batch["jobs"], skip.Rule(), done, unchanged=Unchanged.of(reader, done))
    found = []
    for job, verdict in zip(batch["jobs"], verdicts, strict=True):
        row = reader.job(verdict.by[0]) if verdict.by else None
        if row is None or verdict.by is None:
            params = job["params"] or named(job["name"], names)
            found.append(Trial(label=job["name"], params=params, why_not="has not run as the file says it now"))
            continue
        by = {"code": "done_before", "params": {"job": verdict.by[0], "run": verdict.by[1]}}
        row = {**row, "name": job["name"], "params": job["params"], "state": "skipped", "reason": by}
        found.append(of_job(reader, row, None, names, False))
    return found if any(verdict.by for verdict in verdicts) else []
