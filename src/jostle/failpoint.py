"""Places where a crash or an error can be made to happen, for tests of what survives it.

JOSTLE_FAILPOINTS="name=kill,other=sleep:0.15,third=ENOSPC@3" acts at the named places: `kill` (SIGKILL to this very process),
`crash` (raises Crashed: a kill for tests inside one process), `sleep:S`, `until:PATH` (waits for that file), or an errno name
(raises OSError); `@N` acts only the N-th time. Without the variable each call is one dict look-up.
"""

from __future__ import annotations

import errno
import os
import signal
import time


class Crashed(BaseException):
    """The engine is dead, as far as it can know."""


_armed: dict[str, tuple[str, int]] = {}
_hits: dict[str, int] = {}


def arm(text: str) -> None:
    """Reads the variable's syntax; an empty text disarms all."""
    _armed.clear()
    _hits.clear()
    for part in filter(None, text.split(",")):
        name, _, action = part.partition("=")
        action, _, nth = action.partition("@")
        _armed[name] = (action, int(nth or 0))


def failpoint(name: str) -> None:
    if name not in _armed:
        return
    action, nth = _armed[name]
    _hits[name] = _hits.get(name, 0) + 1
    if nth and _hits[name] != nth:
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "crash":
        raise Crashed(name)
    elif action.startswith("sleep:"):
        time.sleep(float(action[6:]))
    elif action.startswith("until:"):
        while not os.path.exists(action[6:]):
            time.sleep(0.01)
    else:
        raise OSError(getattr(errno, action), os.strerror(getattr(errno, action)), f"failpoint {name}")


arm(os.environ.get("JOSTLE_FAILPOINTS", ""))
