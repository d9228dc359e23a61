"""The web processes of a home: started, found, stopped. Light to import, for `jostle status` lists them.

Rules: a process is known by pid, start ticks and boot id, and signalled only when that is proven. Its record is written by itself
and removed at its end; a record whose process is gone is nobody's.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from jostle import proc
from jostle.client import own_environment
from jostle.errors import BY_CODE, Forbidden, JostleError
from jostle.store.private import private_folder

if TYPE_CHECKING:
    from jostle.views.statustypes import Console

PORT = 29214
END_WITHIN = 10.0


class Wanted(NamedTuple):
    """What a person asks for."""

    home: str
    workspace: str | None = None
    port: int | None = None  # None: the one that was used last, else PORT; the next free one if it is taken
    bind: str | None = None  # beyond loopback
    allow_lan: bool = False  # bind is meant
    insecure_http: bool = False  # and without TLS, too
    public_url: str | None = None  # of a proxy with TLS before us
    classic: bool = False  # the cookie alone suffices for the source's own page
    trusted_uids: tuple[int, ...] = ()  # of proxies on this host
    log_level: str = "info"


class Instance(NamedTuple):
    """One that runs."""

    pid: int
    ticks: int
    boot_id: str
    port: int
    workspace: str | None
    socket: str | None
    bind: str | None
    started_at: float
    taken: int | None = None  # the port that it would have had, if another program had not
    public_url: str | None = None
    classic: bool = False
    trusted_uids: tuple[int, ...] = ()
    version: str = ""  # of the code that it runs

    @property
    def facts(self) -> dict[str, Any]:
        """What a line about it says."""
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.started_at))
        at = f"{self.bind or 'localhost'}:{self.port}"
        return {"at": at, "pid": self.pid, "path": self.workspace or "-", "socket": self.socket or "-", "since": since}

    @property
    def lives(self) -> bool:
        return self.boot_id == proc.boot_id() and proc.alive(self.pid, self.ticks)


def available() -> bool:
    """Whether what it needs is installed (`pip install jostle[web]`)."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("fastapi", "uvicorn"))


def public_url(text: str) -> str:
    """What browsers are to call it, as a person says it."""
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("what browsers call it, such as https://gpus.example")
    return text


def hindrance() -> str:
    """Why an engine comes without a console: a message; "": nothing keeps it from having one. JOSTLE_WEB=off is for those who
    never want it."""
    return "console_off" if os.environ.get("JOSTLE_WEB") == "off" else "" if available() else "console_missing"


def folder(home: str) -> str:
    """Where the web process keeps what is its own."""
    return private_folder(os.path.join(home, "web"))


def records(home: str) -> str:
    return private_folder(os.path.join(folder(home), "instances"))


def record(home: str, instance: Instance) -> str:
    """Written whole; its path."""
    path = os.path.join(records(home), f"{instance.pid}.json")
    fresh = f"{path}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as f:
        json.dump(instance._asdict(), f)
    os.replace(fresh, path)
    return path


def running(home: str) -> list[Instance]:
    """The oldest first."""
    if not os.path.isdir(os.path.join(home, "web", "instances")):
        return []
    living = []
    for entry in os.scandir(records(home)):
        try:
            with open(entry.path, encoding="utf-8", errors="surrogateescape") as f:
                instance = of_record(json.load(f))
        except (OSError, ValueError, TypeError):
            continue
        if instance.lives:
            living.append(instance)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry.path)
    return sorted(living, key=lambda instance: (instance.started_at, instance.port))


def of_record(fields: dict[str, Any]) -> Instance:
    """As one says it of itself; what a newer one says besides is left out."""
    known = {name: fields[name] for name in Instance._fields if name in fields}
    return Instance(**{**known, "trusted_uids": tuple(fields.get("trusted_uids") or ())})


def listed(home: str) -> list[Console]:
    """Those that run, as `status` shows them."""
    return [
        {"pid": one.pid, "port": one.port, "bind": one.bind, "workspace": one.workspace, "socket": one.socket}
        for one in running(home)
    ]


def check(wanted: Wanted) -> None:
    if wanted.bind is None:
        return
    if not wanted.allow_lan:
        raise Forbidden(f"--bind {wanted.bind} opens the console to the network: say --allow-lan, too, if that is meant")
    if not wanted.insecure_http and not (wanted.public_url or "").startswith("https://"):
        raise Forbidden(
            f"--bind {wanted.bind} without TLS shows the token to everybody on the way: put a proxy with TLS before it "
            "(--public-url https://…), use `ssh -L` instead, or say --insecure-http"
        )


def start(wanted: Wanted) -> Instance:
    """Returns when it listens."""
    import subprocess

    from jostle.web.secret import Secrets

    check(wanted)
    Secrets(wanted.home).token()  # made, or refused if others could have read it
    read_end, write_end = os.pipe()
    log = os.open(os.path.join(folder(wanted.home), "web.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    argv = [sys.executable, "-m", "jostle.web.server", "--ready", str(write_end)]
    child = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[write_end], cwd="/", start_new_session=True,
        env={**own_environment(), "JOSTLE_HOME": wanted.home},
    )  # fmt: skip
    os.close(write_end)
    os.close(log)
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError), child.stdin as pipe:
        pipe.write(json.dumps(wanted._asdict()).encode())
    with open(read_end, encoding="utf-8", errors="surrogateescape") as pipe_out:
        answer = pipe_out.readline()
    if answer.startswith("{"):
        return of_record(json.loads(answer))
    child.wait()
    _, _, refusal = answer.partition("error ")
    code, _, text = refusal.strip().partition(" ")
    raise BY_CODE.get(code, JostleError)(text or f"the web process did not come up: see {wanted.home}/web/web.log")


def stop(living: list[Instance]) -> None:
    """They are gone when it returns."""
    import signal

    for instance in living:
        proc.signal_proven(instance.pid, signal.SIGTERM, lambda pid, instance=instance: instance.lives)  # type: ignore[misc]
    end = time.monotonic() + END_WITHIN
    for instance in living:
        while instance.lives:
            if time.monotonic() > end:
                proc.signal_proven(instance.pid, signal.SIGKILL, lambda pid, instance=instance: instance.lives)  # type: ignore[misc]
            time.sleep(0.02)


def stop_all(home: str) -> bool:
    """Whether there was one."""
    living = running(home)
    stop(living)
    return bool(living)


def login_url(home: str, instance: Instance, public_url: str | None = None) -> str:
    """Good for one login."""
    from jostle.web.secret import Secrets

    base = public_url or f"http://localhost:{instance.port}"
    return f"{base}/ui/#code={Secrets(home).code()}"
