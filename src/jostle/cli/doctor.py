"""`jostle doctor`: looks for what is wrong with this host or installation, and says what to do about it.

Each check answers with (ok | warn | bad, what was found, advice). A check that fails itself is a finding, not a crash.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from shlex import quote
from typing import TYPE_CHECKING

from jostle import units
from jostle.cli import render
from jostle.errors import Damaged, Forbidden, Invalid, JostleError

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.desk import Desk
    from jostle.cli.parse import Parser

Finding = tuple[str, str, str]


def doctor_options(p: Parser) -> None:
    p.example("""
        jostle doctor
        jostle doctor --salvage      write what can be read of a damaged database into a new one
        jostle doctor --accept       go on with an older database that was put back on purpose""")
    p.add_argument("--salvage", action="store_true", help="recover a damaged database into a new file beside it")
    p.add_argument("--accept", action="store_true", help="go on with a database that is older than what was recorded")
    p.json_option()


def doctor(args: Namespace, desk: Desk) -> int:
    if args.salvage:
        return salvage(desk)
    if args.accept:
        return accept(desk)
    found = [(name, *looked(check, desk)) for name, check in CHECKS.items()]
    if args.json:
        desk.put_json({"schema": 1, "checks": [dict(zip(("name", "verdict", "found", "advice"), f, strict=True)) for f in found]})
    else:
        rows = [(name, verdict, text + (f"; {advice}" if advice else "")) for name, verdict, text, advice in found]
        desk.put(render.table(("CHECK", "VERDICT", "FOUND"), rows, paint_column=1, colours=desk.colours))
    return 1 if any(verdict == "bad" for _, verdict, _, _ in found) else 0


def looked(check: Callable[[Desk], Finding], desk: Desk) -> Finding:
    try:
        return check(desk)
    except JostleError as e:
        return "bad", str(e), ""
    except Exception as e:  # a doctor who falls ill must still see the other patients
        return "bad", f"the check itself failed: {type(e).__name__}: {e}", "please report this"


def python(desk: Desk) -> Finding:
    v = sys.version_info
    good = v >= (3, 10)
    return (
        "ok" if good else "bad",
        f"{v.major}.{v.minor}.{v.micro} at {sys.executable}",
        "" if good else "jostle needs 3.10 or newer",
    )


def pidfd(desk: Desk) -> Finding:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError) as e:
        return "warn", f"not available ({e})", "ends of jobs are seen within a second instead of at once"
    return "ok", "available", ""


def home(desk: Desk) -> Finding:
    from jostle.config import NETWORK, file_system
    from jostle.store.private import check_way

    kind = file_system(desk.home)
    mode = os.stat(desk.home).st_mode & 0o777
    text = f"{desk.home} on {kind or 'an unknown file system'}, mode {mode:o}"
    if mode & 0o077:
        return "bad", text, f"others can read your jobs: chmod 700 {desk.home}"
    try:
        check_way(desk.home)
    except Forbidden as e:
        return "bad", text, str(e)
    if kind in NETWORK:
        return "bad", text, "set JOSTLE_HOME to a directory on a local disk"
    if kind in ("tmpfs", "ramfs"):
        return "warn", text, "everything is forgotten at a reboot; set JOSTLE_HOME to a directory on a disk"
    return "ok", text, ""


def disk(desk: Desk) -> Finding:
    s = os.statvfs(desk.home)
    free = s.f_bavail * s.f_frsize // (1 << 20)
    files = s.f_favail
    text = f"{units.show_size(free)} free"
    if free < 100 or (s.f_files and files < 1000):
        return "bad", text + f", {files} inodes", "make room (`jostle clean`): nothing starts on a full disk"
    return ("warn", text, "make room soon: `jostle clean`") if free < 1024 else ("ok", text, "")


def database(desk: Desk) -> Finding:
    from jostle.store import seen
    from jostle.store.salvage import complaints

    path = os.path.join(desk.home, "jostle.db")
    if not os.path.lexists(path):
        if seen.noted(path):
            return "bad", "missing", "put it back, or `jostle doctor --accept` if you mean to begin anew"
        return "ok", "none yet", ""
    if not os.path.isfile(path):
        return "bad", f"{path} is no file", "move it away and put the database, or a copy, in its place"
    mode = os.lstat(path).st_mode & 0o777
    if mode & 0o077:
        return "bad", f"mode {mode:o}", f"chmod 600 {path}"
    expected = seen.noted(path)  # before the database, which may go on meanwhile
    found = complaints(path)
    if found:
        return "bad", " ".join(found[0].split()), "`jostle doctor --salvage` writes what can be read into a new file"
    if (last := desk.reader.last_seq()) < expected:
        return "bad", str(seen.older(path, last, expected)), ""
    return "ok", f"sound, {units.show_size(os.path.getsize(path) / (1 << 20))}", ""


def settings(desk: Desk) -> Finding:
    from jostle import config

    if not os.path.exists(config.config_file(desk.home)):
        return "ok", "no config.yaml: all defaults", ""
    try:
        found = config.load(desk.home)
    except Invalid as e:
        first, *more = str(e).split("\n")
        return "bad", first + (f" (and {len(more)} more)" if more else ""), "mend it, then `jostle up`"
    return "ok", f"config.yaml sets {', '.join(found) or 'nothing'}", ""


def devices_of(desk: Desk) -> str:
    """The devices, even if the settings have errors: those have a line of their own."""
    from jostle.views.cards import spec_of

    try:
        return spec_of(desk)
    except Invalid:
        return str(desk.reader.meta("spec") or "nvml")


def engine(desk: Desk) -> Finding:
    from jostle import __version__
    from jostle.core.reasons import GPU_HOLDS
    from jostle.wording.sentences import continued, on_hold

    client = desk.engine_if_any()
    if client is None:
        return "ok", "none runs; any verb that needs one starts it", ""
    hello = client.call("hello")
    client.close()
    text = f"pid {hello['pid']}, version {hello['version']}"
    if hello["version"] != __version__:
        return "warn", text, f"this command is version {__version__}: `jostle up` replaces the engine, jobs do not notice"
    hold = hello.get("hold") or ""
    if hold and not hold.startswith(GPU_HOLDS):  # those are a finding of the GPUs
        return "bad", f"{text}; {continued(on_hold(hold, desk.language))}", ""
    return "ok", text, ""


def gpus(desk: Desk) -> Finding:
    from jostle.views.cards import look
    from jostle.wording.sentences import set_aside

    spec = devices_of(desk)
    starting = driver_starting(desk)
    if starting:
        return "warn", starting, "persistence mode keeps it ready (an admin: nvidia-smi -pm 1)"
    seen = look(spec, desk.home)
    if seen["error"]:
        return "bad" if seen["gpus"] or seen.get("hold") else "warn", seen["error"], ""
    sick = [gpu for gpu in seen["gpus"] if gpu["state"] in ("lost", "unreadable")]
    told = [f"GPU {g['index']} is {g['state']}: {g['error']}" for g in sick]
    told += set_aside(desk.reader.meta("health"), desk.language)
    if told:
        return "bad", ", ".join(told), "the other cards are used"
    return "ok", f"{render.count(len(seen['gpus']), 'GPU')} by {spec}, read in {seen['took_ms']:.0f} ms", ""


def driver_starting(desk: Desk) -> str:
    """What the engine says of a driver that has not answered yet: a look of our own would only wait with it."""
    from jostle.wording.reasons import hold_text, language

    client = desk.engine_if_any()
    if client is None:
        return ""
    hold = client.call("hello").get("hold") or ""
    client.close()
    return hold_text(hold, language(desk.language)) if hold.startswith("driver_starting") else ""


def leases(desk: Desk) -> Finding:
    from jostle.config import lease_dir

    path = lease_dir(desk.home, devices_of(desk))
    s = os.stat(path)
    text = f"{path}, owner uid {s.st_uid}, mode {s.st_mode & 0o7777:o}"
    if not os.access(path, os.W_OK | os.X_OK):
        return "bad", text, "an admin can prepare one: mkdir -m 1777 /run/lock"
    if s.st_uid not in (0, os.getuid()):
        whose = f"uid {s.st_uid} could remove your claims, and put others there"
        return "bad", text, f"{whose}: set JOSTLE_LEASE_DIR to one of root's; an admin can prepare it (mkdir -m 1777)"
    if s.st_mode & 0o002 and not s.st_mode & 0o1000:
        return "bad", text, f"others could remove your claims: an admin should chmod 1777 {path}"
    return claims_removed(desk, path) or ("ok", text, "")


def claims_removed(desk: Desk, path: str) -> Finding | None:
    """Whether somebody removed claims while they were held, ours or a neighbour's."""
    from jostle.store.reads import Reader

    if not os.path.exists(os.path.join(desk.home, "jostle.db")):
        return None
    try:
        seen = Reader(desk.home).newest_event(("republished", "vanished"), time.time() - 7 * 86400)
    except JostleError:
        return None  # a finding of the database
    if seen is None:
        return None
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seen["at"]))
    whose = "of your runs" if seen["kind"] == "republished" else f"of uid {seen['data'].get('uid')}"
    return "warn", f"claims {whose} in {path} were removed while they were held, last at {when}", (
        f"tell whatever cleans temporary files to spare {path}/jostle-* (systemd-tmpfiles: a line `x {path}/jostle-*`)"
    )  # fmt: skip


def bash(desk: Desk) -> Finding:
    for folder in os.environ.get("PATH", "/usr/bin:/bin").split(":"):
        path = os.path.join(folder, "bash")
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return "ok", path, ""
    return "bad", "not on PATH", "commands of job files are run by bash: install it"


def logout(desk: Desk) -> Finding:
    """Whether the engine and jobs survive the end of the login."""
    import pwd

    if not os.path.isdir("/run/systemd/system"):
        return "ok", "no systemd: nothing ends processes at logout", ""
    user = pwd.getpwuid(os.getuid()).pw_name
    if os.path.exists(f"/var/lib/systemd/linger/{user}"):
        return "ok", "lingering is on: jobs go on after logout", ""
    if kills_user_processes():
        return "bad", "systemd-logind ends all your processes at logout", "run `loginctl enable-linger`"
    return "ok", "processes go on after logout", ""


def kills_user_processes() -> bool:
    from glob import glob

    said = False
    for path in ["/usr/lib/systemd/logind.conf", "/etc/systemd/logind.conf", *sorted(glob("/etc/systemd/logind.conf.d/*.conf"))]:
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                for line in f:
                    key, _, value = line.strip().partition("=")
                    if key.strip() == "KillUserProcesses":
                        said = value.strip().lower() in ("1", "yes", "true", "on")
        except OSError:
            continue
    return said


def clock(desk: Desk) -> Finding:
    now = time.time()
    text = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now))
    path = os.path.join(desk.home, "jostle.db")
    if now < 1_700_000_000:
        return "warn", text, "the clock is years behind; times shown will be wrong, waits will not"
    if os.path.exists(path) and os.path.getmtime(path) > now + 120:
        return "warn", text + ", before the last change of the database", "the clock was set back: times may be out of order"
    return "ok", text, ""


CHECKS: dict[str, Callable[[Desk], Finding]] = {
    "python": python, "home": home, "disk": disk, "settings": settings, "database": database, "engine": engine, "gpus": gpus,
    "leases": leases, "bash": bash, "pidfd": pidfd, "logout": logout, "clock": clock,
}  # fmt: skip


def salvage(desk: Desk) -> int:
    from jostle.store import salvage as rescue

    path = os.path.join(desk.home, "jostle.db")
    if not os.path.exists(path):
        desk.say(f"there is no database at {path}")
        return 4
    stamp = time.strftime("%Y%m%d-%H%M%S")
    to = os.path.join(desk.home, f"salvaged-{stamp}.db")
    counts = rescue.salvage(path, to)
    for table, (saved, gaps) in counts.items():
        desk.put(f"{table:<8} {saved:>8} rows" + (f", {render.count(gaps, 'gap')}" if gaps else ""))
    if not any(saved for saved, _ in counts.values()):
        os.unlink(to)
        raise Damaged(f"nothing can be read of {path}; it is as it was. Put a copy in its place, if there is one")
    desk.say(f"written to {to}; the damaged file is as it was. To go on with the new one:")
    desk.say("\n".join(going_on(path, to, stamp)))
    return 0


def accept(desk: Desk) -> int:
    """What was recorded after this database was, is given up by a person's word."""
    from jostle.store import seen

    path = os.path.join(desk.home, "jostle.db")
    expected = seen.noted(path)
    if desk.engine_runs() or desk.reader.last_seq() >= expected:
        desk.say(f"there is nothing to accept: {path} has all that was recorded")
        return 0
    seen.accept(path)
    desk.say(f"{path} is taken as it is: events {desk.reader.last_seq() + 1} to {expected} are given up")
    return 0


def going_on(path: str, new: str, stamp: str) -> list[str]:
    """The damaged file goes together with its journal: what is in that would be played into the new one."""
    aside = os.path.join(os.path.dirname(path), f"damaged-{stamp}")
    return [
        "  jostle down",
        f"  mkdir {quote(aside)} && mv {quote(path)}* {quote(aside)}",
        f"  mv {quote(new)} {quote(path)}",
    ]
