"""The invariants, checked from what the jobs themselves left behind against what the store says.

Nothing here asks the engine. A violation names the invariant and says what was seen.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

FINAL = ("succeeded", "failed", "cancelled", "skipped")
CANCEL_WITHIN_NS = 15_000_000_000


class Violation(NamedTuple):
    invariant: str  # lost | doubled | orphaned | overlap | exit code | order | final | cancel | database | litter | engine
    text: str


@dataclass(kw_only=True)
class Wanted:
    """A job as it was submitted, and what may have happened to it by our own hand."""

    key: str
    queue: str | None = None
    gpus: int = 1
    mib: int | None = None
    seconds: float = 0.05
    end: str = "0"
    retries: int = 0
    needs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    id: int | None = None  # since its submit was acknowledged
    cancel_asked: bool = False
    cancel_told_at: int | None = None  # monotonic ns of the acknowledgement
    kill_asked: bool = False

    def natural(self) -> str:
        """How it ends if nobody interferes."""
        if self.end.startswith("fail"):
            return "succeeded" if int(self.end[4:].partition(":")[0]) <= self.retries else "failed"
        return "succeeded" if self.end == "0" else "failed"


@dataclass(kw_only=True)
class Case:
    """One home and all that is known of what should have happened there."""

    home: str
    journal: str
    wanted: dict[str, Wanted]
    total_mib: int
    shim_killed: set[tuple[int, int]] = field(default_factory=set)  # runs whose shim we killed by pid
    shim_armed: list[tuple[float, float]] = field(default_factory=list)  # wall times between which shims die by failpoint
    finals: dict[int, tuple[Any, ...]] = field(default_factory=dict)  # job -> its row when it was first seen final


class Life(NamedTuple):
    """One process of a job, from its own words."""

    start: Mapping[str, Any]
    end: Mapping[str, Any] | None

    @property
    def run(self) -> tuple[int, int]:
        return self.start["job"], self.start["attempt"]

    def span(self) -> tuple[int, int]:
        """One that was killed has told no end: then only its first instant is certain."""
        return self.start["at"], self.end["at"] if self.end else self.start["at"] + 1


def read_journal(path: str, keys: Iterable[str]) -> tuple[list[Life], list[dict[str, Any]]]:
    """Lives and overlaps of these keys."""
    mine = set(keys)
    lines: list[dict[str, Any]] = []
    if os.path.exists(path):
        with open(path) as f:
            lines = [line for line in map(json.loads, f) if line["key"] in mine]
    ends = {(line["uni_id"], line["pid"]): line for line in lines if line["kind"] == "end"}
    lives = [Life(line, ends.get((line["uni_id"], line["pid"]))) for line in lines if line["kind"] == "start"]
    return lives, [line for line in lines if line["kind"] == "overlap"]


class Store:
    """The rows, by plain SQL: the reader under test is not trusted here."""

    def __init__(self, home: str) -> None:
        self.db = sqlite3.connect(f"file:{home}/jostle.db?mode=ro", uri=True, timeout=10)
        self.db.row_factory = sqlite3.Row

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [dict(r) for r in self.db.execute(sql)]

    def jobs(self) -> dict[int, dict[str, Any]]:
        return {r["id"]: r for r in self.rows("SELECT id, name, queue, state, exit_code, ended_at, attempt FROM job")}

    def runs(self) -> dict[tuple[int, int], dict[str, Any]]:
        return {(r["job"], r["n"]): r for r in self.rows("SELECT * FROM run")}

    def close(self) -> None:
        self.db.close()


def note_finals(case: Case) -> list[Violation]:
    """Remembers what is final by now; says what was final before and is not the same."""
    store = Store(case.home)
    try:
        jobs = store.jobs()
    finally:
        store.close()
    found = []
    for id, seen in case.finals.items():
        now = jobs.get(id)
        if now is None or (now["state"], now["exit_code"], now["ended_at"]) != seen:
            found.append(Violation("final", f"job {id} was {seen}, then {now}"))
    for id, row in jobs.items():
        if row["state"] in FINAL:
            case.finals.setdefault(id, (row["state"], row["exit_code"], row["ended_at"]))
    return found


def check(case: Case, kind: type[Store] = Store) -> list[Violation]:
    """Everything that does not hold; to be called when all jobs should have ended."""
    lives, overlaps = read_journal(case.journal, case.wanted)
    store = kind(case.home)
    try:
        jobs, runs = store.jobs(), store.runs()
        found = [Violation("overlap", f"{o['what']}: job {o['job']}.{o['attempt']} was not alone") for o in overlaps]
        found += _lost(case, jobs)
        found += _doubled(case, lives, runs)
        found += _exit_codes(case, lives, runs)
        found += _ends(case, lives, jobs)
        found += _states(case, lives, jobs, runs)
        found += _cards(case, lives, runs, store)
        found += _queues(case, lives)
        found += _needs(case, lives, jobs)
        found += _events(store, jobs)
        answer = store.db.execute("PRAGMA integrity_check").fetchone()[0]
        if answer != "ok":
            found.append(Violation("database", str(answer)))
    finally:
        store.close()
    return found + note_finals(case)


def _lost(case: Case, jobs: Mapping[int, Mapping[str, Any]]) -> Iterator[Violation]:
    names = defaultdict(list)
    for id, row in jobs.items():
        names[row["name"]].append(id)
    for key, wanted in case.wanted.items():
        if wanted.id is None:
            continue
        if names[key] != [wanted.id]:
            kind = "doubled" if len(names[key]) > 1 else "lost"
            yield Violation(kind, f"{key} was acknowledged as job {wanted.id}; the store has {names[key]}")
        elif jobs[wanted.id]["state"] not in FINAL:
            yield Violation("lost", f"job {wanted.id} ({key}) stays {jobs[wanted.id]['state']}")
    for key in names.keys() - case.wanted.keys():
        yield Violation("doubled", f"job {names[key]} ({key}) was never submitted")


def _as_recorded(case: Case, run: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """What the store says of a run, and whether we may have killed its shim."""
    return ("never recorded",) if run is None else (run["outcome"], run["exit_code"], "shim killed" if _armed(case, run) else "")


def _unknown_by_our_hand(case: Case, run: Mapping[str, Any] | None) -> bool:
    """We killed its shim and the store says that its end is unknown: then the job's own retry rule may try again."""
    return run is not None and run["outcome"] == "lost" and run["exit_code"] is None and _armed(case, run)


def _doubled(case: Case, lives: list[Life], runs: Mapping[tuple[int, int], Mapping[str, Any]]) -> Iterator[Violation]:
    by_run, by_job = defaultdict(list), defaultdict(list)
    for life in lives:
        by_run[life.run].append(life)
        by_job[life.run[0]].append(life)
        known = runs.get(life.run)
        if known is None or known["uni_id"] != life.start["uni_id"]:
            yield Violation("doubled", f"run {life.run} ran as {life.start['uni_id']}, which was never recorded")
    for run, same in by_run.items():
        if len(same) > 1:
            yield Violation("doubled", f"run {run} was started {len(same)} times: pids {[s.start['pid'] for s in same]}")
    for job, tries in by_job.items():
        tries.sort(key=lambda life: life.start["at"])
        for one, two in pairwise(tries):
            if one.span()[1] > two.start["at"]:
                yield Violation("doubled", f"job {job}: its runs {one.run} and {two.run} lived at the same time")
        good = [life for life in tries if life.end and life.end["code"] == 0]
        good = [life for life in good if not _unknown_by_our_hand(case, runs.get(life.run))]
        if len(good) > 1:
            story = [(*life.run, *_as_recorded(case, runs.get(life.run))) for life in tries]
            yield Violation("doubled", f"job {job} succeeded more than once: {story}")


def _armed(case: Case, run: Mapping[str, Any]) -> bool:
    """Whether we may have killed this run's shim."""
    return (run["job"], run["n"]) in case.shim_killed or any(a <= run["started_at"] <= b for a, b in case.shim_armed)


def _exit_codes(case: Case, lives: list[Life], runs: Mapping[tuple[int, int], Mapping[str, Any]]) -> Iterator[Violation]:
    told = {life.run: life for life in lives}
    by_id = {w.id: w for w in case.wanted.values()}
    for id, run in runs.items():
        life = told.get(id)
        outcome, code = run["outcome"], run["exit_code"]
        unknown = run["state"] == "ended" and code is None
        wanted = by_id.get(id[0])
        if outcome == "voided" and life is not None:
            yield Violation("exit code", f"run {id} is called voided, but it ran")
        elif unknown and outcome not in ("voided", "cancelled") and not _armed(case, run):
            yield Violation("exit code", f"run {id} ended as {outcome} with an unknown exit, but its shim was not killed")
        elif code is not None and life is None and not (wanted and wanted.cancel_asked):
            yield Violation("exit code", f"run {id} has exit code {code}, but no process of it was ever seen")
        elif code is not None and life is not None and life.end is not None and life.end["code"] != code:
            yield Violation("exit code", f"run {id} ended with {life.end['code']}, the store says {code}")
        elif code == 0 and life is not None and life.end is None:
            yield Violation("exit code", f"run {id} never came to its end, the store says 0")


def _ends(case: Case, lives: list[Life], jobs: Mapping[int, Mapping[str, Any]]) -> Iterator[Violation]:
    """Jobs do not die, and are not told to stop, because something happened to the engine."""
    for life in lives:
        wanted = case.wanted[life.start["key"]]
        if life.end is None and not wanted.cancel_asked:
            alive = os.path.exists(f"/proc/{life.start['pid']}")
            yield Violation("orphaned" if alive else "lost", f"run {life.run} (pid {life.start['pid']}) never told its end")
        if life.end is not None and life.end["told"] and not wanted.cancel_asked:
            yield Violation("cancel", f"run {life.run} was told to stop, and nobody had asked for it")
        if wanted.cancel_told_at is not None:
            late = life.start["at"] > wanted.cancel_told_at + CANCEL_WITHIN_NS
            on = life.end is not None and not life.end["told"] and life.end["at"] > wanted.cancel_told_at + CANCEL_WITHIN_NS
            if (late or on) and "stubborn" not in wanted.flags:
                yield Violation("cancel", f"run {life.run} went on or started long after its cancel was acknowledged")


def _states(
    case: Case, lives: list[Life], jobs: Mapping[int, Mapping[str, Any]], runs: Mapping[tuple[int, int], Mapping[str, Any]]
) -> Iterator[Violation]:
    """Every job ended as it had to."""
    spoiled = {run["job"] for run in runs.values() if _armed(case, run)}
    for wanted in case.wanted.values():
        row = jobs.get(wanted.id or 0)
        if row is None or row["state"] not in FINAL:
            continue
        allowed = {wanted.natural()}
        if wanted.cancel_asked:
            allowed.add("cancelled")
        if row["id"] in spoiled:
            allowed.add("failed")
        if wanted.needs:
            allowed.add("skipped")  # whether rightly so: _needs
        if row["state"] not in allowed:
            what = f"job {row['id']} ({wanted.key}, ends {wanted.end})"
            yield Violation("exit code", f"{what} is {row['state']}, not {sorted(allowed)}")
        if row["state"] == "succeeded" and not any(e.run[0] == row["id"] and e.end and e.end["code"] == 0 for e in lives):
            yield Violation("exit code", f"job {row['id']} is called succeeded, but nobody ended with 0")


def _cards(
    case: Case, lives: list[Life], runs: Mapping[tuple[int, int], Mapping[str, Any]], store: Store
) -> Iterator[Violation]:
    """Promises on one card never add up to more than it has; a run sits where its leases are."""
    leased = defaultdict(set)
    for row in store.rows("SELECT job, n, idx FROM lease"):
        leased[row["job"], row["n"]].add(str(row["idx"]))
    changes: dict[str, list[tuple[int, int, tuple[int, int]]]] = defaultdict(list)
    for life in lives:
        if life.run in runs and set(life.start["cards"]) != leased[life.run]:
            yield Violation("overlap", f"run {life.run} got {life.start['cards']}, its leases are {sorted(leased[life.run])}")
        for card in life.start["cards"]:
            mib = life.start["mib"] or case.total_mib
            start, end = life.span()
            changes[card] += [(start, mib, life.run), (end, -mib, life.run)]
    for card, steps in changes.items():
        total = 0
        for _, mib, run in sorted(steps):
            total += mib
            if total > case.total_mib:
                yield Violation("overlap", f"{total} MiB were promised on GPU {card} when {run} started")


def _queues(case: Case, lives: list[Life]) -> Iterator[Violation]:
    """Serial inside a queue: the end of one comes before the start of the next."""
    queues = defaultdict(list)
    for life in lives:
        if life.start["queue"]:
            queues[life.start["queue"]].append(life)
    for queue, members in queues.items():
        members.sort(key=lambda life: life.start["at"])
        for one, two in pairwise(members):
            if two.run[0] < one.run[0]:
                yield Violation("order", f"queue {queue}: {two.run} started after {one.run}")
            if one.span()[1] > two.start["at"]:
                yield Violation("order", f"queue {queue}: {two.run} started before {one.run} had ended")


def _needs(case: Case, lives: list[Life], jobs: Mapping[int, Mapping[str, Any]]) -> Iterator[Violation]:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for life in lives:
        key, (start, end) = life.start["key"], life.span()
        first[key], last[key] = min(start, first.get(key, start)), max(end, last.get(key, end))
    for wanted in case.wanted.values():
        row = jobs.get(wanted.id or 0)
        for needed in wanted.needs:
            other = jobs.get(case.wanted[needed].id or 0)
            if row is None or other is None:
                continue
            if wanted.key in first and (other["state"] != "succeeded" or first[wanted.key] < last.get(needed, 0)):
                yield Violation("order", f"job {row['id']} started before its time: job {other['id']} was {other['state']}")
            if row["state"] == "skipped" and other["state"] == "succeeded":
                yield Violation("lost", f"job {row['id']} was skipped, though job {other['id']} succeeded")


def _events(store: Store, jobs: Mapping[int, Mapping[str, Any]]) -> Iterator[Violation]:
    """The journal tells of one end for each job, the same as its row, and of nothing after it."""
    ends: dict[int, str] = {}
    for event in store.rows("SELECT seq, kind, job FROM event WHERE job IS NOT NULL ORDER BY seq"):
        job, kind = event["job"], event["kind"]
        if job in ends and kind in (*FINAL, "starting", "running", "stopping", "requeued"):
            yield Violation("final", f"job {job} was {ends[job]}, then event {event['seq']} says {kind}")
        if kind in FINAL:
            ends[job] = kind
    for id, row in jobs.items():
        if row["state"] in FINAL and ends.get(id) != row["state"]:
            yield Violation("final", f"job {id} is {row['state']}, its last event says {ends.get(id)}")


def litter(homes: Iterable[str], lease_dir: str) -> Iterator[Violation]:
    """Claims, locks and half-made files that nobody needs any more."""
    import fcntl

    for name in os.listdir(lease_dir):
        yield Violation("litter", f"claim {name} is left")
    for home in homes:
        for run in os.listdir(f"{home}/runs"):
            path = f"{home}/runs/{run}/lock"
            if not os.path.exists(path):
                continue
            with open(path) as f:
                try:
                    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield Violation("litter", f"somebody holds {path}")


def complaints(home: str) -> Iterator[Violation]:
    """An engine that fails by itself says so in its log."""
    with open(f"{home}/engine.log", errors="replace") as f:
        text = f.read()
    at = text.find("Traceback")
    if at >= 0:
        yield Violation("engine", text[at : at + 1500])
