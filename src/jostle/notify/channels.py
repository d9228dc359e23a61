"""Everybody who is told: the channels of config.yaml, and the one that the manager's file asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from jostle import config
from jostle.core.fields import NOTIFY
from jostle.notify import managed
from jostle.notify.deliver import Channel
from jostle.store.file import database


class Subscriber(NamedTuple):
    channel: Channel
    settings: Mapping[str, Any]  # `notify:` with all defaults, as it holds for this channel


def subscribers(home: str) -> list[Subscriber]:
    """Errors of config.yaml are for the caller."""
    section = config.load(home).get("notify") or {}
    settings = {**{field.name: field.fresh() for field in NOTIFY.values()}, **section}
    everybody = [Subscriber(_channel(name, options, settings), settings) for name, options in settings["channels"].items()]
    asked = managed.asked(home)
    if asked and managed.NAME not in settings["channels"]:
        options = managed.settings(asked, settings["channels"])
        mine = {**settings, "free_gpus": asked["threshold"]}
        everybody.append(Subscriber(_channel(managed.NAME, options, mine), mine))
    return everybody


def _channel(name: str, options: Mapping[str, Any], settings: Mapping[str, Any]) -> Channel:
    allowed = tuple(settings["allow_private"])
    return Channel(name=name, kind=options["kind"], events=tuple(options["events"]), options=options, allow_private=allowed)


def mark(home: str) -> tuple[int, ...]:
    """What changes when what is said does, or when another database is in the place of the one that is read."""
    seen: list[int] = []
    for path in (config.config_file(home), managed.path_of(home), database(home)):
        try:
            s = os.stat(path)
        except OSError:
            seen.append(0)
        else:
            seen += (s.st_dev, s.st_ino) if path == database(home) else (s.st_ino, s.st_size, s.st_mtime_ns)
    return tuple(seen)
