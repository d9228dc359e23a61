"""Runs grouped by everything but the seed, and what their values amount to (SPEC B11). Pure.

Rules: every run that is given in comes out, as a value in a group or in the list of what is missing, with the reason. Means are
over runs that count; the deviation is that of a sample (n - 1), 0 for a single run. What was computed twice, with the same
parameters and the same seed, counts once: the newest.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jostle.errors import Usage
from jostle.experiments.absence import Absence

LESS_IS_BETTER = re.compile(r"\b(?:loss|err|error|perplexity|ppl|rmse|mse|mae|nll|fid|time|seconds|latency)\b", re.IGNORECASE)
NO_VALUE = Absence("no_value")
DATA_SET = re.compile(r"(?:.*[./_])?data(?:_?set)?(?:[./_]name)?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One run, or the log of one."""

    label: str  # what people know it by: `job 12 (CIFAR100_FedAvg_seed42)`, or the path of a log
    params: Mapping[str, str]
    log: str | None = None
    job: int | None = None
    run: int | None = None
    state: str | None = None  # of the job; None: nobody knows more than the log
    why_not: Absence | None = None  # why its values do not count; None: they do
    age: tuple[float, ...] = ()  # larger is newer; trials of one age never replace each other
    chain: int | None = None  # the first of those that retry each other
    values: Mapping[str, float] = field(default_factory=dict)
    problems: Mapping[str, Absence] = field(default_factory=dict)  # metric -> why there is no value
    notes: tuple[Absence, ...] = ()
    code: str = ""  # what it ran, as far as anybody knows: `a1b2c3d with changes`


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    trial: Trial
    metric: str | None  # None: all of them
    why: Absence


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One metric of one group."""

    trials: tuple[Trial, ...]
    values: tuple[float, ...]
    mean: float
    std: float
    best: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    params: Mapping[str, str]
    runs: int  # that should have a value, those that are missing included
    cells: Mapping[str, Cell]  # a metric without any value is not in it


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    keys: tuple[str, ...]  # what the groups differ in, or could
    seed_keys: tuple[str, ...]
    metrics: Mapping[str, str]  # name -> max | min
    groups: tuple[Group, ...]
    missing: tuple[Missing, ...]
    notes: tuple[Absence, ...]
    across: str | None = None

    @property
    def counted(self) -> int:
        return sum(len(cell.values) for group in self.groups for cell in group.cells.values())


def summary(
    trials: Sequence[Trial],
    metrics: Sequence[str],
    *,
    seed_keys: Sequence[str] = ("seed",),
    by: Sequence[str] | None = None,
    best: Mapping[str, str] | None = None,
    across: str | None = None,
    decimals: int = 2,
) -> Summary:
    """`by`: the keys to group by, instead of all but the seed; `across`: the best is sought for each value of this key;
    `decimals`: as many as are shown, and compared."""
    params = tuple(dict.fromkeys(key for trial in trials for key in trial.params))
    for key in (*(by or ()), *([across] if across else ())):
        if key not in params:
            raise Usage(f"no run has a parameter {key!r}; they have {', '.join(params) or 'none'}")
    keys = tuple(by) if by is not None else tuple(key for key in params if key not in seed_keys)
    if across and across not in keys:
        raise Usage(f"--across {across}: the runs are not grouped by it, but by {', '.join(keys) or 'nothing'}")
    counted, replaced = newest(trials, seed_keys)
    missing = list(replaced)
    gathered: dict[tuple[str | None, ...], list[Trial]] = {}
    for trial in counted:
        gathered.setdefault(tuple(trial.params.get(key) for key in keys), []).append(trial)
        missing += lacking(trial, metrics)
    directions = {name: (best or {}).get(name) or direction(name) for name in metrics}
    groups = [_group(members, keys, metrics) for members in gathered.values()]
    notes = (*(note for trial in counted for note in trial.notes), *codes(groups))
    return Summary(
        keys=keys, seed_keys=tuple(key for key in seed_keys if key in params), metrics=directions,
        groups=tuple(marked(groups, directions, rivals(keys, across), decimals)), missing=tuple(missing), notes=notes,
        across=across,
    )  # fmt: skip


def direction(metric: str) -> str:
    """Whether more or less of it is better, as its name has it."""
    return "min" if LESS_IS_BETTER.search(metric.replace("_", " ")) else "max"


def newest(trials: Sequence[Trial], seed_keys: Sequence[str]) -> tuple[list[Trial], list[Missing]]:
    """Without what was computed again later; where no seed tells runs apart, each is one of its own."""
    latest: dict[Any, Trial] = {}
    for trial in trials:
        work = _work(trial, seed_keys)
        if work is not None and (work not in latest or _rank(trial) > _rank(latest[work])):
            latest[work] = trial
    counted, replaced = [], []
    for trial in trials:
        winner = latest.get(_work(trial, seed_keys), trial)
        if winner is trial or _rank(winner) == _rank(trial):
            counted.append(trial)
        else:
            why = (
                Absence("instead", why=trial.why_not.plain(), winner=winner.label) if trial.why_not
                else Absence("again", winner=winner.label)
            )  # fmt: skip
            replaced.append(Missing(trial=trial, metric=None, why=why))
    return counted, replaced


def _work(trial: Trial, seed_keys: Sequence[str]) -> Any:
    """What it computes; None: nothing that another one could have computed."""
    if any(key in trial.params for key in seed_keys):
        return tuple(sorted(trial.params.items()))
    return trial.chain


def _rank(trial: Trial) -> tuple[bool, tuple[float, ...]]:
    """One that counts stands above one that does not: a rerun that failed takes nothing away."""
    return not trial.why_not, trial.age


def lacking(trial: Trial, metrics: Sequence[str]) -> list[Missing]:
    if trial.why_not:
        return [Missing(trial=trial, metric=None, why=trial.why_not)]
    lost = [name for name in metrics if name not in trial.values]
    whys = {trial.problems.get(name, NO_VALUE) for name in lost}
    if len(lost) == len(metrics) and len(whys) == 1:
        return [Missing(trial=trial, metric=None, why=whys.pop())]
    return [Missing(trial=trial, metric=name, why=trial.problems.get(name, NO_VALUE)) for name in lost]


def _group(members: Sequence[Trial], keys: Sequence[str], metrics: Sequence[str]) -> Group:
    cells = {}
    for name in metrics:
        counted = [trial for trial in members if not trial.why_not and name in trial.values]
        if counted:
            values = [trial.values[name] for trial in counted]
            cells[name] = Cell(trials=tuple(counted), values=tuple(values), mean=mean(values), std=std(values))
    params = {key: members[0].params[key] for key in keys if key in members[0].params}
    return Group(params=params, runs=len(members), cells=cells)


def codes(groups: Iterable[Group]) -> list[Absence]:
    """A note, if what counts was not all done by the same code."""
    trials = {id(trial): trial for group in groups for cell in group.cells.values() for trial in cell.trials}
    runs_of = Counter(trial.code for trial in trials.values() if trial.code)
    listed = ", ".join(f"{code} ({n})" for code, n in runs_of.most_common())
    return [Absence("codes", codes=listed)] if len(runs_of) > 1 else []


def rivals(keys: Sequence[str], across: str | None) -> tuple[str, ...]:
    """The keys that groups must have in common for one of them to be the best: values of two data sets cannot be compared. Where
    no key is called so, the config file stands for it."""
    data = [key for key in keys if DATA_SET.fullmatch(key)] or [key for key in keys if key == "config"]
    return tuple(dict.fromkeys([*([across] if across else []), *data]))


def marked(groups: Iterable[Group], directions: Mapping[str, str], within: Sequence[str], decimals: int) -> list[Group]:
    """With the best mean of each metric marked, among groups that have these keys in common. Means that look the same are the
    same: all of them are the best, and where all are equal none is, nor the only one there is."""
    listed = list(groups)
    for name, way in directions.items():
        fields: dict[tuple[str | None, ...], list[float]] = {}
        for group in listed:
            if name in group.cells:
                fields.setdefault(tuple(map(group.params.get, within)), []).append(round(group.cells[name].mean, decimals))
        for k, group in enumerate(listed):
            rivals = fields.get(tuple(map(group.params.get, within)), [])
            if name in group.cells and len(set(rivals)) > 1:
                cell = group.cells[name]
                is_best = round(cell.mean, decimals) == (max(rivals) if way == "max" else min(rivals))
                listed[k] = replace(group, cells={**group.cells, name: replace(cell, best=is_best)})
    return listed


# --- numbers


def mean(values: Sequence[float]) -> float:
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # of the sum, not of the mean
        return math.fsum(value / len(values) for value in values)


def std(values: Sequence[float]) -> float:
    """Of a sample: n - 1; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    centre = mean(values)
    deviations = [value - centre for value in values]
    try:
        # the second part is what rounding the mean has added: equal values deviate by nothing
        squares = math.fsum(deviation * deviation for deviation in deviations) - math.fsum(deviations) ** 2 / len(values)
    except OverflowError:
        return math.inf
    return math.sqrt(max(0.0, squares) / (len(values) - 1))
