"""Runs on this host: the engine's side of the start protocol.

Rules. Nothing is remembered that can be looked at: a report derives a run's condition each time (condition.py). An open socket
to a shim proves it alive. A process is signalled only while a descriptor of it is open and the proof that it is ours holds. Acts
are idempotent by run id: starting or voiding twice does what once does.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection, Sequence
from functools import partial
from typing import cast

from jostle import proc
from jostle.backends.local import halting, leases, process, shim, sparedir
from jostle.backends.local.claims import Claim
from jostle.backends.local.condition import Condition
from jostle.backends.local.contact import Contact, Reservation, Spare, host_of, send_spec
from jostle.backends.local.leasedir import Directory
from jostle.backends.local.pool import SPARES, SPARES_BUSY, Pool
from jostle.backends.local.recorded import Handle, record
from jostle.backends.local.records import RunClaim, RunDir, exit_of, pids_of
from jostle.backends.local.republish import Republisher
from jostle.backends.local.resizing import ResizeOrders
from jostle.core.model import RunId
from jostle.core.reasons import Hold
from jostle.port import BY_HAND, Adopted, Claimed, Denied, Launch, Recipient, Reserved, Resizing, RunReport, Tenure, Void, Watcher

ENDED = b'{"ended":'  # how the last word of a shim begins
LOOK_EVERY = 1.0  # s, at what cannot be watched
CALM_AFTER = 5.0  # s without a start, then it is at rest


class Local:
    """Starts, watches, adopts and ends runs on this host."""

    places = True

    def __init__(self, *, home: str, lease_dir: str, watcher: Watcher, python: str = sys.executable) -> None:
        self._runs_dir, self._lease_dir = os.path.join(home, "runs"), lease_dir
        self._home = leases.home_id(home)
        self._directory = Directory(lease_dir, self._home, self._is_dead)
        self._boot = proc.boot_id()
        self._watcher, self._listener = watcher, cast(Recipient, None)
        self._pool = Pool(
            watcher=watcher, python=python, runs=self._runs_dir, heard=self._stirred, returning=self._returning
        )
        self._condition = Condition(self._runs_dir, self._boot, self._directory)
        self._republisher = Republisher(self._directory)
        self._resizer = ResizeOrders(runs=self._runs_dir, directory=self._directory, watcher=watcher)
        self._reserved: dict[RunId, Reservation] = {}
        self._runs: dict[RunId, Contact] = {}
        self._started = False  # something was, since it was last asked whether spares are too many
        self._calm_at = 0.0

    def open(self, rows: Sequence[Adopted], listener: Recipient) -> None:
        self._listener = self._resizer.listener = listener
        for row in rows:
            self._adopt(row)
        os.makedirs(self._runs_dir, mode=0o700, exist_ok=True)
        os.makedirs(self._lease_dir, mode=0o700, exist_ok=True)
        sparedir.sweep(self._runs_dir)
        self._directory.open(self._watcher, self._heard_of_claims)
        self._pool.arrived = listener.wake
        self._pool.open()

    def close(self) -> None:
        self.withdraw(list(self._reserved))
        for contact in self._runs.values():
            self._release(contact)
        self._runs.clear()
        self._directory.close()
        self._pool.close()

    def tick(self, now: float) -> float | None:
        """Keeps the nursery, the spares and the claims going."""
        at = self._pool.nursery.tick(now)
        self._pool.replenish()
        if now >= self._calm_at:
            if not self._started:
                self.want(SPARES)
            self._started, self._calm_at = False, now + CALM_AFTER
        self._republish(now)
        due: list[float] = [self._calm_at, self._republisher.due_at]
        due += [at for at in (at, self._resizer.tick(now, self._runs.values())) if at is not None]
        if not hasattr(os, "pidfd_open"):  # then nobody tells of the end of a shim that an earlier engine started
            for run in [run for run, contact in self._runs.items() if contact.sock is None]:
                self._listener.changed(run)
            due.append(now + LOOK_EVERY)
        return min(due)

    @property
    def trouble(self) -> Hold | None:
        return self._directory.trouble or self._pool.nursery.trouble

    # ------------------------------------------------------------------ spares

    def capacity(self) -> int:
        return len(self._pool.spares)

    def want(self, n: int) -> None:
        """Keeps so many spares."""
        self._pool.want(n)

    def _returning(self) -> int:
        """Shims whose run has ended and is not confirmed yet."""
        return sum(contact.ended is not None and contact.sock is not None for contact in self._runs.values())

    def _stirred(self, spare: Spare) -> None:
        contact = self._runs.get(spare.run) if spare.run is not None else None
        if contact is not None:
            self._hear(contact)

    # ------------------------------------------------------------------ leases

    def claims(self, uuids: Collection[str] | None = None) -> Sequence[Claimed]:
        """Every live claim on these cards (None: on any); stale ones of this home are removed on the way."""
        inodes = {n: i for k in self._runs.values() if k.sock is not None for n, i in k.inodes.items()}
        return self._directory.live(inodes, uuids)

    def reserve(
        self, run: RunId, node: str, wants: Sequence[tuple[str, int | None]], claim_names: frozenset[str], *,
        alone: bool = False, tenure: Tenure = BY_HAND,
    ) -> Reserved | Denied:  # fmt: skip
        """Publishes the claims, then looks again: an unknown live claim on one of these GPUs came first or at once."""
        if not self._pool.spares:
            self.want(SPARES_BUSY)
            return Denied.ASKED  # the next spare brings it
        if self._dir(run).exists():
            return Denied.TAKEN
        spare = self._pool.spares[0]
        held = self._directory.claim_cards(run, spare.pid, wants, claim_names, alone=alone, tenure=tenure)
        if held is None:
            return Denied.REFUSED
        self._pool.spares.pop(0)
        handle = Handle(spare.pid, spare.ticks, self._boot)
        self._reserved[run] = Reservation(run=run, spare=spare, held=tuple(held), handle=handle, automatic=tenure.automatic)
        return Reserved(handle=handle.text(), session=spare.pid)

    def withdraw(self, runs: Collection[RunId]) -> None:
        for run in runs:
            r = self._reserved.pop(run, None)
            if r is not None:
                leases.withdraw(self._lease_dir, r.held)
                self._pool.spares.insert(0, r.spare)
            self._resizer.withdraw(run)

    def reserve_more(
        self, run: RunId, wants: Sequence[tuple[str, int | None]], claim_names: frozenset[str], *,
        alone: bool = False, tenure: Tenure = BY_HAND,
    ) -> Denied | None:  # fmt: skip
        return self._resizer.reserve(self._runs.get(run), wants, claim_names, alone=alone, tenure=tenure)

    def resize(self, orders: Sequence[Resizing]) -> None:
        for order in orders:
            if order.run in self._runs:
                self._resizer.resize(self._runs[order.run], order)

    def give_up(self, run: RunId, order: int, cards: Collection[str]) -> None:
        if run in self._runs:
            self._resizer.give_up(self._runs[run], order, cards)

    def pause(self, run: RunId, *, paused: bool) -> None:
        """Says so to its shim; what has none any more goes on."""
        claim, changed = self._dir(run).claim(), halting.want(self._dir(run).path, paused=paused)
        if self._shim(run, claim) is None:
            process.wake_members(self._marker(run, claim))
        elif changed:
            self._signal(run, claim, signal.SIGHUP)  # it looks at once

    def _heard_of_claims(self) -> None:
        if self._directory.heard():
            self._republisher.disturbed()
            self._republish(0.0)
            self._listener.wake()

    def _republish(self, now: float) -> None:
        for run, names in self._republisher.publish(now, list(self._runs.values()), self._heard_out):
            print(f"claims of run {run[0]}.{run[1]} were removed while it runs, and are published again", file=sys.stderr)
            self._listener.noted(run, "republished", {"claims": names})

    # ------------------------------------------------------------------ start

    def log_path(self, run: RunId, uni_id: str) -> str:
        return f"{self._dir(run).path}/log"

    def start(self, launches: Sequence[Launch]) -> None:
        """Hands each run to its spare. A spare that died meanwhile shows in its report: not started."""
        for launch in launches:
            r = self._reserved.pop(launch.run, None)
            if r is None:
                continue  # it was started before
            r.spare.run = r.run
            old = self._runs.pop(r.run, None)
            if old is not None:
                self._release(old)
            self._runs[r.run] = Contact.of(r, launch.spec["uni_id"], resizable=bool(launch.spec.get("resize")))
            place = {"dir": self._dir(r.run).path, "boot": self._boot, "ticks": r.spare.ticks, "lease_dir": self._lease_dir,
                     "host": host_of(launch.spec, self._runs, self._runs_dir)}  # fmt: skip
            if launch.spec.get("nice"):
                self._pool.wear_out(r.spare)  # the next run would be as nice
            claims = [f"{self._lease_dir}/{name}" for name in r.names]
            send_spec(r.spare.sock, {**launch.spec, **place, "claims": claims}, [held.fd for held in r.held])
            for held in r.held:
                os.close(held.fd)
            self._started = True
        if not self._pool.spares:
            self._pool.replenish()

    def void(self, run: RunId) -> Void:
        files = self._dir(run)
        return Void.NEVER if files.void() else Void.UNKNOWN if files.claim() is None else Void.STARTED

    def _adopt(self, row: Adopted) -> None:
        """Watches a run that an earlier engine started, if its shim is provably alive."""
        claim = self._dir(row.run).claim()
        contact = Contact(run=row.run, uni_id=row.uni_id, handle=Handle.of(row.handle), begun=row.begun, ordered=row.order)
        if claim is not None and not claim.void:
            contact.begun = True
            held = {name: self._directory.own(name) for name in claim.leases}
            if not row.order:  # else its shim tells which it has now
                contact.inodes = {name: None if lease is None else lease.inode for name, lease in held.items()}
            contact.automatic = any(lease is not None and lease.automatic for lease in held.values())
            if claim.boot == self._boot:  # another spare than the recorded one may have won
                contact.handle = Handle(claim.pid, claim.ticks, claim.boot)
        self._runs[row.run] = contact
        contact.pidfd = None if contact.shim is None else process.open_pidfd(contact.shim[0])
        if contact.shim is None or contact.pidfd is None:
            return
        if proc.alive(*contact.shim):
            self._watch_process(contact)
        else:
            os.close(contact.pidfd)
            contact.pidfd = None

    # ------------------------------------------------------------------ watch

    def _watch_process(self, contact: Contact) -> None:
        if contact.pidfd is not None:
            contact.watched = True
            self._watcher.watch(contact.pidfd, partial(self._process_ended, contact))

    def _process_ended(self, contact: Contact) -> None:
        self._close_pidfd(contact)
        self._listener.changed(contact.run)

    def _close_pidfd(self, contact: Contact) -> None:
        if contact.pidfd is None:
            return
        if contact.watched:
            self._watcher.unwatch(contact.pidfd)
        os.close(contact.pidfd)
        contact.pidfd, contact.watched = None, False

    def _hear(self, contact: Contact) -> None:
        before = (contact.begun, contact.ended, contact.background)
        self._drain(contact)
        # a shim that died without a word: its locks go a moment after its socket, so we wait for the process itself
        if (contact.begun, contact.ended, contact.background) != before or (contact.sock is None and not contact.watched):
            self._listener.changed(contact.run)

    def _drain(self, contact: Contact) -> None:
        """Reads what the shim has said. Its end of file closes our end, too."""
        while contact.sock is not None:
            try:
                data = contact.sock.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._silent(contact)
                return
            if ENDED in data:
                self._listener.about_to_end(contact.run)
            *lines, contact.heard = (contact.heard + data).split(b"\n")
            for line in lines:
                self._message(contact, line)
            if contact.ended is not None:
                return  # its last word

    def _message(self, contact: Contact, line: bytes) -> None:
        message = record(line)
        if "ended" in message:
            contact.ended = exit_of(message["ended"])
        elif "claimed" in message:
            contact.begun = True
            self._pool.replenish()  # only now: until here the cores were the starting run's
        elif "background" in message:
            contact.begun = True  # commands that end within an instant are not told to have started
            contact.background = pids_of(message["background"])

    def _silent(self, contact: Contact) -> None:
        assert contact.sock is not None
        self._watcher.unwatch(contact.sock.fileno())
        contact.sock.close()
        contact.sock = None
        if contact.ended is None:
            self._watch_process(contact)

    # ------------------------------------------------------------------ look

    def reports(self, runs: Collection[RunId] | None = None) -> list[RunReport]:
        return [self._report(run) for run in (list(self._runs) if runs is None else runs)]

    def _report(self, run: RunId) -> RunReport:
        contact = self._runs.get(run)
        if contact is None:
            return self._condition.report(Contact(run))
        if contact.ended is None:
            self._drain(contact)
        return self._condition.report(contact)

    def _heard_out(self, contact: Contact) -> RunReport:
        """A report that its end, if it lies unread, is not hidden from; the listener hears of that, too."""
        if contact.sock is not None and contact.ended is None:
            self._hear(contact)
        return self._condition.report(contact)

    def _is_dead(self, claim: Claim) -> bool:
        """Whether surely nobody lives of the run that made this claim of ours; then a lock on it is a stranger's."""
        contact = self._runs.get(claim.run)
        watched = contact is not None and (contact.sock is not None or contact.pidfd is not None)
        return not watched and self._dir(claim.run).deserted(claim.sid)

    def _dir(self, run: RunId) -> RunDir:
        return RunDir(self._runs_dir, run)

    # ------------------------------------------------------------------ stop, forget

    def stop(self, runs: Collection[RunId], *, kill: bool) -> None:
        """Asks the shim to end its run; without one, signals the run's processes (kill=True is then the caller's)."""
        for run in runs:
            claim = self._dir(run).claim()
            if not self._signal(run, claim, signal.SIGUSR1 if kill else signal.SIGTERM):
                process.signal_members(self._marker(run, claim), signal.SIGKILL if kill else signal.SIGTERM)

    def _signal(self, run: RunId, claim: RunClaim | None, number: int) -> bool:
        """Whether its shim was signalled. Whose pid a record has is no proof: it must be at the other end of our socket, or
        have the lock of this very run; one that is not so far hears of it when it is said again."""
        contact = self._runs.get(run)
        connected = contact is not None and contact.sock is not None
        who = self._shim(run, claim)
        return who is not None and process.signal_shim(*who, number, lambda pid: connected or self._dir(run).is_of_shim(pid))

    def _marker(self, run: RunId, claim: RunClaim | None) -> str:
        """By which the processes of a run without a shim are known, whatever became of its directory; "": it can have none."""
        if claim is not None:
            return claim.uni_id if not claim.void and claim.boot == self._boot else ""
        contact = self._runs.get(run)
        return contact.uni_id if contact is not None else ""

    def _shim(self, run: RunId, claim: RunClaim | None) -> tuple[int, int] | None:
        """The process that carries this very run now; a living shim may have gone on to another."""
        contact = self._runs.get(run)
        if contact is not None and contact.sock is not None:
            return contact.shim if contact.ended is None else None
        if claim is None:
            return contact.shim if contact is not None else None  # adopted on its way to the claim
        if claim.void or claim.boot != self._boot or not self._dir(run).locked(claim, self._boot):
            return None
        return claim.pid, claim.ticks

    def forget(self, runs: Collection[RunId]) -> None:
        """Their shims need not make the exit records durable, and may carry another run; and we stop watching."""
        for run in runs:
            contact = self._runs.pop(run, None)
            if contact is not None:
                self._forget(contact)

    def _forget(self, contact: Contact) -> None:
        leases.withdraw(self._lease_dir, contact.republished)
        contact.republished = []
        if contact.sock is not None and contact.ended is not None:
            again = self._pool.takes_back(contact.spare) and not contact.ended.leftovers
            try:
                contact.sock.send(shim.AGAIN if again else shim.FINAL)
            except OSError:
                again = False
            if again and contact.spare is not None:
                self._resizer.release(contact)
                self._pool.take_back(contact.spare)
                return
        self._release(contact)

    def _release(self, contact: Contact) -> None:
        """Closes what we hold on a run; the run does not notice."""
        if contact.sock is not None:
            self._watcher.unwatch(contact.sock.fileno())
            contact.sock.close()
            contact.sock = None
        self._close_pidfd(contact)
        self._resizer.release(contact)
        for held in contact.republished:
            os.close(held.fd)
        contact.republished = []
