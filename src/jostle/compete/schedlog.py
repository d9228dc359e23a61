"""The scheduler log of SPEC A31: `compete_gpu.log` and `compete_gpus.log`, to which several schedulers append at once.

Rules: one write per message to a file opened for appending, so that messages do not mix. At 10 MB it becomes `.1`, and so on to
`.5`. Whoever holds the lock of the file that has the name may rename it; everybody else notices that the name is another file's
and opens that. Where there are no locks, or a reader keeps the lock, it is renamed without: two that rotate at once may cost a
backup, and nothing more. A message is lost only if the disk is full; then the scheduler goes on.
"""

from __future__ import annotations

import os
import time
from collections import deque

from jostle.uniid.file import locked_within, make_directory
from jostle.wording.text import plain

LIMIT = 10_000_000
BACKUPS = 5
PATIENCE = 0.5  # s for a lock
KEPT = 20  # the last lines, for the state file


class SchedulerLog:
    def __init__(self, path: str, *, limit: int = LIMIT, backups: int = BACKUPS) -> None:
        """Raises OSError if it cannot be written at all."""
        self.path, self.limit, self.backups = path, limit, backups
        self.last: deque[str] = deque(maxlen=KEPT)
        make_directory(os.path.dirname(os.path.abspath(path)))
        self.fd = self._open()

    def write(self, text: str, level: str = "INFO", at: float | None = None) -> list[str]:
        """The lines as they were written."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
        lines = [f"{stamp} {level} {plain(line)}" for line in text.split("\n")]
        self.last.extend(lines)
        data = ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
        try:
            self._make_room(len(data))
        except OSError:
            pass  # one that is too long is better than one that falls silent
        try:
            os.write(self.fd, data)
        except OSError:
            pass  # a full disk must not end the scheduler; the lines still go to the state file and the screen
        return lines

    def close(self) -> None:
        os.close(self.fd)

    def _open(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _make_room(self, coming: int) -> None:
        if not self._current():
            self._reopen()
        while os.fstat(self.fd).st_size + coming > self.limit and os.fstat(self.fd).st_size:
            locked_within(self.fd, PATIENCE)
            try:
                if self._current():  # else someone was quicker, and it is another file that has the name now
                    self._shift()
            finally:
                self._reopen()  # which lets go of the lock

    def _shift(self) -> None:
        for n in range(self.backups, 0, -1):
            older = self.path if n == 1 else f"{self.path}.{n - 1}"
            try:
                os.replace(older, f"{self.path}.{n}")
            except FileNotFoundError:
                continue

    def _current(self) -> bool:
        try:
            named, ours = os.stat(self.path), os.fstat(self.fd)
        except OSError:
            return False
        return (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)

    def _reopen(self) -> None:
        fresh = self._open()
        os.close(self.fd)
        self.fd = fresh
