"""Claim files in a directory that everybody may write to: how two jostles never hold the same GPU.

Rules. A claim is made under a dot name nobody may open, locked, and only then renamed to its visible name: it is never
visible unlocked, and a visible name is never renamed again (a reader of the directory could miss it). It lives as long
as its lock, and the lock as long as any process of the run has the descriptor, whatever becomes of the file: who has seen a
claim keeps it open. Nothing in the directory is trusted: entries are opened without following, creating or waiting, and what
cannot be judged counts as live. So a hostile neighbour can withhold a GPU, and do nothing else. Another's claim is never removed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jostle.backends.local import claimlock, claims
from jostle.backends.local.claimlock import HELD, HELD_AUTOMATICALLY, give_back, given_back, is_free
from jostle.errors import JostleError
from jostle.failpoint import failpoint
from jostle.port import Claimed

SHARED = ("/run/lock", "/tmp")

LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
NO_CLAIM = {errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.ENODEV}  # gone, a link, a socket, a device: nothing of ours


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldClaim:
    """A claim that this process has published and holds."""

    name: str
    fd: int
    inode: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveClaim(Claimed):
    """One live claim in the directory: its file's owner is the only thing that says whose it is."""

    claim: claims.Claim
    inode: int

    @classmethod
    def of(cls, claim: claims.Claim, **more: Any) -> LiveClaim:
        mib = None if claim.alone else claim.mib
        return cls(claim=claim, uuid=claim.uuid, mib=mib, run=claim.run, session=claim.sid, **more)


def find_dir(candidates: Sequence[str] = SHARED) -> str:
    """Where the users of this host meet."""
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


def drawn(claim: claims.Claim) -> str:
    """A name for the claim that nobody can know beforehand."""
    return claims.name_of(replace(claim, tag=1 + secrets.randbelow(claims.TAGS - 1)))


def publish(directory: str, name: str, *, automatic: bool = False) -> HeldClaim:
    """Makes the claim visible, locked from its first instant; the descriptor is to be inherited by the run."""
    claim = claims.parse(name)
    hidden = f"{directory}/.{name if claim is None else drawn(claim)}"  # another name: it is seen before the claim is
    fd = _create(hidden)
    try:
        # mode 0 until it is locked: nobody can take a lock before us
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.fchmod(fd, HELD_AUTOMATICALLY if automatic else HELD)
        inode = os.fstat(fd).st_ino
        os.rename(hidden, f"{directory}/{name}")
    except OSError:
        os.close(fd)
        unlink(hidden)
        raise
    return HeldClaim(name=name, fd=fd, inode=inode)


def _create(path: str) -> int:
    flags = os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0)
    except FileExistsError:
        unlink(path)  # our own from a crash; another's cannot be removed from a sticky directory, and we fail
        return os.open(path, flags, 0)


def publish_all(directory: str, names: Iterable[str], *, automatic: bool = False) -> list[HeldClaim]:
    """All of them, or none and the error."""
    held: list[HeldClaim] = []
    try:
        for name in names:
            held.append(publish(directory, name, automatic=automatic))
        failpoint("leases.published")
    except OSError:
        withdraw(directory, held)
        raise
    return held


def withdraw(directory: str, held: Iterable[HeldClaim]) -> None:
    for lease in held:
        give_back(lease.fd)
        unlink(f"{directory}/{lease.name}", inode=lease.inode)
        os.close(lease.fd)


def unlink(path: str, inode: int | None = None) -> None:
    try:
        if inode is None or os.lstat(path).st_ino == inode:
            os.unlink(path)
    except OSError:
        pass  # gone already, or not ours to remove


def names_in(directory: str) -> Iterator[tuple[str, int]]:
    """Every entry's name and inode."""
    with os.scandir(directory) as entries:
        for entry in entries:
            yield entry.name, entry.inode()


def look(directory: str, name: str, claim: claims.Claim, home: str) -> LiveClaim | None:
    """The claim of this name if it is live."""
    try:
        fd = os.open(f"{directory}/{name}", LOOK)
    except OSError as e:
        return None if e.errno in NO_CLAIM else hidden(directory, name, claim)
    try:
        s = os.fstat(fd)
        if not stat.S_ISREG(s.st_mode):
            return None
        ours = is_ours(s, claim, home)
        if given_back(s) or is_free(fd):
            if ours:
                unlink(f"{directory}/{name}", inode=s.st_ino)  # stale: locked once, at birth, and never again
            return None
        return LiveClaim.of(claim, name=name, uid=s.st_uid, ours=ours, inode=s.st_ino, automatic=claimlock.automatic(s))
    finally:
        os.close(fd)


def is_ours(s: os.stat_result, claim: claims.Claim | None, home: str) -> bool:
    """A hard link shows its victim as the owner, so only a file with one name is taken for ours."""
    return s.st_uid == os.geteuid() and claim is not None and claim.home == home and s.st_nlink <= 1


def hidden(directory: str, name: str, claim: claims.Claim) -> LiveClaim | None:
    """A claim we may not open: not knowing is not good news, so a regular file counts as live."""
    try:
        s = os.lstat(f"{directory}/{name}")
    except FileNotFoundError:
        return None
    except OSError:
        return LiveClaim.of(claim, name=name, uid=-1, ours=False, inode=0)
    if not stat.S_ISREG(s.st_mode):
        return None
    return LiveClaim.of(claim, name=name, uid=s.st_uid, ours=False, inode=s.st_ino)
