"""Where a console is: the workspace that is meant, what its settings say of the start, and the way there from another computer.
Standard library only but for the settings: the command line imports this."""

from __future__ import annotations

import os
import pwd
import socket
from typing import Any

from jostle.client import Tell, silent
from jostle.errors import Forbidden, NotFound
from jostle.formats.processyaml import ProcessYAML
from jostle.web.instances import folder

SETTINGS = os.path.join("config", "control_setting.yaml")
LEVELS = ("debug", "info", "warning", "error")
OBEYED = {"port": "1-65535", "log-level": ", ".join(LEVELS)}  # what is expected of them
ADDRESS = {"bind-address": "127.0.0.1", "allow-lan": False}  # another one is said by an option, never by a file
PLACES = {"target-yaml-path": "config/gpu_manage.yaml", "log-dir": "control/logs"}  # always: others look for them there (A9, A39)


def settings(space: str | None, tell: Tell) -> dict[str, Any]:
    """Of `config/control_setting.yaml` (SPEC A37): what a start obeys. What else a person says there is told to be of no use."""
    path = os.path.join(space or "", SETTINGS)
    if space is None or not os.path.isfile(path):
        return {}
    values = ProcessYAML(path).get_config()
    if values.get("secret"):
        tell("console_secret", path=path)
    for key, usual in ADDRESS.items():
        if values.get(key, usual) != usual:
            tell("console_address", path=path, key=key)
    for key, place in PLACES.items():
        if os.path.normpath(os.path.join(space, str(values.get(key, place)))) != os.path.join(space, place):
            tell("console_place", path=path, key=key, fixed=place)
    for key, expected in OBEYED.items():
        if key in values and not fits(key, values[key]):
            tell("console_setting", path=path, key=key, expected=expected)
    return {key: values[key] for key in OBEYED if key in values and fits(key, values[key])}


def fits(key: str, value: Any) -> bool:
    return value in LEVELS if key == "log-level" else type(value) is int and 0 < value < 65536


def tunnel(port: int) -> str:
    try:
        user = pwd.getpwuid(os.getuid()).pw_name + "@"
    except KeyError:
        user = ""
    return f"ssh -L {port}:localhost:{port} {user}{socket.gethostname()}"


def workspace(home: str, space: str | None, tell: Tell = silent) -> str | None:
    """The one that is named; else this directory, if it is one; else the last one that was used."""
    kept = os.path.join(folder(home), "workspace")
    if space is None and not _is_workspace(os.getcwd()):
        try:
            with open(kept, encoding="utf-8", errors="surrogateescape") as f:
                last = f.read().rstrip("\n")
        except OSError:
            return None
        return last if os.path.isdir(last) else None
    path = os.path.abspath(space or os.getcwd())
    check(path)
    if not _is_workspace(path):
        tell("console_no_workspace", path=path)
    private = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(private, "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write(path + "\n")
    return path


def check(path: str) -> None:
    """Whether a directory that is named is a workspace, or can become one: what lies in it is run as our own."""
    if not os.path.isdir(path):
        raise NotFound(f"there is no directory {path}; expected a workspace (command/, config/, logs/)")
    s = os.stat(path)
    if not _is_workspace(path) and (s.st_uid != os.getuid() or s.st_mode & 0o002):
        raise Forbidden(
            f"{path} is no workspace (it has no command/ and no config/gpu_manage.yaml) and others can put files there: "
            "name a directory of your own"
        )


def _is_workspace(path: str) -> bool:
    return any(os.path.exists(os.path.join(path, name)) for name in ("command", "config/gpu_manage.yaml", "command.txt"))
