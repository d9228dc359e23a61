"""Claims of living runs that somebody has removed: they are published again, held by the engine until the run is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from jostle.backends.local import leases
from jostle.backends.local.claims import parse
from jostle.backends.local.contact import Contact
from jostle.backends.local.leasedir import Directory
from jostle.core.model import RunId
from jostle.port import Phase, RunReport

LOOK_EVERY = 5.0  # s, whatever the watch on the directory has said
LIVING = (Phase.STARTING, Phase.ALIVE)
SOON = 0.05  # s; a directory that is made again is not ready at once


class Republisher:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._pause = LOOK_EVERY  # between tries
        self.due_at = 0.0

    def disturbed(self) -> None:
        """Somebody removed a claim, or the directory of all claims, while it was held."""
        self._pause, self.due_at = SOON, 0.0

    def publish(
        self, now: float, runs: Iterable[Contact], report: Callable[[Contact], RunReport]
    ) -> Iterator[tuple[RunId, list[str]]]:
        """Once it is due: which claims of which runs were missing and are there again."""
        if now < self.due_at:
            return
        missing = False
        for contact in runs:
            done = list(self._again(contact, report))
            if done:
                yield contact.run, done
            missing = missing or bool(self._missing(contact))
        self._pause = min(self._pause * 2, LOOK_EVERY) if missing else LOOK_EVERY
        self.due_at = now + self._pause

    def _missing(self, contact: Contact) -> list[str]:
        """Claims of a run whose files are not there as they were made (deleted, replaced), though it has not given them back."""
        if contact.ended is not None:
            return []
        return [name for name, inode in contact.inodes.items() if self._directory.lost(name, inode)]

    def _again(self, contact: Contact, report: Callable[[Contact], RunReport]) -> Iterator[str]:
        for name in self._missing(contact):
            claim = parse(name)
            if claim is None or report(contact).kind not in LIVING:
                continue
            held = self._directory.publish([leases.drawn(claim)], automatic=contact.automatic)  # the old name is known to all
            if held is None:
                continue
            contact.republished += held
            del contact.inodes[name]
            contact.inodes[held[0].name] = held[0].inode
            yield name
