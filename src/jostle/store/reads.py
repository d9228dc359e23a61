"""Reading the store without the engine: read-only, by any process of the same user, while the engine writes.

Rows come out as the dictionaries of the JSON contract (docs/json.md). A home without a database reads as empty.
"""

from __future__ import annotations

import _thread
import os
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from jostle.errors import Invalid, JostleError
from jostle.store import seen
from jostle.store.file import check_beside, database
from jostle.store.rows import cards, event_row, job_row, loaded, named

UNFINISHED_SQL = "ended_at IS NULL"  # as the partial indexes are written
OLD_EVENT = f"""at < ? AND seq < (SELECT max(seq) FROM event)
    AND (job IS NULL OR job NOT IN (SELECT id FROM job WHERE {UNFINISHED_SQL}))"""
DONE_BEFORE_SQL = "state = 'skipped' AND json_extract(reason, '$.code') = 'done_before'"
UNUSED_CONTEXT = "id NOT IN (SELECT context FROM job WHERE ended_at IS NULL OR ended_at >= ?)"

RAN = "CASE WHEN r.outcome NOT IN ('lost', 'voided') THEN r.ended_at - r.started_at END"
"""How long a run took. Nobody knows it of one whose end was never recorded: it was found dead, perhaps much later."""

JOB = f"""SELECT j.id, j.name, j.queue, j.batch, j.state, j.intent, j.attempt, j.retries, j.exit_code, j.error_type,
    j.submitted_at, j.started_at, j.ended_at, j.reason, j.commands, j.memory_mib, j.gpus_min, j.gpus_max, j.shape, j.ready,
    j.priority, j.tags, j.targets, j.begin_at, j.not_before, j.time_limit, j.workdir, j.log, j.retry, j.share, j.retry_of,
    j.resize, j.when_stranger, CASE WHEN j.resize IS NOT NULL OR j.commands = '[]' THEN (SELECT leg FROM run WHERE job = j.id
    AND n = j.attempt) END AS leg, j.place, j.params, j.fingerprint, j.cpus, j.host_memory_mib, j.counters, j.nice, j.grace,
    j.inside, j.idle_release, j.tied_to,
    CASE WHEN j.ended_at IS NOT NULL THEN (SELECT {RAN} FROM run r WHERE r.job = j.id AND r.n = j.attempt) END AS ran_s,
    CASE WHEN j.attempt THEN (SELECT group_concat(idx || '=' || uuid) FROM lease WHERE job = j.id AND n = j.attempt) END AS leases
    FROM job j"""

RUN = f"""SELECT r.n, r.uni_id, r.state, r.backend, r.handle, r.started_at, r.ended_at, r.exit_code, r.signal, r.error_type,
    r.outcome, r.log, r.peak_mib, r.rss_mib, r.memory_mib, r.leftovers, r.inputs, r.command_key, r.gpu_name,
    r.profile, r.leg, {RAN} AS ran_s, (SELECT group_concat(idx || '=' || uuid) FROM lease WHERE job = r.job AND n = r.n) AS leases
    FROM run r WHERE r.job = ? ORDER BY r.n"""

LAST_RUNS = """SELECT j.id, r.n, r.log, j.log AS named, r.outcome, r.started_at, j.batch, r.inputs FROM job j
    JOIN run r ON r.job = j.id AND r.outcome IS NOT 'voided' WHERE j.fingerprint = ? ORDER BY j.id DESC, r.n DESC"""

AHEAD = """o.queue = j.queue AND o.ended_at IS NULL
    AND (o.state = 'queued', o.attempt = 0, o.place, o.id) < (j.state = 'queued', j.attempt = 0, j.place, j.id)"""

WAITING = f"""SELECT CASE WHEN j.intent = 'hold' THEN 'held' WHEN j.ready = 2 AND j.retries THEN 'backoff'
    WHEN j.ready = 2 AND j.begin_at THEN 'begin' WHEN j.ready THEN NULL
    WHEN NOT j.blocked OR EXISTS (SELECT 1 FROM job o WHERE {AHEAD}) THEN 'behind' ELSE 'after' END,
    CASE WHEN j.ready = 1 THEN j.shape END, count(*) FROM job j WHERE j.ended_at IS NULL AND j.state = 'queued' GROUP BY 1, 2"""


class LastRun(NamedTuple):
    """The last run that computed something into a log."""

    job: int
    n: int
    log: str
    named: str | None  # the log that a person has named; None: it has one of its own
    outcome: str | None
    began: float
    batch: int
    inputs: str | None = None  # whether its files were those of the fingerprint: same | other | unknown; None: nobody looked

    @property
    def id(self) -> tuple[int, int]:
        return self.job, self.n


class RealPaths:
    """Paths of files by which two that lead to one place are seen to be the same; each folder is looked at once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def __call__(self, path: str) -> str:
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        return os.path.join(self._folders[folder], name)


def uri(path: str, mode: str) -> str:
    """The name of a database for SQLite. (urllib would quote it, after 5 ms of imports at each `jostle ps`.)"""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?mode={mode}"


class Reader:
    """For any thread: one reads at a time. A database that comes to be later is found then."""

    def __init__(self, home: str) -> None:
        self.path = database(home)
        self.db: sqlite3.Connection | None = None
        self._one_at_a_time = _thread.allocate_lock()
        self._open()

    def _open(self) -> sqlite3.Connection | None:
        if self.db is None and os.path.exists(self.path):
            check_beside(self.path)
            try:
                db = sqlite3.connect(uri(self.path, "ro"), uri=True, isolation_level=None, timeout=5, check_same_thread=False)
            except sqlite3.DatabaseError as e:
                raise self._unreadable(e) from e
            db.row_factory = sqlite3.Row
            self.db = db
        return self.db

    def lost(self) -> str | None:
        """What is missing of the database, if that is known."""
        expected = seen.noted(self.path)
        newest = self.last_seq() if expected else 0
        return None if newest >= expected else str(seen.older(self.path, newest, expected))

    def close(self) -> None:
        with self._one_at_a_time:
            if self.db is not None:
                self.db.close()

    def _unreadable(self, e: object) -> JostleError:
        return JostleError(f"{self.path} cannot be read ({e}): `jostle doctor` tells what is wrong with it")

    def _all(self, sql: str, args: Iterable[Any] = ()) -> list[sqlite3.Row]:
        try:
            with self._one_at_a_time:
                db = self._open()
                return db.execute(sql, tuple(args)).fetchall() if db is not None else []
        except sqlite3.DatabaseError as e:
            if "no such column" in str(e):
                raise JostleError(f"{self.path} was written by an older jostle: `jostle up` brings it up to date") from e
            raise self._unreadable(str(e).partition(" with text")[0]) from e
        except UnicodeEncodeError as e:  # the name of a file may be any bytes
            raise Invalid(f"{e.object!r} is not in UTF-8, and cannot be kept as it is: give it another name") from None

    def jobs(
        self,
        ids: Iterable[int] | None = None,
        batch: int | None = None,
        states: Iterable[str] | None = None,
        finished_since: float | None = None,
        newest: int | None = None,
        waiting: int | None = None,
    ) -> list[dict[str, Any]]:
        """In order of id. `finished_since` keeps the unfinished and what ended since then (of those that wait the first
        `waiting`); `newest` the last so many."""
        where: list[str] = []
        args: list[Any] = []
        if ids is not None:
            numbers = list(ids)
            where.append(f"j.id IN ({','.join(map(str, map(int, numbers)))})")
        if batch is not None:
            where.append("j.batch = ?")
            args.append(batch)
        if states is not None:
            listed = list(states)
            where.append(f"j.state IN ({','.join('?' * len(listed))})")
            args += listed
        if finished_since is not None:
            # two index look-ups instead of a walk over everything that ever ended
            where.append(
                f"j.id IN (SELECT id FROM (SELECT id FROM job WHERE {UNFINISHED_SQL} AND state = 'queued' "
                f"{'AND batch = ?' if batch is not None else ''} ORDER BY id LIMIT ?) "
                "UNION ALL SELECT id FROM job WHERE ended_at IS NULL AND state <> 'queued' "
                "UNION ALL SELECT id FROM job WHERE ended_at >= ?)"
            )
            args += [*([batch] if batch is not None else []), -1 if waiting is None else waiting, finished_since]
        sql = JOB + (" WHERE " + " AND ".join(where) if where else "")
        sql += " ORDER BY j.id" + (" DESC LIMIT ?" if newest is not None else "")
        if newest is not None:
            args.append(newest)
        rows = [job_row(r) for r in self._all(sql, args)]
        return rows[::-1] if newest is not None else rows

    def ids(self, states: tuple[str, ...], intent: str | None = None) -> list[int]:
        """Of jobs in these states, none of them final."""
        sql = f"SELECT id FROM job WHERE {UNFINISHED_SQL} AND state IN ({','.join('?' * len(states))})"
        sql += " AND intent = ?" * (intent is not None) + " ORDER BY id"
        return [row[0] for row in self._all(sql, [*states, *([intent] if intent is not None else [])])]

    def waiting(self, batch: int | None = None) -> tuple[int, int | None]:
        """How many jobs wait, and the last of them."""
        where, args = ("AND batch = ?", (batch,)) if batch is not None else ("", ())
        rows = self._all(f"SELECT count(*), max(id) FROM job WHERE {UNFINISHED_SQL} AND state = 'queued' {where}", args)
        return (rows[0][0], rows[0][1]) if rows else (0, None)

    def waiting_by_shape(self) -> list[tuple[str | None, int | None, int]]:
        """The jobs that wait, counted: by the code of their reason where their rows tell it, else by shape."""
        return [tuple(row) for row in self._all(WAITING)]

    def failures(self, since: float, batch: int | None = None) -> list[int]:
        """The jobs that failed since then, the newest first; of all batches from an index alone."""
        where, args = ("AND batch = ?", (since, batch)) if batch is not None else ("", (since,))
        sql = f"SELECT id FROM job INDEXED BY job_ended WHERE ended_at >= ? AND state = 'failed' {where}"
        return [row[0] for row in self._all(f"{sql} ORDER BY ended_at DESC, id DESC", args)]

    def job(self, id: int) -> dict[str, Any] | None:
        rows = self.jobs(ids=[id])
        return rows[0] if rows else None

    def env(self, id: int) -> dict[str, str]:
        """The variables that were given for this very job; those captured at the submit are never shown."""
        rows = self._all("SELECT env FROM job WHERE id = ?", (id,))
        return dict(loaded(rows[0][0], dict)) if rows else {}

    def runs(self, id: int) -> list[dict[str, Any]]:
        """As they were recorded; what is to be seen of them on this host their backend knows (backends.local.outside)."""
        runs = []
        for r in self._all(RUN, (id,)):
            row = named(r)
            row["gpus"], row["gpu_uuids"] = cards(row.pop("leases"))
            row["leftovers"] = loaded(row["leftovers"], list) if row["leftovers"] else []
            row["profile"] = loaded(row["profile"], dict) if row["profile"] else None
            runs.append(row)
        return runs

    def lost_runs(self, *, jobs: Iterable[int] | None = None, uni_ids: Iterable[str] | None = None) -> dict[str, str]:
        """uni_id -> kind of error of the runs whose end nobody recorded, of these jobs or with these uni_ids."""
        name, values = ("job", list(jobs)) if jobs is not None else ("uni_id", list(uni_ids or ()))
        errors = {}
        for k in range(0, len(values), 500):
            part = values[k : k + 500]
            sql = f"SELECT uni_id, error_type FROM run WHERE outcome = 'lost' AND {name} IN ({','.join('?' * len(part))})"
            errors.update({r[0]: r[1] or "unknown" for r in self._all(sql, part)})
        return errors

    def events(self, job: int | None = None, after: int = 0, limit: int = 1000, batch: int | None = None) -> list[dict[str, Any]]:
        asked = [(name, value) for name, value in (("job", job), ("batch", batch)) if value is not None]
        where = "".join(f" AND {name} = ?" for name, _ in asked)
        args = (after, *(value for _, value in asked), limit)
        rows = self._all(f"SELECT * FROM event WHERE seq > ?{where} ORDER BY seq LIMIT ?", args)
        return [event_row(r) for r in rows]

    def newest_event(self, kinds: tuple[str, ...], since: float) -> dict[str, Any] | None:
        asked = ", ".join("?" * len(kinds))
        rows = self._all(f"SELECT * FROM event WHERE kind IN ({asked}) AND at > ? ORDER BY seq DESC LIMIT 1", (*kinds, since))
        return event_row(rows[0]) if rows else None

    def event(self, seq: int) -> dict[str, Any] | None:
        rows = self._all("SELECT * FROM event WHERE seq = ?", (seq,))
        return event_row(rows[0]) if rows else None

    def seq_until(self, at: float) -> int:
        """The newest event that happened until then."""
        rows = self._all("SELECT coalesce(max(seq), 0) FROM event WHERE at <= ?", (at,))
        return rows[0][0] if rows else 0

    def events_before(self, before: float) -> int:
        """How many events `prune` would remove."""
        rows = self._all(f"SELECT count(*) FROM event WHERE {OLD_EVENT}", (before,))
        return rows[0][0] if rows else 0

    def contexts_before(self, before: float) -> int:
        """How many captured environments `prune` would remove."""
        rows = self._all(f"SELECT count(*) FROM context WHERE {UNUSED_CONTEXT}", (before,))
        return rows[0][0] if rows else 0

    def batch(self, id: int) -> dict[str, Any] | None:
        rows = self._all("SELECT id, key, name, owner, policy, submitted_at, about FROM batch WHERE id = ?", (id,))
        return {**rows[0], **{key: loaded(rows[0][key] or "null") for key in ("owner", "policy", "about")}} if rows else None

    def logs(self, batch: int) -> Iterator[str]:
        """Of its runs, and of those that did before what its jobs would do."""
        for row in self._all("SELECT r.log FROM job j JOIN run r ON r.job = j.id WHERE j.batch = ?", (batch,)):
            yield row[0]
        did = "SELECT json_extract(reason, '$.params.job'), json_extract(reason, '$.params.run') FROM job"
        for row in self._all(f"SELECT log FROM run WHERE (job, n) IN ({did} WHERE batch = ? AND {DONE_BEFORE_SQL})", (batch,)):
            yield row[0]

    def batches(self) -> list[dict[str, Any]]:
        return [named(r) for r in self._all("SELECT id, key, name, submitted_at FROM batch ORDER BY id")]

    def owned_batches(self) -> list[tuple[int, str | None, list[int]]]:
        """Those that a client follows, or has left without a word: number, key, and the client's pid and start ticks."""
        rows = self._all("SELECT id, key, owner FROM batch WHERE owner NOT IN ('null', '[0, 0]') ORDER BY id")
        return [(id, key, loaded(owner)) for id, key, owner in map(tuple, rows)]

    def newest_batch(self, key: str) -> int | None:
        newest: int | None = self._all("SELECT max(id) FROM batch WHERE key = ?", (key,))[0][0]
        return newest

    def unfinished_batch(self, key: str) -> int | None:
        """The newest batch of this key that still has something to do."""
        rows = self._all(
            """SELECT b.id FROM batch b WHERE b.key = ? AND EXISTS (SELECT 1 FROM job j WHERE j.batch = b.id
               AND j.ended_at IS NULL) ORDER BY b.id DESC LIMIT 1""",
            (key,),
        )
        return rows[0][0] if rows else None

    def last_runs(self, fingerprints: Iterable[str]) -> dict[str, list[LastRun]]:
        """Of each: the last run for each log that a person has named, and the last of all that have none; the newest first. One
        whose log another run has written since is left out."""
        place = RealPaths()
        by_fingerprint: dict[str, list[LastRun]] = {}
        for fingerprint in set(fingerprints):
            last: dict[str | None, LastRun] = {}
            for row in self._all(LAST_RUNS, (fingerprint,)):
                last.setdefault(place(row["named"]) if row["named"] else None, LastRun(*row))
            if last:
                by_fingerprint[fingerprint] = list(last.values())
        since = min((run.job for kept in by_fingerprint.values() for run in kept), default=None)
        writers = {} if since is None else {place(log): run for log, run in self._writers(since)}
        return {
            fingerprint: [run for run in kept if writers.get(place(run.log), run.id) == run.id]
            for fingerprint, kept in by_fingerprint.items()
        }

    def _writers(self, since: int) -> Iterator[tuple[str, tuple[int, int]]]:
        """The logs that a person has named and the runs of these or later jobs that wrote them, as they began."""
        rows = self._all(
            """SELECT r.log, r.job, r.n FROM run r JOIN job j ON j.id = r.job
               WHERE r.job >= ? AND j.log IS NOT NULL AND r.outcome IS NOT 'voided' ORDER BY r.started_at, r.job, r.n""",
            (since,),
        )
        return ((log, (job, n)) for log, job, n in rows)

    def counts(self, batch: int | None = None) -> dict[str, int]:
        """How many jobs are in each state; from the indices, so that a million finished ones are no burden."""
        where, args = ("AND batch = ?", (batch, batch)) if batch is not None else ("", ())
        sql = f"""SELECT state, count(*) FROM job INDEXED BY job_unfinished WHERE {UNFINISHED_SQL} {where} GROUP BY state
            UNION ALL SELECT state, count(*) FROM job {"" if batch is not None else "INDEXED BY job_ended"}
            WHERE ended_at IS NOT NULL {where} GROUP BY state"""
        return {r[0]: r[1] for r in self._all(sql, args)}

    def busy(self) -> bool:
        """Whether any job is unfinished."""
        return bool(self._all(f"SELECT 1 FROM job INDEXED BY job_unfinished WHERE {UNFINISHED_SQL} LIMIT 1"))

    def meta(self, key: str) -> Any:
        """What the engine keeps under this name; None if nothing."""
        rows = self._all("SELECT value FROM meta WHERE key = ?", (key,))
        return loaded(rows[0][0]) if rows else None

    def taken(self, once: str) -> dict[str, Any] | None:
        """The answer to a submit of this key; None if it was not taken, or not yet."""
        rows = self._all("SELECT batch, first, count FROM once WHERE key = ?", (once,))
        return {"batch": rows[0][0], "ids": [rows[0][1], rows[0][1] + rows[0][2] - 1], "count": rows[0][2]} if rows else None

    def last_id(self) -> int | None:
        rows = self._all("SELECT max(id) FROM job")
        return rows[0][0] if rows else None

    def last_seq(self) -> int:
        rows = self._all("SELECT coalesce(max(seq), 0) FROM event")
        return rows[0][0] if rows else 0

    def needs(self, id: int) -> list[dict[str, Any]]:
        """The jobs it comes after, and how they stand."""
        sql = "SELECT d.needs AS id, d.any, j.state, j.name FROM dep d JOIN job j ON j.id = d.needs WHERE d.job = ?"
        return [named(r) for r in self._all(sql, (id,))]

    def places(self) -> list[dict[str, Any]]:
        """Who stands where in which queue."""
        sql = "SELECT id, queue, place, state, attempt, ended_at FROM job WHERE queue IS NOT NULL AND ended_at IS NULL"
        return [named(row) for row in self._all(sql)]

    def ahead(self, id: int) -> tuple[int, int | None]:
        """How many of its queue come before it, and the first of them."""
        rows = self._all(
            f"""SELECT count(*) OVER (), o.id FROM job j JOIN job o ON {AHEAD} WHERE j.id = ?
                ORDER BY o.state = 'queued', o.attempt = 0, o.place, o.id LIMIT 1""",
            (id,),
        )
        return (rows[0][0], rows[0][1]) if rows else (0, None)

    def alike(self, shape: int, id: int) -> int:
        """How many ready jobs of the same shape stand before it."""
        rows = self._all(
            "SELECT count(*) FROM job WHERE ready = 1 AND shape = ? AND sort < (SELECT sort FROM job WHERE id = ?)", (shape, id)
        )
        return rows[0][0] if rows else 0
