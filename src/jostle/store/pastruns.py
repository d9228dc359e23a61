"""Runs as they were: which held cards, and how long those took that were like another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.store.reads import UNFINISHED_SQL, Reader
from jostle.store.rows import named

_LATELY = f"""(SELECT id FROM job WHERE {UNFINISHED_SQL} AND attempt > 0
        UNION ALL SELECT id FROM (SELECT id FROM job WHERE ended_at >= ?1 ORDER BY ended_at DESC LIMIT 5000)) AS lately"""
"""Of many jobs the last ones: what is shown of a week has no room for more."""
_OF_RUN = "(r.ended_at IS NULL OR r.ended_at >= ?1) AND r.outcome IS NOT 'voided'"
HELD_SINCE = f"""SELECT l.uuid, r.job, r.n, j.name, coalesce(l.since, r.started_at) AS started_at, r.ended_at, r.outcome
    FROM {_LATELY} CROSS JOIN job j ON j.id = lately.id CROSS JOIN run r ON r.job = j.id CROSS JOIN lease l USING (job, n)
    WHERE {_OF_RUN}"""
GIVEN_BACK = f"""SELECT l.uuid, r.job, r.n, j.name, l.began_at AS started_at, l.ended_at, r.outcome
    FROM lease_past l CROSS JOIN run r USING (job, n) CROSS JOIN job j ON j.id = r.job WHERE l.ended_at >= ?1 AND {_OF_RUN}
    ORDER BY l.ended_at DESC LIMIT 5000"""

ALIKE = """SELECT r.ended_at - r.started_at - r.paused_s FROM run r CROSS JOIN job j ON j.id = r.job
    WHERE r.command_key = ?1 AND r.gpu_name = ?2 AND r.outcome = 'succeeded' AND r.leg = 1 AND j.workdir = ?3
    AND (SELECT count(*) FROM lease l WHERE l.job = r.job AND l.n = r.n) = ?4 ORDER BY r.job DESC LIMIT ?5"""

STILL = "SELECT job, coalesce(json_extract(paused, '$.now'), 0), paused_s FROM run WHERE job = ? AND ended_at IS NULL"


def since(reader: Reader, at: float) -> list[dict[str, Any]]:
    """The runs that have held cards since then, once for each card and time."""
    rows = [named(row) for query in (HELD_SINCE, GIVEN_BACK) for row in reader._all(query, (at,))]
    return sorted(rows, key=lambda row: row["started_at"])


def alike(reader: Reader, key: str, gpu_name: str, workdir: str, cards: int, most: int) -> list[float]:
    """How long the last runs took that did the same, values apart, in the same place on as many cards of the same model, and
    went well."""
    return [row[0] for row in reader._all(ALIKE, (key, gpu_name, workdir, cards, most))]


def stood_still(reader: Reader, jobs: Sequence[int]) -> dict[int, tuple[bool, float]]:
    """Of runs that live: whether each of these jobs stands still for somebody else, and how long it has before."""
    rows = [row for job in jobs for row in reader._all(STILL, (job,))]
    return {job: (bool(stands), paused_s) for job, stands, paused_s in rows}
