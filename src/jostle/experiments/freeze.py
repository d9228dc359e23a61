"""Frozen code: a snapshot of a work tree from which a batch runs, so that later edits do not change jobs that wait.

Rules: what belongs to the code is copied: of a git work tree what is tracked, and what is neither tracked nor ignored; of a plain
folder what its ignore rules leave. Everything else that lies there (data, logs, checkpoints, environments), and what holds
secrets, whatever the rules say, is a link to the original, so that programs find it and write where their author expects. Equal
snapshots are one. Nobody may write into a snapshot: what a program would put there would be lost with it; one that was written
into all the same is not used again. Full paths outside the tree, and logs, stay as they are; a relative path that leaves the tree
would lead elsewhere, and is refused.
"""

from __future__ import annotations

import errno
import filecmp
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jostle import units
from jostle.errors import DiskFull, Invalid, JostleError
from jostle.experiments import gittree, leaving, secrets
from jostle.experiments.ignore import Ignore
from jostle.experiments.snapshots import FOLDER, NEVER, entries, folders, remove

RULES_FILE = ".jostleignore"
MAX_BYTES = 512 << 20
MAX_FILES = 100_000
DEFAULT_RULES = (  # of a folder without git
    "logs/", "log/", "data/", "datasets/", "outputs/", "results/", "checkpoints/", "wandb/", "runs/", "mlruns/",
    "lightning_logs/", "node_modules/", ".venv/", "venv/", "env/", "*.log", "*.pt", "*.pth", "*.ckpt", "*.safetensors", "*.npy",
    "*.npz", "*.h5", "*.pkl", "*.bin", "*.tar", "*.tar.gz", "*.zip", "*.parquet",
)  # fmt: skip
SHORT = 256 << 10  # characters of a diff that are kept with the batch; all of it lies beside the snapshot


@dataclass(frozen=True, kw_only=True)
class Frozen:
    root: str  # the work tree
    tree: str  # its snapshot
    about: dict[str, Any]  # what is recorded with the batch
    copied: frozenset[str] = field(repr=False)  # files and folders, relative to both

    def inside(self, path: str) -> str | None:
        """Where a path of the tree lies in it; None if it lies outside."""
        real = os.path.realpath(path)
        if real == self.root:
            return ""
        return real[len(self.root) + 1 :] if real.startswith(self.root + "/") else None

    def place(self, path: str) -> str:
        """Where a job that runs from the snapshot finds a file."""
        at = self.inside(path)
        return os.path.join(self.tree, at) if at and at in self.copied else path

_PUT_ASIDE = re.compile(r"\.[0-9]+\Z")  # a log of an earlier try


@dataclass(kw_only=True)
class _Selection:
    """What to copy and what to link, relative to the root."""

    files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)


# --- making one


def snapshot(
    workdir: str, home: str, *, base: str | None = None, inputs: Iterable[str] = (), apart: Iterable[str] = (),
    max_bytes: int = MAX_BYTES,
) -> Frozen:  # fmt: skip
    """Of the tree that a directory belongs to: its git work tree, else `base` if that holds it, else the directory itself. What
    jobs name as their inputs is copied even where it is ignored; that, and what else is `apart`, is not counted to the code."""
    if not os.path.isdir(workdir):
        raise Invalid(f"--freeze: the directory {workdir} does not exist; a job that makes its own directory cannot be frozen")
    root, git = _tree(workdir, base)
    named_inputs = {rel for path in inputs if (rel := _inside(root, path))}
    selection = _Selection()
    try:
        _walk(root, "", _chosen(root, git), _parents(named_inputs) | named_inputs, os.path.realpath(home), selection)
        _small_enough(root, selection, max_bytes)
        path, contents = _kept(root, home, selection, git)
    except OSError as e:
        kind = DiskFull if e.errno in (errno.ENOSPC, errno.EDQUOT) else JostleError
        at = f" ({e.filename})" if e.filename else ""
        raise kind(f"--freeze: no snapshot of {root} could be made in {home}: {e.strerror or e}{at}") from None
    diff = git.diff if git is not None else ""
    about = {
        "root": root, "path": os.path.join(path, "tree"), "digest": os.path.basename(path), "files": len(selection.files),
        "code": _code(contents, root, [*inputs, *apart]),
        "commit": git.commit if git is not None else None, "dirty": git.dirty if git is not None else None,
        "untracked": list(git.untracked[:1000]) if git is not None else [],
        "diff": diff if len(diff) <= SHORT else diff[:SHORT] + f"\n… all of it: {os.path.join(path, 'changes.diff')}\n",
    }  # fmt: skip
    copied = frozenset(selection.files)
    copied |= _parents(copied) | {""}
    return Frozen(root=root, tree=os.path.join(path, "tree"), about=about, copied=copied)


def code(workdir: str, home: str, *, base: str | None = None, apart: Iterable[str] = ()) -> str | None:
    """What `about["code"]` of a snapshot would be now; nothing is written. None: nothing can be said."""
    selection = _Selection()
    try:
        root, git = _tree(workdir, base)
        _walk(root, "", _chosen(root, git), set(), os.path.realpath(home), selection)
        contents = {path: _copy(root, os.path.join(root, path), None, path) for path in selection.files}
    except (OSError, JostleError):
        return None  # the snapshot itself will say why
    return _code(contents, root, apart)


def _code(contents: Mapping[str, str], root: str, apart: Iterable[str]) -> str:
    """The digest of all that was copied but these; links are to data."""
    left_out = {_inside(root, path) for path in apart}
    counted = sorted((path, what) for path, what in contents.items() if not {path, _PUT_ASIDE.sub("", path)} & left_out)
    return hashlib.sha256(json.dumps(counted).encode()).hexdigest()


def _tree(workdir: str, base: str | None) -> tuple[str, gittree.Tree | None]:
    root = gittree.top(workdir)
    if root is not None:
        return root, gittree.look(root)
    at, holder = os.path.realpath(workdir), os.path.realpath(base or workdir)
    return holder if at == holder or at.startswith(holder + "/") else at, None


def _inside(root: str, path: str) -> str:
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return real[len(root) + 1 :] if real.startswith(root + "/") else ""


def _parents(paths: Iterable[str]) -> set[str]:
    parents: set[str] = set()
    for path in paths:
        while (path := os.path.dirname(path)) and path not in parents:
            parents.add(path)
    return parents


def _chosen(root: str, git: gittree.Tree | None) -> Callable[[str, bool], bool]:
    """Whether a path belongs to the code."""
    own = _rules(root, RULES_FILE)
    if git is not None:
        left_out, tracked = own, git.files | _parents(git.files)
        return lambda path, is_folder: path in tracked and not left_out(path, is_folder)
    ignored = Ignore(DEFAULT_RULES) + _rules(root, ".gitignore") + own
    return lambda path, is_folder: not ignored(path, is_folder)


def _rules(root: str, name: str) -> Ignore:
    path = os.path.join(root, name)
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = f.read().split("\n")
    except OSError:
        return Ignore()
    return Ignore(lines, path)


def _walk(root: str, at: str, chosen: Callable[[str, bool], bool], inputs: set[str], home: str, selection: _Selection) -> bool:
    """Whether anything below was taken; a folder of which nothing was is one link."""
    links_before = len(selection.links)
    some = False
    for entry in entries(os.path.join(root, at)):
        path = f"{at}/{entry.name}" if at else entry.name
        if entry.name in NEVER or entry.path == home or not gittree.is_text(path):
            continue
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder and not entry.is_symlink() and not entry.is_file(follow_symlinks=False):
            continue  # a pipe or socket
        if not secrets.named(entry.name) and (path in inputs or chosen(path, is_folder)):
            if not is_folder:
                selection.files.append(path)
                selection.sizes[path] = 0 if entry.is_symlink() else entry.stat(follow_symlinks=False).st_size
                some = True
            else:
                below = chosen if path not in inputs or chosen(path, True) else _nothing
                some = _walk(root, path, below, inputs, home, selection) or some
        else:
            selection.links.append(path)
    if at and not some:
        del selection.links[links_before:]
        selection.links.append(at)
    return some


def _nothing(path: str, is_folder: bool) -> bool:
    return False


def _small_enough(root: str, selection: _Selection, max_bytes: int) -> None:
    size = sum(selection.sizes.values())
    if size <= max_bytes and len(selection.files) <= MAX_FILES:
        return
    largest = sorted(selection.sizes, key=lambda path: -selection.sizes[path])[:3]
    names = ", ".join(f"{path} ({units.show_size(selection.sizes[path] / (1 << 20))})" for path in largest)
    raise Invalid(
        f"--freeze: {root} holds {units.show_size(size / (1 << 20))} in {len(selection.files):,} files that would be copied; "
        f"at most {units.show_size(max_bytes / (1 << 20))} and {MAX_FILES:,} files are. Name what is not code in "
        f"{os.path.join(root, RULES_FILE)} (it is linked instead); the largest are {names}"
    )


def _kept(root: str, home: str, selection: _Selection, git: gittree.Tree | None) -> tuple[str, dict[str, str]]:
    """The snapshot's directory (one that holds the same is used again), and what was copied."""
    folder = os.path.join(home, FOLDER)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    fresh = os.path.join(folder, f".new-{os.getpid()}-{os.urandom(4).hex()}")
    tree = os.path.join(fresh, "tree")
    mask = os.umask(0o077)  # whatever a person's is: jobs run from this
    try:
        os.makedirs(tree)
        digest, contents = _copied(root, tree, selection)
        path = _free_or_same(tree, os.path.join(folder, digest))
        if os.path.isdir(path):
            os.utime(path)  # it is wanted again: see `unused`
        else:
            _records(fresh, root, selection, git)
            _read_only(tree)
            try:
                os.rename(fresh, path)
            except OSError:  # another was quicker with the same
                if not os.path.isdir(path):
                    raise
    finally:
        os.umask(mask)
        if os.path.isdir(fresh):
            remove(fresh)
    return path, contents


def _free_or_same(tree: str, place: str) -> str:
    """Where this is kept already, or the first place that is free: root may have written into a snapshot that jobs run from."""
    path, number = place, 1
    while os.path.isdir(path) and not _same(tree, os.path.join(path, "tree")):
        number += 1
        path = f"{place}-{number}"
    return path


def _same(fresh: str, stored: str) -> bool:
    """Whether the snapshot that is kept holds what the fresh one does, and nothing else."""
    new = {entry.name: entry for entry in entries(fresh)}
    old = {entry.name: entry for entry in entries(stored) if entry.name not in NEVER}
    if new.keys() != old.keys():
        return False
    for name, new_entry in new.items():
        old_entry = old[name]
        if new_entry.is_symlink() or old_entry.is_symlink():
            both = new_entry.is_symlink() and old_entry.is_symlink()
            good = both and os.readlink(new_entry.path) == os.readlink(old_entry.path)
        elif new_entry.is_dir() or old_entry.is_dir():
            good = new_entry.is_dir() and old_entry.is_dir() and _same(new_entry.path, old_entry.path)
        else:
            modes = {stat.S_IMODE(entry.stat().st_mode) for entry in (new_entry, old_entry)}
            good = len(modes) == 1 and filecmp.cmp(new_entry.path, old_entry.path, shallow=False)
        if not good:
            return False
    return True


def _copied(root: str, tree: str, selection: _Selection) -> tuple[str, dict[str, str]]:
    """Copies and links; the digest, and what it is of, is of what was copied, whatever is edited meanwhile."""
    digest = hashlib.sha256()
    contents: dict[str, str] = {}
    for path in selection.files:
        source, target = os.path.join(root, path), os.path.join(tree, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            contents[path] = _copy(root, source, target, path)
        except FileNotFoundError:
            continue  # gone meanwhile
        except PermissionError as e:
            hint = f"name it in {os.path.join(root, RULES_FILE)} (it is linked instead)"
            raise Invalid(f"--freeze: {e.filename or source} cannot be copied ({e.strerror}); {hint}") from None
        digest.update(f"{path}\0{contents[path]}\0".encode("utf-8", "surrogateescape"))
    for path in selection.links:
        source, target = os.path.join(root, path), os.path.join(tree, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(source, target)
        digest.update(f"{path}\0link {source}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32], contents


def _copy(root: str, source: str, target: str | None, path: str) -> str:
    """What stands there, in a few words; copied to the target if there is one."""
    if os.path.islink(source):
        at = _leads(root, source, path)
        if target is not None:
            os.symlink(at, target)
        return f"link {at}"
    digest = hashlib.sha256()
    with open(source, "rb") as old, open(os.devnull if target is None else target, "wb") as new:
        mode = 0o555 if os.fstat(old.fileno()).st_mode & stat.S_IXUSR else 0o444
        while block := old.read(1 << 20):
            digest.update(block)
            new.write(block)
        at_ns = os.fstat(old.fileno()).st_mtime_ns
        if target is not None:
            os.fchmod(new.fileno(), mode)
    if target is not None:
        os.utime(target, ns=(at_ns, at_ns))
    return f"{mode:o} {digest.hexdigest()}"


def _leads(root: str, source: str, path: str) -> str:
    """A link inside the tree stays inside the snapshot; one that leads out leads to the same place."""
    at = os.path.normpath(os.path.join(os.path.dirname(source), os.readlink(source)))
    if at == root or at.startswith(root + "/"):
        return os.path.relpath(at, os.path.dirname(os.path.join(root, path)))
    return at


def _records(fresh: str, root: str, selection: _Selection, git: gittree.Tree | None) -> None:
    about: dict[str, Any] = {"root": root, "made_at": time.time(), "files": selection.files, "links": selection.links}
    if git is not None:
        about |= {"commit": git.commit, "dirty": git.dirty, "untracked": git.untracked}
        with open(os.path.join(fresh, "changes.diff"), "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write(git.diff)
    with open(os.path.join(fresh, "about.json"), "w", encoding="utf-8", errors="surrogateescape") as f:
        json.dump(about, f)


def _read_only(tree: str) -> None:
    for folder in list(folders(tree)):
        os.chmod(folder, 0o555)


# --- running from one


def moved(job: Mapping[str, Any], frozen: Frozen) -> dict[str, Any]:
    """The job as it runs from the snapshot: its directory, and what its commands and variables name inside the tree."""
    at = frozen.inside(job["workdir"])
    if at is None or at not in frozen.copied:
        return dict(job)
    for path in leaving.paths(job, at) if not job.get("done_by") else ():
        full = os.path.normpath(os.path.join(job["workdir"], path))
        raise Invalid(
            f"--freeze: {path} (job {job['name'] or job['commands'][0]!r}) leads out of {frozen.root} by a relative path, which "
            f"would lead elsewhere from the snapshot; expected its full path, {full}"
        )
    roots = {frozen.root}
    if at and job["workdir"].endswith("/" + at):
        roots.add(job["workdir"][: -len(at) - 1])
    elif not at:
        roots.add(job["workdir"].rstrip("/") or "/")
    return {
        **job,
        "workdir": os.path.join(frozen.tree, at) if at else frozen.tree,
        "commands": [
            moved_text(c, frozen, roots) if isinstance(c, str) else [moved_text(w, frozen, roots) for w in c]
            for c in job["commands"]
        ],
        "env": {name: moved_text(value, frozen, roots) for name, value in job["env"].items()},
    }


def moved_text(text: str, frozen: Frozen, roots: Iterable[str] = ()) -> str:
    """Absolute paths of the tree that were copied, as paths of the snapshot; all others (outputs, data) stay."""

    def place(match: re.Match[str]) -> str:
        path = (match[1] or "").strip("/")
        return frozen.tree + (match[1] or "") if path in frozen.copied else match[0]

    for root in sorted({frozen.root, *roots} - {"/"}, key=len, reverse=True):
        if root in text:
            text = re.sub(rf"(?<![\w./-]){re.escape(root)}(/[^\s'\"`;|&<>()$:,]*)?(?![\w.-])", place, text)
    return text
