"""Which jobs of a batch are to run: what was done before is recorded as skipped, what is left out otherwise is no part of it.

Nothing is written, and no engine is asked: a dry run sees the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.wording.text import listed, message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jostle.experiments.skip import Verdict
    from jostle.intake.options import Options
    from jostle.session import Session
    from jostle.store.reads import LastRun


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is to be done with each job of a batch."""

    jobs: list[dict[str, Any]]
    verdicts: list[Verdict]

    def count(self, what: str) -> int:
        return sum(verdict.what == what for verdict in self.verdicts)

    def taken(self) -> list[dict[str, Any]]:
        from jostle.experiments.skip import taken

        return taken(self.jobs, self.verdicts)

    def left_out(self, language: str) -> str:
        """What is not run, for a line about the batch."""
        from jostle.experiments.skip import DONE, LOGGED, NOT_FAILED

        kinds = {DONE: "done_before", LOGGED: "with_a_log", NOT_FAILED: "did_not_fail"}
        parts = {what: message(code, language, n=self.count(what)) for what, code in kinds.items() if self.count(what)}
        if DONE in parts:
            parts[DONE] += self.other_code(language)
        return listed(list(parts.values()), language)

    def other_code(self, language: str) -> str:
        """`, 3 of them with other code (a1b2c3d → c3d4e5f)`."""
        codes = [verdict.code for verdict in self.verdicts if verdict.code]
        if not codes:
            return ""
        then = list(dict.fromkeys(before for before, _ in codes))
        shown = ", ".join(then[:3]) + (" …" if len(then) > 3 else "")
        return message("other_code", language, n=len(codes), then=shown, now=codes[0][1])

    def nothing_to_run(self, batch: Mapping[str, Any], options: Options, language: str) -> str:
        """That nothing of the batch is to run, why, and what would run it all the same."""
        name = batch["name"] or os.path.basename(batch["about"]["file"])
        hint = "" if options.skip.only_failed else message("redo_all", language)
        hint += message("redo_changed", language) if hint and self.other_code(language) else ""
        return message("nothing_to_run", language, name=name, n=len(self.jobs), rest=self.left_out(language)) + hint

    def plain(self, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Each job of the batch and what is done with it."""
        return [
            {"batch": batch["name"], "suite": batch["about"].get("suite"), "name": job["name"], "do": verdict.what,
             "by": list(verdict.by) if verdict.by else None, "other_code": list(verdict.code) if verdict.code else None,
             "commands": texts(job), "workdir": job["workdir"], "log": job["log"], "params": job.get("params") or {}}
            for job, verdict in zip(self.jobs, self.verdicts, strict=True)
        ]  # fmt: skip


def texts(job: Mapping[str, Any]) -> list[str]:
    """Its commands as a shell would take them."""
    from shlex import join

    return [command if isinstance(command, str) else join(command) for command in job["commands"]]


def planned(batches: list[dict[str, Any]], options: Options, session: Session) -> dict[str, Any]:
    """What would become of the jobs of all batches, as `run --dry-run --json` gives it."""
    return {"schema": 1, "jobs": [job for batch in batches for job in selected(batch, options, session).plain(batch)]}


def selected(batch: dict[str, Any], options: Options, session: Session) -> Selection:
    """Skipping is for what says what it is made of (sweeps, old job files); for plain jobs only if it is asked for, since what
    their commands read is a guess."""
    from jostle.experiments.fingerprint import fingerprinted
    from jostle.experiments.skip import failed_names, judged

    jobs = batch["jobs"]
    if batch["kind"] in ("sweep", "old") or options.skip_done:
        batch["contents"] = fingerprinted(batch)
    rule = options.skip
    failed = failed_names(_before(session, batch["key"]), [job["name"] for job in jobs]) if rule.only_failed else frozenset()
    fingerprints = [] if rule.redo or rule.only_failed else [job["fingerprint"] for job in jobs if job.get("fingerprint")]
    ran = session.reader.last_runs(fingerprints)
    before = _Before(batch, options, session)
    return Selection(jobs=jobs, verdicts=judged(jobs, rule, ran, failed, unchanged=before.unchanged, code=before.code))


class _Before:
    """What ran before, beside what there is now; each batch and the code of now are looked at once, if at all."""

    def __init__(self, batch: dict[str, Any], options: Options, session: Session) -> None:
        from jostle.experiments.fresh import Unchanged

        self.batch, self.session, self.fresh, self.freeze = batch, session, Unchanged(), options.freeze
        self.abouts: dict[int, dict[str, Any]] = {}

    def about(self, number: int) -> dict[str, Any]:
        if number not in self.abouts:
            self.abouts[number] = (self.session.reader.batch(number) or {}).get("about") or {}
        return self.abouts[number]

    def unchanged(self, job: Mapping[str, Any], run: LastRun) -> bool:
        """Whether it read what there is now; where the code is to be frozen, from an equal snapshot."""
        return self.fresh(job, run) and (not self.freeze or self._same_snapshot(self.about(run.batch)))

    def _same_snapshot(self, about: dict[str, Any]) -> bool:
        from jostle.experiments import code, freeze

        if "snapshot" not in self.batch:
            workdir, base = self.batch["jobs"][0]["workdir"], os.path.dirname(self.batch["about"]["file"])
            self.batch["snapshot"] = freeze.code(workdir, self.session.home, base=base, apart=code.apart(self.batch))
        now = self.batch["snapshot"]
        return now is not None and (about.get("frozen") or {}).get("code") == now

    def code(self, run: LastRun) -> tuple[str, str] | None:
        from jostle.experiments import code

        then = code.recorded(self.about(run.batch))
        return code.changed(then, code.of_batch(self.batch)) if then is not None else None


def _before(session: Session, key: str) -> Iterator[list[dict[str, Any]]]:
    """The rows of earlier batches of the same file, the newest first, each read when it is needed."""
    numbers = [row["id"] for row in session.reader.batches() if row["key"] == key]
    return (session.reader.jobs(batch=number) for number in reversed(numbers))
