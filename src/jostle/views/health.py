"""What is wrong with this host or installation, and what to do about it.

Each check answers with (ok | warn | bad, code, numbers); wording.health says it and gives the advice. A check that fails itself
is a finding, not a crash.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jostle.errors import Forbidden, Invalid, JostleError
from jostle.store import file

if TYPE_CHECKING:
    from jostle.session import Session
    from jostle.views.types import Finding

Verdict = tuple[str, str, dict[str, Any]]


def health(session: Session) -> list[Finding]:
    return [finding(name, check, session) for name, check in CHECKS.items()]


def finding(name: str, check: Callable[[Session], Verdict], session: Session) -> Finding:
    verdict, code, params = looked(check, session)
    return {"name": name, "verdict": verdict, "code": code, "params": params}


def looked(check: Callable[[Session], Verdict], session: Session) -> Verdict:
    try:
        return check(session)
    except JostleError as e:
        return "bad", "error", {"error": str(e)}
    except Exception as e:  # a doctor who falls ill must still see the other patients
        return "bad", "check_failed", {"error": f"{type(e).__name__}: {e}"}


def python(session: Session) -> Verdict:
    v = sys.version_info
    numbers = {"version": f"{v.major}.{v.minor}.{v.micro}", "path": sys.executable}
    return ("ok", "python", numbers) if v >= (3, 10) else ("bad", "python_old", numbers)


def pidfd(session: Session) -> Verdict:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError) as e:
        return "warn", "no_pidfd", {"error": str(e)}
    return "ok", "pidfd", {}


def home(session: Session) -> Verdict:
    from jostle.config import NETWORK, file_system
    from jostle.store.private import check_way

    kind = file_system(session.home)
    mode = os.stat(session.home).st_mode & 0o777
    numbers = {"path": session.home, "kind": kind, "mode": mode}
    if mode & 0o077:
        return "bad", "home_open", numbers
    try:
        check_way(session.home)
    except Forbidden as e:
        return "bad", "home_way", {**numbers, "error": str(e)}
    if kind in NETWORK:
        return "bad", "home_network", numbers
    if kind in ("tmpfs", "ramfs"):
        return "warn", "home_volatile", numbers
    return "ok", "home", numbers


def disk(session: Session) -> Verdict:
    s = os.statvfs(session.home)
    free = s.f_bavail * s.f_frsize // (1 << 20)
    numbers = {"free_mib": free, "files": s.f_favail}
    if free < 100 or (s.f_files and s.f_favail < 1000):
        return "bad", "disk_full", numbers
    return ("warn", "disk_low", numbers) if free < 1024 else ("ok", "disk", numbers)


def database(session: Session) -> Verdict:
    from jostle.store import seen
    from jostle.store.salvage import complaints

    path = file.database(session.home)
    if not os.path.lexists(path):
        if seen.noted(path):
            return "bad", "database_missing", {}
        return "ok", "no_database", {}
    if not os.path.isfile(path):
        return "bad", "database_no_file", {"path": path}
    mode = os.lstat(path).st_mode & 0o777
    if mode & 0o077:
        return "bad", "database_open", {"mode": mode, "path": path}
    expected = seen.noted(path)  # before the database, which may go on meanwhile
    texts = complaints(path)
    if texts:
        return "bad", "database_damaged", {"error": " ".join(texts[0].split())}
    if (last := session.reader.last_seq()) < expected:
        return "bad", "error", {"error": str(seen.older(path, last, expected))}
    return "ok", "database", {"size_mib": os.path.getsize(path) / (1 << 20)}


def settings(session: Session) -> Verdict:
    from jostle import config

    if not os.path.exists(config.config_file(session.home)):
        return "ok", "no_settings", {}
    try:
        loaded = config.load(session.home)
    except Invalid as e:
        first, *more = str(e).split("\n")
        return "bad", "settings_wrong", {"error": first, "more": len(more)}
    return "ok", "settings", {"keys": list(loaded)}


def devices_of(session: Session) -> str:
    """The devices, even if the settings have errors: those have a line of their own."""
    from jostle.views.cards import spec_of

    try:
        return spec_of(session)
    except Invalid:
        return str(session.reader.meta("spec") or "nvml")


def engine(session: Session) -> Verdict:
    from jostle import __version__
    from jostle.core.reasons import GPU_HOLDS

    client = session.engine_if_any()
    if client is None:
        return "ok", "no_engine", {}
    hello = client.call("hello")
    client.close()
    numbers = {"pid": hello["pid"], "version": hello["version"], "own": __version__}
    if hello["version"] != __version__:
        return "warn", "engine_other", numbers
    hold = hello.get("hold") or ""
    if hold and not hold.startswith(GPU_HOLDS):  # those are a finding of the GPUs
        return "bad", "engine_holds", {**numbers, "hold": hold}
    return "ok", "engine", numbers


def gpus(session: Session) -> Verdict:
    from jostle.views.cards import look

    spec = devices_of(session)
    starting = driver_starting(session)
    if starting:
        return "warn", "driver_starting", {"hold": starting}
    snapshot = look(spec, session.home)
    if snapshot["error"]:
        return "bad" if snapshot["gpus"] or snapshot.get("hold") else "warn", "error", {"error": snapshot["error"]}
    sick = [gpu for gpu in snapshot["gpus"] if gpu["state"] in ("lost", "unreadable")]
    aside = session.reader.meta("health") or {}
    if sick or aside.get("faulty"):
        unread = [{key: gpu[key] for key in ("index", "state", "error")} for gpu in sick]
        return "bad", "gpus_out", {"unread": unread, "faulty": aside.get("faulty") or {}}
    late = [gpu["silent_since"] for gpu in snapshot["gpus"] if gpu["state"] == "starting"]
    if late:
        return "warn", "driver_starting", {"hold": f"driver_starting {snapshot['at'] - min(late):.0f}"}
    return "ok", "gpus", {"count": len(snapshot["gpus"]), "spec": spec, "took_ms": snapshot["took_ms"]}


def driver_starting(session: Session) -> str:
    """What the engine says of a driver that has not answered yet: a look of our own would only wait with it."""
    client = session.engine_if_any()
    if client is None:
        return ""
    hold = client.call("hello").get("hold") or ""
    client.close()
    return hold if hold.startswith("driver_starting") else ""


def leases(session: Session) -> Verdict:
    from jostle.config import lease_dir

    path = lease_dir(session.home, devices_of(session))
    s = os.stat(path)
    numbers = {"path": path, "uid": s.st_uid, "mode": s.st_mode & 0o7777}
    if not os.access(path, os.W_OK | os.X_OK):
        return "bad", "leases_closed", numbers
    if s.st_uid not in (0, os.getuid()):
        return "bad", "leases_of_another", numbers
    if s.st_mode & 0o002 and not s.st_mode & 0o1000:
        return "bad", "leases_open", numbers
    return claims_removed(session, path) or ("ok", "leases", numbers)


def claims_removed(session: Session, path: str) -> Verdict | None:
    """Whether somebody removed claims while they were held, ours or a neighbour's."""
    from jostle.store.reads import Reader

    if not os.path.exists(file.database(session.home)):
        return None
    try:
        event = Reader(session.home).newest_event(("republished", "vanished"), time.time() - 7 * 86400)
    except JostleError:
        return None  # a finding of the database
    if event is None:
        return None
    uid = None if event["kind"] == "republished" else event["data"].get("uid")
    return "warn", "claims_removed", {"path": path, "at": event["at"], "ours": event["kind"] == "republished", "uid": uid}


def bash(session: Session) -> Verdict:
    for folder in os.environ.get("PATH", "/usr/bin:/bin").split(":"):
        path = os.path.join(folder, "bash")
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return "ok", "bash", {"path": path}
    return "bad", "no_bash", {}


def logout(session: Session) -> Verdict:
    """Whether the engine and jobs survive the end of the login."""
    import pwd

    if not os.path.isdir("/run/systemd/system"):
        return "ok", "no_systemd", {}
    user = pwd.getpwuid(os.getuid()).pw_name
    if os.path.exists(f"/var/lib/systemd/linger/{user}"):
        return "ok", "lingering", {}
    if kills_user_processes():
        return "bad", "logout_ends_all", {}
    return "ok", "logout", {}


def kills_user_processes() -> bool:
    from glob import glob

    answer = False
    for path in ["/usr/lib/systemd/logind.conf", "/etc/systemd/logind.conf", *sorted(glob("/etc/systemd/logind.conf.d/*.conf"))]:
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                for line in f:
                    key, _, value = line.strip().partition("=")
                    if key.strip() == "KillUserProcesses":
                        answer = value.strip().lower() in ("1", "yes", "true", "on")
        except OSError:
            continue
    return answer


def clock(session: Session) -> Verdict:
    now = time.time()
    path = file.database(session.home)
    if now < 1_700_000_000:
        return "warn", "clock_behind", {"at": now}
    if os.path.exists(path) and os.path.getmtime(path) > now + 120:
        return "warn", "clock_set_back", {"at": now}
    return "ok", "clock", {"at": now}


CHECKS: dict[str, Callable[[Session], Verdict]] = {
    "python": python, "home": home, "disk": disk, "settings": settings, "database": database, "engine": engine, "gpus": gpus,
    "leases": leases, "bash": bash, "pidfd": pidfd, "logout": logout, "clock": clock,
}  # fmt: skip
