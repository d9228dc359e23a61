"""`conda activate` in a command (SPEC A20): conda's shell functions are sourced first, where an installation is found.

Rules: only in commands that mention it; on the command's own first line, so that line numbers stay; with nothing found the
command stays as it is, and bash says what it thinks of it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping

HOOK = "etc/profile.d/conda.sh"
IN_HOME = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "miniconda", "anaconda", "conda", ".conda")
ELSEWHERE = (
    "/opt/conda", "/opt/miniconda3", "/opt/anaconda3", "/opt/miniforge3", "/opt/mambaforge", "/opt/miniconda", "/opt/anaconda",
    "/usr/local/miniconda3", "/usr/local/anaconda3", "/usr/local/miniforge3", "/usr/local/conda",
)  # fmt: skip

_MENTIONED = re.compile(r"(?<![\w./-])conda[ \t]+(?:activate|deactivate)(?![\w-])")
_SOURCED = re.compile(r"profile\.d/conda\.sh|conda[ \t]+shell\.")


def hooked(command: str, env: Mapping[str, str]) -> str:
    """The command, after conda's hook if it needs one that can be found."""
    if "conda" not in command or not _MENTIONED.search(command) or _SOURCED.search(command):
        return command
    try:
        hook = next((path for base in _bases(env) if os.path.isfile(path := os.path.join(base, HOOK))), None)
    except (OSError, ValueError):  # a variable that is no path
        hook = None
    if hook is None:
        return command
    quoted = "'" + hook.replace("'", "'\\''") + "'"
    return f". {quoted} || :; {command}"


def _bases(env: Mapping[str, str]) -> Iterator[str]:
    """Where an installation may be, the likeliest first; only absolute paths, for ours is not the job's directory."""
    programs = [env.get("CONDA_EXE", "")]
    programs += [os.path.join(directory, "conda") for directory in env.get("PATH", os.defpath).split(":")]
    for program in programs:
        if program.startswith("/") and os.access(program, os.X_OK):
            for path in (program, os.path.realpath(program)):
                yield os.path.dirname(os.path.dirname(path))
    home = env.get("HOME", "")
    if home.startswith("/"):
        yield from (os.path.join(home, name) for name in IN_HOME)
    yield from ELSEWHERE
    if home.startswith("/"):
        yield from _installations(os.path.join(home, ".conda", "environments.txt"))


def _installations(path: str) -> list[str]:
    """The environments that conda itself has noted; the base is among them."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return []
    try:
        lines = os.read(fd, 1 << 16).splitlines() if stat.S_ISREG(os.fstat(fd).st_mode) else []
    except OSError:
        lines = []
    finally:
        os.close(fd)
    return [os.fsdecode(line.strip()) for line in lines if line.startswith(b"/")]
