"""Relative paths that lead out of a work tree: from a snapshot of it they would lead elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

_WORD = re.compile(r"(?<![$`])(?<![^\s'\"=:;|&<>(),])[^\s'\"=:;|&<>(),$`]+(?![$`])")


def as_written(workdir: str, text: str) -> str:
    """Where a path lies that is relative to where a command runs; a `..` at its beginning is still to be seen."""
    path = os.path.join(workdir, os.path.expanduser(text))
    return path if text.startswith("../") else os.path.normpath(path)


def paths(job: Mapping[str, Any], at: str) -> list[str]:
    """Relative paths that a job names, in a directory `at` of its tree, and that lead out of the tree; where not even the folder
    is there it is no path."""
    texts = [text for command in job["commands"] for text in ([command] if isinstance(command, str) else command)]
    words = [*texts, *job["env"].values(), *(word for text in (*texts, *job["env"].values()) for word in _WORD.findall(text))]
    inputs = {path[len(job["workdir"]) + 1 :] for path in job.get("inputs") or () if path.startswith(job["workdir"] + "/")}
    return [
        word
        for word in dict.fromkeys((*words, *sorted(inputs)))
        if not word.startswith(("/", "~")) and os.path.normpath(os.path.join(at, word)).split("/")[0] == ".."
        and (word in inputs or os.path.isdir(os.path.dirname(os.path.join(job["workdir"], word))))
    ]  # fmt: skip
