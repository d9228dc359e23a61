"""Where snapshots of work trees are kept, and how they go: those that no unfinished batch runs from, after a while."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator

FOLDER = "frozen"  # in the home
KEEP_NEW = 3600.0  # s; a snapshot that was just made or found again may belong to a batch that is being submitted
NEVER = frozenset((".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"))


def entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as listing:
            return sorted(listing, key=lambda entry: entry.name)
    except PermissionError:
        return []


def folders(path: str) -> Iterator[str]:
    for folder, _, _ in os.walk(path):
        yield folder


def unused(home: str, in_use: Iterable[str], before: float) -> list[str]:
    """Snapshots that no batch in use runs from and that were last made or found again before that. `in_use` are the paths
    (about.frozen.path) of batches with unfinished jobs. What was half made by a process that died is among them."""
    folder = os.path.join(home, FOLDER)
    used = {os.path.basename(os.path.dirname(path)) for path in in_use}
    paths = []
    for entry in entries(folder) if os.path.isdir(folder) else ():
        old = entry.stat(follow_symlinks=False).st_mtime < min(before, time.time() - KEEP_NEW)
        if entry.is_dir(follow_symlinks=False) and entry.name not in used and old:
            paths.append(entry.path)
    return paths


def strays(path: str) -> list[str]:
    """What somebody who may write anywhere has put into a snapshot; it would be lost with it."""
    try:
        with open(os.path.join(path, "about.json"), encoding="utf-8", errors="surrogateescape") as f:
            about = json.load(f)
    except (OSError, ValueError):
        return []
    recorded = {*about["files"], *about["links"]}
    tree = os.path.join(path, "tree")
    strangers = []
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if name not in NEVER]
        strangers += [rel for name in files if (rel := os.path.relpath(os.path.join(folder, name), tree)) not in recorded]
    return sorted(strangers)


def remove(path: str) -> None:
    """A snapshot and its records; links are removed, never what they lead to."""
    for folder in folders(path):  # from the top: a folder must be writable before its children can go
        os.chmod(folder, 0o700)
    shutil.rmtree(path, ignore_errors=True)
