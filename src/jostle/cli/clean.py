"""`jostle clean`: removes what long finished jobs left behind: run directories with the logs inside, what was captured of the
environment they were submitted in, and old events.

Rules: only directories of jobs that the store knows as finished, that no process holds any more. Logs that a person asked to have
elsewhere are theirs. Events are the engine's to remove; the jobs themselves, and how they ended, are kept.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from glob import escape, glob
from typing import TYPE_CHECKING

from jostle import units
from jostle.cli import render
from jostle.cli.parse import checked
from jostle.core.states import UNFINISHED

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal

_RUN = re.compile(r"(\d{1,15})\.(\d{1,9})\Z", re.ASCII)
AT_ONCE = 500


def clean_options(p: Parser) -> None:
    p.example("""
        jostle clean --dry-run
        jostle clean --older-than 7d""")
    older = p.add_argument("--older-than", metavar="TIME", type=checked(units.seconds), default=30 * 86400.0)
    older.help = "what ended, or happened, longer ago than this (default 30d)"
    p.add_argument("--dry-run", action="store_true", help="only say what would be removed")


def clean(args: Namespace, terminal: Terminal) -> int:
    runs = os.path.join(terminal.home, "runs")
    before = time.time() - args.older_than
    removed = size = 0
    for path in old_runs(terminal, runs, before):
        if held(path):
            terminal.say(f"{path} is still held by a process: left alone")
            continue
        size += size_of(path)
        removed += 1
        if not args.dry_run:
            shutil.rmtree(path, ignore_errors=True)
    snapshots = frozen(terminal, before, args.dry_run)
    events, contexts = terminal.reader.events_before(before), terminal.reader.contexts_before(before)
    if (events or contexts) and not args.dry_run:
        events, contexts = pruned(terminal, before)
    copies = old_copies(terminal.home, before, args.dry_run)
    verb = "would be removed" if args.dry_run else "removed"
    directories = f"{render.count(removed, 'run directory', 'run directories')} ({units.show_size(size / (1 << 20))})"
    extra = "".join(f", {render.count(n, name)}" for n, name in (
        (snapshots, "snapshot"), (contexts, "captured environment"), (copies, "copy of an older database")) if n)  # fmt: skip
    terminal.say(f"{directories}{extra} and {render.count(events, 'event')} {verb}")
    return 0


def frozen(terminal: Terminal, before: float, dry_run: bool) -> int:
    """How many snapshots of code that no unfinished job runs from were removed."""
    from jostle.experiments import snapshots

    numbers = {row["batch"] for row in terminal.reader.jobs(states=UNFINISHED)}
    abouts = [(terminal.reader.batch(number) or {}).get("about") or {} for number in sorted(numbers)]
    count = 0
    for path in snapshots.unused(terminal.home, [about["frozen"]["path"] for about in abouts if about.get("frozen")], before):
        if snapshots.strays(path):
            terminal.say(f"{path} holds files that jobs wrote into it: left alone")
            continue
        count += 1
        if not dry_run:
            snapshots.remove(path)
    return count


def pruned(terminal: Terminal, before: float) -> tuple[int, int]:
    client = terminal.client()
    try:
        answer = client.call("prune", before=before)
        return int(answer["events"]), int(answer.get("contexts") or 0)
    finally:
        client.close()


def old_copies(home: str, before: float, dry_run: bool) -> int:
    """Copies that were made before the database was changed for a newer jostle: all that was captured is in there, too."""
    found = [path for path in glob(os.path.join(escape(home), "jostle.db.schema*-*")) if os.lstat(path).st_mtime < before]
    for path in found if not dry_run else ():
        os.unlink(path)
    return len(found)


def old_runs(terminal: Terminal, runs: str, before: float) -> Iterator[str]:
    """Directories of runs whose job ended before that."""
    try:
        names = sorted(name for name in os.listdir(runs) if _RUN.match(name))
    except FileNotFoundError:
        return
    for start in range(0, len(names), AT_ONCE):
        part = names[start : start + AT_ONCE]
        rows = terminal.reader.jobs(ids={int(name.partition(".")[0]) for name in part})
        old = {row["id"] for row in rows if row["ended_at"] is not None and row["ended_at"] < before}
        yield from (os.path.join(runs, name) for name in part if int(name.partition(".")[0]) in old)


def held(path: str) -> bool:
    """Whether a shim lives here: it holds the lock for life."""
    try:
        fd = os.open(os.path.join(path, "lock"), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # not to be seen is not to be touched
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def size_of(path: str) -> int:
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue  # gone meanwhile
    return total
