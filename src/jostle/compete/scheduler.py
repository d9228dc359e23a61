"""A scheduler at work: follows its batch to the end, with log, state file and status beside it, and leaves as it was told to."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jostle import proc
from jostle.compete import controlfiles, statefile
from jostle.compete.board import Board
from jostle.compete.chores import Chores
from jostle.compete.edits import queue_of
from jostle.compete.journal import Logged, SchedulerJournal
from jostle.compete.resume import NOBODY, CompeteOptions, Resume, locked
from jostle.compete.schedlog import SchedulerLog
from jostle.compete.statefile import Scheduler
from jostle.core.states import OPEN
from jostle.errors import INTERRUPTED, Forbidden, JostleError
from jostle.follow.followed import Followed, signal_feed
from jostle.follow.listener import Listener, Listeners
from jostle.follow.progress import Progress
from jostle.formats import taskjobs
from jostle.intake.visible import with_indices

if TYPE_CHECKING:
    from jostle.follow.feed import Feed
    from jostle.formats.workspace import Workspace
    from jostle.session import Session


def scheduler(space: Workspace, batch: int) -> Scheduler:
    """This process."""
    me = proc.stat(os.getpid())
    return Scheduler(
        pid=os.getpid(), mode=space.mode, config_index=space.index, config_file=space.command_file, host=socket.gethostname(),
        boot_id=proc.boot_id(), start_ticks=me.ticks if me is not None else 0, batch=batch, started_at=time.time(),
    )  # fmt: skip


def run(
    session: Session, space: Workspace, blocks: list[Any], warnings: list[str], options: CompeteOptions, *,
    say: Callable[[str], None] | None = None, echo: Callable[[list[str]], None] | None = None,
    picture: Callable[[Progress], Listener] | None = None,
) -> int:  # fmt: skip
    """The tasks of a workspace, as a new batch or the one that was left, to its end: the exit code. `say`: to a person who is
    there; `echo`: each line of the log; `picture`: a live view."""
    client = session.client(gpus=options.devices)
    visible_cards = with_indices(client)
    batch = taskjobs.batch(space, blocks, visible_cards)
    try:
        log = SchedulerLog(space.scheduler_log)
    except OSError as e:
        raise Forbidden(f"cannot write {space.scheduler_log}: {e.strerror}; see log_dir in the settings") from e
    journal = SchedulerJournal(log, say=say, echo=echo)
    for text in warnings:
        journal.tell(text, "WARNING")
    feed = scheduler_feed(session, options.devices)
    resume = Resume(options, session, space, journal, client, feed)
    resume.warn()
    with locked(session.home, space, feed):
        number, without = resume.batch(batch)
    client.close()
    if number is None:
        return resume.code
    resume.warn_of_impossible(number, without, batch["policy"])
    with controlfiles.scheduler(space.root if space.numbered else None, space.mode, space.index):
        return follow(resume, number, without, visible_cards, picture)


def scheduler_feed(session: Session, devices: str | None) -> Feed:
    """Signals are for the batch from now on; those that nohup or a script's background has us ignore stay ignored."""
    asked = [n for n in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    return signal_feed(session, gpus=devices, after=session.reader.last_seq(), signals=(signal.SIGTERM, signal.SIGUSR1, *asked))


def follow(
    resume: Resume, number: int, without: Iterable[int], visible: str | None,
    picture: Callable[[Progress], Listener] | None = None,
) -> int:  # fmt: skip
    """To the end of the batch, whose rows are read after the feed's first event: nothing is missed. `picture`: a live view of it,
    where a person looks on. The exit code."""
    session, space, journal, feed = resume.session, resume.space, resume.journal, resume.feed
    feed.batch = number
    board = Board(session.reader.jobs(batch=number), without)
    progress = TaskProgress(board.rows.values(), session.language)
    me = scheduler(space, number)
    for pid in statefile.clean(space.state_dirs, me.host, me.boot_id):
        journal.record(f"removed the state file of scheduler {pid}, which is gone")
    for other in statefile.on_other_hosts(space.state_dir, me):
        journal.tell(
            f"{other['host']} runs these tasks too, says {space.state_dir}/{other['pid']}.json; remove that file if it does not",
            "WARNING",
        )
    file = statefile.StateFile(me.pid, *space.state_dirs)
    chores = Chores(session, space, me, file, board, journal, visible, resume.gpus)
    try:
        chores.write()
        chores.register.begin()
        journal.tell(
            f"scheduler {me.pid} (Ctrl-C or `kill {me.pid}` stops it and its tasks): "
            f"log {space.scheduler_log}, output of the tasks in {space.log_dir}/tasks"
        )
        feed.start()
        chores.now = "running"
        journal.live = picture(progress) if picture is not None else None
        listeners = [Logged(session, progress, journal), chores, *([journal.live] if journal.live is not None else [])]
        followed = Competing(session, number, progress, feed, Listeners(session, listeners), chores, resume.options.devices)
        interrupted = followed.to_the_end()
        chores.register.look()  # the last end, too
        journal.live = None
        return ended(followed, journal, interrupted)
    except JostleError as e:
        journal.record(str(e), "ERROR")
        raise
    finally:
        file.remove()


def ended(followed: Competing, journal: SchedulerJournal, interrupted: bool) -> int:
    if followed.hung_up:
        journal.record("the terminal has gone: the tasks run on, and `jostle compete` attaches to them again", "WARNING")
        return 129
    followed.chores.becomes("completed" if followed.progress.succeeded else "failed")
    if followed.progress.over:
        followed.chores.status()
        mark_told(followed)
    journal.tell(f"batch {followed.number}: {followed.progress.summary()}")
    for line in followed.chores.never():
        journal.tell(line, "WARNING")
    return INTERRUPTED if interrupted else 0 if followed.progress.succeeded else 1


def mark_told(followed: Competing) -> None:
    """The end of the batch has been told: the next scheduler begins anew. If no engine hears it, it is told once more."""
    try:
        client = followed.session.client()
        client.call("amend", batch=followed.number, owner=NOBODY)
        client.close()
    except JostleError:
        pass


class Competing(Followed):
    """A batch that is followed by a scheduler: it can be asked for its status, and be hung up on."""

    def __init__(
        self, session: Session, number: int, progress: Progress, feed: Feed, listener: Listener, chores: Chores,
        gpus: str | None,
    ) -> None:  # fmt: skip
        super().__init__(session, number, progress, feed, listener, gpus=gpus)
        self.chores = chores
        self.hung_up = False

    def _signal(self, number: int) -> None:
        if number == signal.SIGUSR1:
            self.chores.status()
        elif number == signal.SIGHUP:
            self.hung_up = self.leaving = True
        else:
            self.chores.becomes("stopping")
            self._interrupt()


class TaskProgress(Progress):
    """Progress of tasks: what is tried again by hand replaces the task, and those that wait for their own queue do not count as
    waiting for a GPU."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], language: str = "en") -> None:
        rows = sorted(rows, key=lambda row: (not row["attempt"], row["place"], row["id"]))  # as their queues take them
        super().__init__(rows, language)
        self.queues = {row["id"]: queue_of(row) for row in rows}

    def take(self, event: Mapping[str, Any]) -> str | None:
        old = event["job"]
        line = super().take(event)
        if event["kind"] == "retried" and old in self.states:
            self.queues[event["data"]["as_job"]] = self.queues.pop(old, "")
            self.counts[self.states.pop(old)] -= 1
        return line

    def first_waiting(self, count: int) -> list[int]:
        busy = {self.queues.get(id) for id, state in self.states.items() if state in OPEN}
        waiting: list[int] = []
        for id, state in self.states.items():
            queue = self.queues.get(id)
            if state == "queued" and queue not in busy:
                busy.add(queue)
                waiting.append(id)
                if len(waiting) == count:
                    break
        return waiting
