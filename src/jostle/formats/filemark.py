"""Which file it was that was read: another, or another content, has another mark.

Taken before the file is read, so that what is written while or after it is read is seen as a change.
"""

from __future__ import annotations

import os

Mark = tuple[int, int, int, int]


def mark(path: str) -> Mark | None:
    try:
        s = os.stat(path)
    except OSError:
        return None
    return s.st_dev, s.st_ino, s.st_mtime_ns, s.st_size
