"""A message handed to whoever it is for, by the kind of its channel. Returns when it was taken, else Undelivered says why not."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jostle.bounded import Bounds, child
from jostle.client import own_environment
from jostle.errors import JostleError
from jostle.notify import apprised, chat, mail
from jostle.notify.message import Message
from jostle.notify.outward import Endpoint, endpoint_of
from jostle.notify.secret import revealed
from jostle.notify.trouble import Undelivered

APPRISE = Bounds(60.0, 30, 2 << 30)


@dataclass(frozen=True, kw_only=True)
class Channel:
    """One of the settings' channels. Nothing in it is secret but an address that was written there."""

    name: str
    kind: str
    events: tuple[str, ...]
    options: Mapping[str, Any]
    allow_private: tuple[str, ...] = ()


def where(channel: Channel) -> str:
    """The host that it goes to, which is all that may be shown of an address; "" where that is not to be had."""
    if channel.kind in ("mail", "apprise"):
        return str(channel.options.get("host") or "")
    try:
        return endpoint(channel).host
    except Undelivered:
        return ""


def endpoint(channel: Channel) -> Endpoint:
    return endpoint_of(revealed(channel.options["url"]), channel.allow_private, channel.options.get("ca_file"))


def deliver(channel: Channel, message: Message) -> None:
    options = channel.options
    if channel.kind == "mail":
        password = revealed(options["password"]) if options.get("password") else ""
        mail.send(mail.mailbox(options), message, password)
        return
    if channel.kind == "apprise":
        by_apprise(channel, message)
        return
    secret = revealed(options["secret"]) if options.get("secret") else ""
    chat.send(channel.kind, endpoint(channel), message, secret, time.time())



def by_apprise(channel: Channel, message: Message) -> None:
    """Its services read markup of many kinds: no name makes a mention or a link."""
    title, text = (part.replace("@", "@\u200b").replace("<", "‹") for part in (message.title, message.text))
    request = {"url": revealed(channel.options["url"]), "title": title, "text": text, "allow_private": channel.allow_private}
    try:
        code, _, _ = child(["jostle.notify.apprised"], APPRISE, own_environment(), text=json.dumps(request))
    except JostleError:
        raise Undelivered("too_slow", host="apprise") from None
    if code != apprised.TAKEN:
        raise Undelivered({apprised.MISSING: "apprise_missing", apprised.ODD: "apprise_odd"}.get(code, "apprise_refused"))


def flaw(channel: Channel) -> Undelivered | None:
    """What keeps it from being used, as far as that can be told without sending anything."""
    try:
        for name in ("password", "secret"):
            if channel.options.get(name):
                revealed(channel.options[name])
        if channel.kind == "apprise":
            revealed(channel.options["url"])
        elif channel.kind != "mail":
            endpoint(channel)
    except Undelivered as e:
        return e
    return None
