"""Whether a value is of a documented type, to the last key."""

import types
import typing
from collections.abc import Iterator
from typing import Any


def misfits(value: Any, kind: Any, where: str = "") -> Iterator[str]:
    """Where it differs: a key too much or too few, a value of another kind. A whole number does for any."""
    origin = typing.get_origin(kind)
    if kind is Any:
        return
    if typing.is_typeddict(kind):
        if not isinstance(value, dict):
            yield f"{where}: no object"
            return
        hints = typing.get_type_hints(kind)
        yield from (f"{where}.{key}: unknown" for key in value if key not in hints)
        yield from (f"{where}.{key}: missing" for key in sorted(kind.__required_keys__ - value.keys()))
        for key in hints.keys() & value.keys():
            yield from misfits(value[key], hints[key], f"{where}.{key}")
    elif origin in (typing.Union, types.UnionType):
        found = [list(misfits(value, one, where)) for one in typing.get_args(kind)]
        if all(found):
            yield from max(found, key=len)
    elif origin in (list, dict):
        if not isinstance(value, origin):
            yield f"{where}: {value!r}"
            return
        for one in value.values() if origin is dict else value:
            yield from misfits(one, typing.get_args(kind)[-1], f"{where}[]")
    elif not (isinstance(value, kind) or (kind is float and type(value) is int)) or (kind is int and value is True):
        yield f"{where}: {value!r} is no {kind.__name__}"
