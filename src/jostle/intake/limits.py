"""What people say of their limits, as a request."""

from __future__ import annotations

from jostle.core.fields import LIMITS
from jostle.errors import Usage
from jostle.formats import spec
from jostle.formats.wording import closest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MANAGER = "manager"


def setting(words: Sequence[str]) -> dict[str, Any]:
    """`max_total_gpus=4 …`; `none` takes a limit back."""
    values: dict[str, int | None] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise Usage(f"limits: {word!r} is not understood; expected a limit such as max_total_gpus=4")
        known(name)
        try:
            values[name] = None if text == "none" else spec.reader(LIMITS[name].kind)(text)
        except ValueError as e:
            raise Usage(f"limits: {name}={text!r} is not understood; expected {e}, or none") from None
    if not values:
        raise Usage("limits: expected a limit such as max_total_gpus=4")
    return {"set": values}


def clearing(words: Sequence[str]) -> dict[str, Any]:
    """Names of limits; none: all of the person's own. `manager`: those of the manager's file."""
    for name in words:
        if name != MANAGER:
            known(name)
    own = [name for name in words if name != MANAGER] if words else list(LIMITS)
    return {"clear": own, **({"manager": None} if MANAGER in words else {})}


def known(name: str) -> None:
    if name not in LIMITS:
        near = closest(name, tuple(LIMITS))
        raise Usage(f"limits: there is no limit {name!r}; expected " + (near or "one of " + ", ".join(LIMITS)))
