"""A file that people edit while a scheduler runs (SPEC A14), looked at now and then.

Rules: it has changed when it is another file than the one that was read, and has stayed the same between two looks: an editor may
be half-way through writing it. A file that is not there has not changed; it may be about to come back. One that is missing in
two looks is gone, and when it comes back it has changed.
"""

from __future__ import annotations

from jostle.formats.filemark import Mark, mark


class Watched:
    def __init__(self, path: str, read: Mark | None) -> None:
        """`read`: the mark of what was read of it, None if there was nothing."""
        self.path, self.read = path, read
        self.newest = self.before = read

    def changed(self) -> bool:
        """True once per change."""
        self.before, self.newest = self.newest, mark(self.path)
        if self.newest is None or self.newest == self.read or self.newest != self.before:
            return False
        self.read = self.newest
        return True

    def gone(self) -> bool:
        """True once, after the look that found it missing for the second time."""
        if self.read is None or self.newest is not None or self.before is not None:
            return False
        self.read = None
        return True
