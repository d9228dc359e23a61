"""The notifier's process from outside: whether it runs, starting and ending it. Light: every command that finds an engine
looks here.

Rules: a lock decides which of several lives; its file is there for as long as notifications are wanted, so that whoever finds the
file and no lock starts it again. The engine is not its parent, and never waits for it.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from typing import Any

from jostle import __version__
from jostle.address import NOTIFIER_LOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE = "jostle.notify.process"
STARTED_WITHIN = 20.0
ENDED_WITHIN = 5.0


def lock_path(home: str) -> str:
    return os.path.join(home, NOTIFIER_LOCK)


def wanted(home: str) -> bool:
    return os.path.exists(lock_path(home))


def runs(home: str) -> bool:
    try:
        fd = os.open(lock_path(home), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


def facts(home: str) -> dict[str, Any]:
    """What the one that runs says of itself: pid, ticks, version; nothing if none runs."""
    import json

    if not runs(home):
        return {}
    try:
        with open(lock_path(home), encoding="utf-8") as f:
            record = json.loads(f.read(1000) or "{}")
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def ensure(home: str, env: Mapping[str, str]) -> None:
    """It runs, if it is wanted."""
    if wanted(home) and not runs(home):
        start(home, env)


def start(home: str, env: Mapping[str, str]) -> None:
    """Returns when it knows from which event on it tells. What keeps it from running is for its log, `doctor` and `notify
    status`: whoever is here wanted something else."""
    import subprocess
    from resource import RLIM_INFINITY, RLIMIT_CPU, getrlimit

    if getrlimit(RLIMIT_CPU)[0] != RLIM_INFINITY:
        return  # it would be bounded as we are: another command will start it
    folder = os.path.dirname(lock_path(home))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        log = os.open(os.path.join(folder, "notify.log"), flags, 0o600)
    except OSError:
        return
    try:
        argv = [sys.executable, "-m", MODULE]
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True,
            env={**env, "JOSTLE_HOME": home},
        )  # fmt: skip
        child.wait(STARTED_WITHIN)
    except (OSError, subprocess.TimeoutExpired):
        pass
    finally:
        os.close(log)


def stop(home: str) -> None:
    """What it has not sent stays where it is, for the next one."""
    import signal

    from jostle import proc

    record = facts(home)
    if not isinstance(record.get("pid"), int) or not isinstance(record.get("ticks"), int):
        return
    proc.signal_proven(record["pid"], signal.SIGTERM, lambda pid: proc.alive(pid, record["ticks"]))
    end = time.monotonic() + ENDED_WITHIN
    while runs(home) and time.monotonic() < end:
        time.sleep(0.02)


def beside(home: str, notify: Mapping[str, Any] | None, env: Mapping[str, str]) -> None:
    """What there is to do for one who starts an engine with these settings of notifications, or (None) has found one."""
    if notify is None:
        ensure(home, env)
    elif notify.get("channels"):
        if facts(home).get("version", __version__) != __version__:
            stop(home)
        if not runs(home):
            start(home, env)
