"""The batch of a workspace's config: a new one, or the one that was left unfinished (SPEC A33).

Rules: of two schedulers of one config only one lives; while it starts, a scheduler holds the config's lock, so that of two that
start at once the second finds the batch of the first. The lock lies in the home, where nobody edits it: an editor that saves the
command file makes another file of it. An unfinished batch is resumed, with what was edited meanwhile; so is one that ended while
no scheduler was there to tell: nobody's tasks run twice because their terminal was lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle import proc
from jostle.compete import outlook
from jostle.compete.board import Board
from jostle.compete.edits import Edits, edits
from jostle.context import capture
from jostle.errors import INTERRUPTED, JostleError
from jostle.follow.followed import owner
from jostle.intake.request import request, sent
from jostle.views.cards import seen_by_engine
from jostle.wording.declined import declined
from jostle.wording.text import count, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jostle.client import Client
    from jostle.compete.journal import SchedulerJournal
    from jostle.follow.feed import Feed
    from jostle.formats.workspace import Workspace
    from jostle.session import Session

STEP = 0.05  # s between looks while we wait for something
LOCK = "compete.lock"
LOCK_WITHIN = 60.0
NOBODY = [0, 0]
"""The owner of a batch whose end a scheduler has told."""


@contextlib.contextmanager
def locked(home: str, space: Workspace, feed: Feed) -> Iterator[None]:
    """The lock of a config: one byte of a file of the home, by its key. Where there are no locks, or no room, there is none."""
    try:
        fd = os.open(os.path.join(home, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        byte = int.from_bytes(hashlib.sha256(space.key.encode("utf-8", "surrogateescape")).digest()[:7], "big")
        end = time.monotonic() + LOCK_WITHIN
        while not _lock(fd, byte):
            if left_meanwhile(feed) or time.monotonic() > end:
                raise JostleError(f"another `jostle compete` is just starting with {space.command_file}")
        yield
    finally:
        os.close(fd)


def _lock(fd: int, byte: int) -> bool:
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        pass
    return True


def left_meanwhile(feed: Feed) -> bool:
    """Waits a moment; whether somebody wants us to leave."""
    item = feed.next(STEP)
    return item is not None and item[0] == "signal" and item[1] != signal.SIGUSR1


@dataclass(frozen=True, kw_only=True)
class CompeteOptions:
    fresh: bool = False  # an unfinished batch is cancelled first
    seed: int | None = None  # of the random order of a new batch
    devices: str | None = None  # of an engine that has to be started


class Resume:
    """The batch of this config: a new one, or the one that was left unfinished."""

    def __init__(
        self, options: CompeteOptions, session: Session, space: Workspace, journal: SchedulerJournal, client: Client, feed: Feed
    ) -> None:  # fmt: skip
        self.options, self.session, self.space = options, session, space
        self.journal, self.client, self.feed = journal, client, feed
        self.code = 0  # with which we leave, if there is nothing to follow
        self.gpus = seen_by_engine(session)  # before anything starts; None: not known

    def warn(self) -> None:
        """What the settings ask for and this host does not give."""
        missing = outlook.missing_cards(self.space.settings, self.gpus or ())
        if missing:
            self.journal.tell(missing, "WARNING")
        file = self.space.uni_id_file
        why = outlook.unwritable(file)
        if why:
            self.journal.tell(
                f"{self.space.shown(file)} (process_json_path) cannot be written: {why}. What scripts report of themselves "
                "(normal_exit, abnormal_exit) cannot count",
                "WARNING",
            )
        self._warn_of_writers()

    def _warn_of_writers(self) -> None:
        """Whoever can change these can say how a task ended."""
        from jostle.store.private import writers

        space = self.space
        for path in dict.fromkeys((space.log_dir, space.state_dir, os.path.dirname(space.uni_id_file), space.uni_id_file)):
            path = os.path.realpath(path)
            who, way = writers(path) if os.path.exists(path) else ("", "")
            if who:
                self.journal.tell(f"{path} can be changed by {who}, who could say how tasks ended: run `{way}`", "WARNING")

    def warn_of_impossible(self, number: int, without: frozenset[int], policy: Mapping[str, Any]) -> None:
        rows = [row for row in self.session.reader.jobs(batch=number) if row["state"] == "queued" and row["id"] not in without]
        lines = outlook.never(rows, self.gpus or (), policy, self.session.language)
        if lines:
            self.journal.tell("\n".join(map(plain, lines)), "WARNING")

    def batch(self, batch: dict[str, Any]) -> tuple[int | None, frozenset[int]]:
        """Its number, and the jobs that are no tasks of it any more; None if there is nothing to follow."""
        left = self._left()
        if left is not None:
            self._nobody_else(left)
        if left is not None and self.options.fresh:
            if not self._cancelled(left):
                self.code = INTERRUPTED
                return None, frozenset()
            left = None
        if left is not None:
            return left, self._resumed(left, batch)
        if not batch["jobs"]:
            self.journal.tell(f"{self.space.command_file} holds no task: nothing to do")
            return None, frozenset()
        return self._submitted(batch), frozenset()

    def _left(self) -> int | None:
        """The batch to go on with: one that is not finished, or whose end nobody has told."""
        reader, key = self.session.reader, self.space.key
        unfinished = reader.unfinished_batch(key)
        if unfinished is not None:
            return unfinished
        newest = reader.newest_batch(key)
        return newest if newest is not None and self._owner(newest) != NOBODY else None

    def _owner(self, number: int) -> list[int]:
        batch = self.session.reader.batch(number)
        return list(batch["owner"] or NOBODY) if batch is not None else NOBODY

    def _nobody_else(self, number: int) -> None:
        pid, ticks = self._owner(number)
        if pid and proc.alive(pid, ticks):
            raise JostleError(
                f"process {pid} runs {self.space.command_file} already (batch {number}): `kill {pid}` stops it and its tasks, "
                "`jostle compete --status` tells how they stand"
            )

    def _cancelled(self, number: int) -> bool:
        """Until the old batch has ended; False if somebody lost patience."""
        open_tasks = sum(row["ended_at"] is None for row in self.session.reader.jobs(batch=number))
        if not open_tasks:
            return True
        left = count(open_tasks, "task")
        self.journal.tell(f"batch {number} of {self.space.command_file} is not finished: cancelling {left}, then starting over")
        self.client.call("intent", ids=None, batch=number, do="cancel", now=False)
        while self.session.reader.unfinished_batch(self.space.key) == number:
            if left_meanwhile(self.feed):
                return False
        return True

    def _submitted(self, batch: dict[str, Any]) -> int:
        head = {key: batch[key] for key in ("name", "policy", "queues")}
        if self.options.seed is not None:
            head["seed"] = self.options.seed
        asked = request({"key": self.space.key, "owner": owner(), **head}, batch["jobs"])
        again = "`jostle compete` again goes on with it"
        answer = sent(self.session, asked, again=again, devices=self.options.devices)
        queues = count(len({job["queue"] for job in batch["jobs"]}), "queue")
        tasks = count(len(batch["jobs"]), "task")
        number = int(answer["batch"])
        self.journal.tell(f"batch {number}: {tasks} in {queues} of {self.space.command_file} ({self.space.mode})")
        if not os.path.isdir(self.space.work_dir):
            self.journal.tell(f"work_dir {self.space.work_dir} does not exist; tasks fail until it does", "WARNING")
        return number

    def _edits(self, number: int, batch: dict[str, Any]) -> tuple[list[dict[str, Any]], Edits]:
        rows = self.session.reader.jobs(batch=number)
        for row in rows:
            if row["state"] == "queued":
                row["env"] = self.session.reader.env(row["id"])
        return rows, edits(batch["jobs"], rows, batch["texts"])

    def _resumed(self, number: int, batch: dict[str, Any]) -> frozenset[int]:
        rows, changes = self._edits(number, batch)
        moved: frozenset[int] = frozenset()
        if changes.moved:
            moved = self._moved(number, changes)
            rows, changes = self._edits(number, batch)
        added = [k for k in changes.new if k not in moved]
        without = frozenset(changes.drop) | changes.replaced
        counts = Board(rows, without).counts()
        counts["pending_tasks"] += len(moved)
        summary = ", ".join(f"{n} {name.removesuffix('_tasks')}" for name, n in counts.items() if n and name != "total_tasks")
        if counts["pending_tasks"] or counts["running_tasks"] or changes.new:
            self.journal.tell(
                f"batch {number} of {self.space.command_file} is not finished: resumed ({summary}); --fresh starts over"
            )
        else:
            self.journal.tell(
                f"batch {number} of {self.space.command_file} ended while no scheduler was there: {summary}. "
                "The next `jostle compete` runs everything again"
            )
        change: dict[str, Any] = {"batch": number, "owner": owner(), "policy": batch["policy"]}
        if changes.drop or changes.new:
            change |= {
                "drop": list(changes.drop), "jobs": [batch["jobs"][k] for k in changes.new], "queues": batch["queues"],
                "context": capture(), "once": os.urandom(16).hex(),
            }  # fmt: skip
        change |= {"order": [list(pair) for pair in changes.order], "into": [list(pair) for pair in changes.into]}
        answer = self.client.call("amend", **change)
        self._tell_edits(added, changes.drop, batch["jobs"], {row["id"]: row for row in rows})
        self._tell_moves(len(moved), changes.unmoved)
        for _, why in answer["refused"]:  # started meanwhile
            self.journal.tell(f"{declined(why, 'en')}; it goes on", "WARNING")
        return without - {id for id, _ in answer["refused"]}

    def _moved(self, number: int, changes: Edits) -> frozenset[int]:
        """Takes tasks out that begin anew with other directories: which blocks. First, for one that has started meanwhile is not
        to run beside itself."""
        drop = [id for _, id in changes.moved]
        answer = self.client.call("amend", batch=number, owner=owner(), drop=drop)
        started = {id for id, _ in answer["refused"]}
        return frozenset(k for k, id in changes.moved if id not in started)

    def _tell_moves(self, moved: int, unmoved: Sequence[int]) -> None:
        which = "work_dir, log_dir or process_json_path"
        if moved:
            self.journal.tell(f"{which} has changed: what it says now holds for {count(moved, 'task')} not started yet")
        if unmoved:
            ids = ", ".join(map(str, unmoved[:20])) + (", …" if len(unmoved) > 20 else "")
            self.journal.tell(
                f"{which} has changed, but not for {count(len(unmoved), 'task')} waiting for another try: job {ids}",
                "WARNING",
            )

    def _tell_edits(
        self, new: Sequence[int], drop: Sequence[int], specs: Sequence[Mapping[str, Any]], rows: Mapping[int, Mapping[str, Any]]
    ) -> None:
        if not new and not drop:
            return
        file = self.space.shown(self.space.command_file)
        self.journal.tell(f"{file} was edited meanwhile: {len(new)} new, {count(len(drop), 'task')} dropped")
        lines = [*(f"  new: {specs[k]['name']}" for k in new), *(f"  dropped: {id} {rows[id]['name']}" for id in drop)]
        for line in lines[:20]:
            self.journal.tell(line)
        if len(lines) > 20:
            self.journal.tell(f"  … and {len(lines) - 20} more")
