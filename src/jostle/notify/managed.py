"""The channel that the file of the source's manager asks for (SPEC C5, C11): mail to one address when so many GPUs are free, and
about what becomes of tasks.

That file names no mail server. It is the one of the first mail channel of config.yaml; without one the mail server of this host,
as programs have always done. What the file said last stays in force, in a file of the home, until it says otherwise.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import socket
from collections.abc import Mapping
from typing import Any

from jostle.core.kinds import is_integer, mail_address
from jostle.notify import spool

NAME = "manager"
EVENTS = ("free", "finished", "failed", "resized")
LOCAL = {"host": "localhost", "port": 25, "security": "none"}
OF_SERVER = ("host", "port", "security", "ca_file", "user", "password", "sender")


def path_of(home: str) -> str:
    return os.path.join(spool.folder(home), "manager.said")


def declare(home: str, *, enabled: bool, email: str, threshold: int) -> bool:
    """Whether that is new."""
    wish = {"email": email, "threshold": threshold} if enabled and email else {}
    if wish == asked(home):
        return False
    if not wish:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path_of(home))
        return True
    with contextlib.suppress(FileExistsError):
        os.mkdir(spool.folder(home), 0o700)
    spool.save(path_of(home), wish)
    return True


def asked(home: str) -> dict[str, Any]:
    """What the manager's file asked for last; nothing if nothing, or if it is not to be understood."""
    try:
        with open(path_of(home), encoding="utf-8") as f:
            wish = json.loads(f.read(10_000))
    except (OSError, ValueError):
        return {}
    fits = isinstance(wish, dict) and mail_address(wish.get("email")) and is_integer(wish.get("threshold"), 1, 1024)
    return wish if fits else {}


def settings(wish: Mapping[str, Any], channels: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Of its channel, as config.yaml would say it."""
    of_config = next((channel for channel in channels.values() if channel["kind"] == "mail"), None)
    server = {key: of_config[key] for key in OF_SERVER if key in of_config} if of_config is not None else LOCAL
    return {"sender": _own_address(), **server, "kind": "mail", "to": [wish["email"]], "events": list(EVENTS)}


def _own_address() -> str:
    name = f"{getpass.getuser()}@{socket.gethostname()}"
    return name if mail_address(name) else "jostle@localhost"
