"""What can be said of jobs before they are submitted: directories that are not there, and what this host can never run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.errors import JostleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostle.client import Client
    from jostle.session import Session


KEYS = ("commands", "name", "workdir", "gpus", "memory_mib", "share", "on", "cpus", "host_memory_mib", "counters")
"""Of a job, what tells whether a host can run it."""


def can_run(batches: list[dict[str, Any]], session: Session) -> bool:
    """Asks an engine, if one runs, what can never run here; whether it could tell."""
    client = session.engine_if_any()
    if client is None:
        return False
    try:
        answers = [_could_run(batch, client, session) for batch in batches]
        return all(answers)
    except JostleError:
        return False  # an older engine
    finally:
        client.close()


def _could_run(batch: dict[str, Any], client: Client, session: Session) -> bool:
    from jostle.wording.sentences import never

    jobs = [{key: job[key] for key in KEYS} for job in batch["jobs"]]
    if not jobs:
        return True
    answer = client.call("check", batch={"policy": batch["policy"]}, jobs=jobs)
    for line in never(answer, session.language, batch["name"] or ""):
        session.say(line)
    return bool(answer["checked"])


def validated(
    files: Sequence[str], session: Session, *, mode: str | None = None, suites: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], bool]:  # fmt: skip
    """The batches of the files, and whether an engine could say what can never run here; BadFiles with all that is wrong."""
    from jostle.intake.files import each
    from jostle.wording.flaws import worded

    batches, warnings = each(files, mode, suites)
    for warning in warnings:
        session.tell("warning", text=worded(warning, session.language))
    warn_directories([job for batch in batches for job in batch["jobs"]], session)
    return batches, can_run(batches, session)


def verdict(
    files: Sequence[str], session: Session, *, mode: str | None = None, suites: Sequence[str] = ()
) -> tuple[dict[str, Any], list[dict[str, Any]]]:  # fmt: skip
    """What is wrong with the files, or what they hold, as `validate --json` gives it; and the batches."""
    from jostle.formats.flaws import BadFiles
    from jostle.wording.flaws import worded

    try:
        batches, checked = validated(files, session, mode=mode, suites=suites)
    except BadFiles as e:
        for warning in e.warnings:
            session.tell("warning", text=worded(warning, session.language))
        flaws = [{"file": file, "line": line or None, "text": worded(text, session.language)} for file, line, text in e.flaws]
        return {"schema": 1, "ok": False, "errors": flaws}, []
    jobs, queues = sum(len(batch["jobs"]) for batch in batches), count_queues(batches)
    return {"schema": 1, "ok": True, "errors": [], "jobs": jobs, "queues": queues, "host_checked": checked}, batches


def warn_never_of(ids: Sequence[int], session: Session) -> None:
    """Says of jobs that were changed, or made anew, what can never run here, as of those that are submitted."""
    from jostle.wording.sentences import never

    client = session.engine_if_any()
    if client is None:
        return
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in session.reader.jobs(ids=ids):
        rows.setdefault(row["batch"], []).append(row)
    try:
        for number, of_batch in rows.items():
            policy = (session.reader.batch(number) or {}).get("policy") or {}
            jobs = [{**{key: row[key] for key in (*KEYS, "inside")}, "gpus": row["gpu_request"]} for row in of_batch]
            answer = client.call("check", batch={"policy": policy}, jobs=jobs)
            for entry in answer.get("never") or ():
                about = [of_batch[k - 1] for k in entry["jobs"]]
                entry["jobs"] = [row["id"] for row in about]
                if not any(row["state"] == "queued" for row in about):
                    entry["reason"]["params"]["refused_at_once"] = True  # nothing of it stays in the queue
            for line in never(answer, session.language):
                session.say(line)
    except JostleError:
        pass  # an older engine, or one that has gone: `jostle why` tells it later
    finally:
        client.close()


def warn_directories(jobs: list[dict[str, Any]], session: Session) -> None:
    """A directory that is not there is no error: an earlier job may make it."""
    for path in sorted({job["workdir"] for job in jobs}):
        if not os.path.isdir(path):
            session.tell("no_directory", path=path)


def count_queues(batches: list[dict[str, Any]]) -> int:
    """Those of a batch that has queues of its own are others than those of the same name elsewhere."""
    return len({
        (k if batch["queues"] == "own" else None, job["queue"])
        for k, batch in enumerate(batches) for job in batch["jobs"] if job["queue"] is not None
    })  # fmt: skip
