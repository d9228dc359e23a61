"""What can be said of jobs before they are submitted: directories that are not there, and what this host can never run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.errors import JostleError

if TYPE_CHECKING:
    from jostle.client import Client
    from jostle.session import Session


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

    keys = ("commands", "name", "workdir", "gpus", "memory_mib", "share")
    jobs = [{key: job[key] for key in keys} for job in batch["jobs"]]
    if not jobs:
        return True
    answer = client.call("check", batch={"policy": batch["policy"]}, jobs=jobs)
    for line in never(answer, session.language, batch["name"] or ""):
        session.say(line)
    return bool(answer["checked"])


def warn_directories(jobs: list[dict[str, Any]], session: Session) -> None:
    """A directory that is not there is no error: an earlier job may make it."""
    for path in sorted({job["workdir"] for job in jobs}):
        if not os.path.isdir(path):
            session.tell("no_directory", path=path)
