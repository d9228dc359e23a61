"""The batches of files, each with its key, under the rules of the options: these go over what the files say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.core.runvariables import VISIBLE
from jostle.errors import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostle.intake.options import Options
    from jostle.session import Session


def loaded(options: Options, session: Session) -> list[dict[str, Any]]:
    """The batches of the files, in order, each with its key, under the rules of the options."""
    from jostle.intake import files

    named = options.files
    if options.suites and any(files.is_tasks(file) for file in named):
        raise Usage("--suite: a workspace or task file has no suites; expected job files")
    memory = options.rules.get("min_free_mib")
    batches, warnings = files.batches(named, options.mode, options.suites, min_memory=memory, texts=options.texts)
    for warning in warnings:
        session.tell("warning", text=warning)
    alone = all(batch["kind"] in ("jobs", "tasks") and not batch["about"].get("suite") for batch in batches)
    for batch in batches:
        batch["key"] = batch_key(named) if alone else _key(batch["about"])
        _rule(batch, options, session)
    return batches


def restrict(batches: list[dict[str, Any]], options: Options, session: Session) -> None:
    """Cards that this shell does not see are not used, unless a workspace names its own (SPEC A12)."""
    if VISIBLE not in os.environ:
        return
    from jostle.intake import visible

    restrictions: dict[Any, list[int] | None] = {}
    for batch in batches:
        own = batch["policy"].get("gpus")
        if any(job["gpus"][1] for job in batch["jobs"]) and not (batch["kind"] == "tasks" and own is not None):
            key = None if own is None else tuple(own)
            if key not in restrictions:
                restrictions[key] = visible.restricted(session, own, devices=options.devices)
            if restrictions[key] is not None:
                batch["policy"]["gpus"] = restrictions[key]


def batch_key(files: Sequence[str]) -> str:
    """What makes it the same batch: the same files in the same order."""
    return "run:" + "\n".join(os.path.realpath(file) for file in files)


def _key(about: dict[str, Any]) -> str:
    """A sweep or a suite is itself, whatever else was given beside it."""
    return f"run:{about['file']}" + (f"#{about['suite']}" if about.get("suite") else "")


def _rule(batch: dict[str, Any], options: Options, session: Session) -> None:
    batch["policy"] = {**batch["policy"], **options.rules}
    if options.rules.get("share"):
        alone = sum(job["memory_mib"] is None and job["gpus"][1] > 0 for job in batch["jobs"])
        if alone:
            session.tell("cannot_share", n=alone)
        for job in batch["jobs"]:
            job["share"] = job["share"] or job["memory_mib"] is not None
