"""The shim: the small parent of one run, in a session of its own. It outlives the engine and needs nobody.

Rules. A run starts at most once: whoever gives its directory the run's name owns it (sparedir.py). The lock in there is held
for life: it is the proof of life; what proves that of the commands, they inherit (see sparedir.py). Every descendant is ours
until it is reaped (child subreaper), so "no child left" proves that nobody is left; only then are leases unlocked. The end is
told so: leases free, message to the engine, `exit` in the directory, lock. A shim is used again only when the engine says that
the run is final in its store, and nobody was left of it: so a living shim has one run or none, and only a living engine gives
it another. Nothing is imported after the fork: the package may have been replaced on disk since.
"""

from __future__ import annotations

import array  # noqa: F401  socket.recv_fds imports it when called, which may be days after an upgrade
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from jostle.backends.local import process
from jostle.backends.local.claimlock import give_back
from jostle.backends.local.commands import WAITED_FOR, CommandTree
from jostle.backends.local.halting import Halting
from jostle.backends.local.holding import Holding
from jostle.backends.local.host import EnclosingAllocation
from jostle.backends.local.joblog import identity
from jostle.backends.local.legs import Legs
from jostle.backends.local.sparedir import SpareDir
from jostle.failpoint import failpoint

HEADER = 5  # length of the spec (4 bytes), and whether it comes in a file, as the last descriptor (1 byte)
INLINE = 65536  # a longer spec comes in a file: a socket's buffer must never make the engine wait

FINAL, AGAIN = b"F", b"A"  # the engine's answer to an end: the store has it; and here comes the next run
ACK_WITHIN = 0.1
AT_LEISURE = 0.005  # after an end another run starts: what is only for the next one waits so long
EXIT_TRIES_FOR = 6 * 3600.0

_PR_SET_CHILD_SUBREAPER = 36
_prctl = ctypes.CDLL(None).prctl
_subreaper = False


def spare(sock: socket.socket, runs: str) -> NoReturn:
    """A forked spare: waits for its run, carries it, and leaves or waits for the next."""
    global _subreaper
    os.setsid()
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the nursery ignores it, and ignored children leave no exit code
    os.umask(0o077)
    _subreaper = _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    sparedir = prepared(runs)
    rehearse(sparedir)
    while (received := receive(sock)) is not None:
        if sparedir is not None and not sparedir.is_complete():
            sparedir.discard()
            sparedir = None
        if sparedir is None:
            sparedir = prepared(os.path.dirname(received[0]["dir"]))
        if not carry(*received, sock, sparedir):
            os._exit(0)
        select.select([sock], [], [], AT_LEISURE)
        sparedir = prepared(runs)
    if sparedir is not None:
        sparedir.discard()
    os._exit(0)


def prepared(runs: str) -> SpareDir | None:
    try:
        sparedir = SpareDir(runs) if runs else None  # an engine of an older version does not say where
    except OSError:
        return None  # a full disk: it is tried again when there is a run
    if sparedir is not None:
        sparedir.life = process.inherited(sparedir.life)
    return sparedir


def rehearse(sparedir: SpareDir | None) -> None:
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
        "patience": 0.0,  # a host out of processes is waited for by those who have something to run
    }
    spec = json.loads(json.dumps(spec))
    if sparedir is not None:
        take(spec, sparedir)
    run = CommandTree(spec)
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
        return json.loads(text), [process.inherited(fd) for fd in fds]
    except (OSError, ValueError, IndexError):
        return None


def _length(data: bytes) -> int:
    return int.from_bytes(data[:4], "big") if len(data) >= HEADER else HEADER


def carry(spec: dict[str, Any], leases: Sequence[int], sock: socket.socket, sparedir: SpareDir | None) -> bool:
    """From the claim to the exit record; True: the engine has it all and wants this shim for another run."""
    failpoint("shim.received")
    host = EnclosingAllocation(spec["host"]) if spec.get("host") is not None else None
    if sparedir is None or _pending_stop() or (host is not None and host.over()) or not take(spec, sparedir):
        if sparedir is not None:
            sparedir.discard()
        return False
    own_log = f"{spec['dir']}/log"
    log = sparedir.log if spec["log"] == own_log else None
    tree = Halting if spec.get("pauses") else CommandTree
    run = tree(spec, log, host) if spec["commands"] else Holding(spec, log)

    def started() -> None:
        _tell(sock, {"claimed": os.getpid()})
        drop_unless(own_log, run.log, sparedir)

    def waits_for(pids: list[int]) -> None:
        _note_background(spec["dir"], pids)
        _tell(sock, {"background": pids})

    run.waits_for = waits_for
    if spec.get("resize"):
        run.legs = resizable(spec, leases, run)
    try:
        failpoint("shim.after_claim")
        run.execute(started)
    except Exception as e:
        run.error = run.error or f"its shim failed: {e!r}"
        run.stop(kill=True)
    run.sweep()
    run.last_word()
    record = run.record()
    held, claims = (leases, spec["claims"]) if run.legs is None else (run.legs.fds, run.legs.paths)
    if run.empty:
        release(held, claims)
    run.conclude(record)
    _tell(sock, {"ended": record})
    run.close()
    drop_unless(own_log, run.log, sparedir)  # of a run that ended at once
    again = write_exit(spec["dir"], record, sparedir.lock, sock) == AGAIN
    if not again or not run.empty or not _subreaper or not spec["commands"]:
        return False  # the end of an allocation is that of its shim: what ran inside watches it
    if run.log is not None and run.log != sparedir.log:
        os.close(run.log)
    sparedir.close()
    for fd in held:
        os.close(fd)
    while signal.sigtimedwait(WAITED_FOR, 0) is not None:
        pass  # a stop that was meant for the run that has ended
    return True


def resizable(spec: dict[str, Any], leases: Sequence[int], run: CommandTree) -> Legs | None:
    try:
        return Legs(spec, leases, run.note)
    except OSError as e:
        run.note(f"it keeps the GPUs it has, as nobody can reach it: {e.strerror}")
        return None


def _note_background(directory: str, pids: list[int]) -> None:
    """For an engine that is not here to be told: whom the run waits for, though its commands have ended."""
    try:
        with open(f"{directory}/background", "w", encoding="utf-8") as f:
            json.dump({"pids": pids}, f)
    except OSError:
        pass  # a full disk: the log says it, too


def _pending_stop() -> bool:
    """A stop that came before the claim: then the run does not start, and nothing is lost."""
    pending = signal.sigpending()
    return signal.SIGTERM in pending or signal.SIGUSR1 in pending


def take(spec: dict[str, Any], sparedir: SpareDir) -> bool:
    """Whether the run is ours; it may be another's or void, or the disk full."""
    names = [os.path.basename(path) for path in spec["claims"]]
    me = {k: spec[k] for k in ("ticks", "boot", "uni_id")} | {"pid": os.getpid(), "leases": names, "life": True}
    try:
        failpoint("shim.before_claim")
        return sparedir.take(spec["dir"], json.dumps(me).encode())
    except OSError:
        return False


def release(leases: Sequence[int], claims: Sequence[str]) -> None:
    """Gives the GPUs back. Only for a run of which nobody is left."""
    for fd in leases:
        give_back(fd)
    for path in claims:
        drop(path)  # unlocked it is dead; if it stays, the engine removes it


def drop_unless(own_log: str, log: int | None, sparedir: SpareDir) -> None:
    """Removes the log that was made ahead if the run has another (which may be the same by another name)."""
    if log is not None and identity(log) != identity(sparedir.log):
        drop(own_log)


def drop(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


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
            answer = _pause(sock, pause)
            if answer:
                return answer  # the store has it: the record is not needed any more
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


def _pause(sock: socket.socket, seconds: float) -> bytes:
    """Waits so long, unless the engine answers first."""
    until = time.monotonic() + seconds
    answer = _answer(sock, seconds)
    if not answer:
        time.sleep(max(0.0, until - time.monotonic()))  # without an engine there is no answer, at once
    return answer


def _place_exit(directory: str, text: bytes) -> int:
    failpoint("shim.before_exit_write")
    # O_NONBLOCK: a pipe that the job put there is an error, and not waited at for ever
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(f"{directory}/exit.new", flags, 0o600)
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
