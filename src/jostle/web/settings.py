"""The console's own settings (`config/control_setting.yaml`, SPEC A37), as the page of the source system knows them.

Rules: `secret` is written, never shown: a new one replaces the token, and the file never holds it. What would open the console to
others, or lead it to other places on the disk, is not for a browser (RELIABILITY S51).
"""

from __future__ import annotations

import os
from typing import Annotated, Any

from fastapi import APIRouter, Depends

from jostle.errors import Forbidden, Invalid
from jostle.formats import processyaml, yamledit
from jostle.web import files
from jostle.web.answers import Values
from jostle.web.instances import PORT
from jostle.web.place import ADDRESS, LEVELS, OBEYED, PLACES, fits
from jostle.web.place import SETTINGS as FILE
from jostle.web.site import Visit, visit, workspace_of
from jostle.wording.flaws import flaw

routes = APIRouter()
Visiting = Annotated[Visit, Depends(visit)]
ABOUT: dict[str, tuple[Any, bool, str]] = {
    "port": (PORT, True, "where the console listens; the next free port if it is taken"),
    "bind-address": (ADDRESS["bind-address"], True, "the address; another one is said on the command line: `jostle web --bind`"),
    "allow-lan": (ADDRESS["allow-lan"], True, "whether others on the network may connect: `jostle web --bind … --allow-lan`"),
    "log-level": ("info", True, "how much the console's log says: debug, info, warning or error"),
    "secret": (None, False, "a new token; everybody who is logged in has to log in again"),
    "target-yaml-path": (PLACES["target-yaml-path"], False, "the settings of the workspace: always this file"),
    "log-dir": (PLACES["log-dir"], False, "where the console keeps log bindings: always this directory"),
}
FIXED = (*ADDRESS, *PLACES)
NO_EFFECT = "has no effect: it is always {}"
IGNORED = "a secret in this file is not used: the token lies in a file of its own (`jostle web --token`)"


def values(root: str) -> dict[str, Any]:
    raw = files.content(root, FILE)
    in_file = processyaml.values(raw.decode("utf-8", "replace"), FILE) if raw else {}
    return {key: in_file.get(key, default) for key, (default, _, _) in ABOUT.items()}


@routes.get("/api/settings")
def settings(visit: Visiting, workspace: str | None = None) -> dict[str, Any]:
    now = values(workspace_of(visit.site, workspace))
    if visit.caller.reads_only:  # what else a file says may be anything
        now = {key: value if isinstance(value, int) or value in LEVELS else None for key, value in now.items()}
    warning = dict.fromkeys(ADDRESS, "cannot be changed from a browser")
    warning |= {key: NO_EFFECT.format(place) for key, place in PLACES.items()}
    if now["secret"]:
        warning["secret"] = IGNORED
    return {
        key: {
            "value": None if key == "secret" else now[key], "requires_restart": restart, "warning": warning.get(key),
            "description": what,
        }
        for key, (_, restart, what) in ABOUT.items()
    }  # fmt: skip


@routes.put("/api/settings")
def save(visit: Visiting, body: Values, workspace: str | None = None) -> dict[str, Any]:
    root = workspace_of(visit.site, workspace)
    now = values(root)
    body = {key: value["value"] if isinstance(value, dict) and "value" in value else value for key, value in body.items()}
    unknown = [key for key in body if key not in ABOUT]
    if unknown:
        raise Invalid(f"there is no setting {unknown[0][:100]}; expected one of {', '.join(ABOUT)}")
    secret = body.pop("secret", None)
    new = {key: checked(key, value) for key, value in body.items() if value != now[key]}
    fixed = [key for key in new if key in FIXED]
    if moved := next((key for key in fixed if key in PLACES), None):
        raise Forbidden(f"{moved} is always {PLACES[moved]}: nothing moves it, a browser least of all")
    warnings = [f"{key} never takes effect from a browser: {ABOUT[key][2]}" for key in fixed]
    new = {key: value for key, value in new.items() if key not in FIXED}
    if new:
        raw = files.content(root, FILE)
        text = raw.decode("utf-8", "replace") if raw else ""
        for key, value in new.items():
            text = yamledit.updated(text, (key,), value)
        files.save(root, FILE, text.encode(), backup=os.path.basename(FILE) + ".backup")
        visit.note("settings", ", ".join(new))
    if secret:
        if not isinstance(secret, str):
            raise Invalid("secret: expected a text")
        visit.site.secrets.rotate(chosen=secret)
        visit.note("settings", "secret")
        warnings.append("the token is another one: log in again")
    return {"message": "saved", "requires_restart": [key for key in new if ABOUT[key][1]], "warnings": warnings}


def checked(key: str, value: Any) -> Any:
    if key in OBEYED and not fits(key, value):
        raise Invalid(flaw("setting_odd", key=key, expected=OBEYED[key]))
    if key in ("bind-address", *PLACES) and not (isinstance(value, str) and len(value) < 1000):
        raise Invalid(f"{key}: expected a text")
    return value
