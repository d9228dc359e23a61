"""What has become of a run, looked at afresh each time from what is known of its shim and from the run's directory.

The order is claim, lock, exit: any other calls a run lost that has just ended or just begun. A run that is claimed, has no shim
and left no exit record lives for as long as any process of it does, and then its exit is unknown, never a success.
"""

from __future__ import annotations

from jostle import proc
from jostle.backends.local import halting, process
from jostle.backends.local.contact import Contact
from jostle.backends.local.leasedir import Directory
from jostle.backends.local.records import RunClaim, RunDir
from jostle.port import Phase, RunReport


class Condition:
    """Judges runs of one home, in this boot."""

    def __init__(self, runs: str, boot: str, directory: Directory) -> None:
        self._runs, self._boot, self._directory = runs, boot, directory

    def report(self, contact: Contact) -> RunReport:
        run, session, files = contact.run, contact.handle.pid, RunDir(self._runs, contact.run)
        if contact.ended is not None:
            return RunReport(run=run, kind=Phase.ENDED, exit=contact.ended, session=session)
        if contact.sock is not None:
            kind = Phase.ALIVE if contact.begun else Phase.STARTING
            return self._living(contact, kind, contact.background)
        # the claim before the lock: one that was there first, with the lock free, belongs to a dead shim
        claim = files.claim()
        locked = files.locked(claim, self._boot)
        if claim is not None and not claim.void:
            contact.begun = True
        if locked:
            kind = Phase.ALIVE if claim is not None and not claim.void else Phase.STARTING
            return self._living(contact, kind, files.background())
        record = files.exit()
        if record is not None:
            return RunReport(run=run, kind=Phase.ENDED, exit=record, session=session)
        if claim is None:
            return self._unclaimed(contact, files)
        return self._unlocked(contact, files, claim)

    def _living(self, contact: Contact, kind: Phase, pids: tuple[int, ...]) -> RunReport:
        session, directory = contact.handle.pid, RunDir(self._runs, contact.run).path
        still = halting.stands_still(directory, session)
        return RunReport(run=contact.run, kind=kind, session=session, pids=pids, footing=contact.footing, still=still)

    def _unclaimed(self, contact: Contact, files: RunDir) -> RunReport:
        run, session, boot = contact.run, contact.handle.pid, contact.handle.boot
        if files.claim() is not None:
            return self.report(contact)  # made since we looked; it is never unmade, so this ends
        if boot == "":
            return self._unsupervised_or_gone(contact, contact.uni_id)
        if boot is not None and boot != self._boot:  # the claim may have been lost with the page cache
            return RunReport(run=run, kind=Phase.GONE, cause="host_rebooted", session=session)
        if contact.shim is not None and proc.alive(*contact.shim):
            return RunReport(run=run, kind=Phase.STARTING, session=session)  # on its way to the claim, or leaving
        if contact.begun:  # somebody removed its directory, and how it ends will not be known
            return self._unsupervised_or_gone(contact, contact.uni_id)
        return RunReport(run=run, kind=Phase.NOT_STARTED, session=session)

    def _unlocked(self, contact: Contact, files: RunDir, claim: RunClaim) -> RunReport:
        """Claimed, no shim, no exit record."""
        run, session = contact.run, contact.handle.pid
        if claim.void:
            return RunReport(run=run, kind=Phase.VOIDED, session=session)
        if claim.boot != self._boot:
            return RunReport(run=run, kind=Phase.GONE, cause="host_rebooted", session=session)
        registered, lives = files.registered(), files.lives(claim)
        held = self._still_leased(contact, claim) if lives is None else lives
        report = self._unsupervised_or_gone(contact, claim.uni_id, registered.living, held=held)
        word = registered.word(claim.uni_id) if report.kind is Phase.GONE else None
        return report if word is None else RunReport(run=run, kind=Phase.ENDED, exit=word, session=session)

    def _unsupervised_or_gone(
        self, contact: Contact, uni_id: str, others: list[int] | None = None, *, held: bool = False
    ) -> RunReport:
        # twice: in the instant in which a process becomes another program it shows no environment
        members = process.members(uni_id) or process.members(uni_id)
        pids = tuple({*(pid for pid, _ in members), *(others or ())})
        if pids or held:
            return RunReport(run=contact.run, kind=Phase.ALIVE, supervised=False, pids=pids, session=contact.handle.pid)
        return RunReport(run=contact.run, kind=Phase.GONE, cause="exit_unknown", session=contact.handle.pid)

    def _still_leased(self, contact: Contact, claim: RunClaim) -> bool:
        """Whether some process has a lease of a run of an older shim, even one that hides its environment."""
        by_us = {held.name for held in contact.republished}
        return any(name not in by_us and self._directory.own(name) is not None for name in claim.leases)
