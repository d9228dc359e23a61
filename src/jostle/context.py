"""What a submit captures of its surroundings: environment, umask and limits. The working directory is each job's own."""

from __future__ import annotations

import os
import resource

# Of the terminal and the login, not of the work: they would be stale, or lead a job to someone's screen or agent.
SESSION = frozenset((
    "_", "COLORTERM", "COLUMNS", "DBUS_SESSION_BUS_ADDRESS", "DESKTOP_SESSION", "DISPLAY", "GPG_AGENT_INFO", "GPG_TTY",
    "INVOCATION_ID", "JOURNAL_STREAM", "LINES", "LS_COLORS", "NOTIFY_SOCKET", "OLDPWD", "PS1", "PS2", "SHLVL", "STY",
    "WAYLAND_DISPLAY",
    "WINDOW", "WINDOWID", "XAUTHORITY", "XDG_SEAT", "XDG_VTNR",
))  # fmt: skip
SESSION_PREFIXES = ("TERM", "TMUX", "SSH_", "XDG_SESSION_", "VTE_", "ITERM_", "KITTY_", "VSCODE_", "LC_TERMINAL", "LISTEN_")

LIMITS = ("nofile", "stack", "core", "memlock", "as", "data", "fsize", "nproc")

# A job that submits a job must not pass its own identity and cards on.
OURS = frozenset((
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "JOSTLE_JOB_ID", "JOSTLE_RUN", "JOSTLE_ATTEMPT", "JOSTLE_UNI_ID", "JOSTLE_QUEUE",
    "JOSTLE_CPUS", "JOSTLE_GPUS", "JOSTLE_GPUS_FILE", "JOSTLE_ALLOC", "JOSTLE_TERMINAL",
))  # fmt: skip


def capture() -> dict[str, object]:
    umask = os.umask(0o077)
    os.umask(umask)
    return {"env": environment(dict(os.environ)), "umask": umask, "limits": limits()}


def environment(env: dict[str, str]) -> dict[str, str]:
    inside_a_run = "JOSTLE_UNI_ID" in env or "JOSTLE_ALLOC" in env
    return {
        name: value
        for name, value in env.items()
        if name not in SESSION and not name.startswith(SESSION_PREFIXES) and not (inside_a_run and name in OURS)
    }


def limits() -> dict[str, list[int]]:
    return {name: list(resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))) for name in LIMITS}
