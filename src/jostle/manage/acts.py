"""What `jostle manage` does once and ends: one function per flag of the source."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jostle.manage import statustext, system, tasks
from jostle.manage.board import board

if TYPE_CHECKING:
    from jostle.manage.loading import Loaded
    from jostle.manage.tasks import TaskAllocation
    from jostle.session import Session

Put = Callable[[str], None]
"""Takes what is data."""


class Acts:
    def __init__(self, session: Session, loaded: Loaded, put: Put, *, gpus: int = 1, interval: float | None = None) -> None:
        self._session, self._loaded, self._config, self._put = session, loaded, loaded.config, put
        self._gpus, self._interval = gpus, interval or loaded.config.monitor_interval

    def do(self, act: str, value: Any) -> int:
        """The exit code."""
        if act not in ("status", "system"):
            self._loaded.declare()
        return ACTS[act](self, value)

    def status(self, value: Any) -> int:
        seen = board(self._session, self._config)
        self._put("\n".join([*statustext.lines(seen), system.line(system.SystemMonitor(self._session.home).once())]))
        if seen.error:
            self._session.tell("cards_unread", why=seen.error)
        return int(bool(seen.error))

    def system(self, value: Any) -> int:
        """Until it is ended."""
        looking = system.SystemMonitor(self._session.home)
        looking.look()
        time.sleep(system.MOMENT)
        while True:
            seen = board(self._session, self._config)
            self._put("\n".join([*system.lines(looking.look(), socket.gethostname(), seen.running, seen.pending), ""]))
            time.sleep(self._interval)

    def allocate(self, name: str) -> int:
        return self._allocated("allocate", name, self._gpus)

    def quick_get(self, gpus: int) -> int:
        return self._allocated("quick-get", tasks.unnamed(self._session, "quick"), gpus, now=True)

    def request(self, gpus: int) -> int:
        return self._allocated("request", tasks.unnamed(self._session, "request"), gpus)

    def _allocated(self, act: str, name: str, gpus: int, *, now: bool = False) -> int:
        with self._loaded.logged(act, name):
            return self._show(tasks.allocate(self._session, self._config, name, gpus, now=now))

    def _show(self, answer: TaskAllocation) -> int:
        """The task as the status shows it, and why it waits."""
        lines = [statustext.task_line(task) for task in board(self._session, self._config).tasks if task.id == answer.id]
        self._put("\n".join(lines))
        if answer.why:
            self._session.tell("manage_pending", name=answer.name, id=answer.id, why=answer.why)
        return 0

    def release(self, name: str) -> int:
        with self._loaded.logged("release", name):
            answer = tasks.release(self._session, self._config, name)
        self._session.tell("manage_released", name=answer.name, id=answer.id)
        return 0

    def start_program(self, name: str) -> int:
        with self._loaded.logged("start-program", name):
            answer = tasks.start_program(self._session, self._config, name)
        self._put(str(answer.id))
        if answer.why:
            self._session.tell("manage_queued", name=answer.name, id=answer.id, why=answer.why)
        else:
            self._session.tell("manage_started", name=answer.name, id=answer.id)
        return 0

    def use(self, name: str) -> int:
        if self._config.program_template.command:
            return self.start_program(name)
        self._put(tasks.cards_of(self._session, self._config, name)["CUDA_VISIBLE_DEVICES"])
        return 0


ACTS: dict[str, Callable[[Acts, Any], int]] = {
    "status": Acts.status, "allocate": Acts.allocate, "release": Acts.release, "start_program": Acts.start_program,
    "quick_get": Acts.quick_get, "request": Acts.request, "use": Acts.use, "system": Acts.system,
}  # fmt: skip
