"""The runs whose results are wanted: jobs of a batch with the logs of their newest run, or a folder of logs that anybody wrote.

Rules: nothing is left out. A job that has not succeeded is there with the reason why it does not count; one that was skipped
because its work was done before has the log of the run that did it. The seed of logs we know nothing of is in their names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

from jostle.backends.local.outside import runs_of
from jostle.core.reasons import done_by
from jostle.core.states import DROPPED, FINAL
from jostle.errors import JostleError, NotFound
from jostle.experiments import code
from jostle.experiments.absence import Absence
from jostle.experiments.grouping import Trial
from jostle.experiments.metrics import LogReading, Metric, read
from jostle.wording.flaws import flaw

if TYPE_CHECKING:
    from jostle.store.reads import Reader

NAMES = r"(?P<config>.+?)_(?P<algorithm>[A-Za-z0-9]+)_seed(?P<seed>\d+)"
LOGS = (".log",)
OTHER_LOGS = (".out", ".jsonl", ".txt")  # taken where there is no .log
SPECS = (".yaml", ".yml", ".json", ".toml")
SLACK = 2.0  # s by which the clocks of a file system and ours may differ


# --- which batches


def batches_of_file(reader: Reader, path: str, count: int = 1) -> list[int]:
    """The newest batches that were made of this file, so many of each of its suites."""
    real = os.path.realpath(path)
    by_suite: dict[str | None, list[int]] = {}
    for batch in reversed(reader.batches()):
        lines = (batch["key"] or "").partition(":")[2].split("\n")
        about = (reader.batch(batch["id"]) or {}).get("about") or {}
        if real not in lines and os.path.realpath(about.get("file") or "/") != real:
            continue
        suite = about.get("suite")
        if by_suite and (suite is None) != (None in by_suite):
            break  # the file had suites, or had none, in another time
        by_suite.setdefault(suite, []).append(batch["id"])
    return sorted(id for ids in by_suite.values() for id in ids[:count])


def left_behind(reader: Reader, path: str, count: int) -> int:
    """How many jobs the batch before has that the chosen ones lack: `run --only-failed` makes a batch of a few."""
    chosen, more = batches_of_file(reader, path, count), batches_of_file(reader, path, count + 1)
    names = {row["name"] for batch in chosen for row in reader.jobs(batch=batch)}
    older = {row["name"] for batch in more if batch not in chosen for row in reader.jobs(batch=batch)}
    return len(older - names)


def newest_batches(reader: Reader, count: int) -> list[int]:
    """The newest that have logs, but for the standing one of `add` (which is taken if there is no other); or else the newest."""
    newest_first = list(reversed(reader.batches()))
    submitted = [batch["id"] for batch in newest_first if batch["key"] != "add"]
    for numbers in (submitted, [batch["id"] for batch in newest_first]):
        logged = list(islice((number for number in numbers if _has_logs(reader, number)), count))
        if logged:
            return sorted(logged)
    return sorted((submitted or [batch["id"] for batch in newest_first])[:count])


def _has_logs(reader: Reader, number: int) -> bool:
    return any(map(os.path.exists, reader.logs(number)))


class Codes:
    """Which code the run of a job had, by its batch."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._shown: dict[int, str] = {}

    def of_batch(self, number: int) -> str:
        if number not in self._shown:
            recorded = code.recorded((self._reader.batch(number) or {}).get("about"))
            self._shown[number] = code.shown(recorded) if recorded else ""
        return self._shown[number]

    def of_job(self, id: int) -> str:
        row = self._reader.job(id)
        return self.of_batch(row["batch"]) if row else ""


def headline(reader: Reader, number: int) -> dict[str, Any]:
    """What a batch is: its number, what it was made of, how many jobs, and its code."""
    batch = reader.batch(number) or {}
    about = batch.get("about") or {}
    name = os.path.basename(about.get("file") or "") or batch.get("name") or ""
    name += f" {about['suite']}" if about.get("suite") else ""
    return {"batch": number, "name": name, "n": sum(reader.counts(number).values()), "code": Codes(reader).of_batch(number)}


# --- jobs


def of_batches(
    reader: Reader, numbers: Iterable[int], names: re.Pattern[str], anyhow: bool = False,
    unsubmitted: Sequence[tuple[str | None, Sequence[Trial]]] = (),
) -> list[Trial]:  # fmt: skip
    """The suite is a parameter where there are several; `unsubmitted` are those that have no batch."""
    by_batch = {number: of_batch(reader, number, names, anyhow) for number in dict.fromkeys(numbers)}
    suites = {number: ((reader.batch(number) or {}).get("about") or {}).get("suite") for number in by_batch}
    all_of = [*((suites[number], trials) for number, trials in by_batch.items()), *unsubmitted]
    several = len({suite for suite, _ in all_of}) > 1
    return [
        replace(trial, params={**({"suite": suite} if several and suite else {}), **trial.params})
        for suite, trials in all_of
        for trial in trials
    ]


def of_batch(reader: Reader, number: int, names: re.Pattern[str], anyhow: bool = False) -> list[Trial]:
    """`anyhow`: what a failed or unfinished run has printed counts, too."""
    if reader.batch(number) is None:
        raise NotFound(flaw("no_batch", number=number))
    rows = reader.jobs(batch=number)
    chains, codes = _chains(rows), Codes(reader)
    return [of_job(reader, row, chains.get(row["id"]), names, anyhow, codes) for row in rows]


def _chains(rows: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Of jobs that retry each other: the first of them."""
    first: dict[int, int] = {}
    for row in rows:
        if row["retry_of"] is not None:
            root = first.setdefault(row["retry_of"], row["retry_of"])
            first[row["id"]] = root
    return first


def of_job(
    reader: Reader, row: Mapping[str, Any], chain: int | None, names: re.Pattern[str], anyhow: bool, codes: Codes
) -> Trial:  # fmt: skip
    by = done_by(row["state"], row["reason"])
    job, number = (int(by["job"]), by["run"]) if by else (int(row["id"]), None)
    runs = runs_of(reader, job) if by or row["attempt"] else []
    run = next((r for r in reversed(runs) if number is None or r["n"] == number), None)
    counts = row["state"] == "succeeded" or bool(by)
    why_not = None if counts or (anyhow and run) else _state(row)
    log = (_log(run) if run else None) or (row["log"] if by else None)
    if not why_not and log is None:
        why_not = Absence("no_record")
    return Trial(
        label=f"job {row['id']} ({row['name']})", params=row["params"] or named(row["name"], names), log=log,
        job=row["id"], run=run["n"] if run and not by else None, state=row["state"], why_not=why_not,
        age=(row["batch"], row["id"] if chain not in (None, row["id"]) else 0), chain=chain,
        notes=(Absence("anyhow", job=row["id"], state=row["state"]),) if anyhow and not counts and run else (),
        code=codes.of_job(job) if by else codes.of_batch(row["batch"]),
    )  # fmt: skip


def _state(row: Mapping[str, Any]) -> Absence:
    state = str(row["state"])
    if state == "failed":
        if row["error_type"]:
            return Absence("failed_as", error_type=row["error_type"])
        return Absence("failed") if row["exit_code"] is None else Absence("failed_with", exit_code=row["exit_code"])
    if state in DROPPED:
        code = (row["reason"] or {}).get("code")
        return Absence("dropped_for", state=state, reason=code) if code else Absence("dropped", state=state)
    return Absence("unfinished", state=state)


def _log(run: Mapping[str, Any]) -> str:
    """Where the log of this run lies now: a later run with the same path puts older ones aside as PATH.1, PATH.2, …"""
    path = str(run["log"])
    if run["ended_at"] is None:
        return path
    try:
        if os.stat(path).st_mtime <= run["ended_at"] + SLACK:
            return path
        n = 1
        while True:
            aside = os.stat(f"{path}.{n}").st_mtime
            if (run["started_at"] or 0) - SLACK <= aside <= run["ended_at"] + SLACK:
                return f"{path}.{n}"
            n += 1
    except OSError:
        return path


def named(name: str, names: re.Pattern[str]) -> dict[str, str]:
    """The parameters that a name tells; at least itself."""
    match = names.match(name)
    if match is None:
        return {"name": name}
    by_number = {number: key for key, number in names.groupindex.items()}
    return {by_number.get(k, f"part{k}"): text for k, text in enumerate(match.groups(), 1) if text is not None}


# --- logs of others


def of_logs(path: str, names: re.Pattern[str]) -> list[Trial]:
    """A log, or all those in a folder and below it; the folder is a parameter where there are several."""
    if not os.path.isdir(path):
        return [_of_file(path, "", names)]
    files = list(_files(path))
    chosen = [f for f in files if f.endswith(LOGS)] or [f for f in files if f.endswith(OTHER_LOGS)]
    if not chosen:
        raise NotFound(f"there are no logs in {path}; expected files that end in {', '.join((*LOGS, *OTHER_LOGS))}")
    folders = {os.path.dirname(file) for file in chosen}
    several = len(folders) > 1
    return in_order(_of_file(file, os.path.relpath(os.path.dirname(file), path) if several else "", names) for file in chosen)


def _files(path: str) -> Iterator[str]:
    def stop(e: OSError) -> None:
        raise JostleError(f"{e.filename} cannot be read: {e.strerror}")

    for folder, _, files in os.walk(path, onerror=stop):
        yield from (os.path.join(folder, file) for file in files)


def _of_file(path: str, folder: str, names: re.Pattern[str]) -> Trial:
    stem = os.path.splitext(os.path.basename(path))[0]
    params = {**({"folder": folder} if folder else {}), **named(stem, names)}
    try:
        age = (os.stat(path).st_mtime,)
    except OSError:
        age = (0.0,)
    return Trial(label=path, params=params, log=path, age=age)


def in_order(trials: Iterable[Trial]) -> list[Trial]:
    """By their parameters, for nobody wrote down an order: 1e-5 before 1e-4, V7 before V14."""
    return sorted(trials, key=lambda trial: [natural(value) for value in trial.params.values()])


def natural(text: str) -> list[tuple[float, str]]:
    try:
        value = float(text)
    except ValueError:
        return [(-1.0, part) if k % 2 == 0 else (float(part), "") for k, part in enumerate(re.split(r"(\d+)", text))]
    return [(value if value == value else -2.0, text)]


# --- values


def measured(
    trials: Iterable[Trial], metrics: Sequence[Metric], tail: int | None = None, scale: Mapping[str, float] | None = None
) -> tuple[list[Trial], int]:  # fmt: skip
    """The trials with what their logs say (times the scale of each metric), and how many bytes were read for it."""
    readings: dict[str, LogReading | Absence] = {}
    filled = []
    for trial in trials:
        if trial.log is None or trial.why_not:
            filled.append(trial)
            continue
        if trial.log not in readings:
            try:
                readings[trial.log] = read(trial.log, metrics, tail)
            except OSError as e:
                readings[trial.log] = Absence("unreadable", path=trial.log, why=e.strerror)
        filled.append(_scaled(_with(trial, readings[trial.log], metrics), scale or {}))
    return filled, sum(reading.bytes_read for reading in readings.values() if isinstance(reading, LogReading))


def _scaled(trial: Trial, scale: Mapping[str, float]) -> Trial:
    """In decimal: 0.07 times 100 is 7, and not 7.000000000000001."""
    values = {
        name: float(Decimal(repr(value)) * Decimal(repr(scale[name]))) if name in scale else value
        for name, value in trial.values.items()
    }
    return replace(trial, values=values) if scale else trial


def _with(trial: Trial, reading: LogReading | Absence, metrics: Sequence[Metric]) -> Trial:
    if isinstance(reading, Absence):
        return replace(trial, problems={metric.name: reading for metric in metrics})
    notes = list(trial.notes)
    if trial.state not in FINAL:
        notes += [Absence("cut", label=trial.label, metric=name) for name in sorted(reading.cut & set(reading.values))]
    return replace(trial, values=reading.values, problems=reading.problems, notes=tuple(notes))
