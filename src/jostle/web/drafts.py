"""What a job file would queue if it held another text: one of the [deeds](deeds.py) that have a process of their own.

It is `jostle validate` and `jostle run --dry-run` of a file that is not saved; nothing is written, and no engine is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.errors import JostleError
from jostle.formats.difference import unified
from jostle.formats.flaws import BadFiles
from jostle.intake.batches import loaded
from jostle.intake.checking import can_run, warn_directories
from jostle.intake.options import Options
from jostle.intake.previewing import previewed
from jostle.intake.selection import Selection, selected
from jostle.wording.flaws import worded

if TYPE_CHECKING:
    from jostle.session import Session
    from jostle.web.deeds import Hearing

SHOWN = 100  # flaws, and jobs of each batch
LONGEST = 500  # characters of one flaw, and of a line of the difference
TAKEN = ("run", "done")  # of what is done with a job: it is part of the batch


def draft(session: Hearing, file: str, saved: str, text: str) -> dict[str, Any]:
    return {**_looked(session, file, text), "diff": [_cut(line) for line in unified(saved, text)]}


def _looked(session: Hearing, file: str, text: str) -> dict[str, Any]:
    options = Options(files=(file,), texts={file: text})
    try:
        batches = loaded(options, session)
        shown = [_shown(batch, options, session) for batch in batches]
        warn_directories([job for batch in batches for job in batch["jobs"]], session)
        can_run(batches, session)
    except BadFiles as e:
        return _wrong(e.flaws, session.language)
    except JostleError as e:
        return _wrong([(file, 0, str(e))], session.language)
    return {"flaws": [], "more": 0, "batches": shown, "messages": session.messages[:SHOWN]}


def _wrong(flaws: list[tuple[str, int, str]], lang: str) -> dict[str, Any]:
    shown = [_flaw(file, line, worded(text, lang)) for file, line, text in flaws[:SHOWN]]
    return {"flaws": shown, "more": len(flaws) - len(shown), "batches": [], "messages": []}


def _flaw(file: str, line: int, text: str) -> dict[str, Any]:
    return {"file": file, "line": line or None, "text": _cut(text)}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _shown(batch: dict[str, Any], options: Options, session: Session) -> dict[str, Any]:
    """Of a batch: how many jobs would run and how many not, and the first of them with what would become of it now."""
    selection = selected(batch, options, session)
    attach = session.reader.unfinished_batch(batch["key"])
    preview = _preview(batch, selection, session) if attach is None and selection.count("run") else None
    would = iter(preview["jobs"] if preview else ())
    jobs = []
    for job in selection.plain(batch)[:SHOWN]:
        outlook = next(would, None) if job["do"] in TAKEN else None
        text = outlook["text"] if outlook and job["do"] == "run" else ""
        jobs.append({**{key: job[key] for key in ("name", "do", "by", "commands")}, "text": text})
    return {
        "name": batch["name"], "suite": batch["about"].get("suite"), "kind": batch["kind"], "jobs": len(selection.jobs),
        "run": selection.count("run"), "rest": selection.left_out(session.language), "first": jobs, "attach": attach,
        "would": preview and _counted(preview),
    }  # fmt: skip


def _preview(batch: dict[str, Any], selection: Selection, session: Session) -> dict[str, Any] | None:
    """What the engine says would become of them; None if there is none to ask."""
    client = session.engine_if_any()
    if client is None:
        return None
    try:
        head = {key: batch[key] for key in ("name", "policy", "queues")}
        return previewed(client, head, selection.taken(), session.language)
    except JostleError:
        return None  # an older engine, or one that does not answer
    finally:
        client.close()


def _counted(preview: dict[str, Any]) -> dict[str, Any]:
    """How many start now, on which cards; the first that waits says why. `chance`: some do, and which is drawn."""
    starting = [job for job in preview["jobs"] if job["starts"]]
    waits = next((job["text"] for job in preview["jobs"] if job["reason"] and job["reason"]["code"] != "done_before"), "")
    gpus = sorted({index for job in starting for index in job["gpus"]})
    return {"starts": len(starting), "gpus": gpus, "waits": waits, "more": preview["more"],
            "chance": any(job["chance"] for job in preview["jobs"])}  # fmt: skip
