"""A git work tree as a snapshot sees it: what belongs to it, its commit, and what differs from that. Changes nothing in it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from jostle.errors import JostleError

OPTIONS = ("-c", "core.fsmonitor=false", "-c", "core.quotepath=off")
WITHIN = 60.0  # s


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    commit: str | None  # None: nothing was ever committed
    dirty: bool  # whether anything differs from the commit
    diff: str  # of what is tracked, against the commit
    untracked: tuple[str, ...]  # neither tracked nor ignored
    files: frozenset[str]  # relative to the top, with those of submodules


def top(directory: str) -> str | None:
    """The top of the work tree that a directory is part of; None without git, outside of one, or where it is ignored."""
    try:
        found = _git(directory, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        return None
    except JostleError as e:
        if "not a git repository" in str(e):
            return None
        raise  # such as a tree that belongs to somebody else: git says what to do
    root = os.path.realpath(os.fsdecode(found).rstrip("\n"))
    here = os.path.realpath(directory)
    return None if here != root and _ignored(root, here) else root


def _ignored(root: str, path: str) -> bool:
    return _run(root, "check-ignore", "-q", path).returncode == 0


def look(root: str) -> Tree:
    commit: str | None
    try:
        commit = os.fsdecode(_git(root, "rev-parse", "--verify", "--quiet", "HEAD")).strip()
        diff = _git(root, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv").decode("utf-8", "replace")
    except JostleError:
        commit, diff = None, ""
    untracked = _listed(root, "--others")
    files = frozenset(_with_nested(root, [*_listed(root, "--cached"), *untracked]))
    dirty = bool(diff or untracked or commit is None)
    return Tree(commit=commit, diff=diff, dirty=dirty, untracked=tuple(untracked), files=files)


def _listed(root: str, which: str) -> list[str]:
    names = _git(root, "ls-files", "-z", which, "--exclude-standard").split(b"\0")
    return [name for raw in names if raw and is_text(name := os.fsdecode(raw))]


def _with_nested(root: str, listed: list[str]) -> list[str]:
    """Submodules, and work trees inside of this one, are listed as one entry."""
    found = []
    for name in listed:
        path = os.path.join(root, name)
        if os.path.isdir(path) and not os.path.islink(path):
            inner = _listed(path, "--cached") + _listed(path, "--others") if os.path.exists(os.path.join(path, ".git")) else []
            found += [os.path.join(name.rstrip("/"), below) for below in _with_nested(path, inner)]
        else:
            found.append(name)
    return found


def is_text(path: str) -> bool:
    """Names that are not UTF-8 are no code."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _run(directory: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    env = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    command = ["git", "-C", directory, *OPTIONS, *words]
    try:
        return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN, check=False)
    except subprocess.TimeoutExpired:
        raise JostleError(f"`git {words[0]}` in {directory} does not end within {WITHIN:.0f} s") from None


def _git(directory: str, *words: str) -> bytes:
    done = _run(directory, *words)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise JostleError(f"`git {' '.join(words)}` in {directory} failed: {said or f'exit code {done.returncode}'}")
    return done.stdout
