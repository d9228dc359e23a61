"""What is told of the schedulers of a workspace that run here (`jostle compete --status`)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jostle import proc
from jostle.compete import outlook, statefile, statustext
from jostle.compete.board import Board
from jostle.compete.chores import running, user
from jostle.core.states import OPEN
from jostle.views.cards import seen_by_engine

if TYPE_CHECKING:
    from jostle.formats.workspace import Workspace
    from jostle.session import Session


def schedulers(session: Session, space: Workspace, *, this_config: bool) -> Iterator[list[str]]:
    """The status of each scheduler of the workspace, in lines; `this_config`: of this one only."""
    host, boot = socket.gethostname(), proc.boot_id()
    for content in statefile.read_all(space.state_dir):
        if not statefile.complete(content) or not statefile.runs_here(content, host, boot):
            continue
        batch = session.reader.batch(content["batch"])
        prefix = f"compete:{os.path.realpath(space.root)}:"
        if batch is None or not (batch["key"] == space.key if this_config else str(batch["key"]).startswith(prefix)):
            continue
        yield _status(session, space, content, batch)


def _status(session: Session, space: Workspace, content: Mapping[str, Any], batch: Mapping[str, Any]) -> list[str]:
    numbered = str(batch["key"]).rpartition(":")[2].isdecimal()
    rows = session.reader.jobs(batch=content["batch"])
    for row in rows:
        if row["state"] in OPEN and (runs := session.reader.runs(row["id"])):
            row["uni_id"] = runs[-1]["uni_id"]
    gpus = seen_by_engine(session)
    theirs = replace(
        space, mode=content["mode"], index=content["config_index"], command_file=content["config_file"], numbered=numbered
    )
    file = theirs.uni_id_file
    board, policy = Board(rows), batch["policy"]
    lines = statustext.status(
        board.queues(), gpus, user=user(), used=outlook.usable(policy, [gpu["index"] for gpu in gpus or ()]),
        processes=running(file), uni_id_file=space.shown(file),
        never=outlook.never(board.rows.values(), gpus or (), policy, session.language),
    )  # fmt: skip
    return [statustext.head(content["pid"], theirs.mode, theirs.label, content["state"]), *lines]
