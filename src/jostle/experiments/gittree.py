"""A git work tree as a snapshot sees it: what belongs to it, its commit, and what differs from that. Changes nothing in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jostle.errors import JostleError
from jostle.experiments import secrets

OPTIONS = ("-c", "core.fsmonitor=false", "-c", "core.quotepath=off")
WITHIN = 60.0  # s
QUICKLY = 10.0  # s; for what is only told: a huge tree on a slow disk must not hold up a submit


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    commit: str | None  # None: nothing was ever committed
    dirty: bool  # whether anything differs from the commit
    diff: str  # of what is tracked and holds no secrets, against the commit
    untracked: tuple[str, ...]  # neither tracked nor ignored
    files: frozenset[str]  # relative to the top, with those of submodules


def top(directory: str) -> str | None:
    """The top of the work tree that a directory is part of; None without git, outside of one, or where it is ignored."""
    try:
        answer = _git(directory, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        return None
    except JostleError as e:
        if "not a git repository" in str(e):
            return None
        raise  # such as a tree that belongs to somebody else: git says what to do
    root = os.path.realpath(os.fsdecode(answer).rstrip("\n"))
    place = os.path.realpath(directory)
    return None if place != root and _ignored(root, place) else root


def _ignored(root: str, path: str) -> bool:
    return _run(root, "check-ignore", "-q", path).returncode == 0


def look(root: str) -> Tree:
    commit: str | None
    try:
        commit = os.fsdecode(_git(root, "rev-parse", "--verify", "--quiet", "HEAD")).strip()
        show = ("--binary", "--no-ext-diff", "--no-textconv", "--no-renames")
        diff = _git(root, "diff", "HEAD", *show, "--", *secrets.pathspecs()).decode("utf-8", "replace")
        changed = diff or _git(root, "diff", "HEAD", "--name-only", "--no-ext-diff")
    except JostleError:
        commit, diff, changed = None, "", ""
    untracked = _listed(root, "--others")
    files = frozenset(_with_nested(root, [*_listed(root, "--cached"), *untracked]))
    dirty = bool(changed or untracked or commit is None)
    return Tree(commit=commit, diff=diff, dirty=dirty, untracked=tuple(untracked), files=files)


def tracked(root: str, apart: Iterable[str] = ()) -> dict[str, Any]:
    """{"commit", "dirty", "tree"}: the commit, whether what is tracked differs from it, and git's name for the content of all
    that is tracked but these files. Found with an index and objects of our own."""
    commit = _revision(root, "HEAD")
    places = _text(root, "rev-parse", "--git-path", "index", "--git-path", "objects")
    index, objects = (os.path.join(root, path) for path in places)
    with tempfile.TemporaryDirectory(prefix="jostle-") as scratch:
        env = {"GIT_INDEX_FILE": f"{scratch}/index", "GIT_OBJECT_DIRECTORY": scratch, "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
        if os.path.exists(index):
            shutil.copy2(index, env["GIT_INDEX_FILE"])  # with its time, by which git knows what may have been edited since
        _git(root, "add", "-u", env=env, within=QUICKLY)
        (full_tree,) = _text(root, "write-tree", "--missing-ok", env=env)
        left_out = "".join(f"{path}\0" for path in apart)
        _git(root, "update-index", "--force-remove", "-z", "--stdin", env=env, stdin=os.fsencode(left_out))
        (tree,) = _text(root, "write-tree", "--missing-ok", env=env)
    return {"commit": commit, "dirty": commit is None or full_tree != _revision(root, "HEAD^{tree}"), "tree": tree}


def _revision(root: str, name: str) -> str | None:
    process = _run(root, "rev-parse", "--verify", "--quiet", name)
    return None if process.returncode else os.fsdecode(process.stdout).strip()


def _text(root: str, *words: str, env: Mapping[str, str] | None = None) -> list[str]:
    return os.fsdecode(_git(root, *words, env=env)).splitlines()


def _listed(root: str, which: str) -> list[str]:
    names = _git(root, "ls-files", "-z", which, "--exclude-standard").split(b"\0")
    return [name for raw in names if raw and is_text(name := os.fsdecode(raw))]


def _with_nested(root: str, listed: list[str]) -> list[str]:
    """Submodules, and work trees inside of this one, are listed as one entry."""
    files = []
    for name in listed:
        path = os.path.join(root, name)
        if os.path.isdir(path) and not os.path.islink(path):
            inner = _listed(path, "--cached") + _listed(path, "--others") if os.path.exists(os.path.join(path, ".git")) else []
            files += [os.path.join(name.rstrip("/"), below) for below in _with_nested(path, inner)]
        else:
            files.append(name)
    return files


def is_text(path: str) -> bool:
    """Names that are not UTF-8 are no code."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _run(
    directory: str, *words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"", within: float = WITHIN
) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    """`env` goes over ours; `stdin` is what git reads."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")}
    full = {**inherited, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", **(env or {})}
    command = ["git", "-C", directory, *OPTIONS, *words]
    try:
        return subprocess.run(command, env=full, input=stdin, capture_output=True, timeout=within, check=False)
    except subprocess.TimeoutExpired:
        raise JostleError(f"`git {words[0]}` in {directory} does not end within {within:.0f} s") from None


def _git(
    directory: str, *words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"", within: float = WITHIN
) -> bytes:  # fmt: skip
    process = _run(directory, *words, env=env, stdin=stdin, within=within)
    if process.returncode:
        why = process.stderr.decode("utf-8", "replace").strip()
        raise JostleError(f"`git {' '.join(words)}` in {directory} failed: {why or f'exit code {process.returncode}'}")
    return process.stdout
