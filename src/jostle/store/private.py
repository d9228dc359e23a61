"""What is ours alone: the checks of owner and mode, apart so that the command line can have them without SQLite."""

import os
import stat
from collections.abc import Iterator

from jostle.errors import Forbidden

LINKS = 40  # as many as the kernel follows


class Others(Forbidden):
    """Others could put a directory of theirs in the place of ours."""


def check_way(path: str) -> None:
    """Refuses a place where somebody else could put another directory under our name, at any level above it. In a sticky
    directory (/tmp) only the owner of what lies there can, and root."""
    for at in _passed(os.path.abspath(path)):
        s = os.lstat(at)
        if not (s.st_uid == os.getuid() or _is_root(s.st_uid)):
            raise Others(
                f"{at} belongs to uid {s.st_uid}, who could put another directory in the place of {path}: "
                "set JOSTLE_HOME to a place under directories of yours or of root"
            )
        who, way = writers(at)
        if who:
            raise Others(
                f"{at} can be changed by {who} (mode {s.st_mode & 0o7777:o}), who could put another directory in the place of "
                f"{path}: run `{way}`, or set JOSTLE_HOME to another place"
            )


def writers(path: str) -> tuple[str, str]:
    """Who but us and root may change what lies there, and how to end it; nobody for a link, or a directory that is sticky."""
    s = os.lstat(path)
    if stat.S_ISLNK(s.st_mode) or s.st_mode & stat.S_ISVTX:
        return "", ""
    others = "o" if s.st_mode & 0o002 else ""
    mates = "g" if s.st_mode & 0o020 and not _own_group(path, s.st_gid) else ""
    if not others and not mates:
        return "", ""
    return "everybody" if others else f"others of the group {_group(s.st_gid)}", f"chmod {mates}{others}-w {path}"


def _passed(path: str) -> Iterator[str]:
    """Every directory above a path, and every link on the way there."""
    at, names, links = "/", path.split("/")[::-1], 0
    yield at
    while len(names) > 1:
        name = names.pop()
        if name in ("", "."):
            continue
        at = os.path.dirname(at) if name == ".." else os.path.join(at, name)
        yield at
        if stat.S_ISLNK(os.lstat(at).st_mode):
            links += 1
            if links > LINKS:
                raise Forbidden(f"{path} leads through too many symbolic links")
            target = os.readlink(at)
            names += target.split("/")[::-1]
            at = "/" if target.startswith("/") else os.path.dirname(at)


def _is_root(uid: int) -> bool:
    """In a container that does not know the host's root, its directories show as those of the uid that stands for all unknown."""
    if uid == 0:
        return True
    try:
        with open("/proc/sys/kernel/overflowuid") as f:
            unknown = int(f.read())
        with open("/proc/self/uid_map") as f:
            return uid == unknown and all(line.split()[1] != "0" for line in f)
    except (OSError, ValueError, IndexError):
        return False


def _own_group(path: str, gid: int) -> bool:
    """Whether nobody but us and root is in that group. One without a name may have anybody, and an access list names others.

    Where accounts come from a directory service they are often not listed, ours neither: then anybody may have it as the first
    group, unless it is named after us, as groups are that belong to one user.
    """
    import grp
    import pwd

    if _has_access_list(path):
        return False
    try:
        me, group, users = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(gid), pwd.getpwall()
    except KeyError:
        return False
    members = {*group.gr_mem, *(user.pw_name for user in users if user.pw_gid == gid)}
    return members <= {"root", me} and (group.gr_name == me or any(user.pw_name == me for user in users))


def _has_access_list(path: str) -> bool:
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except OSError:  # a file system that has none
        return False


def _group(gid: int) -> str:
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def check_private(path: str) -> None:
    """Refuses what others could write or read: a link, a foreign owner, loose permissions."""
    s = os.lstat(path)
    if stat.S_ISLNK(s.st_mode):
        raise Forbidden(f"{path} is a symbolic link: jostle keeps its state only in a directory and files of its own")
    if s.st_uid != os.getuid():
        raise Forbidden(f"{path} belongs to uid {s.st_uid}, not to you (uid {os.getuid()})")
    if s.st_mode & 0o077:
        mode = "700" if stat.S_ISDIR(s.st_mode) else "600"
        raise Forbidden(f"{path} is open to others (mode {s.st_mode & 0o777:o}): run `chmod {mode} {path}`")


def private_folder(path: str) -> str:
    """Made if need be; refused if it is not ours alone."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    check_private(path)
    return path
