"""How the fields of a job (core.fields) lie in its row: most in a column of their name, lists and objects as JSON. A further
field is a column of its name in schema.sql."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from jostle.core import kinds
from jostle.core.fields import JOB

dumped = json.JSONEncoder(check_circular=False).encode

OTHERWISE = {"gpus": ("gpus_min", "gpus_max"), "on": ("targets",), "begin": ("begin_at",), "needs": (), "done_by": ()}
WITH_THEIR_BATCH = ("gpus", "begin", "needs", "done_by", "queue", "intent")  # what store.jobs works out itself
AS_JSON = frozenset({"commands", "env", "retry", "labels", "targets", "values", "inputs", "counters", "process"})  # kinds

KEPT = {field.name: OTHERWISE.get(field.name, (field.name,)) for field in JOB.values() if not field.into}
_OWN = [JOB[name] for name in KEPT if name not in WITH_THEIR_BATCH]
_PLAIN = [field.name for field in _OWN if field.kind.name not in AS_JSON]
_JSON = [field.name for field in _OWN if field.kind.name in AS_JSON]
_DEFAULTS = [JOB[name].default for name in _JSON]
_EMPTY = ["[]" if name == "commands" else None if (default := JOB[name].default) is None else dumped(default) for name in _JSON]
OWN = tuple(KEPT[name][0] for name in (*_PLAIN, *_JSON))
"""Columns that are filled from a job as it was submitted."""

_SHAPE = sorted((field for field in JOB.values() if field.shape), key=lambda field: field.shape)
SHAPE = tuple(column for field in _SHAPE for column in KEPT[field.name])
"""The parts of a shape's key, between the batch and the cards to avoid."""
_AT = next(k for k, field in enumerate(_SHAPE) if field.name == "gpus")
_TRUTHS = frozenset(column for field in _SHAPE if field.kind is kinds.TRUTH for column in KEPT[field.name])
_LISTS = frozenset(column for field in _SHAPE if field.kind.name in AS_JSON for column in KEPT[field.name])

_shape = itemgetter(*(field.name for field in _SHAPE))


def own(job: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of OWN."""
    value_of = job.get  # what only programs say need not be there
    listed = zip(map(value_of, _JSON), _DEFAULTS, _EMPTY, strict=True)  # most of 10,000 jobs have the very default
    return *map(value_of, _PLAIN), *[
        dumped(value) if value and value is not default else empty for value, default, empty in listed
    ]


def shape(job: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of SHAPE, of a job that is submitted."""
    parts = _shape(job)
    return *parts[:_AT], *parts[_AT], *[_kept(part) if isinstance(part, list | dict) else part for part in parts[_AT + 1 :]]


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


def changed(name: str, value: Any) -> tuple[str, tuple[Any, ...]]:
    """`column = ?, …` for a new value of a field, and what is put in."""
    columns = KEPT[name]
    values = (dumped(value),) if JOB[name].kind.name in AS_JSON else tuple(value) if len(columns) > 1 else (value,)
    return ", ".join(f"{column} = ?" for column in columns), values
