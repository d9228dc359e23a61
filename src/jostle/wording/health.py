"""What `doctor` says of each finding, and its advice. In English; of holds and faulty cards in the reader's language."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from jostle.units import show_size
from jostle.wording.reasons import hold_text, language
from jostle.wording.sentences import continued, on_hold, set_aside
from jostle.wording.text import count

HOME = "{path} on {kind}, mode {mode:o}"
LEASES = "{path}, owner uid {uid}, mode {mode:o}"
ENGINE = "pid {pid}, version {version}"

FOUND: dict[str, tuple[str, str]] = {
    "error": ("{error}", ""),
    "check_failed": ("the check itself failed: {error}", "please report this"),
    "python": ("{version} at {path}", ""),
    "python_old": ("{version} at {path}", "jostle needs 3.10 or newer"),
    "pidfd": ("available", ""),
    "no_pidfd": ("not available ({error})", "ends of jobs are seen within a second instead of at once"),
    "home": (HOME, ""),
    "home_open": (HOME, "others can read your jobs: chmod 700 {path}"),
    "home_way": (HOME, "{error}"),
    "home_network": (HOME, "set JOSTLE_HOME to a directory on a local disk"),
    "home_volatile": (HOME, "everything is forgotten at a reboot; set JOSTLE_HOME to a directory on a disk"),
    "disk": ("{free_mib} free", ""),
    "disk_low": ("{free_mib} free", "make room soon: `jostle clean`"),
    "disk_full": ("{free_mib} free, {files} inodes", "make room (`jostle clean`): nothing starts on a full disk"),
    "database": ("sound, {size_mib}", ""),
    "no_database": ("none yet", ""),
    "database_missing": ("missing", "put it back, or `jostle doctor --accept` if you mean to begin anew"),
    "database_no_file": ("{path} is no file", "move it away and put the database, or a copy, in its place"),
    "database_open": ("mode {mode:o}", "chmod 600 {path}"),
    "database_damaged": ("{error}", "`jostle doctor --salvage` writes what can be read into a new file"),
    "settings": ("config.yaml sets {keys}", ""),
    "no_settings": ("no config.yaml: all defaults", ""),
    "settings_wrong": ("{error}{more}", "mend it, then `jostle up`"),
    "engine": (ENGINE, ""),
    "no_engine": ("none runs; any verb that needs one starts it", ""),
    "engine_other": (ENGINE, "this command is version {own}: `jostle up` replaces the engine, jobs do not notice"),
    "engine_holds": (ENGINE + "; {on_hold}", ""),
    "gpus": ("{gpus} by {spec}, read in {took_ms:.0f} ms", ""),
    "gpus_out": ("{out}", "the other cards are used"),
    "driver_starting": ("{hold}", "persistence mode keeps it ready (an admin: nvidia-smi -pm 1)"),
    "leases": (LEASES, ""),
    "leases_closed": (LEASES, "an admin can prepare one: mkdir -m 1777 /run/lock"),
    "leases_of_another": (
        LEASES,
        "uid {uid} could remove your claims, and put others there: set JOSTLE_LEASE_DIR to one of root's; "
        "an admin can prepare it (mkdir -m 1777)",
    ),
    "leases_open": (LEASES, "others could remove your claims: an admin should chmod 1777 {path}"),
    "claims_removed": (
        "claims {whose} in {path} were removed while they were held, last at {at}",
        "tell whatever cleans temporary files to spare {path}/jostle-* (systemd-tmpfiles: a line `x {path}/jostle-*`)",
    ),
    "bash": ("{path}", ""),
    "no_bash": ("not on PATH", "commands of job files are run by bash: install it"),
    "logout": ("processes go on after logout", ""),
    "no_systemd": ("no systemd: nothing ends processes at logout", ""),
    "lingering": ("lingering is on: jobs go on after logout", ""),
    "logout_ends_all": ("systemd-logind ends all your processes at logout", "run `loginctl enable-linger`"),
    "clock": ("{at} {zone}", ""),
    "clock_behind": ("{at} {zone}", "the clock is years behind; times shown will be wrong, waits will not"),
    "clock_set_back": (
        "{at} {zone}, before the last change of the database", "the clock was set back: times may be out of order",
    ),
}  # fmt: skip


def said(code: str, params: Mapping[str, Any], lang: str) -> tuple[str, str]:
    """What was found, and the advice."""
    found, advice = FOUND[code]
    shown = {**params, **_shown(params, lang)}
    return found.format(**shown), advice.format(**shown)


def _shown(params: Mapping[str, Any], lang: str) -> dict[str, Any]:
    shown: dict[str, Any] = {key: show_size(value) for key, value in params.items() if key.endswith("_mib")}
    if "kind" in params:
        shown["kind"] = params["kind"] or "an unknown file system"
    if "keys" in params:
        shown["keys"] = ", ".join(params["keys"]) or "nothing"
    if "more" in params:
        shown["more"] = f" (and {params['more']} more)" if params["more"] else ""
    if "count" in params:
        shown["gpus"] = count(params["count"], "GPU")
    if "hold" in params:
        shown |= {"hold": hold_text(params["hold"], language(lang)), "on_hold": continued(on_hold(params["hold"], lang))}
    if "unread" in params:
        unread = [f"GPU {gpu['index']} is {gpu['state']}: {gpu['error']}" for gpu in params["unread"]]
        shown["out"] = ", ".join([*unread, *set_aside(params, lang)])
    if "ours" in params:
        shown["whose"] = "of your runs" if params["ours"] else f"of uid {params['uid']}"
    if "at" in params:
        local = time.localtime(params["at"])
        shown |= {"at": time.strftime("%Y-%m-%d %H:%M:%S", local), "zone": time.strftime("%Z", local)}
    return shown
