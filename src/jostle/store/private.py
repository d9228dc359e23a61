"""What is ours alone: the check of owner and mode, apart so that the command line can have it without SQLite."""

import os
import stat

from jostle.errors import Forbidden


def check_parent(path: str) -> None:
    """Refuses a place where anybody could put another directory under our name; /tmp is sticky, and good enough."""
    parent = os.path.dirname(os.path.abspath(path))
    mode = os.stat(parent).st_mode
    if mode & 0o002 and not mode & stat.S_ISVTX:
        raise Forbidden(f"{parent} can be changed by everybody (mode {mode & 0o7777:o}): run `chmod o-w {parent}`")


def check_private(path: str) -> None:
    """Refuses what others could write or read: a link, a foreign owner, loose permissions."""
    s = os.lstat(path)
    if stat.S_ISLNK(s.st_mode):
        raise Forbidden(f"{path} is a symbolic link: jostle keeps its state only in a directory and files of its own")
    if s.st_uid != os.getuid():
        raise Forbidden(f"{path} belongs to uid {s.st_uid}, not to you (uid {os.getuid()})")
    if s.st_mode & 0o077:
        wanted = "700" if stat.S_ISDIR(s.st_mode) else "600"
        raise Forbidden(f"{path} is open to others (mode {s.st_mode & 0o777:o}): run `chmod {wanted} {path}`")
