"""The directory of claims as a whole: who holds which GPU now, and what came and went in between.

The rules are those of leases.py. A look reads the directory, whatever the watch has said; the watch only makes sure that a claim
is opened soon after it came, and that its owner hears at once when somebody has removed it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from jostle.backends.local import claims, leases
from jostle.backends.local.claimlock import automatic, give_back, given_back, is_free
from jostle.backends.local.filewatch import DirWatch
from jostle.backends.local.leases import (
    LOOK,
    NO_CLAIM,
    HeldClaim,
    LiveClaim,
    hidden,
    is_ours,
    look,
    names_in,
    publish_all,
    unlink,
)
from jostle.core.model import RunId
from jostle.core.reasons import Hold
from jostle.port import Tenure, Watcher

MOST = 256
"""Claims of one user that are opened; of more, none is ignored: each card that they name counts as that user's."""


class Directory:
    """The claims of everybody, as one home sees them.

    Of each claim that is seen live a descriptor is kept: one whose file goes while its lock is held (a cleaner of temporary
    files) is a claim all the same, until the lock goes too.
    """

    def __init__(self, path: str, home: str, is_dead: Callable[[claims.Claim], bool] = lambda claim: False) -> None:
        self.path, self.home, self._is_dead = path, home, is_dead
        self.trouble: Hold | None = None  # why it could not be read or written when that was last tried
        self.watch: DirWatch | None = None
        self._watcher: Watcher | None = None
        self._listed: dict[str, _Entry] = {}  # what was there at the last look, or came since
        self._gone: list[_Entry] = []  # was seen live, and its file is gone or another's
        self._uuids: Collection[str] | None = None  # of the cards there are; None: not known
        self._counts: dict[int, int] = {}  # claims since the last look began, by uid

    def open(self, watcher: Watcher, heard: Callable[[], None]) -> None:
        self.watch, self._watcher = DirWatch(self.path), watcher
        if self.watch.fd is not None:
            watcher.watch(self.watch.fd, heard)

    def close(self) -> None:
        if self.watch is not None and self.watch.fd is not None and self._watcher is not None:
            self._watcher.unwatch(self.watch.fd)
            self.watch.close()
        for entry in (*self._listed.values(), *self._gone):
            entry.close()
        self._listed, self._gone = {}, []

    # ------------------------------------------------------------------ look

    def live(self, inodes: Mapping[str, int | None], uuids: Collection[str] | None = None) -> list[LiveClaim]:
        """Every live claim on these cards (None: on any), and what this home has left on others.

        Those that are the files of `inodes`, of runs that are surely alive, are not tested. Stale ones of ours go.
        """
        self._uuids = uuids
        live_claims: list[LiveClaim] = []
        beyond: dict[tuple[int, str], LiveClaim] = {}
        self._counts.clear()
        before, self._listed = self._listed, {}
        for name, inode in self._entries():
            entry = before.get(name)
            if entry is None or inode not in (entry.listed, entry.inode):
                entry = _Entry(name, inode, claims.parse(name) if entry is None else entry.claim)
            else:
                del before[name]
            self._listed[name] = entry
            if entry.claim is None:
                self._sweep(name)
            elif inodes.get(name) == inode:
                live_claims.append(LiveClaim.of(entry.claim, name=name, uid=os.geteuid(), ours=True, inode=inode))
            elif self._concerns(entry.claim) and self._is_regular(entry):
                if self._too_many(entry, entry.claim):
                    beyond[entry.uid, entry.claim.uuid] = entry.claimed(replace(entry.claim, mib=None, alone=True))
                elif self._is_live(entry):
                    live_claims.append(entry.claimed(entry.claim))
        return live_claims + self._vanished(before.values(), live_claims, inodes) + list(beyond.values())

    def _concerns(self, claim: claims.Claim) -> bool:
        return self._uuids is None or claim.uuid in self._uuids or claim.home == self.home

    def _is_regular(self, entry: _Entry) -> bool:
        """Whether it is a file at all; says whose, which is asked once."""
        if entry.uid < 0:
            try:
                s = os.lstat(f"{self.path}/{entry.name}")
            except OSError:
                return True  # gone, or not to be seen: to be judged as ever
            entry.uid = s.st_uid
            if not stat.S_ISREG(s.st_mode):
                entry.claim = None
        return entry.claim is not None

    def _too_many(self, entry: _Entry, claim: claims.Claim) -> bool:
        if claim.home == self.home and entry.uid == os.geteuid():
            return False
        self._counts[entry.uid] = n = self._counts.get(entry.uid, 0) + 1
        if n > MOST:
            entry.close()
        return n > MOST

    def _is_live(self, entry: _Entry) -> bool:
        if entry.fd < 0 and not self._keep(entry):
            return entry.hidden
        if entry.held():
            if not entry.ours or entry.claim is None or not self._is_dead(entry.claim):
                return True
            give_back(entry.fd)  # a neighbour has locked it: anybody who can read it can do that
            entry.close()
        if entry.ours:
            unlink(f"{self.path}/{entry.name}", inode=entry.inode)  # stale: locked once, at birth, and never again
        return False

    def _keep(self, entry: _Entry) -> bool:
        """Opens the claim, and says whose it is; False if there is none, or it cannot be opened (then it is `hidden`)."""
        entry.hidden = False
        try:
            entry.fd = os.open(f"{self.path}/{entry.name}", LOOK)
        except OSError as e:
            claim = None if e.errno in NO_CLAIM or entry.claim is None else hidden(self.path, entry.name, entry.claim)
            if claim is not None:
                entry.hidden, entry.uid, entry.ours, entry.inode = True, claim.uid, False, claim.inode
            return False
        s = os.fstat(entry.fd)
        if not stat.S_ISREG(s.st_mode):
            entry.close()
            return False
        entry.inode, entry.uid = s.st_ino, s.st_uid
        entry.ours = is_ours(s, entry.claim, self.home)
        return True

    def _vanished(
        self, missing: Iterable[_Entry], claims: Iterable[LiveClaim], inodes: Mapping[str, int | None]
    ) -> list[LiveClaim]:
        """Claims whose files are gone while their locks are held, unless they have been published again."""
        gone = [entry for entry in missing if entry.fd >= 0]
        if gone and self.watch is not None:
            self.watch.attach()  # the directory may be another
        there = {(claim.uid, claim.claim) for claim in claims}
        self._gone = [entry for entry in self._gone if entry.held()]
        for entry in gone:
            self._went(entry)
        return [
            entry.claimed(entry.claim, vanished=True)
            for entry in self._gone
            if entry.claim is not None and (entry.uid, entry.claim) not in there and entry.name not in inodes
        ]

    def heard(self) -> bool:
        """Takes in what the watch says; True: a claim went while it was held, or the directory itself did."""
        if self.watch is None:
            return False
        changes, disturbed = self.watch.changes()
        for name, came in changes.items():
            if not came:
                entry = self._listed.pop(name, None)
                disturbed |= entry is not None and self._went(entry)
            elif (claim := claims.parse(name)) is not None and self._concerns(claim):
                self._came(_Entry(name, 0, claim))
        return disturbed

    def _came(self, entry: _Entry) -> None:
        if not self._keep(entry) or entry.claim is None or self._too_many(entry, entry.claim):
            return
        before = self._listed.get(entry.name)
        if before is not None and before.fd >= 0:
            if before.inode == entry.inode:
                entry.close()
                return
            self._went(before)
        entry.listed = entry.inode
        self._listed[entry.name] = entry

    def _went(self, entry: _Entry) -> bool:
        """Keeps a claim whose file is gone, if it is held: by its file and card once, and of one user a bounded number. Of more,
        one goes, and another on its card stands for all of that."""
        if not entry.held() or entry.claim is None:
            entry.close()
            return False
        others = [e for e in self._gone if e.uid == entry.uid and e.claim is not None and not e.ours]
        if any((e.inode, e.claim.uuid) == (entry.inode, entry.claim.uuid) for e in others if e.claim is not None):
            entry.close()  # one file by many names
            return False
        self._gone.append(entry)
        cards: dict[str, _Entry] = {}
        for other in (*others, entry) if len(others) >= MOST and not entry.ours else ():
            assert other.claim is not None
            first = cards.setdefault(other.claim.uuid, other)
            if first is not other:
                other.claim = replace(other.claim, mib=None, alone=True)
                self._gone.remove(first)
                first.close()
                break
        return True

    # ------------------------------------------------------------------ claim

    def claim_cards(
        self, run: RunId, sid: int, wants: Sequence[tuple[str, int | None]], claim_names: frozenset[str], *,
        alone: bool, tenure: Tenure,
    ) -> list[HeldClaim] | None:  # fmt: skip
        """Publishes claims, then looks again: an unknown live claim on one of these GPUs came first or at once; None then, or
        if it would be too many."""
        names = [
            leases.drawn(claims.Claim(uuid=uuid, mib=mib, alone=alone, sid=sid, home=self.home, run=run)) for uuid, mib in wants
        ]
        held = self.publish(names, automatic=tenure.automatic)
        if not held:
            return held
        if self.contested({uuid for uuid, _ in wants}, claim_names.union(names)) or self.exceeded(tenure):
            leases.withdraw(self.path, held)
            return None
        return held

    def publish(self, names: Sequence[str], *, automatic: bool = False) -> list[HeldClaim] | None:
        try:
            return publish_all(self.path, names, automatic=automatic)
        except OSError as e:
            taken = any(os.path.lexists(f"{self.path}/{name}") for name in names)
            # somebody sits on this very name: the next is drawn anew, and that is no reason to stop all others
            self.trouble = None if taken else self._held_up("gpus_unclaimable", f"{self._whose()}: {e.strerror}")
            return None

    def _held_up(self, code: str, why: str) -> Hold:
        return Hold(code, f"{self.path}{why}", gpus_only=True)

    def _whose(self) -> str:
        try:
            return f", which belongs to uid {os.stat(self.path).st_uid}"
        except OSError:
            return ""

    def contested(self, uuids: Collection[str], allowed: Collection[str]) -> bool:
        """Whether another's live claim, not an allowed one, is on one of these GPUs."""
        looks = 0
        try:
            for name, _ in names_in(self.path):
                entry = self._listed.get(name)
                claim = None if name in allowed else claims.parse(name) if entry is None else entry.claim
                if claim is None or claim.uuid not in uuids:
                    continue
                looks += 1
                claimed = look(self.path, name, claim, self.home) if looks <= MOST else None
                if looks > MOST or (claimed is not None and not claimed.ours):
                    return True
        except OSError as e:
            self.trouble = self._held_up("gpus_unlisted", f": {e.strerror}")
            return True
        self.trouble = None
        return False

    def exceeded(self, tenure: Tenure) -> bool:
        """Whether this user's claims, of whatever home and with those just published, are on more cards than may be.

        Who published first and who looks now see each other: of two that are too many together at least one withdraws.
        """
        if tenure.total is None and tenure.alike is None:
            return False
        cards: dict[bool, set[str]] = {False: set(), True: set()}  # by whether they are held automatically
        try:
            for name, inode in names_in(self.path):
                claim = self._perhaps_own(name, inode)
                claimed = look(self.path, name, claim, self.home) if claim is not None else None
                if claimed is not None and claimed.uid == os.geteuid():
                    cards[claimed.automatic].add(claimed.uuid)
        except OSError as e:
            self.trouble = self._held_up("gpus_unlisted", f": {e.strerror}")
            return True
        for gone in self._gone:
            if gone.uid == os.geteuid() and gone.claim is not None and self._concerns(gone.claim) and gone.held():
                cards[gone.automatic].add(gone.claim.uuid)
        cards[True] -= cards[False]  # what is held both ways its person uses
        most = [(tenure.total, cards[False] | cards[True]), (tenure.alike, cards[tenure.automatic])]
        return any(limit is not None and len(held) > limit for limit, held in most)

    def _perhaps_own(self, name: str, inode: int) -> claims.Claim | None:
        """A claim of this user, of whatever home, on a card that there is: what decisions count with. Those of others are not
        opened, however many they are."""
        entry = self._listed.get(name)
        if entry is not None and entry.uid >= 0 and inode in (entry.listed, entry.inode):
            claim, uid = entry.claim, entry.uid
        else:
            claim = claims.parse(name)
            try:
                uid = os.lstat(f"{self.path}/{name}").st_uid if claim is not None else -1
            except FileNotFoundError:
                return None
        return claim if claim is not None and uid == os.geteuid() and self._concerns(claim) else None

    def lost(self, name: str, inode: int | None) -> bool:
        """Whether a claim of ours is not there as it was made; not one that was given back."""
        try:
            if os.lstat(f"{self.path}/{name}").st_ino == inode:
                return False
        except FileNotFoundError:
            pass
        except OSError:
            return False  # a directory that does not answer has lost nothing
        if self.watch is not None:
            self.watch.attach()  # the directory may be another
        kept = (e for e in (*self._listed.values(), *self._gone) if e.name == name and e.inode == inode and e.fd >= 0)
        return all(entry.held() for entry in kept)

    def own(self, name: str) -> LiveClaim | None:
        """A live claim of ours."""
        claim = claims.parse(name)
        claimed = look(self.path, name, claim, self.home) if claim is not None else None
        return claimed if claimed is not None and claimed.ours else None

    def _entries(self) -> list[tuple[str, int]]:
        try:
            return list(names_in(self.path))
        except OSError as e:
            # nothing starts meanwhile: reserving reads the directory, too
            self.trouble = self._held_up("gpus_unlisted", f": {e.strerror}")
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


class _Entry:
    """A name in the directory; of a live claim, with a descriptor."""

    __slots__ = ("automatic", "claim", "fd", "hidden", "inode", "listed", "name", "ours", "since", "uid")

    def __init__(self, name: str, listed: int, claim: claims.Claim | None) -> None:
        self.name, self.claim = name, claim
        self.listed = listed  # the inode as the directory tells it, which on some file systems is another than the file's
        self.inode, self.uid, self.ours = 0, -1, False
        self.automatic = False
        self.since: float | None = None  # wall time
        self.fd = -1
        self.hidden = False  # a claim that may not be opened: not knowing is not good news

    def claimed(self, claim: claims.Claim, *, vanished: bool = False) -> LiveClaim:
        return LiveClaim.of(
            claim, name=self.name, uid=self.uid, ours=self.ours, inode=self.inode, vanished=vanished,
            automatic=self.automatic, since=self.since,
        )  # fmt: skip

    def held(self) -> bool:
        """Whether somebody has the lock and the owner has not given the claim back; if not, it is closed."""
        if self.fd >= 0:
            s = os.fstat(self.fd)
            if not given_back(s) and not is_free(self.fd):
                self.automatic, self.since = automatic(s), s.st_mtime
                return True
            self.close()
        return False

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
