"""Which code a batch was submitted with, as far as git can tell: its commit, and whether what is tracked differed from that.

Rules: kept with the batch (`about.code`) as {"root", "commit", "dirty", "tree"}; the tree is git's name for the content of all
that is tracked, apart from what the fingerprints of jobs stand for anyway: their inputs and the job files. Equal trees are equal
code, whatever the commit is called. What is not tracked is not looked at; without git, or where it does not answer, nothing is
said.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from jostle.errors import JostleError

SHORT = 7  # letters of a commit that people are shown


def of_batch(batch: Mapping[str, Any]) -> dict[str, Any] | None:
    """The code that a batch, as it was loaded, would run now; looked at once."""
    if "code" not in batch:
        batch["code"] = _look(batch["jobs"][0]["workdir"], apart(batch))  # type: ignore[index]
    code: dict[str, Any] | None = batch["code"]
    return code


def apart(batch: Mapping[str, Any]) -> list[str]:
    """Files that are part of what its jobs are, or that they write, and so not of its code."""
    files = {batch["about"][key] for key in ("file", "source") if batch["about"].get(key)}
    for job in batch["jobs"]:
        files.update(job.get("inputs") or ())
        if job.get("log"):
            files.add(job["log"])
        if job.get("copy"):
            files.update((job["copy"]["of"], job["copy"]["to"]))
    return sorted(files)


def _look(workdir: str, apart: Iterable[str]) -> dict[str, Any] | None:
    from jostle.experiments import gittree

    try:
        root = gittree.top(workdir)
        if root is None:
            return None
        inside = (os.path.relpath(os.path.realpath(path), root) for path in apart)
        return {"root": root, **gittree.tracked(root, [path for path in inside if not path.startswith("..")])}
    except (JostleError, OSError):
        return None


def recorded(about: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Of a batch in the store."""
    code: dict[str, Any] | None = (about or {}).get("code") or (about or {}).get("frozen")
    return code


def shown(code: Mapping[str, Any]) -> str:
    """`a1b2c3d with changes`."""
    return (code["commit"] or "no commit")[:SHORT if code["commit"] else None] + (" with changes" if code["dirty"] else "")


def changed(then: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """Both as they are shown, if they differ; None also where nobody knows."""
    if then is None or now is None:
        return None
    key = "tree" if then.get("tree") and now.get("tree") else "commit"  # a snapshot of an older version tells no tree
    if then[key] == now[key]:
        return None
    before, after = shown(then), shown(now)
    return before, after if after != before else after.replace("with changes", "with other changes")
