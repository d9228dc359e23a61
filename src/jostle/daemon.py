"""The engine as a process, and the only wiring. Run by path with `python -I -S`: it needs the standard library alone.

Usage: daemon.py HOME GPUS [--ready FD] [--permanent]; settings come as JSON on standard input. On FD it says `ready`, `taken PID`
or `error CODE TEXT`, then closes it. A flock decides which of several engines lives; the kernel drops it with the process.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import resource
import signal
import sqlite3
import sys
import time
import traceback
from functools import partial
from typing import Any

if __package__ in (None, ""):
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from jostle.address import LOCK, LOG


def main(argv: list[str]) -> int:
    os.umask(0o077)
    sys.stderr = EngineLog()
    many_files()
    no_core()
    home, devices = argv[0], argv[1]
    ready = int(argv[argv.index("--ready") + 1]) if "--ready" in argv else -1
    settings = json.loads(sys.stdin.read() or "{}")
    if ready >= 0 and os.fork():
        os._exit(0)  # whoever started the engine is not its parent
    from jostle.errors import JostleError
    from jostle.store.file import database
    from jostle.store.store import translated

    try:
        lock = take_lock(home)
        if lock is None:
            tell(ready, f"taken {holder(home)}")
            return 1
        serve(home, devices, settings, ready, "--permanent" in argv)
    except (JostleError, sqlite3.DatabaseError, json.JSONDecodeError) as e:
        error = e if isinstance(e, JostleError) else translated(e, database(home))
        log(str(error))
        tell(ready, f"error {error.code} {error}")
        return error.exit_code
    except BaseException:
        log(traceback.format_exc())
        tell(ready, f"error failed the engine failed: see {home}/{LOG}")
        return 1
    return 0


def many_files() -> None:
    """Clients and runs take descriptors; what programs get by default is meant for programs that use select()."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536
    if 0 <= soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def no_core() -> None:
    """What people's environments hold is in our memory, and a dump of it would lie somewhere for long. Runs have the limits of
    who submitted them."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


class EngineLog:
    """Standard error of an engine: a disk that takes no line must not end it."""

    def write(self, text: str) -> int:
        try:
            os.write(2, text.encode(errors="backslashreplace"))
        except OSError:
            pass
        return len(text)

    def flush(self) -> None: ...


def log(text: str) -> None:
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {os.getpid()} {text}", file=sys.stderr, flush=True)


_reported = False


def tell(ready: int, text: str) -> None:
    """Once: afterwards the number is another descriptor's, a client's or the database's."""
    global _reported
    if ready >= 0 and not _reported:
        _reported = True
        try:
            os.write(ready, text.encode() + b"\n")
            os.close(ready)
        except OSError:
            pass  # whoever asked is gone, or was told already


def take_lock(home: str) -> int | None:
    """The engine's lock, held until the process ends; None if another has it.

    It is on a file, which says who has it, and on the directory itself: a file may be removed by a cleaner while it is locked.
    """
    place = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fd = os.open(os.path.join(home, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        os.close(place)
        return None
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
    except OSError:
        pass  # a full disk: it is locked all the same
    return fd


def holder(home: str) -> str:
    with open(os.path.join(home, LOCK)) as f:
        return f.read().strip() or "?"


def serve(home: str, devices: str, settings: dict[str, Any], ready: int, permanent: bool) -> None:
    from jostle import config
    from jostle.backends.local import outside
    from jostle.backends.local.backend import Local
    from jostle.core.devices import DEFAULT, world
    from jostle.engine.clock import Clock
    from jostle.engine.engine import Engine
    from jostle.engine.loop import Loop, turn
    from jostle.engine.probing import ProbeProcess
    from jostle.engine.service import Service
    from jostle.probes.command import command
    from jostle.store.store import Store

    store = Store(home, partial(outside.remains, home))
    loop = Loop()
    devices = devices or store.get("spec") or DEFAULT
    if devices != store.get("spec"):
        with store.transaction():
            store.put("spec", devices)
            store.put("cards", None)  # those that were known are of other devices
    leases, sim_dir = config.lease_dir(home, devices), config.sim_dir(home)
    simulated = world(devices) is not None
    engine = Engine(home=home, devices=devices, store=store, clock=Clock(store), settings=settings)
    service = Service(
        engine, loop, permanent=permanent, paths={"lease_dir": leases, "sim_dir": sim_dir if simulated else None}
    )
    wake = signals(loop, service)
    if simulated:
        os.makedirs(sim_dir, mode=0o700, exist_ok=True)
    env = {**os.environ, "JOSTLE_SIM_DIR": sim_dir, "JOSTLE_LEASE_DIR": leases, "JOSTLE_HOME": home}
    local = Local(home=home, lease_dir=leases, watcher=loop)
    engine.open({"local": local}, ProbeProcess(loop, command(devices), env, engine.heard))
    service.server.open()
    gc.freeze()  # what lives as long as the engine need not be looked through again
    gc.disable()  # nor while a GPU waits: the sweep does it
    log(f"engine of {home} is up with {devices}")
    tell(ready, "ready")
    try:
        turn(loop, engine, service)
    finally:
        service.server.close()
        engine.close()
        store.close()
        os.close(wake)
    log("engine ends; running jobs go on")


def signals(loop: Any, service: Any) -> int:
    """SIGTERM ends the engine and touches no job; a hang-up is no reason to end."""
    r, w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(w, warn_on_full_buffer=False)

    def heard() -> None:
        if set(os.read(r, 64)) & {signal.SIGTERM, signal.SIGINT}:
            service.leave()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    loop.watch(r, heard)
    return w


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # a database that is not in its place must not be closed (store.py)
