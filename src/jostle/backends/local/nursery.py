"""The nursery: a small process of its own that forks spare shims, so that a start never waits for one.

Both ends are here. `main` is the process: exec'd, single-threaded, holding nothing but its socket with the engine, so
that a shim can never keep a lock or a file of the engine's. `Nursery` is the engine's side: it asks for spares and
replaces a nursery that died. A spare belongs to whoever holds the other end of its socket: with the engine gone it sees
the end of file before a complete spec, and leaves. Runs are not touched by any of this.

This file is also run by its path (python -I -S nursery.py RUNS, its socket on standard input): nothing of ours is imported
before `main`.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostle.core.reasons import Hold
    from jostle.port import Watcher

BLOCKED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
"""What a shim waits for by sigtimedwait; blocked here already, so that no spare dies of one before it listens."""

ASK = b"+"
KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TZ", "JOSTLE_FAILPOINTS", "JOSTLE_TEST_BOOT_ID")
ANSWER_WITHIN = 10.0
SLOWEST = 30.0


class Nursery:
    """The engine's end: keeps a nursery running and counts what it still owes."""

    def __init__(self, *, watcher: Watcher, python: str, runs: str, arrived: Callable[[int, socket.socket], None]) -> None:
        self._watcher, self._python, self._runs, self._arrived = watcher, python, runs, arrived
        self._sock: socket.socket | None = None
        self._pid: int | None = None
        self._dead: list[int] = []  # children to be reaped
        self._failures = 0
        self._retry_at: float | None = None
        self._asked_at: float | None = None  # first tick that saw the oldest unanswered request
        self.owed = 0
        self.trouble: Hold | None = None

    @property
    def pid(self) -> int | None:
        return self._pid

    def start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            env = {k: os.environ[k] for k in KEPT if k in os.environ}
            argv = [self._python, "-I", "-S", os.path.abspath(__file__), self._runs]
            files = [
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ]
            try:
                self._pid = os.posix_spawn(self._python, argv, env, file_actions=files, setsigmask=())
            except OSError as e:
                ours.close()
                self._failed("no_nursery", f"{e.strerror}")
                return
        ours.setblocking(False)
        self._sock, self._retry_at = ours, None
        self._watcher.watch(ours.fileno(), self._heard)

    def ask(self, n: int) -> None:
        """Asks for n more spares; without a nursery nothing is owed, and the next one is asked by tick's caller."""
        for _ in range(n):
            if self._sock is None:
                return
            try:
                self._sock.send(ASK)
            except BlockingIOError:
                return
            except OSError:
                self._lost("nursery_died")
                return
            self.owed += 1

    def _heard(self) -> None:
        while self._sock is not None:
            try:
                data, fds, _, _ = socket.recv_fds(self._sock, 64, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except OSError:
                data, fds = b"", []
            if not data:
                self._lost("nursery_died")
                return
            self.owed, self._asked_at = max(0, self.owed - 1), None
            if fds:
                self._failures, self.trouble = 0, None
                self._arrived(int(data), socket.socket(fileno=fds[0]))
            else:
                self._failed("no_shim", data.decode(errors="replace"))

    def _failed(self, code: str, why: str = "") -> None:
        from jostle.core.reasons import Hold

        self._failures += 1
        self.trouble = Hold(code, why)
        self._retry_at = None

    def _lost(self, why: str) -> None:
        if self._sock is not None:
            self._watcher.unwatch(self._sock.fileno())
            self._sock.close()
            self._sock = None
        if self._pid is not None:
            self._dead.append(self._pid)
            self._pid = None
        self.owed, self._asked_at = 0, None
        self._failed(why)

    def tick(self, now: float) -> float | None:
        """Replaces a dead or mute nursery after a growing pause; when to call again."""
        self._reap()
        if self._sock is not None and self.owed:
            self._asked_at = now if self._asked_at is None else self._asked_at
            if now < self._asked_at + ANSWER_WITHIN:
                return self._asked_at + ANSWER_WITHIN
            if self._pid is not None:
                os.kill(self._pid, signal.SIGKILL)  # our own child, not reaped yet: the pid cannot be another's
            self._lost("nursery_silent")
        if not self._failures:
            return None
        if self._retry_at is None:
            self._retry_at = now + self.pause()
        if now < self._retry_at:
            return self._retry_at
        self._retry_at = None
        if self._sock is None:
            self.start()
        return None

    def pause(self) -> float:
        return 0.0 if self._failures <= 1 else min(SLOWEST, 0.05 * 2.0**self._failures)

    @property
    def ready(self) -> bool:
        """Whether it may be asked now (it may not while a failure is waited out)."""
        return self._sock is not None and self._retry_at is None

    def _reap(self) -> None:
        for pid in list(self._dead):
            try:
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    continue
            except ChildProcessError:
                pass  # somebody else has reaped it
            self._dead.remove(pid)

    def close(self) -> None:
        """Ends the nursery by end of file; it is our child, so it is waited for, but never for long."""
        if self._sock is not None:
            self._watcher.unwatch(self._sock.fileno())
            self._sock.close()
            self._sock = None
        if self._pid is None:
            return
        pid, self._pid = self._pid, None
        _end_child(pid)


def _end_child(pid: int) -> None:
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        try:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
        except ChildProcessError:
            return
        time.sleep(0.001)
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except OSError:
        pass


def main(runs: str = "", fd: int = 0) -> None:
    """The nursery process: one fork for each byte heard, until the engine is gone."""
    from jostle.backends.local import shim
    from jostle.failpoint import failpoint

    os.setsid()
    os.chdir("/")
    engine = _only_the_socket(fd)
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # shims are reaped by the kernel
    gc.disable()
    gc.collect()
    gc.freeze()
    while engine.recv(1):
        try:
            failpoint("nursery.before_fork")
            _fork(engine, lambda sock: shim.spare(sock, runs))
        except OSError as e:
            engine.send(f"{e.strerror}".encode())


def _only_the_socket(fd: int) -> socket.socket:
    """Closes all that was inherited but the socket, which leaves the place of stdin to /dev/null."""
    from jostle.proc import close_inherited

    close_inherited()
    engine = socket.socket(fileno=os.dup(fd))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)
    return engine


def _fork(engine: socket.socket, spare: Callable[[socket.socket], None]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pid = os.fork()
        if pid == 0:
            try:
                engine.close()
                ours.close()
                spare(theirs)
            finally:
                os._exit(70)
        theirs.close()  # from here on only the spare holds its end: end of file means that it is gone
        socket.send_fds(engine, [str(pid).encode()], [ours.fileno()])


if __name__ == "__main__":
    package = os.path.abspath(__file__)[: -len("/backends/local/nursery.py")]
    sys.path.insert(0, os.path.dirname(package))
    try:
        main(sys.argv[1] if len(sys.argv) > 1 else "")
    except (BrokenPipeError, ConnectionResetError):
        pass  # the engine went away in the middle of a sentence
