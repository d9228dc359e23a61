"""The process: binds its sockets itself, says where it listens, and serves until it is told to end.

Rules: on loopback both families are bound, or none: else a neighbour could take the other half of `localhost`. The port that was
first taken is remembered; on another one that is said loudly. The unix socket is ours alone from its first instant.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import time
from typing import Any

import uvicorn

from jostle import __version__, proc
from jostle.compete import controlfiles
from jostle.errors import Forbidden, JostleError
from jostle.web.app import app
from jostle.web.instances import PORT, Instance, Wanted, check
from jostle.web.instances import record as recorded
from jostle.web.protocol import Connection
from jostle.web.site import Site

LEVELS = {"debug": "info", "info": "warning", "warning": "warning", "error": "error"}
"""Of uvicorn, which says more than we would of itself."""
PR_SET_DUMPABLE = 4
PRESENT_EACH = 3  # s
TRIED = 100  # ports
TOO_LONG = 107  # bytes of a unix socket's path


def main() -> int:
    os.umask(0o077)
    no_core()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # what is entered below is left, also before it serves
    ready_fd = int(sys.argv[sys.argv.index("--ready") + 1])
    with contextlib.ExitStack() as entered:
        with os.fdopen(ready_fd, "w", encoding="utf-8", errors="surrogateescape") as ready:
            try:
                options = json.load(sys.stdin)
                wanted = Wanted(**{**options, "trusted_uids": tuple(options["trusted_uids"])})
                check(wanted)
                site = Site(wanted)
                site.secrets.token()
                sockets, instance = opened(site, entered)
                served = app(site)
                kept = recorded(site.home, instance)
                entered.callback(_unlink, kept)
            except JostleError as e:
                ready.write(f"error {e.code} {' '.join(str(e).split())}\n")
                return e.exit_code
            host = wanted.bind or "127.0.0.1"
            announcement = controlfiles.console(
                wanted.workspace, port=instance.port, host=host, started_at=instance.started_at
            )  # fmt: skip
            entered.enter_context(announcement)
            ready.write(json.dumps(instance._asdict()) + "\n")
        serve(served, sockets, wanted, kept)
    return 0


def no_core() -> None:
    """No dump of this process, in which the token is. (A limit of none would be passed on to what is submitted here.)"""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def opened(site: Site, entered: contextlib.ExitStack) -> tuple[list[socket.socket], Instance]:
    """The sockets that listen, and what this process is to others."""
    wanted = site.wanted
    sockets, port, taken = listening(site)
    site.secrets.port = port
    path = os.path.join(site.secrets.folder, f"{port}.sock")
    unix = private_socket(path)
    if unix is not None:
        sockets.append(unix)
        entered.callback(_unlink, path)
    me = proc.stat(os.getpid())
    return sockets, Instance(
        pid=os.getpid(), ticks=me.ticks if me else 0, boot_id=proc.boot_id(), port=port, workspace=wanted.workspace,
        socket=path if unix else None, bind=wanted.bind, started_at=time.time(), taken=taken,
        public_url=wanted.public_url, classic=wanted.classic, trusted_uids=wanted.trusted_uids, version=__version__,
    )  # fmt: skip


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def listening(site: Site) -> tuple[list[socket.socket], int, int | None]:
    """The sockets, their port, and the one that it would have been if another program had not taken it."""
    remembered = os.path.join(site.secrets.folder, "port")
    wanted = site.wanted.port
    first = wanted if wanted is not None else known_port(remembered)
    for port in range(first, min(first + TRIED, 65536)) if first else [0] * TRIED:
        try:
            sockets = bound(site.wanted.bind, port)
        except OSError as e:
            if wanted is not None and site.wanted.bind is not None:
                raise Forbidden(f"cannot listen on {site.wanted.bind} port {port}: {e.strerror}") from e
            continue
        port = sockets[0].getsockname()[1]
        if first and port != first:
            return sockets, port, first
        if wanted is None:
            with open(remembered, "w", encoding="ascii") as f:
                f.write(str(port))
        return sockets, port, None
    raise Forbidden(f"no port from {first} to {first + TRIED - 1} is free; --port names another")


def known_port(path: str) -> int:
    try:
        with open(path, encoding="ascii") as f:
            port = int(f.read(10))
    except (OSError, ValueError):
        return PORT
    return port if 0 < port < 65536 else PORT


def bound(bind: str | None, port: int) -> list[socket.socket]:
    """Sockets that listen; OSError if one of them cannot."""
    sockets: list[socket.socket] = []
    addresses = [bind] if bind is not None else ["127.0.0.1", *(["::1"] if socket.has_ipv6 and has_loopback6() else [])]
    try:
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listener = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a body waits until its head is acknowledged
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address, port))
            listener.listen(128)
            port = listener.getsockname()[1]
    except OSError:
        for listener in sockets:
            listener.close()
        raise
    return sockets


def has_loopback6() -> bool:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


def private_socket(path: str) -> socket.socket | None:
    """For `ssh -L port:path`; None where the path is too long for one."""
    if len(os.fsencode(path)) > TOO_LONG:
        return None
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)  # under our umask
    os.chmod(path, 0o600)
    listener.listen(128)
    return listener


def serve(served: Any, sockets: list[socket.socket], wanted: Wanted, record: str) -> None:
    """Until it is told to end, or its record is gone: then its home is, too, and nobody would find it any more."""
    Connection.trusted, Connection.lan = frozenset(wanted.trusted_uids), wanted.bind is not None
    config = uvicorn.Config(
        served, http=Connection, ws="none", lifespan="on", log_level=LEVELS[wanted.log_level], access_log=False,
        server_header=False, proxy_headers=False, timeout_graceful_shutdown=1, timeout_keep_alive=15,
        h11_max_incomplete_event_size=32 << 10, backlog=128,
    )  # fmt: skip
    server = uvicorn.Server(config)

    async def present() -> None:
        server.should_exit = server.should_exit or not os.path.exists(record)

    config.callback_notify, config.timeout_notify = present, PRESENT_EACH
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment]  # ours: the end is no death by a signal
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.handle_exit)
    server.run(sockets)


if __name__ == "__main__":
    sys.exit(main())
