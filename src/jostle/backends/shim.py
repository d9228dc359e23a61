"""The shim: the small parent of one run, in a session of its own. It outlives the engine and needs nobody.

Rules. The lock in the run's directory is held for life: it is the proof of life. `claim` is made once, complete, by
link(): whoever makes it owns the run, so a run starts at most once. Every descendant is ours until it is reaped (child
subreaper), so "no child left" proves that nobody is left; only then are leases unlocked. The end is told in this order:
leases free, message to the engine, `exit` in the directory, lock. A shim is used again only when
the engine says that the run is final in its store and nobody was left of it: so a living shim has one run or none.
Nothing is imported after the fork: the package may have been replaced on disk since.
"""

from __future__ import annotations

import array  # noqa: F401  socket.recv_fds imports it when called, which may be days after an upgrade
import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from jostle import proc
from jostle.backends import joblog, process
from jostle.failpoint import failpoint

HEADER = 5  # length of the spec (4 bytes), and whether it comes in a file, as the last descriptor (1 byte)
INLINE = 65536  # a longer spec comes in a file: a socket's buffer must never make the engine wait

WAITED_FOR = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
LEASE_FD = 100  # lease descriptors are moved up here: scripts like to say `exec 3>file`
FINAL, AGAIN = b"F", b"A"  # the engine's answer to an end: the store has it; and here comes the next run
RUNS = 1000  # that one shim may carry, so that nothing can grow in it for ever
LOG_LOOK = 2.0
LINGER = 0.1  # `exec > >(tee log)`: what ends by itself when the main process has ended is not left behind
GIVE_UP = 10.0  # what survives SIGKILL for so long is stuck in the kernel
ACK_WITHIN = 0.1
FORK_TRIES_FOR = 30.0
EXIT_TRIES_FOR = 6 * 3600.0

_PR_SET_CHILD_SUBREAPER = 36
_prctl = ctypes.CDLL(None).prctl


_subreaper = False


def spare(sock: socket.socket) -> NoReturn:
    """A forked spare: waits for its run, carries it, and leaves."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the nursery ignores it, and ignored children leave no exit code
    os.umask(0o077)
    global _subreaper
    _subreaper = _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    rehearse()
    for _ in range(RUNS):
        received = receive(sock)
        if received is None or not carry(*received, sock):
            break
    os._exit(0)


def rehearse() -> None:
    """Goes the way of a start once, in vain: the pages it writes to are copied now, and not while a GPU waits."""
    if os.environ.get("JOSTLE_FAILPOINTS"):
        return  # they are meant for the real thing
    spec: dict[str, Any] = {
        "dir": "/proc/self/nowhere",
        "claims": ["/proc/self/nowhere/claim"],
        "ticks": 0,
        "boot": "",
        "uni_id": "",
        "commands": [["/proc/self/nowhere"]],
        "env": {"PATH": "/bin", "HOME": "/"},
        "workdir": "/",
        "log": os.devnull,
        "limits": {"nofile": [1024, 4096]},
    }
    spec = json.loads(json.dumps(spec))
    take(spec)
    run = Run(spec)
    run.execute(started=lambda: None)
    if run.log is not None:
        os.close(run.log)


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The spec and the lease descriptors; None if the engine went away before all of it was here."""
    try:
        data, fds, flags, _ = socket.recv_fds(sock, HEADER + INLINE, 253, socket.MSG_CMSG_CLOEXEC)
        while data and len(data) < HEADER + _length(data):
            more = sock.recv(INLINE)
            if not more:
                return None
            data += more
        if not data or flags & socket.MSG_CTRUNC:
            return None
        text = data[HEADER:]
        if data[4]:
            with open(fds.pop(), "rb") as f:
                f.seek(0)
                text = f.read()
        return json.loads(text), [_inherited(fd) for fd in fds]
    except (OSError, ValueError, IndexError):
        return None


def _length(data: bytes) -> int:
    return int.from_bytes(data[:4], "big") if len(data) >= HEADER else HEADER


def _inherited(fd: int) -> int:
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD, LEASE_FD)
    except OSError:  # a low limit of open files
        os.set_inheritable(fd, True)
        return fd
    os.close(fd)
    return high


def carry(spec: dict[str, Any], leases: Sequence[int], sock: socket.socket) -> bool:
    """From the claim to the exit record; True: the engine has it all and wants this shim for another run."""
    lock = None if _pending_stop() else take(spec)
    if lock is None:
        return False
    run = Run(spec)
    try:
        failpoint("shim.after_claim")
        run.execute(started=lambda: _tell(sock, {"claimed": os.getpid()}))
    except Exception as e:
        run.error = run.error or f"its shim failed: {e!r}"
        run.stop(kill=True)
    run.sweep()
    record = run.record()
    if run.empty:
        release(leases, spec["claims"])
    _tell(sock, {"ended": record})
    wanted = write_exit(spec["dir"], record, lock, sock) == AGAIN
    if not wanted or not run.empty or not _subreaper:
        return False
    for fd in (*leases, lock, run.log):
        if fd is not None:
            os.close(fd)
    while signal.sigtimedwait(WAITED_FOR, 0) is not None:
        pass  # a stop that was meant for the run that has ended
    return True


def _pending_stop() -> bool:
    """A stop that came before the claim: then the run does not start, and nothing is lost."""
    pending = signal.sigpending()
    return signal.SIGTERM in pending or signal.SIGUSR1 in pending


def take(spec: dict[str, Any]) -> int | None:
    """Lock, then claim: the lock; None if the run is another's or void, or cannot be claimed (disk full)."""
    claim = f"{spec['dir']}/claim"
    try:
        failpoint("shim.before_lock")
        lock = _lock(f"{spec['dir']}/lock", claim)
        failpoint("shim.before_claim")
        names = [os.path.basename(path) for path in spec["claims"]]
        me = {k: spec[k] for k in ("ticks", "boot", "uni_id")} | {"pid": os.getpid(), "leases": names}
        return lock if lock is not None and make_claim(claim, me) else None
    except OSError:
        return None


def _lock(path: str, claim: str) -> int | None:
    if os.path.lexists(claim):
        return None
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            # a look by the engine, over in an instant, or another shim of this run, which claims or leaves
            if os.path.lexists(claim):
                return None
            time.sleep(0.0005)


def make_claim(path: str, content: dict[str, Any]) -> bool:
    """Exactly one caller ever gets True; link() gives the file whole or not at all."""
    own = f"{path}.{os.getpid()}"
    fd = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        text = json.dumps(content).encode()
        if os.write(fd, text) != len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), own)
        os.link(own, path)
    except FileExistsError:
        return False
    finally:
        os.close(fd)
        try:
            os.unlink(own)
        except OSError:
            pass  # a claim that was made stays made
    return True


class Run:
    """The commands of one run and everything that descends from them."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.error = ""
        self.empty = True  # no child is left
        self.log: int | None = None
        self._log_look: float | None = None
        self._main = 0
        self._status: int | None = None  # wait status of the last command
        self._code: int | None = None  # where there is no wait status: it could not be started
        self._rss = 0
        self._started_at: float | None = None
        self._ended_at: float | None = None
        self._began = time.monotonic()
        self._ended: float | None = None
        self._deadline: float | None = None
        self._timed_out = False
        self._stopping = False
        self._kill_at: float | None = None  # not None: SIGKILL is due then
        self._killing_since: float | None = None
        self._leftovers: list[int] = []

    # ------------------------------------------------------------------ start

    def execute(self, started: Callable[[], None]) -> None:
        """One command after the other, until one fails or we are stopped."""
        try:
            self.log = joblog.open_log(self.spec["log"])
        except OSError as e:
            self._refuse(f"log {self.spec['log']}", e)
            return
        for command in self.spec["commands"]:
            self._main, self._status = 0, None
            self._spawn(command)
            if self._started_at is None:
                self._clocks()
                started()
                json.dumps(self.record())  # in vain, as rehearse(): the end of the run is to find its pages ready
            while self._main and self._status is None:
                self._step()
            if self._stopping or self.error or self._status != 0:
                break
        self._ended, self._ended_at = time.monotonic(), time.time()

    def _clocks(self) -> None:
        self._began, self._started_at = time.monotonic(), time.time()
        limit = self.spec.get("time_limit")
        self._deadline = None if limit is None else self._began + limit
        if self.spec.get("log_cap_mib"):
            self._log_look = self._began + LOG_LOOK

    def _spawn(self, command: str | list[str]) -> None:
        argv = command if isinstance(command, list) else [process.shell(), "-c", command]
        until, pause = time.monotonic() + FORK_TRIES_FOR, 0.05
        while not self._stopping:
            try:
                self._main = process.spawn(argv, self.spec, self.log if self.log is not None else 1)
                self.empty = False
                process.raise_oom_score(self._main)
                return
            except OSError as e:
                if e.errno not in (errno.EAGAIN, errno.ENOMEM) or time.monotonic() > until:
                    self._refuse(e.filename or argv[0], e)
                    return
            except ValueError as e:  # a NUL in a word or a variable
                self.error, self._code = f"{argv[0]!r}: {e}", 126
                return
            self._step(pause)  # the host is out of processes or memory: that is not this run's fault
            pause = min(5.0, pause * 2)

    def _refuse(self, what: str, e: OSError) -> None:
        self.error = f"{what}: {e.strerror}"
        self._code = 127 if e.errno in (errno.ENOENT, errno.ENOTDIR) else 126

    # ------------------------------------------------------------------ wait

    def _step(self, at_most: float = 3600.0) -> None:
        """Waits for the next thing that happens, and sees to it."""
        now = time.monotonic()
        due = [d for d in (self._deadline, self._kill_at, self._log_look) if d is not None]
        wait = max(0.0, min(at_most, *(d - now for d in due))) if due else at_most
        heard = signal.sigtimedwait(WAITED_FOR, wait)
        number = heard.si_signo if heard is not None else None
        if number == signal.SIGTERM:
            self.stop(kill=False)
        elif number == signal.SIGUSR1:
            self.stop(kill=True)
        self._reap()
        self._deadlines(time.monotonic())

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self.empty = True
                return
            if pid == 0:
                return
            self._rss = max(self._rss, usage.ru_maxrss)
            if pid == self._main:
                self._status = status

    def _deadlines(self, now: float) -> None:
        if self._deadline is not None and now >= self._deadline and not self.empty:
            self._deadline = None
            if not self._stopping:
                self._timed_out = True
                self.stop(kill=False)
        if self._kill_at is not None and now >= self._kill_at and not self.empty:
            self._killing_since = self._killing_since or now
            self._kill_at = now + 0.02  # again and again: a tree can grow while it is felled
            self._signal_tree(signal.SIGKILL)
        if self._log_look is not None and now >= self._log_look:
            fast = self.log is not None and joblog.cap_log(self.log, self.spec["log_cap_mib"] << 20)
            self._log_look = now + (LOG_LOOK / 10 if fast else LOG_LOOK)

    # ------------------------------------------------------------------ stop

    def stop(self, *, kill: bool) -> None:
        """TERM to the tree, KILL after the grace; or KILL at once. Said again it changes nothing, unless to hurry."""
        now = time.monotonic()
        if kill:
            self._stopping = True
            self._kill_at = now
        elif not self._stopping:
            self._stopping = True
            self._term(float(self.spec.get("grace", 5.0)))

    def _term(self, grace: float) -> None:
        at = time.monotonic() + grace
        self._kill_at = at if self._kill_at is None else min(at, self._kill_at)
        self._signal_tree(signal.SIGTERM)
        self._signal_tree(signal.SIGCONT)

    def _signal_tree(self, number: int) -> None:
        for pid in proc.tree(os.getpid()):
            process.signal_proven(pid, number, process.is_descendant)

    def sweep(self) -> None:
        """Sees to what the commands left behind, until nobody is left or what is left cannot be killed."""
        self._reap()
        until = time.monotonic() + LINGER
        while not self.empty and not self._stopping and (rest := until - time.monotonic()) > 0:
            self._step(rest)
        if not self.empty and not self._stopping and self.spec.get("leftovers", "kill") != "wait":
            self._leftovers = process.living()
            self._term(5.0)
        while not self.empty:
            if self._killing_since is not None and time.monotonic() - self._killing_since > GIVE_UP:
                self._leftovers = process.living()
                return
            self._step()

    # ------------------------------------------------------------------ end

    def record(self) -> dict[str, Any]:
        """The fields of core.model.Exit."""
        code, number = self._code, None
        if self._status is not None:
            code = os.waitstatus_to_exitcode(self._status)
            if code < 0:
                number, code = -code, 128 - code
        now = time.time()
        return {
            "code": code,
            "signal": number,
            "timed_out": self._timed_out,
            "error": self.error,
            "tail": joblog.tail(self.log) if code != 0 and self.log is not None else "",
            "started_at": self._started_at,
            "ended_at": self._ended_at or now,
            "ran_for": (self._ended or time.monotonic()) - self._began,
            "rss_mib": self._rss // 1024,
            "leftovers": self._leftovers,
        }


def release(leases: Sequence[int], claims: Sequence[str]) -> None:
    """Gives the GPUs back. Only for a run of which nobody is left."""
    for fd in leases:
        fcntl.flock(fd, fcntl.LOCK_UN)
    for path in claims:
        try:
            os.unlink(path)
        except OSError:
            pass  # unlocked it is dead; the engine removes it


def _tell(sock: socket.socket, message: dict[str, Any]) -> None:
    try:
        sock.send(json.dumps(message).encode() + b"\n", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except OSError:
        pass  # no engine, or one that does not listen: the files say it too


def write_exit(directory: str, record: dict[str, Any], lock: int, sock: socket.socket) -> bytes:
    """Writes `exit`, however long it takes, and only then lets go of the lock; gives the engine's answer.

    It need not survive a power loss if the engine says in time that its store has the end of this run.
    """
    text = json.dumps(record).encode()
    until, pause = time.monotonic() + EXIT_TRIES_FOR, 0.05
    while True:
        try:
            fd = _place_exit(directory, text)
            break
        except FileNotFoundError:
            return b""  # the directory is gone: there is nobody to tell
        except OSError:
            if time.monotonic() > until:
                return b""
            time.sleep(pause)
            pause = min(5.0, pause * 2)
    fcntl.flock(lock, fcntl.LOCK_UN)
    try:
        failpoint("shim.after_exit_rename")
        answer = _answer(sock, ACK_WITHIN)
        if not answer:
            os.fsync(fd)
            _sync_directory(directory)
    except OSError:
        answer = b""  # it is there for every reader of this boot
    os.close(fd)
    return answer or _answer(sock, None)


def _place_exit(directory: str, text: bytes) -> int:
    failpoint("shim.before_exit_write")
    fd = os.open(f"{directory}/exit.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        written = 0
        while written < len(text):
            written += os.write(fd, text[written:])
        failpoint("shim.before_exit_rename")
        os.rename(f"{directory}/exit.new", f"{directory}/exit")
    except OSError:
        os.close(fd)
        raise
    return fd


def _sync_directory(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _answer(sock: socket.socket, within: float | None) -> bytes:
    """FINAL or AGAIN; nothing if there is no engine or it takes its time."""
    sock.settimeout(within)
    try:
        return sock.recv(1)
    except OSError:
        return b""
    finally:
        sock.settimeout(None)
