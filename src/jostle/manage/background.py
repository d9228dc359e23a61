"""The monitor as a process: here, or in the background, which is left when it is at work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from jostle.errors import JostleError
from jostle.manage.monitor import Monitor

if TYPE_CHECKING:
    from jostle.manage.loading import Loaded
    from jostle.session import Session


def monitor(
    session: Session, loaded: Loaded, *, manages: bool, put: Callable[[str], None], interval: float | None = None,
    ready: Callable[[], None] = lambda: None,
) -> int:  # fmt: skip
    """Until it is told to end: the exit code."""
    if interval is not None:
        loaded.interval = interval
    log = loaded.open_log()
    try:
        return Monitor(session, loaded, manages=manages, put=put, log=log).run(ready)
    finally:
        log.close()


def start(session: Session, loaded: Loaded) -> tuple[int, str]:
    """Its pid and its log, once it is at work; what keeps it from that is an error here. Nothing of the session is open yet: who
    forks must not share a database."""
    loaded.open_log().close()  # if it cannot be written, that is told now
    read_end, write_end = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(read_end)
        os.setsid()
        if os.fork():
            os._exit(0)  # whoever started it is not its parent
        _detached(session, loaded, write_end)
    os.close(write_end)
    os.waitpid(first, 0)
    with os.fdopen(read_end) as pipe:
        word, _, rest = pipe.read().partition(" ")
    if word != "ready":
        raise JostleError(rest or session.message("manage_ended", log=loaded.log_path))
    return int(rest), loaded.log_path


def _detached(session: Session, loaded: Loaded, write_end: int) -> NoReturn:
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)

        def ready() -> None:
            os.write(write_end, f"ready {os.getpid()}".encode())
            os.close(write_end)

        code = monitor(session, loaded, manages=True, put=lambda text: None, ready=ready)
    except BaseException as e:
        try:
            os.write(write_end, f"error {e}".encode())
        except OSError:
            pass  # it had been at work
    finally:
        sys.stderr.flush()
        os._exit(code)
