"""Secrets, read when they are needed and kept nowhere: a private file, or a variable of this process's environment.

Rules: a file that others could read or have put there is refused (0600, ours, no link). A secret is one line.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from jostle.notify.trouble import Undelivered

LONGEST = 4096


def revealed(where: Mapping[str, str] | str) -> str:
    """The secret that lies there; a text stands for itself."""
    if isinstance(where, str):
        return where
    secret = _of_file(where["file"]) if "file" in where else os.environ.get(where["env"], "")
    if not secret and "env" in where:
        raise Undelivered("secret_unset", name=where["env"])
    if not secret or not secret.isprintable():
        raise Undelivered("secret_odd", path=where.get("file") or where["env"])
    return secret


def _of_file(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        raise Undelivered("secret_unread", path=path, error=e.strerror or "?") from None
    try:
        s = os.fstat(fd)
        if not stat.S_ISREG(s.st_mode) or s.st_uid not in (0, os.getuid()) or s.st_mode & 0o077:
            raise Undelivered("secret_open", path=path, mode=f"{s.st_mode & 0o777:o}")
        return os.read(fd, LONGEST).decode("utf-8", "replace").rstrip("\r\n")
    finally:
        os.close(fd)
