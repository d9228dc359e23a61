"""A file that people edit while a scheduler runs (SPEC A14), looked at now and then.

Rules: it has changed when it is another file than the one that was read, and has stayed the same between two looks: an editor may
be half-way through writing it. A file that is not there has not changed; it may be about to come back.
"""

from __future__ import annotations

import os

Mark = tuple[int, int, int, int]


class Watched:
    def __init__(self, path: str) -> None:
        self.path = path
        self.read = self.seen = mark(path)

    def changed(self) -> bool:
        """True once per change."""
        before, self.seen = self.seen, mark(self.path)
        if self.seen is None or self.seen == self.read or self.seen != before:
            return False
        self.read = self.seen
        return True


def mark(path: str) -> Mark | None:
    try:
        s = os.stat(path)
    except OSError:
        return None
    return s.st_dev, s.st_ino, s.st_mtime_ns, s.st_size
