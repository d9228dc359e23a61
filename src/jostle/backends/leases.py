"""Claim files in a directory that everybody may write to: how two jostles never hold the same GPU.

Rules. A claim is made under a dot name nobody may open, locked, and only then renamed to its visible name: it is never
visible unlocked, and a visible name is never renamed again (a reader of the directory could miss it). It lives as long
as its lock, and the lock as long as any process of the run has the descriptor. Nothing in the directory is trusted:
entries are opened without following, creating or waiting, and what cannot be judged counts as live. So a hostile
neighbour can withhold a GPU, and do nothing else. Another's claim is never removed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jostle.core import claims
from jostle.errors import JostleError
from jostle.failpoint import failpoint

SHARED = ("/run/lock", "/tmp")

_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_NO_CLAIM = {errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.ENODEV}  # gone, a link, a socket, a device: nothing of ours


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A claim that this process has published and holds."""

    name: str
    fd: int
    inode: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """One live claim in the directory."""

    claim: claims.Claim
    name: str
    uid: int  # the file's owner: the only thing that says whose it is; -1 if even that is hidden
    ours: bool  # this home's
    inode: int


def find_dir(candidates: Sequence[str] = SHARED) -> str:
    """Where the users of this host meet; JOSTLE_LEASE_DIR overrides it."""
    override = os.environ.get("JOSTLE_LEASE_DIR")
    if override:
        try:
            os.makedirs(override, mode=0o700, exist_ok=True)
        except OSError as e:
            raise JostleError(f"lease directory {override} (from JOSTLE_LEASE_DIR) cannot be used: {e.strerror}") from e
        return override
    for path in candidates:
        if _is_meeting_place(path):
            return path
    raise JostleError(
        f"no directory for GPU leases: neither of {', '.join(candidates)} is root's, sticky and open to all; "
        "set JOSTLE_LEASE_DIR to a directory that all users of these GPUs share (ask an admin for: "
        "install -d -m 1777 -o root /var/lib/jostle-leases)"
    )


def _is_meeting_place(path: str) -> bool:
    try:
        s = os.stat(path)
    except OSError:
        return False
    sticky = stat.S_ISDIR(s.st_mode) and s.st_uid == 0 and bool(s.st_mode & stat.S_ISVTX)
    return sticky and os.access(path, os.R_OK | os.W_OK | os.X_OK)


def home_id(home: str) -> str:
    """Eight hex digits that tell two homes of one user apart."""
    return hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:8]


def publish(directory: str, name: str) -> Held:
    """Makes the claim visible, locked from its first instant; the descriptor is to be inherited by the run."""
    hidden = f"{directory}/.{name}"
    fd = _create(hidden)
    try:
        # mode 0 until it is locked: nobody can take a lock before us
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.fchmod(fd, 0o444)
        inode = os.fstat(fd).st_ino
        os.rename(hidden, f"{directory}/{name}")
    except OSError:
        os.close(fd)
        _unlink(hidden)
        raise
    return Held(name=name, fd=fd, inode=inode)


def _create(path: str) -> int:
    flags = os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0)
    except FileExistsError:
        _unlink(path)  # our own from a crash; another's cannot be removed from a sticky directory, and we fail
        return os.open(path, flags, 0)


def publish_all(directory: str, names: Iterable[str]) -> list[Held]:
    """All of them, or none and the error."""
    held: list[Held] = []
    try:
        for name in names:
            held.append(publish(directory, name))
        failpoint("leases.published")
    except OSError:
        withdraw(directory, held)
        raise
    return held


def withdraw(directory: str, held: Iterable[Held]) -> None:
    for one in held:
        fcntl.flock(one.fd, fcntl.LOCK_UN)
        _unlink(f"{directory}/{one.name}", inode=one.inode)
        os.close(one.fd)


def _unlink(path: str, inode: int | None = None) -> None:
    try:
        if inode is None or os.lstat(path).st_ino == inode:
            os.unlink(path)
    except OSError:
        pass  # gone already, or not ours to remove


class Directory:
    """The claims of everybody, as one home sees them."""

    def __init__(self, path: str, home: str) -> None:
        self.path, self.home = path, home
        self.trouble = ""  # why it could not be read or written when that was last tried
        self._parsed: dict[str, claims.Claim | None] = {}  # what was there at the last look

    def live(self, known: Mapping[str, int | None]) -> list[Claimed]:
        """Every live claim; `known` ones, of runs that are surely alive, are not tested. Stale ones of ours go."""
        found: list[Claimed] = []
        known_before, self._parsed = self._parsed, {}
        for name, inode in self._entries():
            claim = self._parsed[name] = known_before[name] if name in known_before else claims.parse(name)
            if claim is None:
                self._sweep(name)
            elif known.get(name) == inode:
                found.append(Claimed(claim=claim, name=name, uid=os.geteuid(), ours=True, inode=inode))
            elif (one := self.look(name, claim)) is not None:
                found.append(one)
        return found

    def publish(self, names: Iterable[str]) -> list[Held] | None:
        try:
            return publish_all(self.path, names)
        except OSError as e:
            taken = isinstance(e, FileExistsError | IsADirectoryError | PermissionError) and os.access(self.path, os.W_OK)
            if taken:  # somebody sits on this very name: that is between them and this claim, and no reason to stop all others
                self.trouble = ""
                return None
            self.trouble = f"GPUs cannot be claimed in {self.path}: {e.strerror}"
            return None

    def contested(self, uuids: Collection[str], allowed: Collection[str]) -> bool:
        """Whether another's live claim, not an allowed one, is on one of these GPUs."""
        try:
            for name, _ in names_in(self.path):
                claim = None if name in allowed else self._parsed.get(name) or claims.parse(name)
                if claim is None or claim.uuid not in uuids:
                    continue
                one = self.look(name, claim)
                if one is not None and not one.ours:
                    return True
        except OSError as e:
            self.trouble = f"lease directory {self.path} cannot be read: {e.strerror}"
            return True
        self.trouble = ""
        return False

    def shows(self, name: str, inode: int | None) -> bool:
        """Whether the file of this name is that very one."""
        try:
            return os.lstat(f"{self.path}/{name}").st_ino == inode
        except FileNotFoundError:
            return False
        except OSError:
            return True  # a directory that does not answer has lost nothing

    def inode(self, name: str) -> int | None:
        """The inode of a live claim of ours."""
        claim = claims.parse(name)
        one = self.look(name, claim) if claim is not None else None
        return one.inode if one is not None and one.ours else None

    def look(self, name: str, claim: claims.Claim) -> Claimed | None:
        return look(self.path, name, claim, self.home)

    def _entries(self) -> list[tuple[str, int]]:
        try:
            return list(names_in(self.path))
        except OSError as e:
            # nothing starts meanwhile: reserving reads the directory, too
            self.trouble = f"lease directory {self.path} cannot be read: {e.strerror}"
            return []

    def _sweep(self, name: str) -> None:
        """Removes a dot name of this home: only one process publishes for it, and that one is not publishing now."""
        claim = claims.parse(name[1:]) if name.startswith("." + claims.PREFIX) else None
        if claim is None or claim.home != self.home:
            return
        try:
            if os.lstat(f"{self.path}/{name}").st_uid == os.geteuid():
                os.unlink(f"{self.path}/{name}")
        except OSError:
            pass


def names_in(directory: str) -> Iterator[tuple[str, int]]:
    """Every entry's name and inode."""
    with os.scandir(directory) as entries:
        for entry in entries:
            yield entry.name, entry.inode()


def look(directory: str, name: str, claim: claims.Claim, home: str) -> Claimed | None:
    """The claim of this name if it is live."""
    try:
        fd = os.open(f"{directory}/{name}", _LOOK)
    except OSError as e:
        return None if e.errno in _NO_CLAIM else _hidden(directory, name, claim)
    try:
        s = os.fstat(fd)
        if not stat.S_ISREG(s.st_mode):
            return None
        # a hard link shows its victim as the owner, so only a file with one name is taken for ours
        ours = s.st_uid == os.geteuid() and claim.home == home and s.st_nlink <= 1
        if _free(fd):
            if ours:
                _unlink(f"{directory}/{name}", inode=s.st_ino)  # stale: locked once, at birth, and never again
            return None
        return Claimed(claim=claim, name=name, uid=s.st_uid, ours=ours, inode=s.st_ino)
    finally:
        os.close(fd)


def _hidden(directory: str, name: str, claim: claims.Claim) -> Claimed | None:
    """A claim we may not open: not knowing is not good news, so a regular file counts as live."""
    try:
        s = os.lstat(f"{directory}/{name}")
    except FileNotFoundError:
        return None
    except OSError:
        return Claimed(claim=claim, name=name, uid=-1, ours=False, inode=0)
    if not stat.S_ISREG(s.st_mode):
        return None
    return Claimed(claim=claim, name=name, uid=s.st_uid, ours=False, inode=s.st_ino)


def _free(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
