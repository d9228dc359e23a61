"""The request of a batch's jobs, right before it is sent: config copies are written, the code is frozen, and each job is given
the files that its run is to compare."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.intake.request import request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jostle.experiments.freeze import Frozen
    from jostle.intake.options import Options
    from jostle.session import Session


def prepared(batch: dict[str, Any], jobs: list[dict[str, Any]], options: Options, session: Session) -> dict[str, Any]:
    """The submit request of these jobs, but for its owner: config copies are written and the code is frozen now."""
    from jostle.context import capture
    from jostle.core.fields import PRIVATE

    running = [job for job in jobs if not job.get("done_by")]
    if any(job.get("copy") for job in running):
        from jostle.experiments import configcopy

        configcopy.write([{"jobs": running}], needed=lambda places: _needed(places, session))
    context: dict[str, Any] = capture()
    about = dict(batch["about"])
    moved = jobs
    place: Callable[[str], str] = str
    if options.freeze:
        moved, frozen = _frozen(jobs, running, context, batch, session)
        about["frozen"], place = frozen.about, frozen.place
    ready = [{key: value for key, value in job.items() if key not in PRIVATE} for job in moved]
    if "contents" in batch:
        from jostle.experiments import code

        about["code"] = code.of_batch(batch)
        _compare(batch, jobs, ready, place)
    head = {key: batch[key] for key in ("key", "name", "policy", "queues")}
    return request({**head, "about": about}, ready, context=context)


def _compare(
    batch: dict[str, Any], jobs: list[dict[str, Any]], ready: list[dict[str, Any]], place: Callable[[str], str]
) -> None:  # fmt: skip
    """Gives each job that will run the files that its run is to compare with its fingerprint."""
    from jostle.experiments.fingerprint import Contents, compared

    now = Contents()
    for job, new in zip(jobs, ready, strict=True):
        if not job.get("done_by"):
            new["inputs"] = compared(job, batch["contents"], now, place if new["workdir"] != job["workdir"] else str)


def _needed(places: Mapping[str, str], session: Session) -> dict[str, int]:
    """The places of config copies that unfinished jobs use."""
    from jostle.core.states import UNFINISHED
    from jostle.experiments.fresh import users

    return users(session.reader.jobs(states=UNFINISHED), places) if places else {}


def _frozen(
    jobs: list[dict[str, Any]], running: list[dict[str, Any]], context: dict[str, Any], batch: dict[str, Any],
    session: Session,
) -> tuple[list[dict[str, Any]], Frozen]:  # fmt: skip
    from jostle.experiments import code, freeze

    inputs = {path for job in running for path in job.get("inputs") or ()}
    inputs |= {job["copy"]["to"] for job in running if job.get("copy")}
    base = os.path.dirname(batch["about"]["file"])
    frozen = freeze.snapshot(running[0]["workdir"], session.home, base=base, inputs=sorted(inputs), apart=code.apart(batch))
    moved = [freeze.moved(job, frozen) for job in jobs]
    outside = sorted({job["workdir"] for job, new in zip(jobs, moved, strict=True) if job["workdir"] == new["workdir"]})
    if outside:
        session.tell("not_frozen", paths=", ".join(outside[:3]), root=frozen.root)
    if "PYTHONPATH" in context["env"]:
        context["env"]["PYTHONPATH"] = freeze.moved_text(context["env"]["PYTHONPATH"], frozen)
    commit = session.message("at_commit", commit=frozen.about["commit"][:10]) if frozen.about["commit"] else ""
    changed = session.message("with_changes") if frozen.about["dirty"] and commit else ""
    session.tell("frozen", root=frozen.root, commit=commit, changed=changed, n=frozen.about["files"])
    return moved, frozen
