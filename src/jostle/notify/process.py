"""The process: a guard that does nothing but start the worker again when it has died, and the worker, a thread for each channel.

Rules: one of a home, by a lock that both hold. It ends when the home is gone, when no channel is set any more, when it is told
to, and when no engine is there and all is told. It reads the store and asks the engine for its cards, and writes nothing but its
own files. A thread that hangs keeps no other channel waiting.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import threading
import time

from jostle import __version__, proc
from jostle.address import LOCK
from jostle.client import attempt
from jostle.errors import JostleError
from jostle.notifier import lock_path
from jostle.notify.channels import mark, subscribers
from jostle.notify.deliver import deliver
from jostle.notify.outbox import Outbox, ShownCards, place_of, say
from jostle.store.private import check_private
from jostle.store.reads import Reader

DONE, AGAIN, UNSET = 0, 75, 76  # how the worker ends: for good, to begin anew, because nothing is set any more
LOOK_EACH = 1.0  # s
CARDS_EACH = 15.0  # s
CARDS_RARELY = 60.0  # s; an engine at rest that nobody asked to stay ends when it was left alone for half a minute
STALE = 60.0  # s
ALONE_FOR = 5.0  # s without an engine
LAST_ROUND = 10.0  # s for what is being sent when it is told to end
LOG_SIZE = 1 << 20
RESTARTS = (1.0, 60.0)  # s before a worker that died is started again: at first, at the most


def main() -> int:
    os.umask(0o077)
    home = os.environ["JOSTLE_HOME"]
    lock = take_lock(home)
    if lock is None:
        return 0
    trim_log(home)
    try:
        everybody = subscribers(home)
        if not everybody:
            os.unlink(lock_path(home))
            return 0
        for channel, settings in everybody:
            Outbox(home, channel, settings, deliver, "").close()  # it has its place in the events before anybody goes on
    except (JostleError, OSError) as e:
        say(f"not started: {e}")
        return 1
    if os.fork():
        os._exit(0)  # whoever started it is not its parent
    note(lock)
    return guard(home, lock)


def take_lock(home: str) -> int | None:
    """Held until the last of us ends; None if another has it. Whoever looks whether it is held has it for a moment."""
    folder = os.path.dirname(lock_path(home))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    check_private(folder)
    fd = os.open(lock_path(home), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + 1.0
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(fd)
                return None
            time.sleep(0.02)


def note(lock: int) -> None:
    me = proc.stat(os.getpid())
    record = json.dumps({"pid": os.getpid(), "ticks": me.ticks if me else 0, "version": __version__}).encode()
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, record, 0)
    except OSError:
        pass  # a full disk: it is locked all the same


def trim_log(home: str) -> None:
    path = os.path.join(os.path.dirname(lock_path(home)), "notify.log")
    try:
        if os.fstat(2).st_size > LOG_SIZE and os.path.samestat(os.fstat(2), os.stat(path)):
            os.rename(path, f"{path}.1")
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            os.dup2(fd, 1)
            os.dup2(fd, 2)
            os.close(fd)
    except OSError:
        pass  # it goes on where it was


# --- the guard


class EndSignal:
    """Whether somebody told us to end; a worker is told, too."""

    def __init__(self) -> None:
        self.end = False
        self.guard, self.worker = os.getpid(), 0
        signal.signal(signal.SIGTERM, self._heard)
        signal.signal(signal.SIGINT, self._heard)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _heard(self, *_: object) -> None:
        self.end = True
        self.tell()

    def tell(self) -> None:
        if self.worker:
            os.kill(self.worker, signal.SIGTERM)  # our child, and not waited for yet: it cannot be another's


def guard(home: str, lock: int) -> int:
    end_signal, pause, code = EndSignal(), RESTARTS[0], AGAIN
    while True:
        began = time.monotonic()
        end_signal.worker = os.fork()
        if not end_signal.worker:
            os._exit(worker(home, lock, end_signal))
        if end_signal.end:
            end_signal.tell()
        code = waited(end_signal)
        if code == UNSET and in_place(home, lock):
            os.unlink(lock_path(home))
        if code in (DONE, UNSET) or end_signal.end:
            if not engine_came(home, lock, code, end_signal):
                return 0
            continue
        if code != AGAIN:
            say(f"the worker died ({code}): it is started again in {pause:.0f} s")
            pause = RESTARTS[0] if time.monotonic() - began > 10 * RESTARTS[1] else min(2 * pause, RESTARTS[1])
            rest(pause, home, lock, end_signal)
            if end_signal.end or not in_place(home, lock):
                return 0


def waited(end_signal: EndSignal) -> int:
    """How the worker ended."""
    _, status = os.waitpid(end_signal.worker, 0)
    end_signal.worker = 0
    return os.waitstatus_to_exitcode(status)


def rest(pause: float, home: str, lock: int, end_signal: EndSignal) -> None:
    end = time.monotonic() + pause
    while time.monotonic() < end and not end_signal.end and in_place(home, lock):
        time.sleep(0.2)


def engine_came(home: str, lock: int, code: int, end_signal: EndSignal) -> bool:
    """Whether an engine came when we were about to end: whoever started it saw our lock, and started no other."""
    if code != DONE or end_signal.end or not in_place(home, lock):
        return False
    fcntl.flock(lock, fcntl.LOCK_UN)
    if not engine_lives(home):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # another was started
    return True


def in_place(home: str, lock: int) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), os.lstat(lock_path(home)))
    except OSError:
        return False


def engine_lives(home: str) -> bool:
    """By what its lock's file says, without asking it; as far as we can see."""
    try:
        with open(os.path.join(home, LOCK), encoding="ascii", errors="replace") as f:
            return not proc.gone(int(f.read(20)))
    except (FileNotFoundError, ValueError):
        return False
    except OSError:
        return True


# --- the worker


def worker(home: str, lock: int, end_signal: EndSignal) -> int:
    try:
        return Worker(home, lock, end_signal).run()
    except JostleError as e:
        say(str(e).splitlines()[0])
        return 1
    except BaseException as e:  # without its words, which may hold a secret
        say(f"{type(e).__name__} {place_of(e)}")
        return 1


class Worker:
    def __init__(self, home: str, lock: int, end_signal: EndSignal) -> None:
        self.home, self.lock, self.guard = home, lock, end_signal.guard
        self.stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stopping.set())
        if end_signal.end:  # heard before we had ears of our own
            self.stopping.set()
        self.mark = mark(home)
        self.reader = Reader(home)
        self.seen: ShownCards | None = None
        self.cards_at = 0.0
        self.alone_since: float | None = None
        name = socket.gethostname()
        self.boxes = [Outbox(home, channel, settings, deliver, name) for channel, settings in subscribers(home)]
        self.watches = any({"free", "gpu"} & set(box.channel.events) for box in self.boxes)

    def run(self) -> int:
        if not self.boxes:
            return UNSET
        say(f"tells {', '.join(box.channel.name for box in self.boxes)} of what happens in {self.home}")
        threads = [threading.Thread(target=self._work, args=(box,), daemon=True) for box in self.boxes]
        for thread in threads:
            thread.start()
        while (code := self._round()) is None:
            self.stopping.wait(LOOK_EACH)
        self.stopping.set()
        end = time.monotonic() + LAST_ROUND
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        return code

    def _work(self, box: Outbox) -> None:
        while not self.stopping.is_set():
            try:
                due = box.step(time.time(), self.seen)
            except Exception as e:
                say(f"{box.channel.name}: {type(e).__name__} {place_of(e)}")
                due = time.time() + 30.0
            self.stopping.wait(max(0.0, due - time.time()))

    def _round(self) -> int | None:
        """How it is to end, if it is."""
        if self.stopping.is_set() or not in_place(self.home, self.lock):
            return DONE
        if os.getppid() != self.guard:  # killed: whoever wants to end us must find us
            self.guard = os.getppid()
            note(self.lock)
        if (code := self._changed()) is not None:
            return code
        if self.watches and time.monotonic() >= self.cards_at:
            self.seen, pause = looked(self.home, self.reader)
            self.cards_at = time.monotonic() + pause
        if engine_lives(self.home):
            self.alone_since = None
            return None
        self.alone_since = self.alone_since or time.monotonic()
        alone = time.monotonic() - self.alone_since > ALONE_FOR
        return DONE if alone and all(box.idle() for box in self.boxes) else None

    def _changed(self) -> int | None:
        """Settings that changed are taken by beginning anew; those with an error are told, and the ones before stay."""
        if (now := mark(self.home)) == self.mark:
            return None
        self.mark = now
        try:
            return AGAIN if subscribers(self.home) else UNSET
        except (JostleError, OSError) as e:
            say(f"config.yaml was changed and is not taken: {str(e).splitlines()[0]}")
            return None


def looked(home: str, reader: Reader) -> tuple[ShownCards | None, float]:
    """The cards as the engine sees them, None if nobody can say; and when to look again."""
    try:
        client = attempt(home)
        if client is None:
            return None, CARDS_EACH
        try:
            if not client.call("hello", counts=False)["permanent"] and not reader.busy():
                return None, CARDS_RARELY
            answer = client.call("gpus")
        finally:
            client.close()
    except (JostleError, OSError):
        return None, CARDS_EACH
    age = answer["age_s"]
    known = age is not None and age < STALE and not answer["error"]
    return (ShownCards(answer["gpus"], answer["spec"]) if known else None), CARDS_EACH


if __name__ == "__main__":
    sys.exit(main())
