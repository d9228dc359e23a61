"""What long finished jobs left behind, found and removed: run directories with the logs inside, snapshots of code, what was
captured of the environment they were submitted in, copies of older databases, and old events.

Rules: only directories of jobs that the store knows as finished, that no process holds any more. Logs that a person asked to have
elsewhere are theirs. Events are the engine's to remove; the jobs themselves, and how they ended, are kept.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from glob import escape, glob
from typing import TYPE_CHECKING

from jostle import proc, units
from jostle.backends.local.records import RunDir
from jostle.core.states import UNFINISHED
from jostle.experiments import snapshots
from jostle.store.file import NAME

if TYPE_CHECKING:
    from jostle.session import Session

_RUN = re.compile(r"(\d{1,15})\.(\d{1,9})\Z", re.ASCII)
AT_ONCE = 500


@dataclass
class Cleaned:
    """What was removed, or would be; and what was left alone: a message, and the path that it is about."""

    runs: int = 0
    size_mib: float = 0.0
    snapshots: int = 0
    contexts: int = 0
    copies: int = 0
    events: int = 0
    kept: list[tuple[str, str]] = field(default_factory=list)


def tell(cleaned: Cleaned, session: Session, *, dry_run: bool) -> None:
    for code, path in cleaned.kept:
        session.tell(code, path=path)
    counts = {"clean_snapshots": cleaned.snapshots, "clean_contexts": cleaned.contexts, "clean_copies": cleaned.copies}
    extra = "".join(session.message(code, n=n) for code, n in counts.items() if n)
    size, done = units.show_size(cleaned.size_mib), "clean_would" if dry_run else "cleaned"
    session.tell(done, runs=cleaned.runs, size=size, extra=extra, events=cleaned.events)


def clean(session: Session, before: float, *, dry_run: bool) -> Cleaned:
    """Of what ended, or happened, before that."""
    cleaned, boot = Cleaned(), proc.boot_id()
    runs = os.path.join(session.home, "runs")
    for name in _old_runs(session, runs, before):
        id, _, n = name.partition(".")
        run = RunDir(runs, (int(id), int(n)))
        if run.locked(run.claim(), boot):
            cleaned.kept.append(("clean_held", run.path))
            continue
        cleaned.size_mib += _size_of(run.path) / (1 << 20)
        cleaned.runs += 1
        if not dry_run:
            shutil.rmtree(run.path, ignore_errors=True)
    _clean_snapshots(session, before, cleaned, dry_run)
    cleaned.events, cleaned.contexts = session.reader.events_before(before), session.reader.contexts_before(before)
    if (cleaned.events or cleaned.contexts) and not dry_run:
        cleaned.events, cleaned.contexts = _pruned(session, before)
    cleaned.copies = _old_copies(session.home, before, dry_run)
    return cleaned


def _old_runs(session: Session, runs: str, before: float) -> Iterator[str]:
    """Names of the directories of runs whose job ended before that."""
    try:
        names = sorted(name for name in os.listdir(runs) if _RUN.match(name))
    except FileNotFoundError:
        return
    for start in range(0, len(names), AT_ONCE):
        part = names[start : start + AT_ONCE]
        rows = session.reader.jobs(ids={int(name.partition(".")[0]) for name in part})
        old = {row["id"] for row in rows if row["ended_at"] is not None and row["ended_at"] < before}
        yield from (name for name in part if int(name.partition(".")[0]) in old)


def _clean_snapshots(session: Session, before: float, cleaned: Cleaned, dry_run: bool) -> None:
    """Of code that no unfinished job runs from."""
    numbers = {row["batch"] for row in session.reader.jobs(states=UNFINISHED)}
    abouts = [(session.reader.batch(number) or {}).get("about") or {} for number in sorted(numbers)]
    for path in snapshots.unused(session.home, [about["frozen"]["path"] for about in abouts if about.get("frozen")], before):
        if snapshots.strays(path):
            cleaned.kept.append(("clean_strays", path))
            continue
        cleaned.snapshots += 1
        if not dry_run:
            snapshots.remove(path)


def _pruned(session: Session, before: float) -> tuple[int, int]:
    client = session.client()
    try:
        answer = client.call("prune", before=before)
        return int(answer["events"]), int(answer.get("contexts") or 0)
    finally:
        client.close()


def _old_copies(home: str, before: float, dry_run: bool) -> int:
    """Copies that were made before the database was changed for a newer jostle: all that was captured is in there, too."""
    paths = [path for path in glob(os.path.join(escape(home), f"{NAME}.schema*-*")) if os.lstat(path).st_mtime < before]
    for path in paths if not dry_run else ():
        os.unlink(path)
    return len(paths)


def _size_of(path: str) -> int:
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue  # gone meanwhile
    return total
