"""A message by apprise (extra `jostle[apprise]`), which knows some hundred services that we do not: in a process of its own.

Its address comes on standard input, never on the command line, and what it prints is thrown away, for it may show that address.
It is code of others: whatever it does, this process connects to no address that outward would not, starts no program and speaks
to no socket of this host. Its exit code says what became of the message.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import sys
from collections.abc import Collection
from typing import Any

from jostle.notify.outward import judged

TAKEN, MISSING, ODD, REFUSED = 0, 3, 4, 5
NEVER = ("subprocess.", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "ctypes.", "socket.bind")
TO_WHOM = ("socket.connect", "socket.sendto", "socket.sendmsg")


def main() -> int:
    request = json.load(sys.stdin)
    try:
        import apprise
    except ImportError:
        return MISSING
    sender = apprise.Apprise()
    allowed = addresses(request["allow_private"])
    if not sender.add(request["url"]):
        return ODD
    sys.addaudithook(lambda event, args: watch(event, args, allowed))
    body, title = request["text"], request["title"]
    taken = sender.notify(body=body, title=title, body_format=apprise.NotifyFormat.TEXT, interpret_escapes=False)
    return TAKEN if taken else REFUSED


def addresses(hosts: Collection[str]) -> frozenset[str]:
    """Of the hosts that the settings name."""
    resolved: set[str] = set()
    for host in hosts:
        try:
            resolved |= {str(to[0]) for *_, to in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
        except (OSError, UnicodeError):
            continue
    return frozenset(resolved)


def watch(event: str, args: Any, allowed: Collection[str]) -> None:
    """What Python is about to do; PermissionError if it is none of this process's business."""
    if event.startswith(NEVER):
        raise PermissionError(event)
    if event in TO_WHOM:
        to = args[1]
        if not isinstance(to, tuple):
            raise PermissionError("a socket of this host")
        try:
            address = str(ipaddress.ip_address(str(to[0]).partition("%")[0]))
        except ValueError:
            raise PermissionError("a name that nobody has judged") from None
        if judged(address, named=address in allowed):
            raise PermissionError("a private address")


if __name__ == "__main__":
    sys.exit(main())
