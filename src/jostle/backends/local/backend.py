"""Runs on this host: the engine's side of the start protocol.

Rules. Nothing is remembered that can be looked at: poll() derives a run's condition each time. An open socket to a
shim proves it alive; without one the order is claim, lock, exit (any other order calls a run lost that has just ended
or just begun). A process is signalled only while a handle on it is open and the proof that it is ours holds. Acts are
idempotent by run id: starting or voiding twice does what once does.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from jostle import proc
from jostle.backends.local import leases, process, shim, sparedir
from jostle.backends.local.contact import Known, Report, Reservation, Spare, send_spec
from jostle.backends.local.leasedir import Directory
from jostle.backends.local.leases import Claimed
from jostle.backends.local.nursery import Watcher
from jostle.backends.local.pool import Pool
from jostle.backends.local.records import RunClaim, RunDir, exit_of, pids_of, record
from jostle.core.claims import Claim, parse
from jostle.core.model import RunId

__all__ = ["Claimed", "Local", "Report", "Reservation", "Watcher"]

ENDED = b'{"ended":'  # how the last word of a shim begins


class Local:
    """Starts, watches, adopts and ends runs on this host."""

    def __init__(
        self,
        *,
        home: str,
        lease_dir: str,
        watcher: Watcher,
        changed: Callable[[RunId], None],
        python: str = sys.executable,
    ) -> None:
        self._runs_dir, self._lease_dir = os.path.join(home, "runs"), lease_dir
        self._home = leases.home_id(home)
        self._directory = Directory(lease_dir, self._home, self._is_dead)
        self._boot = proc.boot_id()
        self._watcher, self._changed = watcher, changed
        self._pool = Pool(
            watcher=watcher, python=python, runs=self._runs_dir, heard=self._stirred, returning=self._returning
        )
        self._runs: dict[RunId, Known] = {}
        self.ending: Callable[[RunId], None] | None = None
        self.disturbed: Callable[[], None] | None = None  # a claim, or the directory of claims, went while it was held

    # ------------------------------------------------------------------ spares

    def open(self) -> None:
        os.makedirs(self._runs_dir, mode=0o700, exist_ok=True)
        os.makedirs(self._lease_dir, mode=0o700, exist_ok=True)
        sparedir.sweep(self._runs_dir)
        self._directory.open(self._watcher, self._heard_of_claims)
        self._pool.open()

    def close(self) -> None:
        for known in self._runs.values():
            self._release(known)
        self._runs.clear()
        self._directory.close()
        self._pool.close()

    def tick(self, now: float) -> float | None:
        """Keeps the nursery and the spares going; when to call again even if nothing happens."""
        at = self._pool.nursery.tick(now)
        self._pool.replenish()
        return at

    @property
    def spares(self) -> int:
        return len(self._pool.spares)

    @property
    def spare_arrived(self) -> Callable[[], None] | None:
        return self._pool.arrived

    @spare_arrived.setter
    def spare_arrived(self, callback: Callable[[], None] | None) -> None:
        self._pool.arrived = callback

    @property
    def trouble(self) -> str:
        """Why nothing can be started now, in a sentence; empty if nothing is. What concerns GPUs alone begins with that word."""
        return f"gpus: {self._directory.trouble}" if self._directory.trouble else self._pool.nursery.trouble

    def want(self, n: int) -> None:
        self._pool.want(n)

    def _returning(self) -> int:
        """Shims whose run has ended and is not confirmed yet."""
        return sum(known.ended is not None and known.sock is not None for known in self._runs.values())

    def _stirred(self, spare: Spare) -> None:
        known = self._runs.get(spare.run) if spare.run is not None else None
        if known is not None:
            self._hear(known)

    # ------------------------------------------------------------------ leases

    def claims(self, uuids: Collection[str] | None = None) -> list[Claimed]:
        """Every live claim on these cards (None: on any); stale ones of this home are removed on the way."""
        known = {n: i for k in self._runs.values() if k.sock is not None for n, i in k.inodes.items()}
        return self._directory.live(known, uuids)

    def _heard_of_claims(self) -> None:
        if self._directory.heard() and self.disturbed is not None:
            self.disturbed()

    def reserve(
        self, run: RunId, wants: Sequence[tuple[str, int | None]], known: frozenset[str], *, alone: bool = False
    ) -> Reservation | None:
        """Publishes the claims, then looks again: an unknown live claim on one of these GPUs came first or at once."""
        if not self._pool.spares:
            self._pool.replenish()
            return None
        spare = self._pool.spares[0]
        names = [
            leases.drawn(Claim(uuid=uuid, mib=mib, alone=alone, sid=spare.pid, home=self._home, run=run))
            for uuid, mib in wants
        ]
        held = self._directory.publish(names)
        if held is None:
            return None
        if wants and self._directory.contested({uuid for uuid, _ in wants}, known.union(names)):
            leases.withdraw(self._lease_dir, held)
            return None
        self._pool.spares.pop(0)
        return Reservation(run=run, spare=spare, held=tuple(held))

    def withdraw(self, r: Reservation) -> None:
        leases.withdraw(self._lease_dir, r.held)
        self._pool.spares.insert(0, r.spare)

    def missing_claims(self, run: RunId) -> tuple[str, ...]:
        """Claims of a run whose files are not there as they were made (deleted, replaced), though it has not given them back."""
        known = self._runs.get(run)
        if known is None or known.ended is not None:
            return ()
        return tuple(name for name, inode in known.inodes.items() if self._directory.lost(name, inode))

    def republish(self, run: RunId) -> tuple[str, ...]:
        """Publishes missing claims again, held by the engine until forget(); says which."""
        known = self._runs.get(run)
        done = []
        for name in self.missing_claims(run):
            if known is None or self.poll(run).kind not in ("alive", "unsupervised"):
                break
            claim = parse(name)
            held = None if claim is None else self._directory.publish([leases.drawn(claim)])  # the old name is known to all
            if held is None:
                continue
            known.republished += held
            del known.inodes[name]
            known.inodes[held[0].name] = held[0].inode
            done.append(name)
        return tuple(done)

    # ------------------------------------------------------------------ start

    def start(self, r: Reservation, spec: Mapping[str, Any]) -> None:
        """Hands the run to its spare. A spare that died meanwhile shows at the next poll: not_started."""
        spare = r.spare
        spare.run = r.run
        old = self._runs.pop(r.run, None)
        if old is not None:
            self._release(old)
        self._runs[r.run] = Known.of(r)
        full = {
            "dir": self._dir(r.run).path,
            "boot": self._boot,
            **spec,
            "claims": [f"{self._lease_dir}/{name}" for name in r.names],
            "ticks": spare.ticks,
        }
        send_spec(spare.sock, full, [one.fd for one in r.held])
        for one in r.held:
            os.close(one.fd)
        if not self._pool.spares:
            self._pool.replenish()

    def void(self, run: RunId) -> bool:
        """Makes sure that a run never starts. True: it never will; False: it has."""
        return self._dir(run).void()

    def adopt(self, run: RunId, pid: int | None, ticks: int | None) -> None:
        """Watches a run that an earlier engine started, if its shim is provably alive."""
        if run in self._runs:
            return
        claim = self._dir(run).claim()
        known = Known(run=run, pid=pid, ticks=ticks)
        if claim is not None and not claim.void:
            known.claimed = True
            known.inodes = {name: self._directory.inode(name) for name in claim.leases}
            if claim.boot == self._boot:
                known.pid, known.ticks = claim.pid, claim.ticks  # another spare than the recorded one may have won
        self._runs[run] = known
        if known.shim is None:
            return
        known.pidfd = process.open_pidfd(known.shim[0])
        if known.pidfd is None:
            return
        if proc.alive(*known.shim):
            self._watch_process(known)
        else:
            os.close(known.pidfd)
            known.pidfd = None

    # ------------------------------------------------------------------ watch

    def _watch_process(self, known: Known) -> None:
        if known.pidfd is not None:
            known.watched = True
            self._watcher.watch(known.pidfd, partial(self._process_ended, known))

    def _process_ended(self, known: Known) -> None:
        self._close_pidfd(known)
        self._changed(known.run)

    def _close_pidfd(self, known: Known) -> None:
        if known.pidfd is None:
            return
        if known.watched:
            self._watcher.unwatch(known.pidfd)
        os.close(known.pidfd)
        known.pidfd, known.watched = None, False

    def _hear(self, known: Known) -> None:
        before = (known.claimed, known.ended, known.background)
        self._drain(known)
        # a shim that died without a word: its locks go a moment after its socket, so we wait for the process itself
        if (known.claimed, known.ended, known.background) != before or (known.sock is None and not known.watched):
            self._changed(known.run)

    def _drain(self, known: Known) -> None:
        """Reads what the shim has said. Its end of file closes our end, too."""
        while known.sock is not None:
            try:
                data = known.sock.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._silent(known)
                return
            if ENDED in data and self.ending is not None:
                self.ending(known.run)
            *lines, known.heard = (known.heard + data).split(b"\n")
            for line in lines:
                self._message(known, line)
            if known.ended is not None:
                return  # its last word

    def _message(self, known: Known, line: bytes) -> None:
        message = record(line)
        if "ended" in message:
            known.ended = exit_of(message["ended"])
        elif "claimed" in message:
            known.claimed = True
            self._pool.replenish()  # only now: until here the cores were the starting run's
        elif "background" in message:
            known.background = pids_of(message["background"])

    def _silent(self, known: Known) -> None:
        assert known.sock is not None
        self._watcher.unwatch(known.sock.fileno())
        known.sock.close()
        known.sock = None
        if known.ended is None:
            self._watch_process(known)

    # ------------------------------------------------------------------ poll

    def poll(self, run: RunId) -> Report:
        """What has become of a run, looked at afresh."""
        known = self._runs.get(run)
        if known is not None:
            if known.ended is None:
                self._drain(known)
            if known.ended is not None:
                return Report(kind="ended", exit=known.ended, pid=known.pid)
            if known.sock is not None:
                return Report(kind="alive", claimed=known.claimed, pid=known.pid, pids=known.background)
        # the claim before the lock: one that was there first, with the lock free, belongs to a dead shim
        claim = self._dir(run).claim()
        locked = self._dir(run).locked(claim, self._boot)
        if locked:
            claimed, pid = claim is not None and not claim.void, claim.pid if claim else None
            return Report(kind="alive", claimed=claimed, pid=pid, pids=self._dir(run).background())
        record = self._dir(run).exit()
        if record is not None:
            return Report(kind="ended", exit=record, pid=claim.pid if claim else None)
        if claim is None:
            return self._unclaimed(run, known)
        return self._unlocked(run, claim)

    def _unclaimed(self, run: RunId, known: Known | None) -> Report:
        if self._dir(run).claim() is not None:
            return self.poll(run)  # made since we looked; it is never unmade, so this ends
        if known is not None and known.shim is not None and proc.alive(*known.shim):
            return Report(kind="alive", pid=known.pid)  # on its way to the claim, or leaving
        return Report(kind="not_started")

    def _unlocked(self, run: RunId, claim: RunClaim) -> Report:
        """Claimed, no shim, no exit record."""
        if claim.void:
            return Report(kind="voided")
        if claim.boot != self._boot:
            return Report(kind="gone", why="host rebooted", pid=claim.pid)
        told = self._dir(run).registered()
        # twice: in the instant in which a process becomes another program it shows no environment
        found = process.members(claim.uni_id) or process.members(claim.uni_id)
        pids = tuple({*(pid for pid, _ in found), *told.living})
        lives = self._dir(run).lives(claim)
        if pids or (self._still_leased(run, claim) if lives is None else lives):
            return Report(kind="unsupervised", pids=pids, pid=claim.pid)
        if (word := told.word(claim.uni_id)) is not None:
            return Report(kind="ended", exit=word, pid=claim.pid)
        return Report(kind="gone", why="exit unknown", pid=claim.pid)

    def _is_dead(self, claim: Claim) -> bool:
        """Whether surely nobody lives of the run that made this claim of ours; then a lock on it is a stranger's."""
        known = self._runs.get(claim.run)
        watched = known is not None and (known.sock is not None or known.pidfd is not None)
        return not watched and self._dir(claim.run).deserted(claim.sid)

    def _still_leased(self, run: RunId, claim: RunClaim) -> bool:
        """Whether some process has a lease of a run of an older shim, even one that hides its environment."""
        known = self._runs.get(run)
        by_us = {held.name for held in known.republished} if known is not None else set()
        return any(name not in by_us and self._directory.inode(name) is not None for name in claim.leases)

    def _dir(self, run: RunId) -> RunDir:
        return RunDir(self._runs_dir, run)

    # ------------------------------------------------------------------ stop, forget

    def signal(self, run: RunId, *, kill: bool) -> None:
        """Asks the shim to end its run; without one, signals the run's processes (kill=True is then the caller's)."""
        claim = self._dir(run).claim()
        who = self._shim(run, claim)
        if who is not None and process.signal_shim(*who, signal.SIGUSR1 if kill else signal.SIGTERM):
            return
        if claim is not None and not claim.void and claim.boot == self._boot:
            process.signal_members(claim.uni_id, signal.SIGKILL if kill else signal.SIGTERM)

    def _shim(self, run: RunId, claim: RunClaim | None) -> tuple[int, int] | None:
        """The process that carries this very run now; a living shim may have gone on to another."""
        known = self._runs.get(run)
        if known is not None and known.sock is not None:
            return known.shim if known.ended is None else None
        if claim is None:
            return known.shim if known is not None else None  # adopted on its way to the claim
        if claim.void or claim.boot != self._boot or not self._dir(run).locked(claim, self._boot):
            return None
        return claim.pid, claim.ticks

    def forget(self, run: RunId) -> None:
        """The run is final in the store: its shim need not make the exit record durable, and we stop watching."""
        known = self._runs.pop(run, None)
        if known is None:
            return
        leases.withdraw(self._lease_dir, known.republished)
        known.republished = []
        if known.sock is not None and known.ended is not None:
            again = self._pool.takes_back(known.spare) and not known.ended.leftovers
            try:
                known.sock.send(shim.AGAIN if again else shim.FINAL)
            except OSError:
                again = False
            if again and known.spare is not None:
                self._pool.take_back(known.spare)
                return
        self._release(known)

    def _release(self, known: Known) -> None:
        """Closes what we hold on a run; the run does not notice."""
        if known.sock is not None:
            self._watcher.unwatch(known.sock.fileno())
            known.sock.close()
            known.sock = None
        self._close_pidfd(known)
        for held in known.republished:
            os.close(held.fd)
        known.republished = []
