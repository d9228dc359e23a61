"""`jostle run FILE…`: submits job files, sweeps or suites, follows them to their end, and exits with their result.

A batch is owned by this process: Ctrl-C or SIGTERM cancels it (a second one at once); on a terminal Ctrl-C asks first. kill -9 or
a hang-up leaves it running, and the same command attaches to it again. When the engine vanishes, it is started again and the
story goes on where it was. Suites run one after another; what was done before is not run again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle import units
from jostle.cli import render
from jostle.cli.add import warn_never
from jostle.cli.asking import HINT, Asking, can_ask
from jostle.cli.joining import joined
from jostle.cli.parse import checked
from jostle.cli.running import Plan, finished, loaded, planned, said, shown
from jostle.cli.validate import warn_directories
from jostle.core.fields import RULES
from jostle.core.states import UNFINISHED
from jostle.errors import Usage
from jostle.follow.followed import attended, owner
from jostle.formats import spec

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from jostle.cli.desk import Desk
    from jostle.cli.parse import Parser
    from jostle.client import Client
    from jostle.follow.feed import Feed
    from jostle.follow.progress import Progress

INTERRUPTED = 130
MAX_LINKS = 1_000_000  # between the jobs of suites that are submitted at once to run one after another
# options that say which jobs there are, and of what
AT_SUBMIT = ("redo", "redo_changed", "skip_done", "only_failed", "trust_logs", "freeze")
TOLD = 10  # failed jobs that the summary names


def run_options(p: Parser) -> None:
    p.example("""
        jostle run jobs.yaml
        jostle run --gpus sim:4x24 examples/hello.yaml
        jostle run jobs.yaml --detach && jostle ps
        jostle run suites.yaml --suite gamma --max-concurrent 4 --dry-run""")
    p.add_argument("files", nargs="*", metavar="FILE", help="job files, sweeps, suites; or a task file (*.txt) or workspace")
    p.add_argument("--job-file", action="append", default=[], metavar="F", help="the same as FILE")
    p.add_argument("--suite", action="append", default=[], metavar="NAME", help="only this suite of the files; may be repeated")
    p.add_argument("--mode", choices=("single", "multi"), help="of a task file; default: by its name")
    p.add_argument("--gpus", metavar="SPEC", help="the set of devices: nvml, sim:8x24 or sim:FILE")
    p.add_argument("-d", "--detach", action="store_true", help="submit, print the ids, and leave")
    p.add_argument("--dry-run", action="store_true", help="only say what would run and what would be skipped")
    p.add_argument("--strict", action="store_true", help="refuse what this host can never run, instead of a warning")
    p.add_argument("--freeze", action="store_true", help="run from a snapshot of the code; later edits do not reach it")
    p.json_option()
    _gates(p)
    _skipping(p)


def _gates(p: Parser) -> None:
    gates = p.add_argument_group("rules, over what the files say")
    gates.add_argument("--min-memory", type=checked(_megabytes), metavar="MB", help="only GPUs with so much free memory")
    gates.add_argument("--max-util", type=_rule("max_utilization"), metavar="PERCENT", help="only GPUs with at most this load")
    gates.add_argument("--max-concurrent", type=_rule("max_concurrent"), metavar="N", help="at most so many jobs at once")
    gates.add_argument("--max-wait", type=_rule("max_wait"), metavar="T", help="a job that waited so long for a GPU fails")
    gates.add_argument("--launch-delay", type=_rule("start_interval"), metavar="T", help="time between two starts")
    gates.add_argument("--policy", type=_rule("choice"), metavar="NAME", help="which GPU is taken: most-free, round-robin, …")
    gates.add_argument("--share", action="store_true", help="several of these jobs may run on one GPU, as far as its memory goes")


def _rule(name: str) -> Callable[[str], Any]:
    return checked(spec.reader(RULES[name].kind))


def _skipping(p: Parser) -> None:
    skipping = p.add_argument_group("what was done before").add_mutually_exclusive_group()
    skipping.add_argument("--skip-done", action="store_true", help="skip it for plain job files too")
    skipping.add_argument("--redo", action="store_true", help="run all, done or not")
    skipping.add_argument("--redo-changed", action="store_true", help="run also what was done with other code")
    skipping.add_argument("--only-failed", action="store_true", help="run only what failed when it last ran")
    skipping.add_argument("--trust-logs", action="store_true", help="take a job whose log exists as done")


def _megabytes(text: str) -> int:
    """As nvidia-smi counts them."""
    return 0 if text.strip() == "0" else units.size_mib(text + "MiB" if text.strip().isdecimal() else text)


def run(args: Namespace, desk: Desk) -> int:
    batches = loaded(args, desk)
    if args.dry_run:
        return shown(batches, args, desk)
    if args.detach:
        return detached(batches, args, desk)
    worst, feed = 0, None
    for k, batch in enumerate(batches):
        client = desk.client(gpus=args.gpus)
        last, feed = feed, attended(desk, gpus=args.gpus, after=desk.reader.last_seq())
        if last is not None and interrupted(last):
            desk.say(f"jostle: interrupted before {', '.join(render.plain(b['name'] or '') for b in batches[k:])}")
            return INTERRUPTED
        code = one(batch, client, feed, args, desk)
        if code == INTERRUPTED:
            return code
        worst = max(worst, code)
    return worst


def interrupted(feed: Feed) -> bool:
    """Whether a signal came after the end of the batch it would have been for."""
    while (item := feed.next(0)) is not None:
        if item[0] == "signal":
            return True
    return False


def one(batch: dict[str, Any], client: Client, feed: Feed, args: Namespace, desk: Desk) -> int:
    """A batch from its submit, or from where it stands, to its end."""
    plan = planned(batch, args, desk)
    found = standing(batch, plan, client, args, desk, before=[])
    if found is None:
        jobs = plan.taken()
        if not plan.count("run"):
            client.close()
            return nothing(batch, plan, args, desk)
        warn_directories(jobs, desk)
        number, rows = submitted(batch, plan, jobs, args, desk, owner=owner())
    else:
        number, rows = found
    client.close()
    feed.batch = number
    return follow(args, desk, number, rows, feed)


def standing(
    batch: dict[str, Any], plan: Plan, client: Client, args: Namespace, desk: Desk, before: list[int]
) -> tuple[int, list[dict[str, Any]]] | None:  # fmt: skip
    """The unfinished batch of the same file, if there is one, with what was added to the file since; from now on under the rules
    that the command line says. What is new comes after the jobs `before`."""
    number = desk.reader.unfinished_batch(batch["key"])
    if number is None:
        return None
    rows = desk.reader.jobs(batch=number)
    left = render.count(sum(row["ended_at"] is None for row in rows), "job")
    hint = f". {HINT}" if not args.detach and not args.json and can_ask(desk) else ""
    desk.say(f"batch {number} of the same file is not finished ({left} left): attached to it again{hint}")
    jobs, first = joined(batch, plan, number, rows, client, args, desk, lambda new: after(new, before))
    amended(number, client, args, desk)
    return number, [*rows, *rows_of(jobs, first)]


def amended(number: int, client: Client, args: Namespace, desk: Desk) -> None:
    """What the command line says beside the file, for a batch that is under way: applied, or named as without effect."""
    rules = said(args)
    before = (desk.reader.batch(number) or {}).get("policy") or {}
    new = {field: value for field, value in rules.items() if before.get(field) != value}
    if new:
        client.call("amend", batch=number, policy={**before, **new})
        told = ", ".join(f"{field} {value if value is not True else 'true'}" for field, value in new.items())
        desk.say(f"batch {number} goes on under other rules: {told}")
    idle = [f"--{option.replace('_', '-')}" for option in AT_SUBMIT if getattr(args, option)]
    if idle:
        desk.say(f"no effect on a batch that is under way: {', '.join(idle)}; run it again when batch {number} has ended")


def nothing(batch: dict[str, Any], plan: Plan, args: Namespace, desk: Desk) -> int:
    if args.json:
        desk.put_json({"schema": 1, "batch": None, "ok": True, "counts": {"skipped": len(plan.jobs)}})
        return 0
    name = render.plain(batch["name"] or os.path.basename(batch["about"]["file"]))
    hint = "" if args.only_failed else "; --redo runs all again"
    hint += ", --redo-changed those with other code" if hint and plan.other_code() else ""
    desk.say(f"{name}: nothing to run ({render.count(len(plan.jobs), 'job')}: {plan.told()}){hint}")
    return 0


def submitted(
    batch: dict[str, Any], plan: Plan, jobs: list[dict[str, Any]], args: Namespace, desk: Desk, owner: list[int] | None
) -> tuple[int, list[dict[str, Any]]]:
    from jostle import client

    request = finished(batch, jobs, args, desk)
    request["batch"]["owner"] = owner
    request["batch"]["about"]["whole"] = len(jobs) == len(plan.jobs)
    anew = "The same command attaches to it again"
    answer = client.submitted(lambda: desk.client(gpus=args.gpus), {**request, "strict": args.strict}, anew)
    warn_never(answer, desk)
    if not args.json:
        rest = plan.told()
        told = f"batch {answer['batch']}: {render.count(len(jobs), 'job')} ({span(*answer['ids'])})"
        hint = f". {HINT}" if owner is not None and can_ask(desk) else ""
        desk.say(told + (f"; {rest}" if rest else "") + hint)
    return answer["batch"], rows_of(jobs, answer["ids"][0])


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def rows_of(jobs: list[dict[str, Any]], first: int) -> list[dict[str, Any]]:
    """The new jobs as the store will show them, without asking it."""
    done = {"state": "skipped", "reason": {"code": "done_before"}}
    return [
        {"id": first + k, "name": job["name"], "state": "queued", "gpus": [], "started_at": None,
         **(done if job.get("done_by") else {})}
        for k, job in enumerate(jobs)
    ]  # fmt: skip


def detached(batches: list[dict[str, Any]], args: Namespace, desk: Desk) -> int:
    """All batches are submitted at once; the jobs of each come after all of the one before it."""
    client = desk.client(gpus=args.gpus)
    before: list[int] = []
    for batch in batches:
        plan = planned(batch, args, desk)
        found = standing(batch, plan, client, args, desk, before)
        if found is None and not plan.count("run"):
            nothing(batch, plan, args, desk)
            continue
        if found is None:
            jobs = after(plan.taken(), before)
            warn_directories(jobs, desk)
            number, rows = submitted(batch, plan, jobs, args, desk, owner=None)
        else:
            number, rows = found
        before = [row["id"] for row in rows if row["state"] in UNFINISHED]
        ids = [row["id"] for row in rows]
        if args.json:
            desk.put_json({"schema": 1, "batch": number, "ids": ids})
        else:
            desk.put(span(ids[0], ids[-1]))
    client.close()
    return 0


def after(jobs: list[dict[str, Any]], before: list[int]) -> list[dict[str, Any]]:
    if len(jobs) * len(before) > MAX_LINKS:
        raise Usage("suites of so many jobs cannot be submitted at once to run one after another: leave out --detach")
    links = [["job", id, True] for id in before]
    return [job if job.get("done_by") else {**job, "needs": [*job["needs"], *links]} for job in jobs] if links else jobs


def follow(args: Namespace, desk: Desk, number: int, rows: list[dict[str, Any]], feed: Feed) -> int:
    from jostle.cli.watching import Events, Lines, Watched
    from jostle.follow.progress import Progress

    progress = Progress(rows, desk.language)
    feed.start()
    screen = Events(desk) if args.json else Watched(desk, progress) if desk.terminal else Lines(desk, progress)
    followed = Asking(desk, number, progress, feed, screen, gpus=args.gpus, json=args.json)
    stopped = followed.to_the_end()
    if followed.detached:
        desk.say(f"batch {number} runs on ({progress.summary()}): the same command attaches to it again, `jostle ps` shows it")
        return INTERRUPTED
    if args.json:
        desk.put_json({"schema": 1, "batch": number, "ok": progress.succeeded, "counts": +progress.counts})
    else:
        desk.say(f"batch {number}: {progress.summary()}")
        tell_failures(desk, progress)
    return INTERRUPTED if stopped else 0 if progress.succeeded else 1


def tell_failures(desk: Desk, progress: Progress) -> None:
    """What failed, once more at the end: on the way it has scrolled by."""
    failed = sorted(progress.why)
    for id in failed[:TOLD]:
        why, more = progress.why[id], "show" if id in progress.never_ran else "logs"
        desk.say(f"  failed {progress.label(id)}{': ' + why if why else ''} (jostle {more} {id})")
    if len(failed) > TOLD:
        desk.say(f"  … and {len(failed) - TOLD:,} more (jostle ps --state failed)")
