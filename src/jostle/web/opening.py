"""Which console a person means, and that it runs: one that fits is used again, another makes way, else one starts.

Rules: who looks and starts does it alone (a lock of the home), so that two who ask at once get one console. One of another
version of jostle runs other code than the command that asks, and makes way. Standard library only, for the command line imports
this.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jostle import __version__
from jostle.client import Tell
from jostle.web import instances, place
from jostle.web.instances import Instance, Wanted, folder

KEPT = ("public_url", "classic", "trusted_uids")  # what a console has until other words are said


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a person says of a console."""

    directory: str | None = None  # the workspace; None: this directory, or the last one
    port: int | None = None
    bind: str | None = None
    allow_lan: bool = False
    insecure_http: bool = False
    public_url: str | None = None
    classic: bool = False
    trusted_uids: Sequence[int] = ()
    multi: int | None = None  # so many new ones (SPEC A39)
    keep_existing: bool = False  # and those that run stay


def opened(home: str, choices: Choices, tell: Tell) -> list[Instance]:
    space = place.workspace(home, choices.directory, tell)
    with alone(home):
        if choices.multi or choices.keep_existing:
            return _new_ones(_wanted(home, space, choices, tell), choices)
        return [_the_one(home, space, choices, tell)]


def _new_ones(wanted: Wanted, choices: Choices) -> list[Instance]:
    """As `run.sh --multi N --keep-existing` of the source starts them."""
    instances.check(wanted)
    if not choices.keep_existing:
        instances.stop(instances.running(wanted.home))
    return [instances.start(wanted) for _ in range(choices.multi or 1)]


def _the_one(home: str, space: str | None, choices: Choices, tell: Tell) -> Instance:
    """The console that is meant. One of another workspace or with other options gives way to it, unless `port` names a port that
    it does not have: logins lie in the home and outlive it."""
    candidates = [one for one in instances.running(home) if choices.port in (None, one.port) and one.bind == choices.bind]
    fitting = next((one for one in candidates if _fits(one, space, choices)), None)
    if fitting is not None and fitting.version == __version__:
        return fitting
    wanted = _wanted(home, space, choices, tell)
    nearest = min(candidates, key=lambda one: (one.port != wanted.port, one.workspace != space), default=None)
    before = fitting or nearest
    if before is not None:
        as_before = {name: getattr(before, name) for name in KEPT}
        place_before = {"workspace": space or before.workspace, "port": wanted.port or before.port}
        wanted = wanted._replace(**{**place_before, **as_before, **_lasting(choices)})
    instances.check(wanted)
    if before is not None:
        instances.stop([before])
    one = instances.start(wanted)
    if fitting is not None:
        tell("console_replaced", port=one.port, version=fitting.version or "?")
    elif before is not None:
        tell("console_anew", port=one.port, path=one.workspace or "-")
    return one


def _fits(one: Instance, space: str | None, choices: Choices) -> bool:
    return space in (None, one.workspace) and all(getattr(one, name) == value for name, value in _lasting(choices).items())


def _wanted(home: str, space: str | None, choices: Choices, tell: Tell) -> Wanted:
    kept = place.settings(space, tell)
    port = choices.port if choices.port is not None else kept.get("port")
    wanted = Wanted(home=home, workspace=space, port=port, bind=choices.bind, **_lasting(choices))
    if choices.bind is not None:
        wanted = wanted._replace(allow_lan=choices.allow_lan, insecure_http=choices.insecure_http)
    return wanted._replace(log_level=kept.get("log-level", wanted.log_level))


def _lasting(choices: Choices) -> dict[str, Any]:
    options = {"public_url": choices.public_url, "classic": choices.classic, "trusted_uids": tuple(choices.trusted_uids)}
    return {name: value for name, value in options.items() if value}


@contextlib.contextmanager
def alone(home: str) -> Iterator[None]:
    """One of a home's commands at a time looks for consoles and starts them."""
    fd = os.open(os.path.join(folder(home), "opening.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
