"""How the fields of a job (core.fields) lie in its row: most in a column of their name, lists and objects as JSON. A further
field needs a column of its name (CONTRIBUTING.md: a column)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from jostle.core import kinds
from jostle.core.fields import JOB, Field

dumped = json.JSONEncoder(check_circular=False).encode

OTHERWISE = {"gpus": ("gpus_min", "gpus_max"), "on": ("targets",), "begin": ("begin_at",), "needs": (), "done_by": ()}
WITH_THEIR_BATCH = ("gpus", "begin", "needs", "done_by", "queue", "intent")  # what store.jobs works out itself
LISTS, MAPPINGS = ("commands", "labels", "targets", "inputs", "process"), ("env", "retry", "values", "counters")
AS_JSON = {**dict.fromkeys(LISTS, "["), **dict.fromkeys(MAPPINGS, "{")}
"""Kinds of which a text is kept, and how it begins."""

KEPT = {field.name: OTHERWISE.get(field.name, (field.name,)) for field in JOB.values() if not field.into}
JSON_COLUMNS = {KEPT[name][0]: AS_JSON[JOB[name].kind.name] for name in KEPT if JOB[name].kind.name in AS_JSON and KEPT[name]}
_OWN = {KEPT[name][0]: JOB[name] for name in KEPT if name not in WITH_THEIR_BATCH}
OWN = tuple(_OWN)
"""Columns that are filled from a job as it was submitted."""


_SHAPE = sorted((field for field in JOB.values() if field.shape), key=lambda field: field.shape)
SHAPE = tuple(column for field in _SHAPE for column in KEPT[field.name])
"""The parts of a shape's key, between the batch and the cards to avoid."""
_TRUTHS = frozenset(column for field in _SHAPE if field.kind is kinds.TRUTH for column in KEPT[field.name])
_LISTS = frozenset(column for field in _SHAPE if field.kind.name in AS_JSON for column in KEPT[field.name])


def own(jobs: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """The columns OWN of jobs that are submitted: those in which one differs from the default, by their values, and the others,
    by what stands in a statement. Most of 10,000 jobs say little, and a value that is bound costs more than all else in a row."""
    differing: dict[str, list[Any]] = {}
    same: dict[str, str] = {}
    for column, field in _OWN.items():
        values = _column(jobs, field)
        if values is None:
            same[column] = _literal(field)
        elif field.kind.name in AS_JSON:
            empty = _empty(field)
            differing[column] = [dumped(value) if value else empty for value in values]
        else:
            differing[column] = values
    return differing, same


def _column(jobs: Sequence[Mapping[str, Any]], field: Field) -> list[Any] | None:
    """What they say there; None: the default, all of them."""
    name, default = field.name, field.default
    values = [job.get(name, default) for job in jobs]  # what only programs say need not be there
    return None if values.count(default) == len(values) else values


def _empty(field: Field) -> str | None:
    """How a list or an object without content lies in its column."""
    return "[]" if field.name == "commands" else None if field.default is None else dumped(field.default)


def _literal(field: Field) -> str:
    """The default, as it stands in a statement."""
    value = _empty(field) if field.kind.name in AS_JSON else field.default
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "1", False: "0"}[value]
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def shapes(jobs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """The values of SHAPE, of each of jobs that are submitted."""
    columns: list[Iterable[Any]] = []
    for field in _SHAPE:
        values = _column(jobs, field) or repeat(field.default, len(jobs))
        if field.name == "gpus":
            columns += zip(*values, strict=True)
        else:
            columns.append(map(_kept, values) if field.kind.name in AS_JSON else values)
    return zip(*columns, strict=True)


def _kept(part: Any) -> tuple[Any, ...]:
    """A list or a mapping as a part of a key."""
    return tuple(sorted(part.items())) if isinstance(part, dict) else tuple(part)


def shape_of_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """The same, of what these columns hold."""
    return tuple(_part(column, value) for column, value in zip(SHAPE, row, strict=True))


def _part(column: str, value: Any) -> Any:
    return bool(value) if column in _TRUTHS else _kept(json.loads(value)) if column in _LISTS else value


def alike(parts: Sequence[Any]) -> dict[str, Any]:
    """What the jobs of a shape have in common, as a decision calls it, by the parts of its key; an older key has fewer."""
    known = dict(zip(SHAPE, parts, strict=False))
    if "targets" in known:
        known["on"] = tuple(known.pop("targets"))
    if "counters" in known:
        known["counters"] = tuple((name, amount) for name, amount in known["counters"])
    return known


TOGETHER = "commands, inside, queue, memory_mib, share, resize, gpus_min, gpus_max, env, targets"
"""Columns of what core.jobflaws looks at together."""


def together(row: Sequence[Any]) -> dict[str, Any]:
    """These fields of a job, as they were submitted."""
    commands, inside, queue, memory, share, resize, least, most, env, targets = row
    return {"commands": json.loads(commands), "inside": inside, "queue": queue, "memory_mib": memory, "share": bool(share),
            "resize": resize, "gpus": [least, most], "env": json.loads(env), "on": json.loads(targets)}  # fmt: skip


def changed(name: str, value: Any) -> tuple[str, tuple[Any, ...]]:
    """`column = ?, …` for a new value of a field, and what is put in."""
    columns = KEPT[name]
    values = (dumped(value),) if JOB[name].kind.name in AS_JSON else tuple(value) if len(columns) > 1 else (value,)
    return ", ".join(f"{column} = ?" for column in columns), values
