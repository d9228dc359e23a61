"""The `policy:` of a file: the rules of core.model.Policy as people write them, with sizes and durations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from jostle import units
from jostle.core.model import Policy
from jostle.formats import spec
from jostle.formats.fields import retry, truth
from jostle.formats.flaws import Findings
from jostle.formats.nodes import Map, Node, Scalar, Seq


def _choice(text: str) -> str:
    from jostle.core.fit import CHOICES

    return spec.one_of(text, tuple(CHOICES))


def _percent(text: str) -> int:
    return spec.whole(text.removesuffix("%"), 0, 100)


def _size(text: str) -> int:
    return 0 if text.strip() == "0" else units.size_mib(text)


def _from_one(text: str) -> int:
    return spec.whole(text, 1)


def _cards(text: str) -> int:
    return spec.whole(text, 0, units.MAX_GPUS)


def _indices(text: str) -> list[int]:
    found = units.numbers(text)
    if not found or max(found) > units.MAX_GPUS:
        raise ValueError("indices of GPUs such as 0-3,6")
    return found


# key in the file: (field of Policy, check)
RULES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "gpu_left": ("gpu_left", _cards),
    "min_gpu": ("min_gpu", _cards),
    "max_gpu": ("max_gpu", _cards),
    "share": ("share", truth),
    "min_free": ("min_free_mib", _size),
    "max_utilization": ("max_utilization", _percent),
    "idle_for": ("idle_for", units.seconds),
    "strangers": ("strangers", lambda text: spec.one_of(text, ("avoid", "share"))),
    "small": ("small_mib", _size),
    "small_for": ("small_for", units.seconds),
    "own_processes": ("own_processes", lambda text: spec.one_of(text, ("avoid", "ignore"))),
    "choice": ("choice", _choice),
    "order": ("order", lambda text: spec.one_of(text, ("file", "random", "gpus-desc"))),
    "max_concurrent": ("max_concurrent", _from_one),
    "start_interval": ("start_interval", units.seconds),
    "max_wait": ("max_wait", units.seconds),
    "reserve_after": ("reserve_after", units.seconds),
    "margin": ("margin_mib", _size),
    "on_failure": ("on_failure", lambda text: spec.one_of(text, ("continue", "stop"))),
    "command_limit": ("command_limit", spec.time_limit),
}


NONE_MEANS = frozenset(f.name for f in fields(Policy) if f.default is None)
"""Rules that `null` says something about: no limit, all cards. Of the others it says nothing."""


def read(node: Node, file: Findings) -> dict[str, Any]:
    """The fields that the file sets; nothing stands for what it does not say."""
    if not isinstance(node, Map):
        file.wrong(node.line, f"policy: {node.shape}; expected rules such as `gpu_left: 1`")
        return {}
    policy: dict[str, Any] = {}
    for key, value in file.keys(node, ("gpus", "retry", *RULES), " in policy").items():
        if isinstance(value, Scalar) and value.null:
            policy |= {field: None for field in (RULES.get(key, (key,))[0],) if field in NONE_MEANS}
            continue
        if key == "gpus":
            policy["gpus"] = _gpus(value, file)
        elif key == "retry":
            policy["retry"] = retry(file, "policy.retry", value)
        else:
            field, check = RULES[key]
            policy[field] = file.checked(f"policy.{key}", value, check)
    low, high = policy.get("min_gpu"), policy.get("max_gpu")
    if low is not None and high is not None and low > high:
        file.wrong(node.line, f"policy: min_gpu {low} is more than max_gpu {high}; expected the smaller number first")
    return policy


def _gpus(node: Node, file: Findings) -> list[int]:
    """Indices, as a list or as `0-3,6`."""
    items = node.items if isinstance(node, Seq) else [node]
    found: set[int] = set()
    for item in items:
        found.update(file.checked("policy.gpus", item, _indices) or ())
    return sorted(found)
