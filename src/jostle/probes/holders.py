"""Who a pid is: the process behind a line of the driver's process list.

A pid may be unknown here (another container's, hidden, just gone): then all is None, which is "not known". What
cannot change in the life of a process is remembered by (pid, start ticks, name), so a look costs one read of /proc
per holder.
"""

from __future__ import annotations

import pwd

from jostle import proc
from jostle.probes.snapshot import Proc

_Life = tuple[int | None, str, str | None, str]  # uid, user, mark, exe


class Holders:
    def __init__(self) -> None:
        self._lives: dict[tuple[int, int, str], _Life] = {}
        self._users: dict[int, str] = {}

    def describe(self, pid: int, used_mib: int | None, kind: str = "compute", stat: proc.Stat | None = None) -> Proc:
        """The holder of this pid; `stat` if the caller has just read it."""
        stat = stat or proc.stat(pid)
        if stat is None:
            return unknown(pid, used_mib, kind)
        uid, user, mark, exe = self._life(stat)
        return {
            "pid": pid,
            "used_mib": used_mib,
            "uid": uid,
            "sid": stat.sid,
            "ticks": stat.ticks,
            "user": user,
            "name": stat.name,
            "mark": mark,
            "kind": kind,
            "exe": exe,
        }

    def user(self, uid: int) -> str:
        """The login name; the number where there is none."""
        if uid not in self._users:
            try:
                self._users[uid] = pwd.getpwuid(uid).pw_name
            except (KeyError, OSError):
                self._users[uid] = str(uid)
        return self._users[uid]

    def forget_dead(self, living: set[int]) -> None:
        """Keeps the memory as small as the process list is."""
        if len(self._lives) > 64 + 2 * len(living):
            # a list, for a thread that was stuck may just be adding to it
            self._lives = {key: value for key, value in list(self._lives.items()) if key[0] in living}

    def _life(self, stat: proc.Stat) -> _Life:
        # the name is part of the key because an exec changes the environment
        key = (stat.pid, stat.ticks, stat.name)
        life = self._lives.get(key)
        if life is None:
            uid = proc.real_uid(stat.pid)
            life = (uid, "" if uid is None else self.user(uid), proc.mark(stat.pid), proc.exe(stat.pid))
            if uid is not None:
                self._lives[key] = life
        return life


def unknown(pid: int, used_mib: int | None, kind: str = "compute") -> Proc:
    return {
        "pid": pid,
        "used_mib": used_mib,
        "uid": None,
        "sid": None,
        "ticks": None,
        "user": "",
        "name": "",
        "mark": None,
        "kind": kind,
        "exe": "",
    }
