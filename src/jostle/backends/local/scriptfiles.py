"""Where scripts of the older kind write their uni_id file, whatever the settings say: `script_process/uni_id.json` (SPEC A21).

Their shell functions name a file beside the script, or in the directory they run in, and end with exit code 0 after
reporting a failure. An id is unique, so an entry of ours in any such file is our script's word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

NAME = os.path.join("script_process", "uni_id.json")
MOST = 16
_BETWEEN = re.compile(r"[\s;&|()<>='\"]+")


def files(spec: dict[str, Any], but: str) -> list[str]:
    """The files that exist, other than the one that is watched anyway."""
    paths: dict[str, None] = {}
    for folder in _folders(spec):
        path = os.path.join(folder, NAME)
        if os.path.isfile(path) and os.path.realpath(path) != os.path.realpath(but):
            paths[path] = None
        if len(paths) >= MOST:
            break
    return list(paths)


def _folders(spec: dict[str, Any]) -> Iterator[str]:
    """The working directory, and that of each script which a command names, and the one above it."""
    yield spec["workdir"]
    for command in spec["commands"]:
        for word in command if isinstance(command, list) else _BETWEEN.split(command[:10_000]):
            path = os.path.join(spec["workdir"], word)
            if word.endswith((".sh", ".bash", ".py")) and os.path.isfile(path):
                yield os.path.dirname(path)
                yield os.path.dirname(os.path.dirname(path))
