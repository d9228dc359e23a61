"""All combinations of a sweep (SPEC B10): the product of its axes, without what is excluded, with what is included.

Rules, those of GitHub's matrix: an axis is one key, or several that advance together. The first axis varies slowest. What is
excluded goes before anything is included. An inclusion is added to every combination of the product whose values it does not
contradict; if there is none, it is a combination of its own. Values are compared as they are written. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from jostle.formats.nodes import Scalar

Combination = dict[str, Scalar]
MANY = 1_000_000  # combinations of values that are excluded


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    keys: tuple[str, ...]
    values: tuple[tuple[Scalar, ...], ...]  # each as long as keys


def size(axes: Iterable[Axis]) -> int:
    """How many combinations the product has, before anything is excluded or included."""
    total = 1
    for axis in axes:
        total *= len(axis.values)
    return total


def expanded(
    axes: Sequence[Axis], exclude: Iterable[Mapping[str, Sequence[str]]] = (), include: Iterable[Combination] = ()
) -> list[Combination]:
    """The combinations in order. An exclusion names for some keys the texts (any of them) that do not go together."""
    keys = tuple(key for axis in axes for key in axis.keys)
    combinations: list[Combination] = []
    if axes:
        if all(len(axis.keys) == 1 for axis in axes):
            rows: Iterable[tuple[Scalar, ...]] = product(*([v for (v,) in axis.values] for axis in axes))
        else:
            rows = (sum(row, ()) for row in product(*(axis.values for axis in axes)))
        combinations = [dict(zip(keys, row, strict=True)) for row in rows]
    for names, exclusions in _excluded(exclude).items():
        if isinstance(exclusions, set):
            combinations = [row for row in combinations if tuple(row[name].text for name in names) not in exclusions]
        else:
            combinations = [
                row for row in combinations if not any(all(row[n].text in texts[n] for n in names) for texts in exclusions)
            ]
    return combinations + _include(combinations, frozenset(keys), include)


def _excluded(
    exclude: Iterable[Mapping[str, Sequence[str]]],
) -> dict[tuple[str, ...], set[tuple[str, ...]] | list[dict[str, frozenset[str]]]]:
    """Exclusions by the keys they name, so that each combination is looked up and not compared with all of them; only those
    that would be too many combinations themselves are compared, one by one."""
    by_keys: dict[tuple[str, ...], list[dict[str, frozenset[str]]]] = {}
    for exclusion in exclude:
        by_keys.setdefault(tuple(sorted(exclusion)), []).append({name: frozenset(texts) for name, texts in exclusion.items()})
    return {
        names: {texts for exclusion in listed for texts in product(*(exclusion[name] for name in names))}
        if sum(math.prod(map(len, exclusion.values())) for exclusion in listed) <= MANY
        else list({tuple(exclusion[name] for name in names): exclusion for exclusion in listed}.values())
        for names, listed in by_keys.items()
    }


def _include(combinations: list[Combination], keys: frozenset[str], include: Iterable[Combination]) -> list[Combination]:
    """Adds to the combinations that were found; answers with the new ones."""
    new: list[Combination] = []
    indices: dict[tuple[str, ...], dict[tuple[str, ...], list[Combination]]] = {}
    for inclusion in include:
        names = tuple(sorted(keys & inclusion.keys()))
        if names not in indices:
            index = indices[names] = {}
            for row in combinations:
                index.setdefault(tuple(row[name].text for name in names), []).append(row)
        matching = indices[names].get(tuple(inclusion[name].text for name in names), [])
        extra = {key: value for key, value in inclusion.items() if key not in keys}
        for row in matching:
            row.update(extra)
        if not matching:
            new.append(dict(inclusion))
    return new


def varying(rows: Sequence[Combination]) -> list[str]:
    """The keys in which the combinations differ, in their order."""
    first: dict[str, str] = {}
    differ: dict[str, bool] = {}
    for k, row in enumerate(rows):
        for key, value in row.items():
            if key not in first:
                first[key] = value.text
                differ[key] = k > 0
            elif value.text != first[key]:
                differ[key] = True
    for key in first:
        differ[key] = differ[key] or any(key not in row for row in rows)
    return [key for key, yes in differ.items() if yes]
