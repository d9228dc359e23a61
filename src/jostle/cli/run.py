"""`jostle run FILE…`: submits a job file as one batch, follows it to its end, and exits with its result.

The batch is owned by this process: Ctrl-C or SIGTERM cancels it (a second one at once). kill -9 or a hang-up leaves it running,
and the same command attaches to it again. When the engine vanishes, it is started again and the story goes on where it was.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle.cli import render
from jostle.cli.attached import Events, Followed, Lines, Live, Screen, attended, owner
from jostle.cli.validate import warn_directories

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.desk import Desk
    from jostle.cli.feed import Feed
    from jostle.cli.parse import Parser


def run_options(p: Parser) -> None:
    p.example("""
        jostle run jobs.yaml
        jostle run --gpus sim:4x24 examples/hello.yaml
        jostle run jobs.yaml --detach && jostle ps""")
    p.add_argument("files", nargs="+", metavar="FILE", help="job files, together one batch; or a task file (*.txt), or a workspace")
    p.add_argument("--mode", choices=("single", "multi"), help="of a task file; default: by its name")
    p.add_argument("--gpus", metavar="SPEC", help="the set of devices: nvml, sim:8x24 or sim:FILE")
    p.add_argument("-d", "--detach", action="store_true", help="submit, print the ids, and leave")
    p.json_option()


def run(args: Namespace, desk: Desk) -> int:
    from jostle.cli.files import load

    batch, warnings = load(args.files, args.mode)
    for warning in warnings:
        desk.say(f"warning: {warning}")
    key = batch_key(args.files)
    client = desk.client(gpus=args.gpus)
    feed = None if args.detach else attended(args, desk, desk.reader.last_seq())
    attached = desk.reader.unfinished_batch(key)
    if attached is not None:
        number, rows = attached, desk.reader.jobs(batch=attached)
        unfinished = sum(row["ended_at"] is None for row in rows)
        left = render.count(unfinished, "job")
        desk.say(f"batch {number} of the same file is not finished ({left} left): attached to it again")
        if changed(batch, rows):
            desk.say(
                f"the file has changed since batch {number} was submitted; the new jobs are not part of it: "
                "run it again when this batch has ended"
            )
    else:
        warn_directories(batch["jobs"], desk)
        answer = client.call("submit", **submission(batch, key, attached=not args.detach))
        number = answer["batch"]
        rows = rows_of(batch, answer["ids"][0])
        if not args.json:
            desk.say(f"batch {number}: {render.count(len(rows), 'job')} ({span(*answer['ids'])})")
    client.close()
    if feed is None:
        return detached(args, desk, number, rows)
    feed.batch = number
    return follow(args, desk, number, rows, feed)


def changed(batch: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Whether the file holds other jobs than the batch that was made of it; copies made by `retry` do not count."""
    from shlex import join

    said = [(job["name"], [c if isinstance(c, str) else join(c) for c in job["commands"]]) for job in batch["jobs"]]
    return said != [(row["name"], row["commands"]) for row in rows if row["retry_of"] is None]


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def batch_key(files: list[str]) -> str:
    """What makes it the same batch: the same files in the same order."""
    return "run:" + "\n".join(os.path.realpath(file) for file in files)


def submission(batch: dict[str, Any], key: str, *, attached: bool) -> dict[str, Any]:
    from jostle.context import capture

    return {
        "batch": {"key": key, "name": batch["name"], "owner": owner() if attached else None, "policy": batch["policy"],
                  "queues": batch["queues"]},
        "context": capture(),
        "jobs": batch["jobs"],
        "once": os.urandom(16).hex(),
    }  # fmt: skip


def rows_of(batch: dict[str, Any], first: int) -> list[dict[str, Any]]:
    """The new jobs as the store will show them, without asking it."""
    return [
        {"id": first + k, "name": job["name"], "state": "queued", "gpus": [], "started_at": None}
        for k, job in enumerate(batch["jobs"])
    ]


def detached(args: Namespace, desk: Desk, number: int, rows: list[dict[str, Any]]) -> int:
    ids = [row["id"] for row in rows]
    if args.json:
        desk.put_json({"schema": 1, "batch": number, "ids": ids})
    else:
        desk.put(span(ids[0], ids[-1]))
    return 0


def follow(args: Namespace, desk: Desk, number: int, rows: list[dict[str, Any]], feed: Feed) -> int:
    from jostle.cli.progress import Progress

    progress = Progress(rows, desk.language)
    feed.start()
    screen: Screen = Events(desk) if args.json else Live(desk, progress) if desk.terminal else Lines(desk, progress)
    interrupted = Followed(args, desk, number, progress, feed, screen).to_the_end()
    if args.json:
        desk.put_json({"schema": 1, "batch": number, "ok": progress.succeeded, "counts": +progress.counts})
    else:
        desk.say(f"batch {number}: {progress.summary()}")
    return 130 if interrupted else 0 if progress.succeeded else 1
