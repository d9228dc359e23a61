"""The manager's file as it is in force (SPEC C5): read, its limits told to the engine, and read again when it has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jostle.compete.watched import Watched
from jostle.core.limits import MANAGER
from jostle.errors import Forbidden, Invalid, JostleError
from jostle.formats import managerfile
from jostle.formats.filemark import mark
from jostle.formats.flaws import BadFiles
from jostle.formats.managerfile import NAME, ManagerConfig
from jostle.manage.managerlog import ManagerLog
from jostle.wording.flaws import worded

if TYPE_CHECKING:
    from jostle.session import Session


def of_engine(session: Session) -> ManagerConfig:
    """The file that was loaded last; without one what holds where there is none."""
    path = (session.reader.meta(MANAGER) or {}).get("file")
    return managerfile.load(path)[0] if path else ManagerConfig()


class Loaded:
    def __init__(self, session: Session, path: str | None) -> None:
        """`path`: None is the usual name in the present directory, if there is such a file."""
        self._session = session
        self.path = os.path.abspath(path) if path is not None else os.path.abspath(NAME) if os.path.exists(NAME) else ""
        seen = mark(self.path) if self.path else None
        self.config = self._read() if self.path else ManagerConfig()
        self.interval: float | None = None  # between two pictures of the status, if another than the file's is wanted
        self._watched = Watched(self.path, seen)

    def _read(self) -> ManagerConfig:
        config, warnings = managerfile.load(self.path)
        for warning in warnings:
            self._session.tell("warning", text=worded(warning, self._session.language))
        return config

    def declare(self) -> None:
        """Tells the engine the limits of the file, and the notifier whom it wants told, if they do not know it yet: what they
        were told last stays in force."""
        if self.path:
            self._declare_notification()
        limits = self.config.limits()
        if limits is None:
            return
        client = self._session.client()
        try:
            known = client.call("limits")
            if {key: known["manager"].get(key) for key in limits} != limits:
                client.call("set_limits", manager=limits)
        finally:
            client.close()

    def _declare_notification(self) -> None:
        from jostle import notifier
        from jostle.client import own_environment
        from jostle.notify import managed

        asked = self.config.notification
        new = managed.declare(
            self._session.home, enabled=asked.enabled, email=asked.email, threshold=max(1, asked.gpu_available_threshold)
        )
        if new and asked.enabled and not notifier.runs(self._session.home):
            notifier.start(self._session.home, own_environment())

    @property
    def log_path(self) -> str:
        return os.path.join(self.config.directory, self.config.logging.file)

    def open_log(self) -> ManagerLog:
        try:
            return ManagerLog(self.log_path, self.config.logging)
        except OSError as e:
            raise Forbidden(self._session.message("manage_log_unwritten", path=self.log_path, why=e.strerror)) from e

    @contextmanager
    def logged(self, act: str, task: str) -> Iterator[None]:
        """What is done, and what is refused, is in the log."""
        log = self.open_log()
        try:
            yield
            log.write(f"{act} {task}: done")
        except JostleError as e:
            log.write(f"{act} {task}: {e}", "ERROR")
            raise
        finally:
            log.close()

    def reload(self) -> tuple[str, dict[str, Any]] | None:
        """If the file has changed: a message, that it is in force as it is now, or what is wrong with it."""
        if not self.path or not self._watched.changed():
            return None
        try:
            self.config = self._read()
        except Invalid as e:
            return "manage_unread", {"why": e.worded(self._session.language) if isinstance(e, BadFiles) else str(e)}
        self.declare()
        return "manage_reloaded", {"file": self.path}
