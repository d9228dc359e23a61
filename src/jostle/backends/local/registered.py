"""A run's part in the uni_id file (SPEC A21, A22, A27): its entry, the processes registered there, and the words said there.

Rules. The truth lies here, in the shim's memory; the file is only how people's scripts tell it. Each new value of our entry is
news, and kept even if another writer wipes it out of the file a moment later. A value that we have seen before and that was
overtaken just now is no news: somebody wrote back what he had read too early. Then, and when our entry is gone, it is put back,
but not more often than twice a second. A pid is taken with its start ticks the moment it is seen. A registration of another
process takes back an earlier word: it was about an earlier part. A word ends the waiting for what was registered before it.
Nothing that goes wrong with the file ends a task: it is a line in its log.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from jostle import proc
from jostle.backends.local import process, scriptfiles
from jostle.backends.local.filewatch import FileWatch
from jostle.core import failure
from jostle.core.states import ABNORMAL
from jostle.uniid.entries import RUNNING, WORDS, Data, Entry, entry_of, parsed, with_fields
from jostle.uniid.file import DAMAGED_AFTER, UniIdFile, content, look, waited_look

POLL = 1.0  # how often to look where nothing can be heard
BACK_EVERY = 0.5
STALE_FOR = 2.0  # a script reads the file and writes it again within this time
HELD = 8  # replaced files that are kept open: somebody may still be writing into one
FAREWELL = 0.2
NOTES = 50

Key = tuple[int, str, str]


def _key(entry: Entry) -> Key:
    return entry.pid, entry.state, entry.error_type


class Register:
    """The entry of one run, from its first command to its verdict."""

    def __init__(self, spec: dict[str, Any], note: Callable[[str], None]) -> None:
        self._spec = spec
        self._uni_id = str(spec["uni_id"])
        self._failures = int(spec.get("failures") or 0)
        self._umask = int(spec.get("umask", 0o077))
        self._note = note
        self._noted: set[str] = set()
        self._file = UniIdFile(os.path.join(spec["workdir"], spec["uni_id_file"]), warn=self._tell)
        self._watch: FileWatch | None = None
        self._held: list[list[Any]] = []  # [descriptor, inode, text, since when it is replaced or None], the newest last
        self._pids: dict[int, int] = {}  # registered and not yet known to be gone -> start ticks
        self._seen: set[int] = set()
        self._last = Entry(os.getpid(), RUNNING, self._failures)
        self._overtaken: dict[Key, float] = {}  # earlier values of the entry -> when they were overtaken
        self._bad: tuple[tuple[int, ...], float] | None = None  # a file that cannot be read: its stamp, and since when
        self._look_at: float | None = None
        self._back_at: float | None = None
        self._settle_at: float | None = None
        self._put_back_at = -BACK_EVERY
        self._script_file = ""  # another file that our script wrote
        self.said, self.said_type = "", ""

    # ------------------------------------------------------------------ during the run

    def begin(self) -> None:
        """Before each command: the entry says that the task runs. What was said was about the commands before."""
        if self._watch is None or self.said:
            self._try(self._begin)

    def _begin(self) -> None:
        self.said = self.said_type = ""
        self._last = Entry(os.getpid(), RUNNING, self._failures)
        self._seen.add(os.getpid())
        self._overtaken.clear()
        if not self._change(self._write_last):
            self._ignore_what_is_there()
        if self._watch is None:
            self._remember()
            self._watch = FileWatch(os.path.realpath(self._file.path))
            self._look(time.monotonic())

    def _ignore_what_is_there(self) -> None:
        """Only what is said during this run counts."""
        try:
            entry = entry_of(self._file.raw().get(self._uni_id))
        except OSError:
            return
        if entry is not None:
            self._overtaken[_key(entry)] = math.inf

    @property
    def due(self) -> float | None:
        """When `step` must be called at the latest."""
        return min((at for at in (self._look_at, self._back_at, self._settle_at) if at is not None), default=None)

    def step(self, now: float) -> None:
        """Sees to what was heard and what is due."""
        self._try(partial(self._step, now))

    def _step(self, now: float) -> None:
        if self._watch is None:
            return
        if self._watch.changed() or (self._look_at is not None and now >= self._look_at):
            self._look(now)
        if self._back_at is not None and now >= self._back_at:
            self._back_at, self._put_back_at = None, now
            self._change(partial(self._put_back, now))
        if self._settle_at is not None and now >= self._settle_at:
            self._settle(now)

    def waits(self) -> bool:
        """Whether a registered process lives."""
        self._pids = {pid: ticks for pid, ticks in self._pids.items() if proc.alive(pid, ticks)}
        return bool(self._pids)

    def living(self) -> list[int]:
        """The registered processes that lived at the last look."""
        return sorted(self._pids)

    def strangers(self) -> list[int]:
        """Registered processes that are no descendants of ours: nothing tells us when they end."""
        return [pid for pid in self._pids if not process.is_descendant(pid)]

    def provable(self) -> list[int]:
        """Registered processes outside our tree that are provably this run's."""
        ours = partial(process.is_member, uni_id=self._uni_id)
        return [pid for pid in self.strangers() if ours(pid, ticks=self._pids[pid])]

    def signal(self, number: int, *, let_go: bool) -> None:
        """Signals registered processes outside our tree that are provably this run's. The others are let go if a person wants
        the run to end; else they are waited for: a task that may still be at work must not be started again beside itself."""
        for pid in self.strangers():
            proof = partial(process.is_member, ticks=self._pids[pid], uni_id=self._uni_id)
            if proof(pid):
                proc.signal_proven(pid, number, proof)
            elif not let_go:
                self._tell(f"process {pid}, which was registered, is not provably of this run: it is waited for, not ended")
            elif proc.alive(pid, self._pids.pop(pid)):
                self._note(f"process {pid}, which was registered, is not provably of this run: it is let go, not ended")

    # ------------------------------------------------------------------ the end

    def last_look(self) -> None:
        """What has been said by now, even if somebody is in the middle of writing the file."""
        if self._watch is not None:
            self._try(self._last_look)

    def _last_look(self) -> None:
        content = waited_look(self._file.path)
        if content.fd >= 0:
            os.close(content.fd)
        self._look(time.monotonic())
        if not self.said:
            self._look_beside_scripts()

    def _look_beside_scripts(self) -> None:
        """What older scripts wrote where their functions write, though our file is another."""
        for path in scriptfiles.files(self._spec, self._file.path):
            content = waited_look(path)
            if content.fd >= 0:
                os.close(content.fd)
            value = (content.data or {}).get(self._uni_id)
            if entry_of(value) is not None:
                self._script_file = path
                self._is_wrong(value, time.monotonic())

    def conclude(self, record: dict[str, Any]) -> None:
        """Writes the verdict: a success leaves no entry, a failure is kept for diagnosis (A27)."""
        if self._watch is not None:
            facts = {name: record[name] for name in failure.FACTS}
            good = failure.succeeded(record["code"], self.said, record["stopped"])
            self._change(self._remove if good else partial(self._fail, facts))
            if good and self._script_file:
                self._try(partial(UniIdFile(self._script_file, warn=self._tell).change, self._remove))

    def close(self) -> None:
        """Apart from the verdict, which nobody is to wait for: closing a file that was just replaced takes its disk's time."""
        if self._watch is not None:
            until = time.monotonic() + FAREWELL
            while self._settle_at is not None and (now := time.monotonic()) < until:
                time.sleep(max(0.0, min(self._settle_at, until) - now))
                self._settle(time.monotonic())
            self._watch.close()
        self._file.close()
        for held in self._held:
            os.close(held[0])
        self._held = []

    def _remove(self, data: Data) -> bool:
        return data.pop(self._uni_id, None) is not None

    def _fail(self, facts: dict[str, Any], data: Data) -> bool:
        self._last = Entry(self._last.pid, ABNORMAL, self._failures, failure.error_type(**facts))
        return self._write_last(data)

    # ------------------------------------------------------------------ reading

    def _look(self, now: float) -> None:
        quiet = self._watch is None or self._watch.fd is None
        self._look_at = now + POLL if quiet else None
        content = look(self._file.path)
        if content.fd >= 0:
            self._hold(content.fd, content.stamp[0], now)
            self._held[-1][2] = content.text
        self._late_words(now)
        if content.data is not None:
            self._bad = None
            if self._is_wrong(content.data.get(self._uni_id), now):
                self._back_at = max(now, self._put_back_at + BACK_EVERY)
            return
        if self._bad is None or self._bad[0] != content.stamp:
            self._bad = (content.stamp, now)
        if now - self._bad[1] >= DAMAGED_AFTER:
            self._back_at, self._bad = max(now, self._put_back_at + BACK_EVERY), None
        self._look_at = now + DAMAGED_AFTER / 5

    def _hold(self, fd: int, inode: int, now: float) -> None:
        """Keeps each file open for a while after it was replaced."""
        if self._held and self._held[-1][1] == inode:
            os.close(fd)
            return
        if self._held:
            self._held[-1][3] = now
        self._held.append([fd, inode, b"", None])
        while len(self._held) > HELD or (self._held[0][3] is not None and now - self._held[0][3] > STALE_FOR):
            os.close(self._held.pop(0)[0])

    def _late_words(self, now: float) -> None:
        """Our entry in files that were replaced while somebody was writing them."""
        for held in self._held[:-1]:
            try:
                text = content(held[0])
            except OSError:
                continue
            if text != held[2]:
                held[2] = text
                value = (parsed(text) or {}).get(self._uni_id)
                entry = entry_of(value)
                if entry is not None and (entry.state in WORDS or entry.pid not in self._seen):
                    self._is_wrong(value, now)

    def _is_wrong(self, value: Any, now: float) -> bool:
        """Hears what the file says of us; True if it says nothing, or what was true before."""
        entry = entry_of(value)
        if entry is None:
            return True
        key, before = _key(entry), _key(self._last)
        if key == before:
            return False
        again = entry.state == RUNNING and entry.pid in self._seen and self._last.state in WORDS
        if again or now - self._overtaken.get(key, -STALE_FOR) < STALE_FOR:
            return True
        self._overtaken[before] = now
        self._last = entry
        if entry.state in WORDS:
            self.said, self.said_type = entry.state, entry.error_type
            self._pids.clear()
        elif entry.state == RUNNING:
            self.said = self.said_type = ""
            self._take(entry.pid)
        return False

    def _take(self, pid: int) -> None:
        """Remembers a registered process by its start: its number may be another's later."""
        self._seen.add(pid)
        s = proc.stat(pid) if pid > 2 and pid != os.getpid() else None
        if s is not None and s.state not in "ZX" and s.ppid != 2:  # a kernel thread: the pid of another namespace
            self._pids[pid] = s.ticks
            self._remember()

    def _remember(self) -> None:
        """For an engine that finds us dead: whom this run waits for, and where its word may be."""
        path = os.path.join(self._spec.get("dir", "/proc/self/nowhere"), "registered")
        try:
            with open(f"{path}.new", "w", encoding="utf-8", opener=_private) as f:
                json.dump({"file": self._file.path, "pids": self._pids}, f)
            os.replace(f"{path}.new", path)
        except OSError:
            pass  # a full disk: it matters only if we are killed

    # ------------------------------------------------------------------ writing

    def _put_back(self, now: float, data: Data) -> bool:
        return self._is_wrong(data.get(self._uni_id), now) and self._write_last(data)

    def _write_last(self, data: Data) -> bool:
        last = self._last
        fields = {"pid": last.pid, "state": last.state, "retry_count": self._failures, "error_type": last.error_type}
        data[self._uni_id] = with_fields(data.get(self._uni_id), fields)
        return True

    def _change(self, edit: Callable[[Data], bool]) -> bool:
        """Whether it could be done; if it could, those who were overtaken are looked after at the next step."""
        done = self._try(partial(self._file.change, edit, settle=False))
        self._settle_at = time.monotonic() if done else self._settle_at
        return done

    def _settle(self, now: float) -> None:
        pause: list[float | None] = []
        self._try(lambda: pause.append(self._file.settle()))
        self._settle_at = now + pause[0] if pause and pause[0] is not None else None

    def _try(self, act: Callable[[], None]) -> bool:
        before = os.umask(self._umask)
        try:
            act()
        except Exception as e:  # whatever it is, it must not end the task
            self._tell(f"{self._file.path}: {getattr(e, 'strerror', None) or repr(e)}; the task goes on without it")
            return False
        finally:
            os.umask(before)
        return True

    def _tell(self, text: str) -> None:
        """A line in the task's log, but not the same one again and again, nor any number of them."""
        if text not in self._noted and len(self._noted) < NOTES:
            self._noted.add(text)
            self._note(text)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
