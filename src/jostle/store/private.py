"""What is ours alone: the check of owner and mode, apart so that the command line can have it without SQLite."""

import os
import stat

from jostle.errors import Forbidden


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
