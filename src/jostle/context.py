"""What a submit captures of its surroundings: environment, umask and limits. The working directory is each job's own."""

from __future__ import annotations

import os
import resource

from jostle.core.runvariables import passed_on

# Of the terminal and the login, not of the work: they would be stale, or lead a job to someone's screen or agent.
SESSION = frozenset((
    "_", "COLORTERM", "COLUMNS", "DBUS_SESSION_BUS_ADDRESS", "DESKTOP_SESSION", "DISPLAY", "GPG_AGENT_INFO", "GPG_TTY",
    "INVOCATION_ID", "JOURNAL_STREAM", "LINES", "LS_COLORS", "NOTIFY_SOCKET", "OLDPWD", "PS1", "PS2", "SHLVL", "STY",
    "WAYLAND_DISPLAY",
    "WINDOW", "WINDOWID", "XAUTHORITY", "XDG_SEAT", "XDG_VTNR",
))  # fmt: skip
SESSION_PREFIXES = ("TERM", "TMUX", "SSH_", "XDG_SESSION_", "VTE_", "ITERM_", "KITTY_", "VSCODE_", "LC_TERMINAL", "LISTEN_")

LIMITS = ("nofile", "stack", "core", "memlock", "as", "data", "fsize", "nproc")


def capture() -> dict[str, object]:
    umask = os.umask(0o077)
    os.umask(umask)
    return {"env": environment(dict(os.environ)), "umask": umask, "limits": limits()}


def environment(env: dict[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in passed_on(env).items()
        if name not in SESSION and not name.startswith(SESSION_PREFIXES)
    }


def limits() -> dict[str, list[int]]:
    return {name: list(resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))) for name in LIMITS}
