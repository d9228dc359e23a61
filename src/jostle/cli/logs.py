"""`jostle logs ID`: what a job has printed, and with -f what it prints until it has ended.

Bytes are passed on as they are; to a terminal without the control sequences that could do more than colour.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from jostle.cli import screen
from jostle.core.states import FINAL
from jostle.errors import NoEngine, NotFound, Usage
from jostle.intake import ids
from jostle.views.logs import chunks, is_over, opened, other, read_on, real, run_of, start_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal

POLL = 0.1  # s between looks at a growing file
LOOK = 1.0  # s between looks whether an engine runs, while nothing is printed


def logs_options(p: Parser) -> None:
    p.example("""
        jostle logs 17
        jostle logs -f last
        jostle logs 17 --run 1 -n 50""")
    p.add_argument("id", metavar="ID", help=ids.WRITTEN_ONE)
    p.add_argument("-f", "--follow", action="store_true", help="go on until the job has ended")
    p.add_argument("-n", "--lines", metavar="N", help="only the last N lines")
    p.add_argument("--run", metavar="N", help="of the N-th try (default: the last)")
    p.add_argument("--raw", action="store_true", help="pass control sequences to a terminal, too")
    p.add_argument("--path", action="store_true", help="print where the log lies")
    p.json_option()


def logs(args: Namespace, terminal: Terminal) -> int:
    id = ids.one(args.id, lambda: terminal.reader)
    number = count_of(args.run, "--run") if args.run else None
    last = count_of(args.lines, "-n") if args.lines else None
    path = path_of(terminal, id, number, wait=args.follow)
    if args.path:
        terminal.put(path)
        return 0
    fd = opened(path)
    sys.stdout.flush()
    out = sys.stdout.buffer
    shown = screen.LogFilter().feed if sys.stdout.isatty() and not args.raw else bytes
    if args.json:
        text = b"".join(chunks(fd, start_of(fd, last))).decode("utf-8", "replace")
        terminal.put_json({"schema": 1, "id": id, "path": path, "text": text})
        return 0
    for data in chunks(fd, start_of(fd, last)):
        out.write(shown(data))
    out.flush()
    if args.follow:
        follow(terminal, id, fd, number, shown)
    return 0


def count_of(text: str, option: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Usage(f"logs: {option} {text!r} is not understood; expected a number")
    return int(text)


def path_of(terminal: Terminal, id: int, number: int | None, wait: bool) -> str:
    """The log of the run; with `wait`, of the run that is yet to come."""
    told, look_at = False, 0.0
    while True:
        job = terminal.reader.job(id)
        if job is None:
            raise NotFound(f"there is no job {id}; `jostle ps --all` lists them")
        run = run_of(terminal.reader, id, number)
        if run is not None and os.path.lexists(run["log"]):
            return str(run["log"])
        if run is None and job["state"] in FINAL:
            raise NotFound(f"job {id} is {job['state']} without having run, so it printed nothing")
        if run is not None and job["state"] in FINAL:
            raise NotFound(f"the log of job {id} is gone: {run['log']}")
        if not wait:
            raise NotFound(f"job {id} is {job['state']} and has printed nothing yet: `jostle logs -f {id}` waits for it")
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + LOOK
            if not terminal.engine_answers():
                raise NoEngine(f"job {id} is {job['state']} and has printed nothing, and no engine runs: `jostle up` goes on")
        if not told:
            terminal.say(f"job {id} is {job['state']}; waiting for its output (`jostle why {id}`)")
            told = True
        time.sleep(POLL)


def follow(terminal: Terminal, id: int, fd: int, number: int | None, shown: Callable[[bytes], bytes]) -> None:
    """Until the run has ended and its file is read to the end; the files of later tries are taken up in their order."""
    out = sys.stdout.buffer
    # where all tries write to one path, a run that has not begun names the file of the one before: the first of them wrote it
    last = min((run["n"] for run in real(terminal.reader.runs(id)) if not other(fd, run["log"])), default=0)
    alone = Alone(terminal, id)
    while True:
        job = terminal.reader.job(id)
        runs = terminal.reader.runs(id)
        # the end is looked at before the last reading: what was printed before it is then certainly seen
        over = job is None or job["state"] in FINAL or any(r["n"] == number and r["ended_at"] is not None for r in runs)
        later = next((r for r in real(runs) if number is None and r["n"] > last and other(fd, r["log"])), None)
        following = opened(later["log"]) if later is not None else fd  # now: while we write, it may be put aside
        if os.lseek(fd, 0, os.SEEK_CUR) > os.fstat(fd).st_size:
            os.lseek(fd, 0, os.SEEK_SET)  # it was truncated
        grown = False
        while data := read_on(fd):
            out.write(shown(data))
            grown = True
        out.flush()
        if later is not None:
            os.close(fd)
            fd, last = following, later["n"]
            terminal.say(f"job {id} is tried again (run {last})")
        elif over or alone.over:
            return
        elif not grown and not alone.ended(runs):
            time.sleep(POLL)


class Alone:
    """Following without an engine: nobody records the end then, so it is looked for, and what is waited for is said."""

    def __init__(self, terminal: Terminal, id: int) -> None:
        self.terminal, self.id = terminal, id
        self.look_at, self.told = 0.0, False
        self.over = False  # nothing more will be printed

    def ended(self, runs: list[dict[str, Any]]) -> bool:
        """Whether the last run is over and nobody records it; what it printed last is still to be read."""
        if time.monotonic() < self.look_at:
            return False
        self.look_at = time.monotonic() + LOOK
        if self.terminal.engine_answers():
            self.told = False
            return False
        self.over = not runs or is_over(self.terminal.home, self.id, runs[-1])
        if self.over:
            self.terminal.say(f"the run of job {self.id} is over, and no engine runs to say how it ended: `jostle up` goes on")
        elif not self.told:
            self.terminal.say(f"no engine runs: job {self.id} is followed until its run is over; `jostle up` starts one")
        self.told = True
        return self.over
