"""The submit request, made and sent in one way from wherever jobs come. Light to import, for `jostle add` starts with it."""

from __future__ import annotations

import os
import time

from jostle.core.fields import JOB
from jostle.core.variables import ALLOCATION
from jostle.errors import Invalid, JostleError, NoEngine

SUBMIT_WITHIN = 10.0  # s in which a submit that was sent is sent again to the next engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from jostle.client import Client
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
        "jobs": [_without_defaults(job) for job in jobs],
        "once": once or os.urandom(16).hex(),
    }


_DEFAULTS = {name: field.default for name, field in JOB.items() if name != "commands"}  # none at all is an allocation


def _without_defaults(job: Mapping[str, Any]) -> dict[str, Any]:
    """A job without what is as it would be anyway: two thirds of the bytes of 10,000 jobs, written, sent, read and checked."""
    default = _DEFAULTS.get
    return {
        name: value
        for name, value in job.items()
        if value != (other := default(name, ...)) or type(value) is not type(other)  # 0 is not `no`
    }


def sent(session: Session, request: dict[str, Any], *, again: str, devices: str | None = None) -> dict[str, Any]:
    """The engine's answer. `again`: how a person can ask anew, where it cannot be learnt whether the jobs were taken."""
    return submitted(lambda: session.client(gpus=devices), request, again)


def submitted(connect: Callable[[], Client], request: dict[str, Any], again: str) -> dict[str, Any]:
    """An engine may die before it answers, or be dying when we knock: the key `once` makes sure that the jobs are taken once.
    `again`: how a person can ask anew, where it cannot be learnt whether they were."""
    sent, end = "", time.monotonic() + SUBMIT_WITHIN
    while True:
        try:
            client = connect()
            sent = client.home
            try:
                return client.call("submit", **request)
            finally:
                client.close()
        except NoEngine as e:
            if not sent:
                raise
            if time.monotonic() > end:
                return _taken(sent, request["once"], again, e)
            time.sleep(0.1)


def _taken(home: str, once: str, again: str, e: NoEngine) -> dict[str, Any]:
    """The answer to a submit that nobody gave, as the store knows it."""
    from jostle.store.reads import Reader

    try:
        answer = Reader(home).taken(once)
    except JostleError:
        answer = None
    if answer is None:
        raise NoEngine(f"{e}. What was submitted is perhaps taken: `jostle ps` shows it, if so. {again}") from e
    return answer


def warn_never(answer: Mapping[str, Any], session: Session) -> None:
    """What can never run here is said at once."""
    if answer.get("never"):
        from jostle.wording.sentences import never

        for line in never(answer, session.language):
            session.say(line)


def inside() -> int | None:
    """The allocation that this program or shell was made for."""
    text = os.environ.get(ALLOCATION)
    if not text:
        return None
    if not text.isdecimal() or not text.isascii() or len(text) > 15:
        raise Invalid(f"{ALLOCATION}={text} is no allocation; expected the number of one: `unset {ALLOCATION}`")
    return int(text)
