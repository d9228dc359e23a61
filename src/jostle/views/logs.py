"""What a job has printed: its log, and where in it what was printed lies. follow.output reads it as it grows.

Rules: only regular files are opened, never through a link, so that no name can make us read something else or hang. What was
dropped of a log is a hole in its file and is passed over.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

from jostle.core.states import FINAL
from jostle.errors import JostleError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jostle.session import Session
    from jostle.store.reads import Reader
    from jostle.views.types import Log

CHUNK = 1 << 16
MOST = 1 << 20  # bytes of a page


def log(session: Session, id: int, run: int | None = None, lines: int | None = None) -> Log:
    """What a run has printed, or the last so many lines of it; of the last run, if none is named."""
    path = printed_path(session, id, run)
    fd = opened(path)
    try:
        text = b"".join(chunks(fd, start_of(fd, lines))).decode("utf-8", "replace")
    finally:
        os.close(fd)
    return {"id": id, "path": path, "text": text}


def printed_path(session: Session, id: int, run: int | None) -> str:
    """Where the log lies; NotFound if there is none yet."""
    path = log_path(session, id, run)
    if path is None:
        state = (session.reader.job(id) or {"state": "gone"})["state"]
        raise NotFound(f"job {id} is {state} and has printed nothing yet: `jostle logs -f {id}` waits for it")
    return path


def log_path(session: Session, id: int, number: int | None) -> str | None:
    """Where the log of a run lies; None if it is yet to come, NotFound if it never will."""
    job, run = job_of(session, id), run_of(session.reader, id, number)
    if run is not None and os.path.lexists(run["log"]):
        return str(run["log"])
    if job["state"] not in FINAL:
        return None
    if run is None:
        raise NotFound(f"job {id} is {job['state']} without having run, so it printed nothing")
    raise NotFound(f"the log of job {id} is gone: {run['log']}")


def job_of(session: Session, id: int) -> dict[str, Any]:
    job = session.reader.job(id)
    if job is None:
        raise NotFound(f"there is no job {id}; `jostle ps --all` lists them")
    return job


def named_run(session: Session, id: int, number: int | None) -> dict[str, Any]:
    """The run, the last if none is named; NotFound where there is none yet."""
    job, run = job_of(session, id), run_of(session.reader, id, number)
    if run is None:
        raise NotFound(f"job {id} is {job['state']} and has not run yet, so it has printed nothing")
    return run


def run_of(reader: Reader, id: int, number: int | None) -> dict[str, Any] | None:
    runs = reader.runs(id)
    if number is None:
        return next(reversed(real(runs)), None)
    matching = [run for run in runs if run["n"] == number]
    if not matching and runs:
        raise NotFound(f"job {id} has no run {number}: it has had {len(runs)}")
    return matching[0] if matching else None


def real(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that were not voided: such a one printed nothing, and may name the log of another."""
    return [run for run in runs if run["outcome"] != "voided"]


def opened(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        raise JostleError(f"the log {path} cannot be opened: {e.strerror}") from e
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise JostleError(f"the log {path} is not a regular file")
    return fd


class LogPage(NamedTuple):
    job: int
    run: int
    path: str
    runs: list[int]  # all tries that have a log of their own
    start: int  # bytes
    end: int
    size: int
    text: str
    over: bool  # nothing more will come behind `end`

    def plain(self) -> dict[str, Any]:
        return {
            "job": self.job, "run": self.run, "path": self.path, "runs": self.runs, "from": self.start, "to": self.end,
            "size": self.size, "text": self.text, "over": self.over,
        }  # fmt: skip


def page(
    session: Session, id: int, number: int | None, *, lines: int | None, start: int = 0, limit: int = MOST,
    open: Callable[[str], int] = opened,
) -> LogPage:  # fmt: skip
    """The last lines of what a run has printed, or, with `lines` None, what stands from `start` on. `open`: by whose rules."""
    named = named_run(session, id, number)
    tries = real(session.reader.runs(id))
    run = next((one for one in tries if one["n"] == named["n"]), None)  # None: it was voided
    # the end is looked at before the last reading: what was printed before it is then certainly seen
    ended = run is None or is_over(session.home, id, run) or job_of(session, id)["state"] in FINAL
    path = log_path(session, id, named["n"])
    numbers = [one["n"] for one in tries]
    if path is None:
        if ended:
            raise NotFound(f"the log of job {id} is gone: {named['log']}")
        return LogPage(id, named["n"], named["log"], numbers, 0, 0, 0, "", False)
    fd = open(path)
    try:
        size = os.fstat(fd).st_size
        first = start_of(fd, lines) if lines is not None else start
        if lines is not None and size - first > limit:
            first, limit = max(first, size - MOST), MOST
        text, end = _read(fd, first, limit, grows=not ended) if first < size else ("", first)  # so far it may not even be sought
    finally:
        os.close(fd)
    return LogPage(id, named["n"], path, numbers, first, end, size, text, ended and end >= size)


def _read(fd: int, start: int, limit: int, *, grows: bool) -> tuple[str, int]:
    """Whole characters from there on, and where they end; what was dropped of the log is passed over. At the end of one that
    grows the rest of a character is waited for."""
    parts, left, at = [], limit, start
    os.lseek(fd, start, os.SEEK_SET)
    while left > 0 and (data := read_on(fd)):
        at = os.lseek(fd, 0, os.SEEK_CUR)
        if len(data) > left:
            at -= len(data) - left
            data = data[:left]
        parts.append(data)
        left -= len(data)
    raw = b"".join(parts)
    cut = _torn(raw)
    if cut == len(raw) and not (grows and left > 0):
        cut = 0  # nothing more comes, or fits
    return raw[: len(raw) - cut].decode("utf-8", "replace"), at - cut


def _torn(raw: bytes) -> int:
    """How many bytes at the end begin a character that is not there as a whole."""
    for back in range(1, min(4, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if needed > back else 0
        if byte < 0x80:
            return 0
    return 0


def start_of(fd: int, lines: int | None) -> int:
    """Where the last so many lines begin; read from the end, for logs grow large."""
    if lines is None:
        return 0
    size = os.fstat(fd).st_size
    if lines == 0:
        return size
    lines_seen, last = 0, True
    for start, end in reversed(parts(fd, size)):
        at = end
        while at > start:
            step = min(CHUNK, at - start)
            block = os.pread(fd, step, at - step)
            # the last line end closes a line, it does not begin another one
            line_end = len(block) - (last and block.endswith(b"\n"))
            last = False
            while (line_end := block.rfind(b"\n", 0, line_end)) >= 0:
                lines_seen += 1
                if lines_seen == lines:
                    return at - step + line_end + 1
            at -= step
    return 0


def parts(fd: int, size: int) -> list[tuple[int, int]]:
    """Where there is something, from the first byte on: all of it, but for a log of which something was dropped."""
    stretches, reached = [printed(fd, 0)], -1
    while reached < stretches[-1][1] < size:  # a file that shrinks meanwhile gets no further
        reached = stretches[-1][1]
        stretches.append(printed(fd, reached))
    return [(start, end) for start, end in stretches if end > start]


def chunks(fd: int, start: int) -> Iterator[bytes]:
    os.lseek(fd, start, os.SEEK_SET)
    while data := read_on(fd):
        yield data


def read_on(fd: int) -> bytes:
    """The next bytes that were printed. What was dropped of a log is a hole, and the line before it says how large."""
    here = os.lseek(fd, 0, os.SEEK_CUR)
    start, end = printed(fd, here)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, min(CHUNK, end - start)) if end > start else b""


def printed(fd: int, at: int) -> tuple[int, int]:
    """From where to where there is something, from this place on."""
    try:
        start = os.lseek(fd, at, os.SEEK_DATA)
        return start, os.lseek(fd, start, os.SEEK_HOLE)
    except OSError as e:
        size = os.fstat(fd).st_size
        return (max(at, size), size) if e.errno == errno.ENXIO else (at, size)  # other file systems have no holes to tell of


def is_over(home: str, id: int, run: dict[str, Any]) -> bool:
    """As far as can be seen from outside: it left its record, or its shim is gone."""
    from jostle import proc

    gone = run["shim_pid"] is not None and proc.stat(run["shim_pid"]) is None
    return run["ended_at"] is not None or gone or os.path.exists(os.path.join(home, "runs", f"{id}.{run['n']}", "exit"))


def other(fd: int, path: str) -> bool:
    """Whether another file lies there now."""
    try:
        there = os.lstat(path)
    except OSError:
        return False
    here = os.fstat(fd)
    return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)
