"""A test message, sent at once and past the spool, so that whoever asks for it hears what became of it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

from jostle.errors import NotFound, Usage
from jostle.notify import happenings
from jostle.notify.channels import Subscriber, subscribers
from jostle.notify.deliver import deliver
from jostle.notify.trouble import Undelivered


def chosen(home: str, name: str | None) -> list[Subscriber]:
    """The channel of this name, or all."""
    known = subscribers(home)
    names = [one.channel.name for one in known]
    if not known:
        raise Usage("no channel is set: `notify:` of config.yaml names them, see docs/notify.md")
    if name is not None and name not in names:
        raise NotFound(f"there is no channel {name!r}; known are {', '.join(names)}")
    return [one for one in known if name in (None, one.channel.name)]


def tried(home: str, name: str | None) -> Iterator[dict[str, Any]]:
    """Of each channel, or the one of this name, as soon as it is known: whether somebody took it, and if not, why."""
    for channel, settings in chosen(home, name):
        entry = {"about": "test", "event": "test", "channel": channel.name}
        message = happenings.message([entry], host=socket.gethostname(), at=time.time(), language=settings["language"])
        error = None
        try:
            deliver(channel, message)
        except Undelivered as e:
            error = e.plain
        yield {"name": channel.name, "ok": error is None, "error": error}
