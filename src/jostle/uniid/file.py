"""Reading and writing the uni_id file, among people's scripts that write it in place and without locks.

Rules. We write under a flock on FILE.lock, whole, by rename. A file that cannot be read is not damaged yet: somebody may be in
the middle of writing it. It is damaged when it has not changed for half a second; then it is kept as FILE.damaged-TIME and
replaced by {}. Only what was such a file once, though: a path that names somebody's program or notes leaves those as they are.
Who has the file open for writing while we replace it writes into a file without a name: we keep that one open until he has closed
it and take over what he wrote. A word (normal_exit, abnormal_exit) is never taken back by such a late write, and nothing is
removed by it. Readers never write. What this file says decides about success: the group may write neither it nor its directory,
whatever the umask, unless somebody has allowed it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from jostle.core.states import NORMAL
from jostle.uniid.entries import RUNNING, WORDS, Data, Entry, entry_of, lives, parsed, runs, was_ours, with_fields

DAMAGED_AFTER = 0.5
PATIENCE = 2.0  # for a lock that is held, and for a file that never stops changing
SETTLED_AFTER = 0.4  # so long a writer that was overtaken by us is waited for
LOOK_AGAIN = 0.05  # where nobody can tell whether there is such a writer
MAX_SIZE = 16 << 20
_F_SETSIG = 10


class FileLook(NamedTuple):
    """The file at one moment."""

    fd: int  # -1: there is no file
    text: bytes
    data: Data | None  # None: it cannot be read
    stamp: tuple[int, ...]  # changes when the file does
    written_at: float


def look(path: str) -> FileLook:
    """Opens and reads; the descriptor is the caller's to close. Raises OSError for what is no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return FileLook(-1, b"", {}, (), time.time())
    try:
        s = os.fstat(fd)
        if not stat.S_ISREG(s.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        text = content(fd)
        return FileLook(fd, text, parsed(text), (s.st_ino, s.st_size, s.st_mtime_ns), s.st_mtime)
    except BaseException:
        os.close(fd)
        raise


def content(fd: int) -> bytes:
    parts, size = [], 0
    while more := os.pread(fd, 1 << 16, size):
        parts.append(more)
        size += len(more)
        if size > MAX_SIZE:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return b"".join(parts)


def waited_look(path: str) -> FileLook:
    """As look(), but one that can be read, if somebody is just writing it; otherwise it is damaged."""
    now = time.monotonic()
    since, until, stamp = now, now + PATIENCE, None
    while True:
        content_now = look(path)
        now = time.monotonic()
        if content_now.data is not None:
            return content_now
        if content_now.stamp != stamp:
            since, stamp = now, content_now.stamp
        if now - since >= DAMAGED_AFTER or time.time() - content_now.written_at > 60.0 or now > until:
            return content_now
        os.close(content_now.fd)
        time.sleep(0.005)


class _Overtaken(NamedTuple):
    """A file that we replaced, which somebody may have been about to write."""

    fd: int
    text: bytes
    until: float


EXPECTED: Data = {"pid": 0, "state": RUNNING, "retry_count": 0}


class UniIdFile:
    """The file at one path. `warn` hears of damage; what cannot be read or written is an OSError."""

    def __init__(self, path: str, warn: Callable[[str], None] | None = None) -> None:
        self.path = os.path.abspath(path)
        self._warn = warn or (lambda text: None)
        self._overtaken: list[_Overtaken] = []
        self.written_at: float | None = None  # when what was last read had been written

    # ------------------------------------------------------------------ reading

    def raw(self) -> Data:
        """The file's content as it stands; {} if there is none, or nothing that can be read."""
        content_now = waited_look(self.path)
        if content_now.fd >= 0:
            os.close(content_now.fd)
        self.written_at = content_now.written_at
        if content_now.data is None:
            self._warn(f"{self.path} is {'damaged' if content_now.text.strip() else 'empty'}: it counts as {{}}")
        return content_now.data or {}

    def read(self) -> dict[str, Entry]:
        """The entries that make sense."""
        entries = ((uni_id, entry_of(value)) for uni_id, value in self.raw().items())
        return {uni_id: entry for uni_id, entry in entries if entry is not None}

    def get(self, uni_id: str) -> Entry | None:
        return self.read().get(uni_id)

    # ------------------------------------------------------------------ writing

    def put(self, uni_id: str, *, complete: bool = False, **fields: Any) -> None:
        """Sets these fields of the entry: pid, state, retry_count, error_type; `complete`: with all that older readers expect."""

        def edit(data: Data) -> bool:
            new = (EXPECTED if complete else {}) | with_fields(data.get(uni_id), fields)
            changed = new != data.get(uni_id)
            data[uni_id] = new
            return changed

        self.change(edit)

    def remove(self, uni_id: str) -> None:
        self.change(lambda data: data.pop(uni_id, None) is not None)

    def clean(self, everything: bool = False) -> list[str]:
        """Removes the records of processes that are gone: those at `running`; with everything, also those that have ended."""
        removed: list[str] = []

        def edit(data: Data) -> bool:
            for uni_id, value in list(data.items()):
                entry = entry_of(value)
                dead = not runs(uni_id, entry, self.written_at)
                if dead and (everything or (entry is not None and entry.state in (RUNNING, NORMAL))):
                    removed.append(uni_id)
                    del data[uni_id]
            return bool(removed)

        self.change(edit)
        return removed

    def change(self, edit: Callable[[Data], bool], *, settle: bool = True) -> None:
        """Reads, lets `edit` change it, and writes if that says so; all of it under the lock."""
        path = os.path.realpath(self.path)  # a link is written through
        make_directory(os.path.dirname(path))
        lock = _lock(f"{path}.lock")
        try:
            before = waited_look(path)
            try:
                self.written_at = before.written_at
                if before.data is None:
                    self._put_aside(path, before)
                data = before.data or {}
                if edit(data) or before.data is None:
                    _replace(path, data, before.fd, locked=lock is not None)
                    self._overtake(before)
            finally:
                if before.fd >= 0:
                    os.close(before.fd)
        finally:
            if lock is not None:
                os.close(lock)
        while settle and (pause := self.settle()) is not None:
            time.sleep(pause)

    def _put_aside(self, path: str, damaged: FileLook) -> None:
        """Keeps what is damaged beside the file; nothing need be kept of an empty one."""
        if not damaged.text.strip():
            self._warn(f"{path} was empty: it was replaced by {{}}")
            return
        if not was_ours(damaged.text):
            raise OSError(errno.EINVAL, "it holds something that is no JSON object, and is not replaced", path)
        name = _free_name(path)
        try:
            os.link(path, name)  # so that there is no moment without a file
        except OSError:
            os.rename(path, name)
        self._warn(f"{path} was damaged: it was replaced by {{}}, and kept as {name}")

    # ------------------------------------------------------------------ those who write without a lock

    def _overtake(self, replaced: FileLook) -> None:
        if replaced.fd >= 0:
            self._overtaken.append(_Overtaken(os.dup(replaced.fd), replaced.text, time.monotonic() + SETTLED_AFTER))

    def settle(self) -> float | None:
        """Takes over what was written into files that we had just replaced; says when to look again, if at all."""
        pause: float | None = None
        waiting, self._overtaken = self._overtaken, []
        for old in waiting:
            written, now = _is_being_written(old.fd), time.monotonic()
            early = now < (old.until if written else old.until - SETTLED_AFTER + LOOK_AGAIN)
            if written is not False and early:
                self._overtaken.append(old)
                pause = min(pause or 1.0, 0.005 if written else LOOK_AGAIN)
                continue
            try:
                text = content(old.fd)
                if text != old.text and text.strip():
                    self._take_over(parsed(old.text) or {}, parsed(text), text)
            except OSError as e:
                self._warn(f"{self.path}: what was written into it meanwhile is lost: {e.strerror}")
            finally:
                os.close(old.fd)
        return pause

    def _take_over(self, base: Data, theirs: Data | None, text: bytes) -> None:
        if theirs is None:  # he wrote nonsense, or died in the middle of it: kept as if it had been the file
            with open(name := _free_name(os.path.realpath(self.path)), "xb") as f:
                f.write(text)
            self._warn(f"what was written into {self.path} was damaged: it was kept as {name}")
            return

        def edit(data: Data) -> bool:
            news = {k: v for k, v in theirs.items() if v != base.get(k) and v != data.get(k)}
            news = {k: v for k, v in news.items() if _is_news(k, v, data.get(k))}
            data.update(news)
            return bool(news)

        self.change(edit, settle=False)

    def close(self) -> None:
        for old in self._overtaken:
            os.close(old.fd)
        self._overtaken = []


def make_directory(directory: str) -> None:
    """The directory, with those above it. Who may write in it can say how a task ended: never a group by its umask alone."""
    if os.path.isdir(directory):
        return
    above = os.path.dirname(directory)
    if above != directory:
        make_directory(above)
    try:
        os.mkdir(directory, 0o755)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise


def _free_name(path: str) -> str:
    base = f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
    name, n = base, 1
    while os.path.lexists(name):
        n += 1
        name = f"{base}-{n}"
    return name


def _is_news(uni_id: str, theirs: Any, ours: Any) -> bool:
    """Whether a late write may be taken over: he may have read the file long ago."""
    late, current = entry_of(theirs), entry_of(ours)
    if late is None or late.state in WORDS:
        return True
    if current is not None and current.state in WORDS:
        return False
    return current is not None or lives(uni_id, late)


def _is_being_written(fd: int) -> bool | None:
    """Whether somebody has the file open for writing: then no lease on reading can be had. None: nobody can tell."""
    try:
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGURG)  # ignored, where a broken lease's own SIGIO would kill
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as e:
        return True if e.errno == errno.EAGAIN else None
    return False


def _lock(path: str) -> int | None:
    """The lock, by whose close it is let go; None where there is no such thing, or its holder keeps it too long."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError:
        return None
    if locked_within(fd, PATIENCE):
        return fd
    os.close(fd)
    return None


def locked_within(fd: int, seconds: float) -> bool:
    """A lock on what others can open, too: whoever may read it may hold it for as long as he likes."""
    until, pause = time.monotonic() + seconds, 0.0005
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError as e:
            if e.errno not in (errno.EAGAIN, errno.EINTR) or time.monotonic() > until:
                return False
        time.sleep(pause)
        pause = min(0.01, pause * 2)


def _replace(path: str, data: Data, old: int, *, locked: bool) -> None:
    """The file as a whole or not at all. Under the lock one name is enough, so that a killed writer leaves one file at most."""
    own = f"{path}.new" if locked else f"{path}.new-{os.getpid()}"
    fd = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    try:
        if old >= 0:
            os.fchmod(fd, stat.S_IMODE(os.fstat(old).st_mode))
        text = memoryview((json.dumps(data, indent=2) + "\n").encode())
        while text:
            text = text[os.write(fd, text) :]
        os.rename(own, path)
    except BaseException:
        os.unlink(own)
        raise
    finally:
        os.close(fd)
