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
    from collections.abc import Iterator, Mapping

    from jostle.cli.desk import Desk
    from jostle.experiments.skip import Verdict

# option: field of a policy
GATES = {
    "min_memory": "min_free_mib", "max_util": "max_utilization", "max_concurrent": "max_concurrent", "max_wait": "max_wait",
    "launch_delay": "start_interval", "policy": "choice",
}  # fmt: skip
PRIVATE = ("inputs", "copy")  # of a job as it was loaded; no part of a submit


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

        parts = [(DONE, "done before"), (LOGGED, "with a log (--trust-logs)"), (NOT_FAILED, "that did not fail")]
        return ", ".join(f"{self.count(what):,} {words}" for what, words in parts if self.count(what))


def planned(batch: dict[str, Any], args: Namespace, desk: Desk) -> Plan:
    """Skipping is for what says what it is made of (sweeps, old job files); for plain jobs only if it is asked for, since what
    their commands read is a guess."""
    from jostle.experiments.fingerprint import fingerprinted
    from jostle.experiments.fresh import Unchanged
    from jostle.experiments.skip import Rule, failed_names, judged

    jobs = batch["jobs"]
    if batch["kind"] in ("sweep", "old") or args.skip_done:
        fingerprinted(batch)
    rule = Rule(redo=args.redo, trust_logs=args.trust_logs, only_failed=args.only_failed)
    failed = failed_names(_before(desk, batch["key"]), [job["name"] for job in jobs]) if rule.only_failed else frozenset()
    wanted = [] if rule.redo or rule.only_failed else [job["fingerprint"] for job in jobs if job.get("fingerprint")]
    ran = desk.reader.last_runs(wanted)
    return Plan(jobs=jobs, verdicts=judged(jobs, rule, ran, failed, unchanged=Unchanged()))


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
    if args.freeze:
        jobs, about["frozen"] = _frozen(jobs, running, context, os.path.dirname(about["file"]), desk)
    return {
        "batch": {**{key: batch[key] for key in ("key", "name", "policy", "queues")}, "about": about},
        "context": context,
        "jobs": [{key: value for key, value in job.items() if key not in PRIVATE} for job in jobs],
        "once": os.urandom(16).hex(),
    }


def _needed(places: Mapping[str, str], desk: Desk) -> dict[str, int]:
    """The places of config copies that unfinished jobs use."""
    from jostle.experiments.fresh import users
    from jostle.store.reads import UNFINISHED

    return users(desk.reader.jobs(states=UNFINISHED), places) if places else {}


def _frozen(
    jobs: list[dict[str, Any]], running: list[dict[str, Any]], context: dict[str, Any], base: str, desk: Desk
) -> tuple[list[dict[str, Any]], dict[str, Any]]:  # fmt: skip
    from jostle.experiments import freeze

    inputs = {path for job in running for path in job.get("inputs") or ()}
    inputs |= {job["copy"]["to"] for job in running if job.get("copy")}
    found = freeze.snapshot(running[0]["workdir"], desk.home, base=base, inputs=sorted(inputs))
    moved = [freeze.moved(job, found) for job in jobs]
    outside = sorted({job["workdir"] for job, new in zip(jobs, moved, strict=True) if job["workdir"] == new["workdir"]})
    if outside:
        desk.say(f"warning: jobs in {render.plain(', '.join(outside[:3]))} are not frozen: that is no part of {found.root}")
    if "PYTHONPATH" in context["env"]:
        context["env"]["PYTHONPATH"] = freeze.moved_text(context["env"]["PYTHONPATH"], found)
    at = f" at commit {found.about['commit'][:10]}" if found.about["commit"] else ""
    differs = " with changes" if found.about["dirty"] and at else ""
    desk.say(f"frozen: {render.plain(found.root)}{at}{differs}, {render.count(found.about['files'], 'file')}")
    return moved, found.about


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
    return job["name"], DOES[verdict.what] + by, " && ".join(_texts(job))


def _texts(job: dict[str, Any]) -> list[str]:
    from shlex import join

    return [c if isinstance(c, str) else join(c) for c in job["commands"]]


def _as_json(batch: dict[str, Any], job: dict[str, Any], verdict: Verdict) -> dict[str, Any]:
    return {
        "batch": batch["name"], "suite": batch["about"].get("suite"), "name": job["name"], "do": verdict.what,
        "by": list(verdict.by) if verdict.by else None, "commands": _texts(job), "workdir": job["workdir"], "log": job["log"],
        "params": job.get("params") or {},
    }  # fmt: skip
