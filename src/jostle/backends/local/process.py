"""Making processes and signalling them, and only ours.

A pid is a number that may be another's by the next instant. So a handle is opened first, then the proof is made that the
process is ours, and then the handle is signalled. Shims use this too: it imports little, and nothing after the start.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

from jostle import proc
from jostle.core.runvariables import TERMINAL

ALL_DEFAULT = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
OOM_MORE = 100
LEASE_FD = 100  # lease descriptors are moved up here: scripts like to say `exec 3>file`


def open_pidfd(pid: int) -> int | None:
    """A handle on the process; None if there is no such process, or no such thing as handles here."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def is_descendant(pid: int) -> bool:
    me = os.getpid()
    while pid > 1:
        s = proc.stat(pid)
        if s is None:
            return False
        if s.ppid == me:
            return True
        pid = s.ppid
    return False


def living() -> list[int]:
    stats = [proc.stat(pid) for pid in proc.tree(os.getpid())]
    return [s.pid for s in stats if s is not None and s.state not in "ZX"]


def at_work() -> bool:
    """Whether somebody below us computes, or would if it got a core or the disk; who has just ended makes his parent do so."""
    stats = [proc.stat(pid) for pid in proc.tree(os.getpid())]
    return any(s is None or s.state not in "SITt" for s in stats)


def members(uni_id: str) -> list[tuple[int, int]]:
    """Living processes of ours that carry the run's marker, with their start ticks."""
    processes = []
    me = os.geteuid()
    for pid in proc.pids():
        if pid == os.getpid() or not uni_id or proc.uid(pid) != me or proc.mark(pid) != uni_id:
            continue
        s = proc.stat(pid)
        if s is not None and s.state not in "ZX":
            processes.append((pid, s.ticks))
    return processes


def is_member(pid: int, *, ticks: int, uni_id: str) -> bool:
    return proc.uid(pid) == os.geteuid() and proc.mark(pid) == uni_id and proc.alive(pid, ticks)


def signal_shim(pid: int, ticks: int, number: int, is_shim: Callable[[int], bool]) -> bool:
    """Signals the shim that was started then, and wakes it: one that is stopped could not stop its run."""

    def proof(pid: int) -> bool:
        return proc.uid(pid) == os.geteuid() and proc.alive(pid, ticks) and is_shim(pid)

    done = proc.signal_proven(pid, number, proof)
    if done:
        proc.signal_proven(pid, signal.SIGCONT, proof)
    return done


def signal_members(uni_id: str, number: int) -> None:
    """Signals every process of a run that has no shim any more."""
    for pid, ticks in members(uni_id):
        proof = partial(is_member, ticks=ticks, uni_id=uni_id)
        proc.signal_proven(pid, number, proof)
        proc.signal_proven(pid, signal.SIGCONT, proof)


def wake_members(uni_id: str) -> None:
    """Lets every process of a run that has no shim any more go on, children mostly before their parents."""
    for pid, ticks in reversed(members(uni_id)):
        s = proc.stat(pid)
        if s is not None and s.state == "T":
            proc.signal_proven(pid, signal.SIGCONT, partial(is_member, ticks=ticks, uni_id=uni_id))


def inherited(fd: int) -> int:
    """The same descriptor, as commands inherit it."""
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD, LEASE_FD)
    except OSError:  # a low limit of open files
        os.set_inheritable(fd, True)
        return fd
    os.close(fd)
    return high


def shell() -> str:
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"


def spawn(argv: list[str], spec: dict[str, Any], log: int) -> int:
    """The command's process; directory, umask and limits are ours only for the moment in which it is made."""
    env = spec["env"]
    try:
        os.chdir(spec["workdir"])
    except OSError as e:
        raise OSError(e.errno, e.strerror, f"working directory {spec['workdir']}") from e
    terminal = env.get(TERMINAL)
    files: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    files += [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    of_its_own: dict[str, Any] = {"setpgroup": 0}
    if terminal:  # the first terminal that the leader of a session opens is the session's
        files = [(os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0), *((os.POSIX_SPAWN_DUP2, 0, fd) for fd in (1, 2))]
        of_its_own = {"setsid": True}
    before = _set_limits(spec.get("limits") or {})
    os.umask(spec.get("umask", 0o077))
    try:
        path = find_program(argv[0], env.get("PATH", os.defpath))
        return os.posix_spawn(path, argv, env, file_actions=files, setsigmask=(), setsigdef=ALL_DEFAULT, **of_its_own)
    except OSError as e:
        raise OSError(e.errno, e.strerror, argv[0]) from e
    finally:
        os.umask(0o077)
        for which, pair in before:
            resource.setrlimit(which, pair)
        os.chdir("/")


def find_program(name: str, path: str) -> str:
    """The file that the run's own PATH gives this name."""
    if "/" in name:
        return name
    program = None
    for directory in path.split(":"):
        candidate = os.path.join(directory or ".", name)
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
        if program is None and os.path.isfile(candidate):
            program = candidate
    if program is not None:
        return program  # not executable: let exec say so
    raise FileNotFoundError(errno.ENOENT, "command not found", name)


def _set_limits(limits: dict[str, list[int]]) -> list[tuple[int, tuple[int, int]]]:
    """Sets the run's limits on ourselves; gives back what to restore (a lowered hard limit cannot be raised again)."""
    restore = []
    for name, (soft, hard) in limits.items():
        which = getattr(resource, f"RLIMIT_{name.upper()}", None)
        if which is None:
            continue
        old_soft, old_hard = resource.getrlimit(which)
        most = hard if old_hard == resource.RLIM_INFINITY or 0 <= hard < old_hard else old_hard
        if most != resource.RLIM_INFINITY and (soft == resource.RLIM_INFINITY or soft > most):
            soft = most
        if soft == old_soft:
            continue
        try:
            # the hard limit stays ours: lowered, it could hurt the shim itself for the rest of the run
            resource.setrlimit(which, (soft, old_hard))
            restore.append((which, (old_soft, old_hard)))
        except (OSError, ValueError):
            pass  # a limit that cannot be had is no reason not to run
    return restore


def _oom_score() -> bytes:
    try:
        with open("/proc/self/oom_score_adj") as f:
            return str(min(1000, int(f.read()) + OOM_MORE)).encode()
    except (OSError, ValueError):
        return str(OOM_MORE).encode()


_OOM_SCORE = _oom_score()  # read once, in the nursery


def raise_oom_score(pid: int) -> None:
    """When memory runs out, the job is to go before the processes that look after it."""
    try:
        fd = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, _OOM_SCORE)
        finally:
            os.close(fd)
    except OSError:
        pass


def give_way(nice: int) -> bool:
    """This shim and all that it starts from now on gives way to others; for its whole life, as nobody may take that back.

    Where the kernel shares the processor among sessions (autogroup), such numbers count within one session only: then that of the
    run, which is this shim's, is set as a whole. False: to be tried again, for the kernel takes one such word in 0.1 s.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, max(nice, os.getpriority(os.PRIO_PROCESS, 0)))
        fd = os.open("/proc/self/autogroup", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return True  # there is no such thing
    try:
        os.write(fd, str(nice).encode())
    except OSError as e:
        return e.errno != errno.EAGAIN
    finally:
        os.close(fd)
    return True
