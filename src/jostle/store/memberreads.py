"""What the store says of jobs that are called together: those of a name, a queue, a tag or a batch."""

from __future__ import annotations

from jostle.store import allocationreads
from jostle.store.reads import UNFINISHED_SQL, Reader

OF = {
    "name": "name = ?", "queue": "queue = ?", "batch": "batch = CAST(? AS INTEGER)",
    "tag": "EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)",
}  # fmt: skip
"""There is no index of names: 100,000 rows are looked through in 10 ms, tags in 35, and each submit would pay for one."""
WORDS = {"name": "name AS word FROM job", "queue": "queue AS word FROM job", "tag": "value AS word FROM job, json_each(tags)"}


def states(reader: Reader, kind: str, text: str) -> dict[int, str]:
    """id -> state of its jobs, the oldest first. An allocation is a job, called with and without the manager's prefix."""
    rows = reader._all(f"SELECT id, state FROM job WHERE {OF[kind]} ORDER BY id", (text,))
    return {row["id"]: row["state"] for row in rows or (allocationreads.named(reader, text) if kind == "name" else ())}


def words(reader: Reader, kind: str, like: str) -> list[str]:
    """Names, queues or tags that there are: 2,000 whose length is nearest to that of another."""
    sql = f"SELECT {WORDS[kind]} GROUP BY word HAVING word <> '' ORDER BY abs(length(word) - ?), max(job.id) DESC LIMIT 2000"
    return [row[0] for row in reader._all(sql, (len(like),))]


def resizable(reader: Reader) -> list[int]:
    """What runs and may have other cards: elastic jobs and allocations."""
    sql = f"""SELECT id FROM job WHERE {UNFINISHED_SQL} AND state IN ('starting', 'running')
        AND (resize IS NOT NULL OR commands = '[]') ORDER BY id"""
    return [row[0] for row in reader._all(sql)]


def not_retried(reader: Reader) -> list[int]:
    """Failed and skipped jobs of which there is no newer copy."""
    sql = """SELECT id FROM job WHERE ended_at IS NOT NULL AND state IN ('failed', 'skipped')
        AND NOT EXISTS (SELECT 1 FROM job newer WHERE newer.retry_of = job.id) ORDER BY id"""
    return [row[0] for row in reader._all(sql)]
