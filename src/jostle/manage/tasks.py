"""The acts of the manager (SPEC C1): tasks get cards, start their program, and give the cards back; by the source's names."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jostle.core.states import UNFINISHED
from jostle.errors import Declined, NotFound
from jostle.formats import spec
from jostle.intake import allocations, visible
from jostle.intake.request import request, sent
from jostle.manage import program
from jostle.manage.board import TASK, is_task
from jostle.manage.names import bare, prefixed
from jostle.views.limits import limits as limits_of
from jostle.wording.sentences import worded

if TYPE_CHECKING:
    from jostle.formats.managerfile import ManagerConfig
    from jostle.session import Session

OVER = frozenset({"user_limit", "impossible_user_limit"})
"""Reasons for which the source refuses a request, where others wait."""


class TaskAllocation(NamedTuple):
    id: int
    name: str
    why: str = ""  # it waits: for what


def allocate(session: Session, config: ManagerConfig, name: str, gpus: int, *, now: bool = False) -> TaskAllocation:
    """Cards for a task, or a place in the queue. Refused is what a limit forbids now, and with `now` or `queue_waiting: false`
    what cannot be had at once."""
    called = bare(name, config.job_prefix)
    id = allocations.allocate(session, called, gpus=(gpus, gpus), policy=visible.rules(session))
    why = _settled(session, id)
    if why is None:
        return TaskAllocation(id, called)
    text = worded(why, session.language)["text"]
    if now or not config.queue_waiting or why["code"] in OVER:
        allocations.give_up(session, id)
        raise Declined(session.message("manage_refused", name=called, why=text), str(why["code"]))
    return TaskAllocation(id, called, text)


def _settled(session: Session, id: int) -> dict[str, Any] | None:
    """Why it waits, when that is more than a moment's reason; None: it has its cards."""
    began = time.monotonic()
    while True:
        row = session.reader.job(id)
        if row is None or row["state"] != "queued":
            return None
        why = allocations.reason(session, id)
        if why is not None and allocations.settled(why, time.monotonic() - began):
            return why
        time.sleep(0.02)


def unnamed(session: Session, kind: str) -> str:
    """A name that no task has."""
    taken = {row["name"] for row in session.reader.jobs(states=UNFINISHED)}
    return next(name for n in range(1, len(taken) + 2) if (name := f"{kind}-{n}") not in taken)


def task(session: Session, config: ManagerConfig, name: str) -> dict[str, Any]:
    """The row of a task by its name, with the prefix or without, or by the number of its job."""
    names = {bare(name, config.job_prefix), prefixed(name, config.job_prefix)}
    rows = [row for row in session.reader.jobs(states=UNFINISHED) if row["name"] in names or str(row["id"]) == name]
    tasks = [row for row in rows if is_task(row, config) or str(row["id"]) == name]
    if not tasks:
        raise NotFound(session.message("manage_no_task", name=bare(name, config.job_prefix)))
    return max(tasks, key=lambda row: (row["name"] in names, not row["commands"], row["id"]))


def release(session: Session, config: ManagerConfig, name: str) -> TaskAllocation:
    """Ends an allocation with what runs inside, or an adopted job."""
    row = task(session, config, name)
    allocations.give_up(session, row["id"])
    return TaskAllocation(row["id"], bare(row["name"], config.job_prefix))


def start_program(session: Session, config: ManagerConfig, name: str) -> TaskAllocation:
    """The program of the template, on all cards of the task. One that grows and shrinks takes the place of the task: it comes
    after it, so that the end of the one and the start of the other are one decision."""
    row = task(session, config, name)
    called, (text, env, retry) = bare(row["name"], config.job_prefix), program.program(session, config)
    if row["commands"]:
        raise Declined(session.message("manage_runs", name=called, id=row["id"]), "program_inside")
    why = session.message("manage_no_cards_yet") if row["state"] == "queued" else ""
    program.tell_if_it_stays(session, config, called)
    if not (config.auto_scale and config.scaling.enabled and config.scaling.resize):
        return TaskAllocation(allocations.start(session, str(row["id"]), [text], env=env, label=called, retry=retry), called, why)
    job = spec.job(
        name=called, commands=[text], env=env, workdir=os.getcwd(), gpus=list(_range(session, config)), retry=retry,
        memory_mib=row["memory_mib"], resize=config.scaling.resize, tags=[TASK], priority=row["priority"] + 1,
        needs=[["job", row["id"], True]],
    )  # fmt: skip
    head = {"key": TASK, "name": TASK, "join": True, "policy": program.thresholds(config)}
    answer = sent(session, request(head, [job]), again="`jostle ps` shows whether it was taken")
    allocations.give_up(session, row["id"])
    return TaskAllocation(int(answer["ids"][0]), called, why)


def _range(session: Session, config: ManagerConfig) -> tuple[int, int]:
    """The least and the most cards of a program that grows: of the file, its limit for a task, and what limits the person."""
    automatic = "max_reserved_gpus"
    bounds = [n for limit in limits_of(session)["limits"] if (n := limit["most"]) is not None and limit["name"] != automatic]
    most = max(1, min([config.scaling.max_gpus, config.max_gpus_per_task, *bounds]))
    return min(config.scaling.min_gpus, most), most


def cards_of(session: Session, config: ManagerConfig, name: str) -> Mapping[str, str]:
    """What a program on the cards of a task is to be told, as variables."""
    return allocations.variables(session, task(session, config, name)["id"])
