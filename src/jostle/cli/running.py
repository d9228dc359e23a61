"""What `run` makes of its files before anything is submitted: batches, the rules over them, what is done already, frozen code.

Rules: options of the command line go over what the files say. What was done before is recorded as skipped; what is left out
otherwise is no part of the batch. Nothing is written, and nobody is asked, for a dry run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.cli import render
from jostle.errors import Usage

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Mapping

    from jostle.cli.desk import Desk
    from jostle.experiments.freeze import Frozen
    from jostle.experiments.skip import Verdict
    from jostle.store.reads import LastRun

# option: field of a policy
GATES = {
    "min_memory": "min_free_mib", "max_util": "max_utilization", "max_concurrent": "max_concurrent", "max_wait": "max_wait",
    "launch_delay": "start_interval", "policy": "choice",
}  # fmt: skip
PRIVATE = ("inputs", "copy")  # of a job as it was loaded; a submit says what its run is to compare instead


def loaded(args: Namespace, desk: Desk) -> list[dict[str, Any]]:
    """The batches of the files, in order, each with its key, under the rules of the command line."""
    from jostle.cli import files

    named = [*args.files, *args.job_file]
    if not named:
        raise Usage("run: no file is given. `jostle run --help` shows an example")
    if args.suite and any(files.is_tasks(file) for file in named):
        raise Usage("--suite: a workspace or task file has no suites; expected job files")
    batches, warnings = files.batches(named, args.mode, args.suite, min_memory=args.min_memory)
    for warning in warnings:
        desk.say(f"warning: {warning}")
    alone = all(batch["kind"] in ("jobs", "tasks") and not batch["about"].get("suite") for batch in batches)
    for batch in batches:
        batch["key"] = batch_key(named) if alone else _key(batch["about"])
        _rule(batch, args, desk)
    if not args.dry_run and "CUDA_VISIBLE_DEVICES" in os.environ:
        _restrict(batches, args, desk)
    return batches


def _restrict(batches: list[dict[str, Any]], args: Namespace, desk: Desk) -> None:
    """Cards that this shell does not see are not used, unless a workspace names its own (SPEC A12)."""
    from jostle.cli import visible

    told: dict[Any, list[int] | None] = {}
    for batch in batches:
        own = batch["policy"].get("gpus")
        if any(job["gpus"][1] for job in batch["jobs"]) and not (batch["kind"] == "tasks" and own is not None):
            key = None if own is None else tuple(own)
            if key not in told:
                told[key] = visible.restricted(desk, own, devices=args.gpus)
            if told[key] is not None:
                batch["policy"]["gpus"] = told[key]


def batch_key(files: list[str]) -> str:
    """What makes it the same batch: the same files in the same order."""
    return "run:" + "\n".join(os.path.realpath(file) for file in files)


def _key(about: dict[str, Any]) -> str:
    """A sweep or a suite is itself, whatever else was given beside it."""
    return f"run:{about['file']}" + (f"#{about['suite']}" if about.get("suite") else "")


def said(args: Namespace) -> dict[str, Any]:
    """The rules of the command line, as fields of a policy."""
    gates = {field: value for option, field in GATES.items() if (value := getattr(args, option)) is not None}
    return {**gates, "share": True} if args.share else gates


def _rule(batch: dict[str, Any], args: Namespace, desk: Desk) -> None:
    batch["policy"] = {**batch["policy"], **said(args)}
    if args.share:
        alone = sum(job["memory_mib"] is None and job["gpus"][1] > 0 for job in batch["jobs"])
        if alone:
            desk.say(f"warning: {render.count(alone, 'job')} without `memory` cannot share a card: each takes a whole one")
        for job in batch["jobs"]:
            job["share"] = job["share"] or job["memory_mib"] is not None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be done with each job of a batch."""

    jobs: list[dict[str, Any]]
    verdicts: list[Verdict]

    def count(self, what: str) -> int:
        return sum(verdict.what == what for verdict in self.verdicts)

    def taken(self) -> list[dict[str, Any]]:
        from jostle.experiments.skip import taken

        return taken(self.jobs, self.verdicts)

    def told(self) -> str:
        """What is not run, for a line about the batch."""
        from jostle.experiments.skip import DONE, LOGGED, NOT_FAILED

        done = "done before" + self.other_code()
        parts = [(DONE, done), (LOGGED, "with a log (--trust-logs)"), (NOT_FAILED, "that did not fail")]
        return ", ".join(f"{self.count(what):,} {words}" for what, words in parts if self.count(what))

    def other_code(self) -> str:
        """`, 3 of them with other code (a1b2c3d → c3d4e5f)`."""
        codes = [verdict.code for verdict in self.verdicts if verdict.code]
        if not codes:
            return ""
        then = list(dict.fromkeys(before for before, _ in codes))
        shown = ", ".join(then[:3]) + (" …" if len(then) > 3 else "")
        return f", {len(codes):,} of them with other code ({shown} → {codes[0][1]})"


def planned(batch: dict[str, Any], args: Namespace, desk: Desk) -> Plan:
    """Skipping is for what says what it is made of (sweeps, old job files); for plain jobs only if it is asked for, since what
    their commands read is a guess."""
    from jostle.experiments.fingerprint import fingerprinted
    from jostle.experiments.skip import Rule, failed_names, judged

    jobs = batch["jobs"]
    if batch["kind"] in ("sweep", "old") or args.skip_done:
        batch["contents"] = fingerprinted(batch)
    rule = Rule(redo=args.redo, redo_changed=args.redo_changed, trust_logs=args.trust_logs, only_failed=args.only_failed)
    failed = failed_names(_before(desk, batch["key"]), [job["name"] for job in jobs]) if rule.only_failed else frozenset()
    wanted = [] if rule.redo or rule.only_failed else [job["fingerprint"] for job in jobs if job.get("fingerprint")]
    ran = desk.reader.last_runs(wanted)
    before = _Before(batch, args, desk)
    return Plan(jobs=jobs, verdicts=judged(jobs, rule, ran, failed, unchanged=before.unchanged, code=before.code))


class _Before:
    """What ran before, beside what there is now; each batch and the code of now are looked at once, if at all."""

    def __init__(self, batch: dict[str, Any], args: Namespace, desk: Desk) -> None:
        from jostle.experiments.fresh import Unchanged

        self.batch, self.desk, self.fresh, self.freeze = batch, desk, Unchanged(), bool(args.freeze)
        self.abouts: dict[int, dict[str, Any]] = {}

    def about(self, number: int) -> dict[str, Any]:
        if number not in self.abouts:
            self.abouts[number] = (self.desk.reader.batch(number) or {}).get("about") or {}
        return self.abouts[number]

    def unchanged(self, job: Mapping[str, Any], run: LastRun) -> bool:
        """Whether it read what there is now; where the code is to be frozen, from an equal snapshot."""
        return self.fresh(job, run) and (not self.freeze or self._same_snapshot(self.about(run.batch)))

    def _same_snapshot(self, about: dict[str, Any]) -> bool:
        from jostle.experiments import code, freeze

        if "snapshot" not in self.batch:
            workdir, base = self.batch["jobs"][0]["workdir"], os.path.dirname(self.batch["about"]["file"])
            self.batch["snapshot"] = freeze.code(workdir, self.desk.home, base=base, apart=code.apart(self.batch))
        now = self.batch["snapshot"]
        return now is not None and (about.get("frozen") or {}).get("code") == now

    def code(self, run: LastRun) -> tuple[str, str] | None:
        from jostle.experiments import code

        then = code.recorded(self.about(run.batch))
        return code.changed(then, code.of_batch(self.batch)) if then is not None else None


def _before(desk: Desk, key: str) -> Iterator[list[dict[str, Any]]]:
    """The rows of earlier batches of the same file, the newest first, each read when it is needed."""
    numbers = [row["id"] for row in desk.reader.batches() if row["key"] == key]
    return (desk.reader.jobs(batch=number) for number in reversed(numbers))


def finished(batch: dict[str, Any], jobs: list[dict[str, Any]], args: Namespace, desk: Desk) -> dict[str, Any]:
    """The submit request of these jobs, but for its owner: config copies are written and the code is frozen now."""
    from jostle.context import capture

    running = [job for job in jobs if not job.get("done_by")]
    if any(job.get("copy") for job in running):
        from jostle.experiments import configcopy

        configcopy.write([{"jobs": running}], needed=lambda places: _needed(places, desk))
    context: dict[str, Any] = capture()
    about = dict(batch["about"])
    moved = jobs
    place: Callable[[str], str] = str
    if args.freeze:
        moved, frozen = _frozen(jobs, running, context, batch, desk)
        about["frozen"], place = frozen.about, frozen.place
    ready = [{key: value for key, value in job.items() if key not in PRIVATE} for job in moved]
    if "contents" in batch:
        from jostle.experiments import code

        about["code"] = code.of_batch(batch)
        _compare(batch, jobs, ready, place)
    return {
        "batch": {**{key: batch[key] for key in ("key", "name", "policy", "queues")}, "about": about},
        "context": context,
        "jobs": ready,
        "once": os.urandom(16).hex(),
    }


def _compare(
    batch: dict[str, Any], jobs: list[dict[str, Any]], ready: list[dict[str, Any]], place: Callable[[str], str]
) -> None:  # fmt: skip
    """Gives each job that will run the files that its run is to compare with its fingerprint."""
    from jostle.experiments.fingerprint import Contents, compared

    now = Contents()
    for job, new in zip(jobs, ready, strict=True):
        if not job.get("done_by"):
            new["inputs"] = compared(job, batch["contents"], now, place if new["workdir"] != job["workdir"] else str)


def _needed(places: Mapping[str, str], desk: Desk) -> dict[str, int]:
    """The places of config copies that unfinished jobs use."""
    from jostle.core.states import UNFINISHED
    from jostle.experiments.fresh import users

    return users(desk.reader.jobs(states=UNFINISHED), places) if places else {}


def _frozen(
    jobs: list[dict[str, Any]], running: list[dict[str, Any]], context: dict[str, Any], batch: dict[str, Any], desk: Desk
) -> tuple[list[dict[str, Any]], Frozen]:  # fmt: skip
    from jostle.experiments import code, freeze

    inputs = {path for job in running for path in job.get("inputs") or ()}
    inputs |= {job["copy"]["to"] for job in running if job.get("copy")}
    base = os.path.dirname(batch["about"]["file"])
    found = freeze.snapshot(running[0]["workdir"], desk.home, base=base, inputs=sorted(inputs), apart=code.apart(batch))
    moved = [freeze.moved(job, found) for job in jobs]
    outside = sorted({job["workdir"] for job, new in zip(jobs, moved, strict=True) if job["workdir"] == new["workdir"]})
    if outside:
        desk.say(f"warning: jobs in {render.plain(', '.join(outside[:3]))} are not frozen: that is no part of {found.root}")
    if "PYTHONPATH" in context["env"]:
        context["env"]["PYTHONPATH"] = freeze.moved_text(context["env"]["PYTHONPATH"], found)
    at = f" at commit {found.about['commit'][:10]}" if found.about["commit"] else ""
    differs = " with changes" if found.about["dirty"] and at else ""
    desk.say(f"frozen: {render.plain(found.root)}{at}{differs}, {render.count(found.about['files'], 'file')}")
    return moved, found


# --- --dry-run

DOES = {"run": "run", "done": "done before", "log": "its log exists", "not_failed": "did not fail"}


def shown(batches: list[dict[str, Any]], args: Namespace, desk: Desk) -> int:
    """What would run, and what would not; without an engine."""
    told = []
    for batch in batches:
        plan = planned(batch, args, desk)
        if args.json:
            told += [_as_json(batch, job, verdict) for job, verdict in zip(plan.jobs, plan.verdicts, strict=True)]
            continue
        unfinished = desk.reader.unfinished_batch(batch["key"])
        if unfinished is not None:
            desk.say(f"batch {unfinished} of the same file is not finished: `jostle run` attaches to it")
        rows = [_line(job, verdict) for job, verdict in zip(plan.jobs, plan.verdicts, strict=True)]
        desk.put(render.table(("NAME", "WHAT", "COMMAND"), rows, columns=desk.width, colours=desk.colours))
        rest = plan.told()
        name = f"{render.plain(batch['name'])}: " if batch["name"] else ""
        would = f"{name}{plan.count('run'):,} of {render.count(len(plan.jobs), 'job')} would run"
        desk.say(would + (f" ({rest})" if rest else ""))
    if args.json:
        desk.put_json({"schema": 1, "jobs": told})
    return 0


def _line(job: dict[str, Any], verdict: Verdict) -> tuple[str, str, str]:
    by = f" by job {verdict.by[0]}" if verdict.by else ""
    by += f" with other code ({verdict.code[0]} → {verdict.code[1]})" if verdict.code else ""
    return job["name"], DOES[verdict.what] + by, " && ".join(_texts(job))


def _texts(job: dict[str, Any]) -> list[str]:
    from shlex import join

    return [c if isinstance(c, str) else join(c) for c in job["commands"]]


def _as_json(batch: dict[str, Any], job: dict[str, Any], verdict: Verdict) -> dict[str, Any]:
    return {
        "batch": batch["name"], "suite": batch["about"].get("suite"), "name": job["name"], "do": verdict.what,
        "by": list(verdict.by) if verdict.by else None, "other_code": list(verdict.code) if verdict.code else None,
        "commands": _texts(job), "workdir": job["workdir"], "log": job["log"],
        "params": job.get("params") or {},
    }  # fmt: skip
