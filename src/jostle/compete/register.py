"""What a scheduler sees to in the uni_id file (SPEC A22, A23): entries that a killed shim left at `running`, and damage.

A shim writes the end of its run into the file. One that was killed cannot: when the engine has found its run dead, and no process
of the entry lives either, the entry is set to abnormal_exit. Shims put a damaged file aside and say so in their own task's log:
here it comes to the scheduler's log and to the screen.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from jostle.errors import JostleError
from jostle.uniid import ABNORMAL, RUNNING, UniIdFile, entry_of, lives
from jostle.uniid.entries import with_fields

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from jostle.compete.journal import SchedulerJournal
    from jostle.store.reads import Reader

DAMAGED = "{0} was damaged: it was replaced by {{}}, and kept as {1}"  # as the file itself says it


class RegisterWatch:
    def __init__(self, path: str, reader: Reader, journal: SchedulerJournal) -> None:
        self.path, self.reader, self.journal = os.path.realpath(path), reader, journal
        self.folder, self.name = os.path.split(self.path)
        self.file = UniIdFile(path, warn=self._tell)
        self.ended: set[int] | None = None  # jobs of which a run has ended since the last look; None: whatever the file names
        self.orphans: dict[str, str] = {}  # entries whose run is lost, and its kind of error
        self.reported: set[str] = set()
        self.stamp: int | None = None
        self.aside = self._aside()

    def begin(self) -> None:
        """What is damaged before anything runs is put aside here, and told."""
        if os.path.exists(self.path):
            self._try(partial(self.file.change, lambda data: False))

    def take(self, event: dict[str, Any]) -> None:
        if self.ended is not None and event["job"] is not None and event["kind"] in ("requeued", "failed", "cancelled"):
            self.ended.add(event["job"])

    def look(self) -> None:
        """Now and then: it costs a stat, unless something has happened."""
        self._try(self._damage)
        if self.ended is None or self.ended or self.orphans:
            self._try(self._set_right)

    def _set_right(self) -> None:
        if self.ended is None:
            left = [uni_id for uni_id, entry in self.file.read().items() if entry.state == RUNNING]
            self.orphans = self.reader.lost_runs(uni_ids=left) if left else {}
        elif self.ended:
            self.orphans |= self.reader.lost_runs(jobs=self.ended)
        self.ended = set()
        if self.orphans and os.path.exists(self.path):
            self.file.change(self._conclude)

    def _conclude(self, data: dict[str, Any]) -> bool:
        """Under the file's lock: a script may have said its word at this very moment."""
        entries = {uni_id: entry_of(data.get(uni_id)) for uni_id in self.orphans}
        left = {uni_id: entry for uni_id, entry in entries.items() if entry is not None and entry.state == RUNNING}
        living = {uni_id for uni_id, entry in left.items() if lives(uni_id, entry, self.file.written_at)}
        for uni_id in left.keys() - living:
            data[uni_id] = with_fields(data[uni_id], {"state": ABNORMAL, "error_type": self.orphans[uni_id]})
            self._tell(f"{self.path}: {uni_id} was left at {RUNNING} and none of its processes lives: set to {ABNORMAL}")
        self.orphans = {uni_id: kind for uni_id, kind in self.orphans.items() if uni_id in living}
        return len(left) > len(living)

    def _damage(self) -> None:
        stamp = os.stat(self.folder).st_mtime_ns
        if stamp != self.stamp:
            aside, before = self._aside(), self.aside
            self.stamp, self.aside = stamp, aside
            for name in sorted(aside - before):
                self._tell(DAMAGED.format(self.path, os.path.join(self.folder, name)))

    def _aside(self) -> set[str]:
        try:
            return {name for name in os.listdir(self.folder) if name.startswith(f"{self.name}.damaged-")}
        except OSError:
            return set()

    def _try(self, act: Callable[[], object]) -> None:
        """A file that cannot be read or written now does not end the scheduler, nor does an engine that is just starting."""
        try:
            act()
        except (OSError, JostleError):
            pass

    def _tell(self, text: str) -> None:
        if text not in self.reported:
            self.reported.add(text)
            self.journal.tell(text, "WARNING")
