"""Files of a workspace, read and written for a browser (RELIABILITY S51, S52, S54).

Rules: a way leads from the root downwards, name by name, through no link. A file is a regular one of ours with one name; what is
anything else is neither read nor written. It is replaced in one step, by one console of the user at a time, and only if it still
is what the writer has seen; what it was is kept beside it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator

from jostle.errors import Forbidden, JostleError, NotFound
from jostle.formats.workspace import configs
from jostle.web.answers import Changed, etag
from jostle.wording.flaws import flaw

LARGEST = 16 << 20  # bytes of a file that a person edits
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def parts(root: str, path: str) -> list[str]:
    """The names on the way from the root to a path, which may be relative to it."""
    if "\0" in path:
        raise NotFound("there is no such file")
    whole = os.path.normpath(os.path.join(root, path))
    names = os.path.relpath(whole, root).split(os.sep)
    if names[0] in (os.pardir, os.curdir) or ".." in path.split("/"):
        raise NotFound(f"{path[:200]} does not lie in {root}")
    return names


def inside(root: str, path: str) -> str:
    """The way from the root to a file that settings may name elsewhere, too: such a one is not for a browser."""
    folder, real = os.path.realpath(os.path.dirname(path)), os.path.realpath(root)
    if folder != real and not folder.startswith(real + os.sep):
        raise Forbidden(flaw("file_outside", path=path))
    return os.path.join(os.path.relpath(folder, real), os.path.basename(path)).removeprefix("./")


def must_be_plain(root: str, mode: str, index: int) -> None:
    """Before a task file of the workspace is read by a reader that follows links, and quotes what is wrong."""
    for config in configs(root, mode):
        if config.index == index and config.file_path.startswith(os.path.abspath(root) + os.sep):
            with contextlib.suppress(NotFound):
                os.close(opened(root, inside(root, config.file_path)))


@contextlib.contextmanager
def folder_of(root: str, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The folder of a file, and the file's name in it."""
    *way, name = parts(root, path)
    at = os.open(root, FOLDER)
    try:
        for step in way:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(step, 0o755, dir_fd=at)
            below = os.open(step, FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        yield at, name
    except OSError as e:
        if e.errno == errno.ENOENT:
            raise NotFound(flaw("file_none", path=path[:200], root=root)) from None
        if e.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Forbidden(flaw("file_link", path=path[:200])) from None
        raise JostleError(f"{path[:200]}: {e.strerror}") from None
    finally:
        os.close(at)


def opened(root: str, path: str) -> int:
    """For reading; the descriptor is the caller's."""
    with folder_of(root, path) as (folder, name):
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    s = os.fstat(fd)
    if not _own(s):
        os.close(fd)
        raise JostleError(flaw("file_odd_read", path=path[:200]))
    return fd


def _own(s: os.stat_result) -> bool:
    return stat.S_ISREG(s.st_mode) and s.st_uid == os.getuid() and s.st_nlink == 1


def content(root: str, path: str) -> bytes | None:
    """None: there is no such file."""
    try:
        fd = opened(root, path)
    except NotFound:
        return None
    with os.fdopen(fd, "rb") as f:
        raw = f.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise JostleError(flaw("file_too_large", path=path[:200], mib=LARGEST >> 20))
    return raw


@contextlib.contextmanager
def _alone(folder: int) -> Iterator[None]:
    """No other console of this user, of whatever home, changes files in the folder. The lock is on a file that nobody else can
    open: who may read the folder could lock that, for as long as he likes."""
    name, kept = f".jostle-{os.getuid()}.lock", False
    while not kept:
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            s = os.fstat(fd)
            if s.st_uid != os.getuid() or s.st_mode & 0o077 or not stat.S_ISREG(s.st_mode):
                raise Forbidden(flaw("file_lock", name=name))
            fcntl.flock(fd, fcntl.LOCK_EX)
            kept = os.fstat(fd).st_nlink > 0  # else who had it has removed it, and it keeps nobody out any more
            if kept:
                try:
                    yield
                finally:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)
        finally:
            os.close(fd)


def save(root: str, path: str, new: bytes, *, seen: str | None = None, backup: str | None = None) -> None:
    """`seen`: the ETag that it must still have; `backup`: the name beside it under which the old content is kept."""
    with folder_of(root, path, make=True) as (folder, name), _alone(folder):
        old = _present(folder, name, path)
        if seen is not None and seen.strip() not in ("*", etag(old)):
            raise Changed(flaw("file_changed"))
        mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) if old is not None else 0o644
        if backup is not None and old is not None:
            _put(folder, backup, old, mode)
        _put(folder, name, new, mode)


def _present(folder: int, name: str, path: str) -> bytes | None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as f:
        if not _own(os.fstat(fd)):
            raise Forbidden(flaw("file_odd_write", path=path[:200]))
        return f.read(LARGEST + 1)


def _put(folder: int, name: str, raw: bytes, mode: int) -> None:
    fresh = f".jostle-{secrets.token_hex(8)}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(raw)
            f.flush()
            os.fchmod(fd, mode)
            os.fsync(fd)
        os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=folder)
        raise


def create(root: str, path: str) -> bool:
    """An empty file; False if there is one."""
    with folder_of(root, path, make=True) as (folder, name):
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder))
        except FileExistsError:
            return False
        return True


def put_aside(root: str, path: str, backup: str) -> None:
    """A file that is no more, but for its backup."""
    with folder_of(root, path) as (folder, name), _alone(folder):
        if _present(folder, name, path) is None:
            raise NotFound(flaw("file_none", path=path[:200], root=root))
        os.replace(name, backup, src_dir_fd=folder, dst_dir_fd=folder)
