"""The submit request, made and sent in one way from wherever jobs come. Light to import, for `jostle add` starts with it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from jostle.session import Session


def request(
    batch: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], *, once: str | None = None, context: dict[str, Any] | None = None
) -> dict[str, Any]:  # fmt: skip
    """`batch`: its head (key, name, policy, …); it has no owner unless that says so. `once`: a key of the person; what was taken
    under it is not taken again. `context`: what was captured of the surroundings already."""
    from jostle.context import capture

    return {
        "batch": {"owner": None, **batch},
        "context": context or capture(),
        "jobs": jobs,
        "once": once or os.urandom(16).hex(),
    }


def sent(session: Session, request: dict[str, Any], *, again: str, devices: str | None = None) -> dict[str, Any]:
    """The engine's answer. `again`: how a person can ask anew, where it cannot be learnt whether the jobs were taken."""
    from jostle.client import submitted

    return submitted(lambda: session.client(gpus=devices), request, again)


def warn_never(answer: Mapping[str, Any], session: Session) -> None:
    """What can never run here is said at once."""
    if answer.get("never"):
        from jostle.wording.sentences import never

        for line in never(answer, session.language):
            session.say(line)
