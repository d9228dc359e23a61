"""What is told of the schedulers of a workspace that run here (`jostle compete --status`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from jostle.compete import outlook, statustext
from jostle.compete.board import Board
from jostle.compete.chores import registered, user
from jostle.compete.running import Running, running
from jostle.core.states import OPEN
from jostle.views.cards import seen_by_engine

if TYPE_CHECKING:
    from jostle.formats.workspace import Workspace
    from jostle.session import Session


def schedulers(session: Session, space: Workspace, *, this_config: bool) -> Iterator[list[str]]:
    """The status of each scheduler of the workspace, in lines; `this_config`: of this one only."""
    for scheduler in running(session.reader, space.root):
        if not this_config or str(scheduler.key) == space.key:
            yield _status(session, space, scheduler)


def _status(session: Session, space: Workspace, scheduler: Running) -> list[str]:
    key, content = scheduler.key, scheduler.state(space.state_dir)
    rows = session.reader.jobs(batch=scheduler.batch)
    for row in rows:
        if row["state"] in OPEN and (runs := session.reader.runs(row["id"])):
            row["uni_id"] = runs[-1]["uni_id"]
    gpus = seen_by_engine(session)
    theirs = replace(
        space, mode=key.mode, index=key.index or 0, command_file=content.get("config_file", key.which),
        numbered=key.index is not None,
    )  # fmt: skip
    file = theirs.uni_id_file
    board, policy = Board(rows), (session.reader.batch(scheduler.batch) or {}).get("policy") or {}
    lines = statustext.status(
        board.queues(), gpus, user=user(), used=outlook.usable(policy, [gpu["index"] for gpu in gpus or ()]),
        processes=registered(file), uni_id_file=space.shown(file),
        never=outlook.never(board.rows.values(), gpus or (), policy, session.language),
    )  # fmt: skip
    return [statustext.head(content["pid"], theirs.mode, theirs.label, content["state"]), *lines]
