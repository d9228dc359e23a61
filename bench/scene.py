"""A scene: one temporary directory, the processes started for it, and how they are looked at and ended.

Every process of a scene carries a random mark in its environment and passes it on. So what a participant leaves in the
background is found again, and nothing is ever signalled that does not carry the mark (checked again through a pidfd,
since a number may have passed to another process in between). Leaving a scene ends its processes; its
directory is removed with the others by clear_up.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

MARK = "JOSTLE_BENCH_SCENE"
PLACE = "/var/tmp"  # on a disk, as homes are, where /tmp may be memory; and less is made and deleted there by others
_PR_SET_CHILD_SUBREAPER = 36
_SCRUBBED = ("JOSTLE_", "CUDA_VISIBLE", "TMUX", "TS_")


_left: list[str] = []  # directories of closed scenes


class TooSlow(Exception):
    """Something did not happen within its time."""


class Scene:
    def __init__(self, name: str) -> None:
        self.dir = tempfile.mkdtemp(prefix=f"jb-{name[:6]}-", dir=os.environ.get("TMPDIR") or PLACE)
        self.mark = secrets.token_hex(16)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(_SCRUBBED)}
        self.env[MARK] = self.mark
        self.started: list[subprocess.Popen[bytes]] = []

    def path(self, *parts: str) -> str:
        return os.path.join(self.dir, *parts)

    def start(self, argv: list[str], stdin: str = os.devnull) -> subprocess.Popen[bytes]:
        """A process that stays; its output goes to `out` in the scene's directory."""
        with open(stdin, "rb") as source, open(self.path("out"), "ab") as out:
            process = subprocess.Popen(
                argv, stdin=source, stdout=out, stderr=out, env=self.env, cwd=self.dir, start_new_session=True
            )
        self.started.append(process)
        return process

    def run(self, argv: list[str], timeout: float = 60.0) -> bytes:
        """A process that ends; its standard output. Fails with the end of what it said."""
        # a background child may keep the descriptors for ever, so files and not pipes
        with open(self.path("run.out"), "w+b") as out:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.env, cwd=self.dir, timeout=timeout
            )
            out.seek(0)
            text = out.read()
        if done.returncode:
            last = (text.decode(errors="replace").strip().splitlines() or ["without a word"])[-1]
            raise RuntimeError(f"{' '.join(argv)[:120]} gave {done.returncode}: {last}")
        return text

    def timed(self, argv: list[str], timeout: float = 60.0) -> float:
        """Wall seconds of a command that must succeed, its output going nowhere."""
        null = subprocess.DEVNULL
        began = time.perf_counter()
        process = subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, env=self.env, cwd=self.dir)
        ended = sees_end(process.pid, timeout)
        took = time.perf_counter() - began
        if not ended:
            process.kill()
        if process.wait():
            raise RuntimeError(f"{' '.join(argv)[:120]} gave {process.returncode} after {took:.1f} s")
        return took

    def members(self) -> list[int]:
        return [pid for pid in pids() if marked(pid, self.mark)]

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.terminate()
        self._await_end(3.0)
        for pid in self.members():
            end_marked(pid, self.mark)
        self._await_end(3.0)
        _left.append(self.dir)
        drop_large_files(self.dir)

    def _await_end(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            alive = [p for p in self.started if p.poll() is None]
            reap_orphans({p.pid for p in self.started})
            if not alive and not self.members():
                return
            time.sleep(0.02)


def drop_large_files(place: str) -> None:
    for here, _, names in os.walk(place):
        for path in (os.path.join(here, name) for name in names):
            try:
                if os.lstat(path).st_size > 1 << 20:
                    os.unlink(path)
            except OSError:
                pass  # gone by itself


def clear_up() -> None:
    """Removes all directories, at the very end: an ext4 without a journal will not use an inode again for minutes, and
    every file made after thousands were deleted pays for the search."""
    while _left:
        shutil.rmtree(_left.pop(), ignore_errors=True)


def until(condition: Callable[[], object], seconds: float, what: str, step: float = 0.02) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TooSlow(f"{what} took longer than {seconds:g} s")
        time.sleep(step)


def sees_end(pid: int, seconds: float) -> bool:
    """Waits for a child at once and exactly; Popen.wait with a timeout looks at growing intervals instead."""
    pidfd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1e3))
    finally:
        os.close(pidfd)


def adopt_orphans() -> None:
    """What a participant puts into the background becomes a child of this process, so that it can be waited for."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def reap_orphans(but: set[int]) -> None:
    """Waits for dead children, except those whose Popen object does."""
    for pid in children(os.getpid()):
        if pid not in but and not command(pid):
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def marked(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            return f"{MARK}={mark}".encode() in f.read().split(b"\0")
    except OSError:
        return False


def end_marked(pid: int, mark: str) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if marked(pid, mark):  # after the pidfd was opened: what was read belongs to what is signalled
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(pidfd)


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads that live, in nanosecond steps where the kernel keeps them."""
    total = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as f:
                total += int(f.read().split()[0])
    except (OSError, IndexError):
        return total / 1e9 or _cpu_ticks(pid)
    return total / 1e9


def _cpu_ticks(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pss_mib(pid: int) -> float:
    """Memory with shared pages divided among those who share them."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Pss:")) / 1024
    except (OSError, StopIteration):
        return 0.0


def command(pid: int) -> str:
    """Its words; none if it is dead, reaped or not."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
