"""What is wrong with this host or installation, and what to do about it.

Each check answers with (ok | warn | bad, code, numbers); wording.health says it and gives the advice. A check that fails itself
is a finding, not a crash.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jostle.core.states import UNFINISHED
from jostle.errors import Forbidden, Invalid, JostleError
from jostle.store import file

if TYPE_CHECKING:
    from jostle.session import Session
    from jostle.views.types import Finding

Verdict = tuple[str, str, dict[str, Any]]
Check = Callable[["Patient"], Verdict]


class Patient:
    """Whose health it is. What several checks want to know is asked for once."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def home(self) -> str:
        return self.session.home

    @cached_property
    def engine(self) -> dict[str, Any]:
        """What it says of itself; nothing: none runs, or it does not answer, and then `silent` is its pid."""
        from jostle.client import Lost, Silent

        self.silent = 0
        client = self.session.engine_if_any()
        if client is None:
            return {}
        try:
            return client.call("hello", counts=False)
        except Silent:
            self.silent = client.pid
        except Lost:
            pass
        finally:
            client.close()
        return {}

    @cached_property
    def devices(self) -> str:
        """The devices, even if the settings have errors: those have a line of their own."""
        from jostle import config
        from jostle.core.devices import DEFAULT

        try:
            setting = config.load(self.home).get("gpus")
        except Invalid:
            setting = None
        return str(self.engine.get("gpus_spec") or setting or self.session.reader.meta("spec") or DEFAULT)

    @cached_property
    def snapshot(self) -> dict[str, Any]:
        from jostle.views import cards

        return cards.look(self.devices, self.home)


def health(session: Session) -> list[Finding]:
    patient = Patient(session)
    return [finding(name, check, patient) for name, check in CHECKS.items()]


def finding(name: str, check: Check, patient: Patient) -> Finding:
    verdict, code, params = looked(check, patient)
    return {"name": name, "verdict": verdict, "code": code, "params": params}


def looked(check: Check, patient: Patient) -> Verdict:
    try:
        return check(patient)
    except JostleError as e:
        return "bad", "error", {"error": str(e)}
    except Exception as e:  # a doctor who falls ill must still see the other patients
        return "bad", "check_failed", {"error": f"{type(e).__name__}: {e}"}


def python(patient: Patient) -> Verdict:
    v = sys.version_info
    numbers = {"version": f"{v.major}.{v.minor}.{v.micro}", "path": sys.executable}
    return ("ok", "python", numbers) if v >= (3, 10) else ("bad", "python_old", numbers)


def pidfd(patient: Patient) -> Verdict:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError) as e:
        return "warn", "no_pidfd", {"error": str(e)}
    return "ok", "pidfd", {}


def home(patient: Patient) -> Verdict:
    from jostle.config import NETWORK, file_system
    from jostle.store.private import check_way

    kind = file_system(patient.home)
    mode = os.stat(patient.home).st_mode & 0o777
    numbers = {"path": patient.home, "kind": kind, "mode": mode}
    if mode & 0o077:
        return "bad", "home_open", numbers
    try:
        check_way(patient.home)
    except Forbidden as e:
        return "bad", "home_way", {**numbers, "error": str(e)}
    if kind in NETWORK:
        return "bad", "home_network", numbers
    if kind in ("tmpfs", "ramfs"):
        return "warn", "home_volatile", numbers
    return "ok", "home", numbers


def disk(patient: Patient) -> Verdict:
    s = os.statvfs(patient.home)
    free = s.f_bavail * s.f_frsize // (1 << 20)
    numbers = {"free_mib": free, "files": s.f_favail}
    if free < 100 or (s.f_files and s.f_favail < 1000):
        return "bad", "disk_full", numbers
    return ("warn", "disk_low", numbers) if free < 1024 else ("ok", "disk", numbers)


def database(patient: Patient) -> Verdict:
    from jostle.store import seen
    from jostle.store.salvage import complaints

    path = file.database(patient.home)
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
    if (last := patient.session.reader.last_seq()) < expected:
        return "bad", "database_older", {"error": str(seen.older(path, last, expected))}
    return "ok", "database", {"size_mib": os.path.getsize(path) / (1 << 20)}


def settings(patient: Patient) -> Verdict:
    from jostle import config

    if not os.path.exists(config.config_file(patient.home)):
        return "ok", "no_settings", {}
    try:
        loaded = config.load(patient.home)
    except Invalid as e:
        first, *more = str(e).split("\n")
        return "bad", "settings_wrong", {"error": first, "more": len(more)}
    return "ok", "settings", {"keys": list(loaded)}


def engine(patient: Patient) -> Verdict:
    from jostle import __version__
    from jostle.client import condition
    from jostle.core.reasons import hold_of

    hello = patient.engine
    if not hello and patient.silent:
        return "bad", "engine_silent", {"pid": patient.silent, "condition": condition(patient.silent)}
    if not hello:
        waiting = sum(n for state, n in patient.session.reader.counts().items() if state in UNFINISHED)
        return ("bad", "engine_gone", {"jobs": waiting}) if waiting else ("ok", "no_engine", {})
    numbers = {"pid": hello["pid"], "version": hello["version"], "own": __version__}
    if hello["version"] != __version__:
        return "warn", "engine_other", numbers
    hold = hello.get("hold") or ""
    if hold and not hold_of(hold).gpus_only:  # those are a finding of the GPUs
        return "bad", "engine_holds", {**numbers, "hold": hold}
    return "ok", "engine", numbers


def gpus(patient: Patient) -> Verdict:
    """The driver: whether it answers. One that has answered before and is starting again does not."""
    from jostle.core.reasons import DRIVER_STARTING, PROBE_TROUBLES, Hold, as_text, hold_of
    from jostle.views.cards import cards as cards_view

    hold, trouble = patient.engine.get("hold") or "", patient.engine.get("probe") or ""
    if hold_of(trouble).code in PROBE_TROUBLES:
        return "bad", "driver_silent", {"hold": trouble}
    if hold_of(hold).code == DRIVER_STARTING:  # a look of our own would only wait with it
        answered = cards_view(patient.session, None).age_s is not None
        return ("bad", "driver_silent", {"hold": hold}) if answered else ("warn", "driver_starting", {"hold": hold})
    snapshot = patient.snapshot
    if snapshot["error"]:
        return "bad" if snapshot["gpus"] or snapshot.get("hold") else "warn", "gpus_error", {"error": snapshot["error"]}
    late = [gpu["silent_since"] for gpu in snapshot["gpus"] if gpu["state"] == "starting"]
    if late:
        return "warn", "driver_starting", {"hold": as_text(Hold(DRIVER_STARTING, f"{snapshot['at'] - min(late):.0f}"))}
    return "ok", "gpus", {"count": len(snapshot["gpus"]), "spec": patient.devices, "took_ms": snapshot["took_ms"]}


def cards(patient: Patient) -> Verdict:
    """Those that are not used: set aside as faulty, or not to be read."""
    from jostle.core.reasons import DRIVER_HOLDS, PROBE_TROUBLES, hold_of

    faulty = (patient.session.reader.meta("health") or {}).get("faulty") or {}
    try:
        codes = {hold_of(patient.engine.get(key) or "").code for key in ("hold", "probe")}
        silent = not codes.isdisjoint(DRIVER_HOLDS | PROBE_TROUBLES)
        seen = [] if silent else patient.snapshot["gpus"]
    except JostleError:
        seen = []  # a finding of the driver
    unread = [{key: gpu[key] for key in ("index", "state", "error")} for gpu in seen if gpu["state"] in ("lost", "unreadable")]
    if unread or faulty:
        return "bad", "cards_out", {"unread": unread, "faulty": faulty}
    return ("ok", "cards", {"count": len(seen)}) if seen else ("ok", "no_cards", {})


def leases(patient: Patient) -> Verdict:
    from jostle.config import lease_dir

    try:
        path = lease_dir(patient.home, patient.devices)
    except FileExistsError as e:
        path = str(e.filename)
    if not os.path.isdir(path):
        return "bad", "leases_missing", {"path": path}
    s = os.stat(path)
    numbers = {"path": path, "uid": s.st_uid, "mode": s.st_mode & 0o7777}
    if not os.access(path, os.W_OK | os.X_OK):
        return "bad", "leases_closed", numbers
    if s.st_uid not in (0, os.getuid()):
        return "bad", "leases_of_another", numbers
    if s.st_mode & 0o002 and not s.st_mode & 0o1000:
        return "bad", "leases_open", numbers
    return claims_removed(patient, path) or ("ok", "leases", numbers)


def claims_removed(patient: Patient, path: str) -> Verdict | None:
    """Whether somebody removed claims while they were held, ours or a neighbour's."""
    from jostle.store.reads import Reader

    if not os.path.exists(file.database(patient.home)):
        return None
    try:
        event = Reader(patient.home).newest_event(("republished", "vanished"), time.time() - 7 * 86400)
    except JostleError:
        return None  # a finding of the database
    if event is None:
        return None
    uid = None if event["kind"] == "republished" else event["data"].get("uid")
    return "warn", "claims_removed", {"path": path, "at": event["at"], "ours": event["kind"] == "republished", "uid": uid}


def notify(patient: Patient) -> Verdict:
    """Whether people are told: the process, each channel's secrets, and what does not get through."""
    from jostle.notify.status import status

    try:
        view = status(patient.home)
    except Invalid:
        return "ok", "no_notify", {}  # a finding of the settings
    for channel in view["channels"]:
        facts = {"channel": channel["name"], "waiting": channel["waiting"], "trouble": channel["flaw"] or channel["error"]}
        if channel["flaw"]:
            return "bad", "notify_wrong", facts
        if channel["damaged"]:
            return "bad", "notify_damaged", facts
        if channel["failing_since"] is not None:
            return "bad", "notify_failing", {**facts, "since": channel["failing_since"]}
    if view["channels"] and patient.engine and not view["running"]:
        return "bad", "notify_stopped", {"path": view["log"]}
    if dropped := sum(channel["dropped"] for channel in view["channels"]):
        return "warn", "notify_dropped", {"dropped": dropped}
    names = [channel["name"] for channel in view["channels"]]
    return ("ok", "notify", {"channels": names}) if names else ("ok", "no_notify", {})


def bash(patient: Patient) -> Verdict:
    for folder in os.environ.get("PATH", "/usr/bin:/bin").split(":"):
        path = os.path.join(folder, "bash")
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return "ok", "bash", {"path": path}
    return "bad", "no_bash", {}


def logout(patient: Patient) -> Verdict:
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


def clock(patient: Patient) -> Verdict:
    now = time.time()
    path = file.database(patient.home)
    if now < 1_700_000_000:
        return "warn", "clock_behind", {"at": now}
    if os.path.exists(path) and os.path.getmtime(path) > now + 120:
        return "warn", "clock_set_back", {"at": now}
    return "ok", "clock", {"at": now}


CHECKS: dict[str, Check] = {
    "engine": engine, "gpus": gpus, "cards": cards, "disk": disk, "leases": leases, "home": home, "database": database,
    "settings": settings, "notify": notify, "python": python, "bash": bash, "pidfd": pidfd, "logout": logout, "clock": clock,
}  # fmt: skip
