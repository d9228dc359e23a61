"""What people say of their limits, as a request."""

from __future__ import annotations

from jostle.core.fields import LIMITS
from jostle.errors import Usage
from jostle.formats import spec
from jostle.formats.wording import closest
from jostle.wording.flaws import flaw, worded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from jostle.session import Session

MANAGER = "manager"


def change(session: Session, do: str, words: Sequence[str]) -> None:
    """`set` or `clear`, as people write it."""
    asked = setting(session, words) if do == "set" else clearing(session, words)
    client = session.client()
    client.call("set_limits", **asked)
    client.close()


def setting(session: Session, words: Sequence[str]) -> dict[str, Any]:
    """`max_total_gpus=4 …`; `none` takes a limit back."""
    values: dict[str, int | None] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise Usage(session.message("limits_odd", word=repr(word)))
        known(session, name)
        try:
            values[name] = None if text == "none" else spec.reader(LIMITS[name].kind)(text)
        except ValueError as e:
            odd = flaw("value_odd", key="limits", value=f"{name}={text!r}", expected=f"{e}, or none")
            raise Usage(worded(odd, session.language)) from None
    if not values:
        raise Usage(session.message("limits_nothing"))
    return {"set": values}


def clearing(session: Session, words: Sequence[str]) -> dict[str, Any]:
    """Names of limits; none: all of the person's own. `manager`: those of the manager's file."""
    for name in words:
        if name != MANAGER:
            known(session, name)
    own = [name for name in words if name != MANAGER] if words else list(LIMITS)
    return {"clear": own, **({"manager": None} if MANAGER in words else {})}


def known(session: Session, name: str) -> None:
    if name not in LIMITS:
        near = closest(name, tuple(LIMITS))
        raise Usage(session.message("limits_unknown", name=repr(name), known=near or ", ".join(LIMITS)))
