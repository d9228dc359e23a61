"""Schedulers of a workspace: who this one is, and what `jostle compete --status` tells of those that run."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jostle import proc
from jostle.cli import render
from jostle.cli.attendant import asked, running, user
from jostle.compete import outlook, statefile, statustext
from jostle.compete.board import Board
from jostle.compete.statefile import Scheduler
from jostle.core.states import OPEN

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.desk import Desk
    from jostle.formats.workspace import Workspace


def scheduler(space: Workspace, batch: int) -> Scheduler:
    """This process."""
    me = proc.stat(os.getpid())
    return Scheduler(
        pid=os.getpid(), mode=space.mode, config_index=space.index, config_file=space.command_file, host=socket.gethostname(),
        boot_id=proc.boot_id(), start_ticks=me.ticks if me is not None else 0, batch=batch, started_at=time.time(),
    )  # fmt: skip


def show(args: Namespace, desk: Desk, space: Workspace) -> int:
    """The status of each scheduler of the workspace that runs here; with --mode, --config-index or --command-file of that one."""
    host, boot = socket.gethostname(), proc.boot_id()
    one = args.mode or args.command_file or args.config_index is not None
    told = 0
    for content in statefile.found(space.state_dir):
        if not statefile.complete(content) or not statefile.here(content, host, boot):
            continue
        batch = desk.reader.batch(content["batch"])
        prefix = f"compete:{os.path.realpath(space.root)}:"
        if batch is None or not (batch["key"] == space.key if one else str(batch["key"]).startswith(prefix)):
            continue
        if told:
            desk.put("")
        told += 1
        tell(desk, space, content, batch)
    if not told:
        left = desk.reader.unfinished_batch(space.key)
        runs_on = f", but batch {left} is not finished: `jostle compete` attaches to it" if left is not None else ""
        desk.say(f"jostle: no scheduler of {space.root} runs{runs_on or '; `jostle compete` starts one'}")
    return 0 if told else 1


def tell(desk: Desk, space: Workspace, content: Mapping[str, Any], batch: Mapping[str, Any]) -> None:
    numbered = str(batch["key"]).rpartition(":")[2].isdecimal()
    rows = desk.reader.jobs(batch=content["batch"])
    for row in rows:
        if row["state"] in OPEN and (runs := desk.reader.runs(row["id"])):
            row["uni_id"] = runs[-1]["uni_id"]
    gpus = asked(desk)
    theirs = replace(
        space, mode=content["mode"], index=content["config_index"], command_file=content["config_file"], numbered=numbered
    )
    file = theirs.uni_id_file
    desk.put(render.plain(statustext.head(content["pid"], theirs.mode, theirs.label, content["state"])))
    board, policy = Board(rows), batch["policy"]
    for line in statustext.status(
        board.queues(), gpus, user=user(), used=statefile.usable(policy, [gpu["index"] for gpu in gpus or ()]),
        processes=running(file), uni_id_file=space.shown(file),
        never=outlook.never(board.rows.values(), gpus or (), policy, desk.language),
    ):  # fmt: skip
        desk.put(render.plain(line))
