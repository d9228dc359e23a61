"""The files that a verb is given, whatever their format, as batches.

A directory is a workspace and `*.txt` a task file (SPEC A1–A4, A7); everything else is YAML: a job file, a sweep, an old job file
or suites (SPEC B1, B9, B10). A task file is one batch with the rules of its workspace, so it stands alone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.errors import Invalid, JostleError, Usage
from jostle.formats.flaws import BadFiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jostle.session import Session

    Flawed = tuple[str, int, str]  # file, line, what is wrong


def batches(
    files: Sequence[str], mode: str | None = None, suites: Sequence[str] = (), *, min_memory: int | None = None,
    texts: Mapping[str, str] | None = None,
) -> tuple[list[dict[str, Any]], list[str]]:  # fmt: skip
    """The batches, as experiments.load gives them, and warnings; BadFiles with everything that is wrong. Nothing is written.
    `texts`: what a job file is to hold, instead of what it holds."""
    if not any(is_tasks(file) for file in files):
        from jostle.experiments import load as experiments

        return experiments.load(files, suites, min_memory=min_memory, texts=texts), []
    batch, warnings = _tasks(files, mode)
    for job in batch["jobs"]:
        job["params"], job["inputs"], job["copy"] = {}, [], None
    return [{**batch, "about": {"file": os.path.realpath(files[0]), "suite": None}, "kind": "tasks"}], warnings


def each(
    files: Sequence[str], mode: str | None = None, suites: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], list[str]]:  # fmt: skip
    """As `batches`, but each task file and workspace by itself; what is wrong with any of them is told of all at once."""
    rest = [file for file in files if not is_tasks(file)]
    groups = [[file] for file in files if is_tasks(file)] + ([rest] if rest else [])
    if len(groups) == 1:
        return batches(groups[0], mode, suites)
    loaded: list[dict[str, Any]] = []
    warnings: list[str] = []
    flaws: list[Flawed] = []
    for group in groups:
        try:
            of_group, of_file = batches(group, mode, suites)
        except BadFiles as e:
            flaws += e.flaws
            warnings += e.warnings
        except JostleError as e:
            flaws.append((group[0], 0, str(e)))
        else:
            loaded += of_group
            warnings += of_file
    if flaws:
        raise BadFiles(list(dict.fromkeys(flaws)), list(dict.fromkeys(warnings)))  # task files of a workspace share its settings
    return loaded, list(dict.fromkeys(warnings))


def _tasks(files: Sequence[str], mode: str | None) -> tuple[dict[str, Any], list[str]]:
    """A task file or workspace."""
    if len(files) > 1:
        raise Usage("a workspace or task file has rules of its own: give it alone, or `jostle import` it into a job file")
    from jostle.formats import taskjobs, workspace

    space, blocks, warnings = workspace.tasks(files[0], mode=mode)
    if not blocks:
        raise Usage(f"{space.command_file} holds no task: nothing to do")
    return taskjobs.batch(space, blocks, visible=None), warnings  # what else restricts them is looked at when they run


def as_job_file(session: Session, source: str, **which: Any) -> tuple[str, dict[str, Any]]:
    """The text of a job file of our own for a task file or workspace, and its batch. `which`: as workspace.tasks has it."""
    from jostle.formats import jobwriter, plaintext, taskjobs, workspace

    space, blocks, warnings = workspace.tasks(source, **which)
    for warning in warnings:
        session.tell("warning", text=warning)
    if not blocks:
        raise Invalid(f"{space.command_file} holds no tasks; nothing is written")
    text, _ = plaintext.read(space.command_file, "a task file")
    head = [f"made by `jostle import` from {space.command_file}, {space.mode} mode"]
    if space.config_file is not None:
        head.append(f"and the settings {space.config_file}")
    batch = taskjobs.batch(space, blocks, None)
    return jobwriter.text_of(batch, head=head, notes=jobwriter.notes_of(text, space.mode)), batch


def is_tasks(file: str) -> bool:
    return file.lower().endswith(".txt") or os.path.isdir(file)
