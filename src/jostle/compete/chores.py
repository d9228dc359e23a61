"""What a scheduler does beside following its batch: state file (SPEC A32), status text (A30), and files that are edited (A14).

It is a listener among others: told of every event, and called when nothing happens. Rules: the state file is written when
something has changed, but never more than a twentieth of the time, and each check_time while anything runs; a status is recorded
after changes, at most each check_time, and once a minute while anything runs. Nothing here ends the scheduler: what fails is told
and tried again.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from jostle.compete import outlook, statefile, statustext
from jostle.compete.journal import SETTINGS
from jostle.compete.register import RegisterWatch
from jostle.compete.reload import changes
from jostle.compete.watched import Watched
from jostle.core.states import OPEN
from jostle.errors import JostleError
from jostle.follow.listener import Listener
from jostle.formats import gpumanage
from jostle.views.cards import seen_by_engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostle.compete.board import Board
    from jostle.compete.journal import SchedulerJournal
    from jostle.compete.statefile import Scheduler, StateFile
    from jostle.formats.workspace import Workspace
    from jostle.session import Session

LOOK = 0.5  # s between looks at the files
COALESCE = 0.2  # s that changes are gathered
SHARE = 20  # a write that took t comes again after t × this at the earliest
MINUTE = 60.0
FIRST = 0.3  # s until the first status: what can start at once has started then


class Chores(Listener):
    def __init__(
        self, session: Session, workspace: Workspace, scheduler: Scheduler, file: StateFile, board: Board,
        journal: SchedulerJournal, visible: str | None, gpus: Sequence[dict[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(session)
        self.workspace, self.settings = workspace, workspace.settings
        self.scheduler, self.file, self.board, self.journal = scheduler, file, board, journal
        self.visible = visible  # the cards that whoever started it sees
        self.policy = gpumanage.policy(self.settings, workspace.mode, visible)
        self.unsent: dict[str, Any] | None = None  # rules that no engine has taken yet
        config_file = workspace.config_file or os.path.join(workspace.root, "config", "gpu_manage.yaml")
        self.config = Watched(config_file, workspace.config_mark)
        self.bereft = False  # the settings' file was there and is gone
        self.commands = Watched(workspace.command_file, workspace.command_mark)
        self.register = RegisterWatch(workspace.uni_id_file, session.reader, journal)
        self.now = "starting"
        self.gpus = gpus or ()  # as they were last seen
        self.dirty = set(board.live)  # to learn their uni_ids
        self.unwritten, self.untold = True, True
        self.look_at = self.write_at = self.written_at = 0.0
        self.told_at = time.monotonic() + FIRST - self.settings.check_time

    # --- as a listener

    def event(self, event: dict[str, Any], line: str | None) -> None:
        ids = (event["job"], event["data"].get("as_job"))
        self.dirty.update(id for id in ids if id is not None)
        self.register.take(event)
        if not self.unwritten:
            self.write_at = max(self.write_at, time.monotonic() + COALESCE)
        self.unwritten = self.untold = True
        self.idle()

    def note(self, text: str) -> None: ...

    def patience(self) -> float:
        now = time.monotonic()
        return max(0.0, min(self._write_due(), self._status_due(), self.look_at) - now)

    def idle(self) -> None:
        try:
            self._chores()
        except OSError as e:
            self.journal.record(f"this does not work now: {e}", "ERROR")

    def _chores(self) -> None:
        if time.monotonic() >= self.look_at:
            self.look_at = time.monotonic() + LOOK
            self._look()
        if time.monotonic() >= self._status_due():
            self.status()
        if time.monotonic() >= self._write_due():
            self.write()

    # --- the state file

    def write(self, finished_at: float | None = None) -> None:
        began = time.monotonic()
        self._refresh()
        content = statefile.state(
            self.scheduler, self.board.queues(), now=self.now, gpus_used=self.used, gpus_available=self.detected,
            last_log_lines=list(self.journal.log.last), last_error=self.journal.last_error,
            error_kind=self.journal.error_kind, finished_at=finished_at,
        )  # fmt: skip
        self.file.write(content)
        self.unwritten = bool(self.dirty) or self.now == "starting"
        self.written_at = time.monotonic()
        self.write_at = self.written_at + SHARE * (self.written_at - began)

    def becomes(self, state: str) -> None:
        """starting, running, stopping, completed, failed."""
        if self.now != state:
            self.now = state
            self.write(finished_at=time.time() if state in ("completed", "failed") else None)

    def _write_due(self) -> float:
        if self.unwritten:
            return self.write_at
        return self.written_at + (self.settings.check_time if self.board.live else MINUTE)

    def _refresh(self) -> None:
        """The tasks that something happened to, as the store has them now."""
        if not self.dirty:
            return
        try:
            rows = self.session.reader.jobs(ids=self.dirty)
            for row in rows:
                if row["state"] in OPEN:
                    row["uni_id"] = self.session.reader.runs(row["id"])[-1]["uni_id"]
        except (JostleError, IndexError):
            return  # they stay dirty
        self.board.take(row for row in rows if row["batch"] == self.scheduler.batch)
        self.dirty.clear()

    @property
    def detected(self) -> list[int]:
        return sorted({gpu["index"] for gpu in self.gpus})

    @property
    def used(self) -> list[int]:
        return outlook.usable(self.policy, self.detected)

    # --- the status

    def status(self) -> None:
        """Recorded as it is now."""
        self._refresh()
        gpus = seen_by_engine(self.session)
        self.gpus = gpus or self.gpus
        space = self.workspace
        lines = statustext.status(
            self.board.queues(), gpus, user=user(), used=self.used, processes=registered(space.uni_id_file),
            uni_id_file=space.shown(space.uni_id_file), never=self.never(),
        )  # fmt: skip
        self.journal.record("\n".join((statustext.head(self.scheduler.pid, space.mode, space.label, self.now), *lines)))
        self.untold = False
        self.told_at = time.monotonic()

    def never(self) -> list[str]:
        """A line for each task that has not begun and never can, with the cards of now."""
        return outlook.never(self.board.rows.values(), self.gpus, self.policy, self.session.language)

    def _status_due(self) -> float:
        if self.untold:
            return self.told_at + self.settings.check_time
        return self.told_at + MINUTE if self.board.live else float("inf")

    # --- files that people edit

    def _look(self) -> None:
        self.register.look()
        if self.config.changed():
            if self.bereft:
                self.journal.tell(f"{self.workspace.shown(self.config.path)} is back")
            self.bereft = False
            self._reload()
        elif self.config.gone():
            self.bereft = True
            file = self.workspace.shown(self.config.path)
            self.journal.tell(f"{file} is gone: the settings stay as they are; it is read when it is back", "WARNING")
        if self.commands.changed():
            file_shown = self.workspace.shown(self.commands.path)
            self.journal.tell(f"{file_shown} has changed: it is read at the next `jostle compete`")
        if self.unsent is not None:
            self._send()

    def _reload(self) -> None:
        file = self.workspace.shown(self.config.path)
        try:
            settings, warnings = gpumanage.load(self.config.path)
            policy = gpumanage.policy(settings, self.workspace.mode, self.visible)
        except JostleError as e:
            self.journal.tell(f"{e}\n{file} has changed but cannot be used: the settings stay as they were", "ERROR", SETTINGS)
            return
        now, later = changes(self.settings, settings)
        missing = outlook.missing_cards(settings, self.gpus)
        if missing and missing != outlook.missing_cards(self.settings, self.gpus):
            warnings = [*warnings, missing]
        for warning in warnings if now or later else ():
            self.journal.tell(warning, "WARNING")
        if now:
            self.journal.tell(f"{file} has changed: {', '.join(now)}")
        if later:
            self.journal.tell(f"{file} has changed: {', '.join(later)}; takes effect at the next start")
        self.settings = settings
        if policy != self.policy:
            self.policy = self.unsent = policy
            self.unwritten = True

    def _send(self) -> None:
        try:
            client = self.session.client()
            client.call("amend", batch=self.scheduler.batch, policy=self.unsent)
            client.close()
        except JostleError as e:
            self.journal.tell(f"the new settings could not be given to the engine yet: {e}", "WARNING")
            return
        self.unsent = None


def user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def registered(path: str) -> dict[str, tuple[int, int]]:
    """What runs according to the uni_id file: uni_id -> (pid, retry count)."""
    from jostle.uniid import UniIdFile, get_running_processes

    try:
        pids = get_running_processes(path)
        entries = UniIdFile(path).read() if pids else {}
    except OSError:
        return {}  # not readable now
    return {uni_id: (pid, entries[uni_id].retry_count) for uni_id, pid in pids.items() if uni_id in entries}
