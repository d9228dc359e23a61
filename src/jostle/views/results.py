"""Metrics out of logs, over seeds: of batches, of files that were run, of logs that anybody wrote. Works without an engine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jostle.errors import NotFound
from jostle.experiments import asked, collect, grouping
from jostle.experiments.absence import NO_LINE
from jostle.experiments.metrics import Metric, parsed

if TYPE_CHECKING:
    from jostle.experiments.grouping import Summary, Trial
    from jostle.session import Session
    from jostle.store.reads import Reader


@dataclass(frozen=True, kw_only=True)
class ResultsQuery:
    """What to look for, where, and how to group it."""

    metrics: Sequence[Metric]
    targets: Sequence[str] = ()  # batches, files that were run, logs, folders; none: the newest batch with logs
    last: int = 1  # how many of the newest batches, at all or of each file
    names: re.Pattern[str] = re.compile(collect.NAMES)  # what the name of a log says
    tail: int | None = None  # bytes at the end of each log
    factors: Mapping[str, float] = field(default_factory=dict)
    any_state: bool = False
    seed_keys: Sequence[str] = ("seed",)
    by: Sequence[str] | None = None
    across: str | None = None
    best: Mapping[str, str] = field(default_factory=dict)
    decimals: int = 2  # that are shown


def query(words: Mapping[str, Any]) -> ResultsQuery:
    """The query as people write it, by option; Unfit if one is not understood."""
    metrics, decimals = parsed(words["metric"]), asked.number(words["decimals"], "decimals", 0, 15)
    names = [metric.name for metric in metrics]
    return ResultsQuery(
        metrics=metrics, targets=words["targets"], last=asked.number(words["last"] or "1", "last", 1, 10**9),
        names=asked.pattern(words["names"] or collect.NAMES), tail=asked.size(words["tail"]),
        factors=asked.scales(words["scale"], names), any_state=words["any_state"], seed_keys=asked.listed(words["seed_key"]),
        by=asked.listed(words["by"]) if words["by"] is not None else None, across=words["across"],
        best=asked.directions(words["best"], names), decimals=decimals,
    )  # fmt: skip


Note = tuple[str, dict[str, Any]]
"""A message: its code and its values."""


@dataclass
class Results:
    summary: Summary
    batches: list[int]  # whose jobs are in it
    notes: list[Note]  # about what was chosen

    def headings(self, reader: Reader, *, named: bool) -> list[Note]:
        """What is told before it. `named`: whoever asked knows which batches he named."""
        return [*self.notes, *(headline(reader, number) for number in (() if named else self.batches))]

    def advice(self, metrics: Sequence[str]) -> str:
        """Where no log has any line that was looked for, as these metrics say: a message how to look for another, or ""."""
        if self.summary.counted or not any(missing.why.code in NO_LINE for missing in self.summary.missing):
            return ""
        if not metrics:
            return "results_without_metric"
        return "" if any("=" in text for text in metrics) else "results_bare_metric"


def headline(reader: Reader, number: int) -> Note:
    """Which batch it is."""
    about = collect.headline(reader, number)
    name = ("results_name", {"name": about["name"]}) if about["name"] else ""
    ran = ("results_code", {"commit": about["code"]}) if about["code"] else ""
    return "results_batch", {**about, "name": name, "code": ran}


def results(session: Session, query: ResultsQuery) -> Results:
    chosen = _Chosen(session.reader, query)
    trials, _ = collect.measured(chosen.trials(), query.metrics, query.tail, query.factors)
    summary = grouping.summary(
        trials, [metric.name for metric in query.metrics], seed_keys=query.seed_keys, by=query.by, best=query.best,
        across=query.across, decimals=query.decimals,
    )  # fmt: skip
    return Results(summary, chosen.batches, chosen.notes)


class _Chosen:
    """The trials of what is named."""

    def __init__(self, reader: Reader, query: ResultsQuery) -> None:
        self.reader, self.query = reader, query
        self.batches: list[int] = []
        self.others: list[tuple[str | None, list[Trial]]] = []  # what other batches have done for a file
        self.logs: list[Trial] = []
        self.notes: list[Note] = []

    def trials(self) -> list[Trial]:
        if not self.query.targets:
            self.batches = collect.newest_batches(self.reader, self.query.last)
            if not self.batches:
                raise NotFound("there is no batch yet: `jostle run FILE` makes one, and `jostle results DIR` reads logs")
        for target in self.query.targets:
            self._take(target)
        done = collect.of_batches(self.reader, self.batches, self.query.names, self.query.any_state, self.others)
        return self.logs + done

    def _take(self, target: str) -> None:
        if target.isascii() and target.isdigit() and len(target) < 16 and not os.path.exists(target):
            self.batches.append(int(target))
        elif os.path.isdir(target):
            self.logs += collect.of_logs(target, self.query.names)
        elif self._take_file(target):
            if left := collect.left_behind(self.reader, target, self.query.last):
                self.notes.append(("results_left", {"file": target, "n": left, "last": self.query.last + 1}))
        elif not os.path.exists(target):
            raise NotFound(f"there is no batch, file or folder {target!r}")
        elif target.lower().endswith(collect.SPECS):
            raise NotFound(f"there is no batch of {target}, and none has done what it says: `jostle run {target}` makes one")
        else:
            self.logs += collect.of_logs(target, self.query.names)

    def _take_file(self, target: str) -> bool:
        """The batches of a file, and what other batches have done for it; False: nothing."""
        made = collect.batches_of_file(self.reader, target, self.query.last)
        if not os.path.isfile(target) or not target.lower().endswith(collect.SPECS):
            self.batches += made
            return bool(made)
        from jostle.experiments.otherbatches import done_by_other_batches

        work = done_by_other_batches(self.reader, target, made, self.query.names, instead=self.query.last == 1)
        self.batches += [number for number in made if number not in work.old]
        self.others += work.done
        self.notes += [("results_older", {"batch": number, "file": target}) for number in work.old]
        if work.never and (made or work.done):
            self.notes.append(("results_never", {"names": ", ".join(work.never), "file": target}))
        return bool(made or work.done)
