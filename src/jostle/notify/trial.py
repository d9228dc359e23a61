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
from jostle.wording.text import message


def chosen(home: str, name: str | None, language: str) -> list[Subscriber]:
    """The channel of this name, or all. `language`: of who asks."""
    known = subscribers(home)
    if not known:
        raise Usage(message("notify_unset", language))
    matches = [one for one in known if name in (None, one.channel.name)]
    if not matches:
        raise NotFound(message("notify_no_channel", language, name=name, known=", ".join(one.channel.name for one in known)))
    return matches


def tried(home: str, name: str | None, language: str) -> Iterator[dict[str, Any]]:
    """Of each channel, or the one of this name, as soon as it is known: whether somebody took it, and if not, why."""
    for channel, settings in chosen(home, name, language):
        entry = {"about": "test", "event": "test", "channel": channel.name}
        sent = happenings.message([entry], host=socket.gethostname(), at=time.time(), language=settings["language"])
        error = None
        try:
            deliver(channel, sent)
        except Undelivered as e:
            error = e.plain
        yield {"name": channel.name, "ok": error is None, "error": error}
