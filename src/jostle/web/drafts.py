"""What a job file would queue if it held another text: `python -m jostle.web.drafts FILE`, in a process of its own that reads
`{"saved": TEXT, "text": TEXT}` and tells it as JSON.

It is `jostle validate` and `jostle run --dry-run` of a file that is not saved; nothing is written, and no engine is started.
"""

from __future__ import annotations

import difflib
import json
import sys
from typing import Any

from jostle.errors import JostleError
from jostle.formats.flaws import BadFiles
from jostle.intake.batches import loaded
from jostle.intake.checking import can_run, warn_directories
from jostle.intake.options import Options
from jostle.intake.selection import selected
from jostle.session import Session

SHOWN = 100  # flaws, and jobs of each batch
LONGEST = 500  # characters of one flaw, and of a line of the difference
COMPARED = 20_000  # lines of a text whose difference is shown


class Hearing(Session):
    """Keeps what is said to a person."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def draft(file: str, text: str) -> dict[str, Any]:
    session = Hearing()
    options = Options(files=(file,), texts={file: text})
    try:
        batches = loaded(options, session)
        shown = [_shown(batch, options, session) for batch in batches]
        warn_directories([job for batch in batches for job in batch["jobs"]], session)
        can_run(batches, session)
    except BadFiles as e:
        return _wrong(e.flaws)
    except JostleError as e:
        return _wrong([(file, 0, str(e))])
    finally:
        session.close()
    return {"flaws": [], "more": 0, "batches": shown, "messages": session.said[:SHOWN]}


def _wrong(flaws: list[tuple[str, int, str]]) -> dict[str, Any]:
    shown = [_flaw(*flaw) for flaw in flaws[:SHOWN]]
    return {"flaws": shown, "more": len(flaws) - len(shown), "batches": [], "messages": []}


def _flaw(file: str, line: int, text: str) -> dict[str, Any]:
    return {"file": file, "line": line or None, "text": _cut(text)}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _shown(batch: dict[str, Any], options: Options, session: Session) -> dict[str, Any]:
    """Of a batch: how many jobs would run and how many not, and the first of them."""
    selection = selected(batch, options, session)
    jobs = [{key: job[key] for key in ("name", "do", "by", "commands")} for job in selection.plain(batch)[:SHOWN]]
    return {
        "name": batch["name"], "suite": batch["about"].get("suite"), "kind": batch["kind"], "jobs": len(selection.jobs),
        "run": selection.count("run"), "rest": selection.left_out(session.language), "first": jobs,
        "attach": session.reader.unfinished_batch(batch["key"]),
    }  # fmt: skip


def difference(saved: str, text: str) -> list[str]:
    old, new = saved.splitlines(), text.splitlines()
    if old == new or max(len(old), len(new)) > COMPARED:
        return []
    return [_cut(line) for line in difflib.unified_diff(old, new, "saved", "new", lineterm="", n=2)]


def main() -> None:
    given = json.load(sys.stdin.buffer)
    json.dump({**draft(sys.argv[1], given["text"]), "diff": difference(given["saved"], given["text"])}, sys.stdout)


if __name__ == "__main__":
    main()
