"""The verbs that read files a caller names, ask drivers or call git: `python -m jostle.web.deeds VERB`, in a process of its own
with an end to its time and memory (RELIABILITY S57).

It reads the options of the verb as JSON and does by the shared rooms what the command line does by them. It writes
`{"answer": …, "messages": [texts]}`, or an `error` in the place of the answer, which is raised again where it was asked for.
Each verb imports what it needs, and nothing here what only a server needs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from jostle.errors import BY_CODE, Declined, JostleError
from jostle.formats.flaws import BadFiles, sentence
from jostle.session import Session
from jostle.wording.flaws import worded

CHANGING = ("run", "clean")  # in a home whose way is open to others these refuse, where the rest warns


class Hearing(Session):
    """Keeps what is said to a person."""

    def __init__(self, *, only_warn: bool) -> None:
        super().__init__(only_warn=only_warn)
        self.messages: list[str] = []

    def say(self, text: str) -> None:
        self.messages.append(text)


def run(
    session: Hearing, *, dry_run: bool, file: str, suites: list[str], mode: str | None, strict: bool, skip_done: bool,
    **rule: bool,
) -> dict[str, Any]:  # fmt: skip
    from jostle.experiments.skip import Rule
    from jostle.intake.batches import loaded, restrict
    from jostle.intake.options import Options
    from jostle.intake.selection import planned
    from jostle.intake.submitting import taken_in_turn

    skip = Rule(**rule)
    options = Options(files=(file,), suites=tuple(suites), mode=mode, strict=strict, skip_done=skip_done, skip=skip)
    batches = loaded(options, session)
    if dry_run:
        return planned(batches, options, session)
    restrict(batches, options, session)
    return {"batches": [receipt.plain() for _, receipt in taken_in_turn(batches, options, session)]}


def validate(session: Hearing, *, file: str) -> dict[str, Any]:
    from jostle.intake.checking import verdict

    return verdict([file], session)[0]


def import_(session: Hearing, *, source: str, mode: str, config_index: int) -> dict[str, Any]:
    from jostle.intake.files import as_job_file

    return {"text": as_job_file(session, source, mode=mode, index=config_index)[0]}


def clean(session: Hearing, *, before: float, dry_run: bool) -> dict[str, Any]:
    from dataclasses import asdict

    from jostle import cleaning

    cleaned = cleaning.clean(session, before, dry_run=dry_run)
    cleaning.tell(cleaned, session, dry_run=dry_run)
    return {**asdict(cleaned), "kept": [{"code": code, "path": path} for code, path in cleaned.kept]}


def doctor(session: Hearing) -> dict[str, Any]:
    from jostle.views.health import health
    from jostle.wording.health import worded as worded_check

    return {"checks": [worded_check(finding, session.language) for finding in health(session)]}


def results(session: Hearing, *, format: str, target: list[str], rename: list[str], **words: Any) -> dict[str, Any]:
    from jostle.experiments import asked, tables
    from jostle.views.results import query
    from jostle.views.results import results as view

    sought = query({**words, "targets": target})
    look = tables.Look(decimals=sought.decimals, rename=asked.renames(rename))
    seen = view(session, sought)
    notes = seen.headings(session.reader, named=bool(target) and format == "json")
    notes += tables.beside(seen.summary, format, session.language) if format != "json" else []
    for code, values in notes:
        session.tell(code, **values)
    if advice := seen.advice(words["metric"]):
        session.tell(advice)
    if format == "json":
        return tables.as_json(seen.summary, look, session.language)
    return {"text": tables.FORMATS[format](seen.summary, look) + "\n"}


def uni_id(session: Hearing, *, file: str) -> dict[str, Any]:
    from jostle.uniid import UniIdFile
    from jostle.uniid.waiting import listed

    try:
        return listed(UniIdFile(file, warn=lambda text: session.tell("warning", text=text)))
    except OSError as e:
        raise JostleError(f"{file}: {e.strerror or e}") from None


def notify(session: Hearing, *, channel: str | None) -> dict[str, Any]:
    from jostle.notify.trial import tried

    return {"schema": 1, "channels": list(tried(session.home, channel, session.language))}


def preview(session: Hearing, *, file: str, saved: str, text: str) -> dict[str, Any]:
    from jostle.web.drafts import draft

    return draft(session, file, saved, text)


DEEDS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "run": run, "validate": validate, "import": import_, "clean": clean, "doctor": doctor, "results": results, "uni-id": uni_id,
    "notify": notify, "preview": preview,
}  # fmt: skip


def plain(e: JostleError, language: str) -> dict[str, Any]:
    """An error as a value, in the words of the language."""
    error: dict[str, Any] = {"code": e.code, "text": sentence(e, language)}
    if isinstance(e, BadFiles):
        error["flaws"] = [(file, line, worded(text, language)) for file, line, text in e.flaws]
        error["warnings"] = [worded(text, language) for text in e.warnings]
    if isinstance(e, Declined):
        error["declined"] = e.why
    return error


def raised(error: Mapping[str, Any]) -> JostleError:
    """The same error again, to be answered as if it had been met here."""
    if "flaws" in error:
        return BadFiles([(file, line, text) for file, line, text in error["flaws"]], error["warnings"])
    if "declined" in error:
        return Declined(error["text"], error["declined"]["code"], error["declined"]["params"])
    return BY_CODE.get(error["code"], JostleError)(error["text"])


def main() -> None:
    verb = sys.argv[1]
    session = Hearing(only_warn=verb not in CHANGING)
    outcome: dict[str, Any]
    try:
        outcome = {"answer": DEEDS[verb](session, **json.load(sys.stdin.buffer))}
    except JostleError as e:
        outcome = {"error": plain(e, session.language)}
    finally:
        session.close()
    sys.stdout.write(json.dumps({**outcome, "messages": session.messages}))


if __name__ == "__main__":
    main()
