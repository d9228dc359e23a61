"""The `policy:` of a file: the rules of core.fields as people write them, with sizes and durations."""

from __future__ import annotations

from typing import Any

from jostle.core import kinds
from jostle.core.fields import RULES
from jostle.formats import spec
from jostle.formats.fields import retry
from jostle.formats.flaws import Findings
from jostle.formats.nodes import Map, Node, Scalar, Seq
from jostle.wording.flaws import flaw

KEYS = {field.key: field for field in RULES.values()}


def read(node: Node, file: Findings) -> dict[str, Any]:
    """The fields that the file sets; nothing stands for what it does not say."""
    if not isinstance(node, Map):
        file.wrong(node.line, flaw("value_shape", key="policy", shape=node.shape, expected="rules such as `gpu_left: 1`"))
        return {}
    policy: dict[str, Any] = {}
    for key, value in file.keys(node, tuple(KEYS), " in policy").items():
        field = KEYS[key]
        if isinstance(value, Scalar) and value.null:
            if field.default is None:  # no limit, all cards; of the others null says nothing
                policy[field.name] = None
        elif field.kind is kinds.INDICES:
            policy[field.name] = _gpus(value, file)
        elif field.kind is kinds.RETRY:
            policy[field.name] = retry(file, f"policy.{key}", value)
        else:
            policy[field.name] = file.checked(f"policy.{key}", value, spec.reader(field.kind))
    low, high = policy.get("min_gpu"), policy.get("max_gpu")
    if low is not None and high is not None and low > high:
        numbers = {"low_key": "policy: min_gpu", "low": low, "high_key": "max_gpu", "high": high}
        file.wrong(node.line, flaw("low_over_high", **numbers))
    return policy


def _gpus(node: Node, file: Findings) -> list[int]:
    """Indices, as a list or as `0-3,6`."""
    items = node.items if isinstance(node, Seq) else [node]
    indices: set[int] = set()
    for item in items:
        indices.update(file.checked("policy.gpus", item, spec.indices) or ())
    return sorted(indices)
