"""Cards that are held under a name (SPEC C2): asked for, given back, and programs started on them. For every door: the command
line, Python and the API.

`allocate` queues it and answers at once; `held` waits for its cards and tells why it waits. A name belongs to one allocation of
this home at a time. Words that a person reads are in the person's language.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.core.runvariables import ALLOCATION
from jostle.core.states import FINAL
from jostle.errors import Declined, Invalid, JostleError, NotFound, Usage
from jostle.formats import spec
from jostle.intake.request import request, sent
from jostle.store import allocationreads
from jostle.wording.declined import declined
from jostle.wording.sentences import worded

if TYPE_CHECKING:
    from jostle.session import Session

Process = Sequence[int | str]
"""Its pid, the tick of its start, and the boot that they are of."""
BATCH, PROGRAMS = "alloc", "start"
"""The keys of the batches that allocations and their programs lie in."""
HEAD = {"key": BATCH, "name": BATCH, "join": True, "policy": {}}
SOON = frozenset({"starting_soon", "gpus_unknown"})
PASSING = frozenset({"unknown", "starting"})
"""Reasons and refusals of a card that a moment ends: who wants cards now still waits so long."""
NOW_WITHIN = 10.0  # s that `now` waits for such


def allocate(
    session: Session, name: str, *, gpus: Sequence[int] = (1, 1), memory_mib: int | None = None, share: bool = False,
    time_limit: float | None = None, idle_release: float | None = None, tied_to: Process | None = None, priority: int = 0,
    tags: Sequence[str] = (), policy: Mapping[str, Any] | None = None, devices: str | None = None, once: str | None = None,
    by: Mapping[str, str] | None = None, awaited_by: Process | None = None,
) -> int:  # fmt: skip
    """Asks for cards under this name; its job. What these cards could never give is refused, and so is a name that is taken.
    `by`: who asks, if that is to be recorded. `awaited_by`: a process with which it is given up, until `keep`."""
    job = {
        **wanted(name, gpus, memory_mib, priority), "share": share, "time_limit": time_limit, "idle_release": idle_release,
        "tied_to": list(tied_to) if tied_to is not None else None, "tags": list(tags),
        "awaited_by": list(awaited_by) if awaited_by is not None else None,
    }  # fmt: skip
    asked = {**request({**HEAD, "policy": dict(policy or {})}, [job], once=once), "strict": True, **_author(by)}
    return _submitted(session, asked, devices)


def wanted(name: str, gpus: Sequence[int], memory_mib: int | None, priority: int = 0) -> dict[str, Any]:
    """What of an allocation says when and where it gets its cards."""
    return {"name": name, "commands": [], "workdir": "/", "gpus": list(gpus), "memory_mib": memory_mib, "priority": priority}


def start(
    session: Session, name: str, command: Sequence[str], *, beside: bool = False, gpus: Sequence[int] | None = None,
    memory_mib: int | None = None, workdir: str | None = None, env: Mapping[str, str] | None = None, label: str | None = None,
    log: str | None = None, time_limit: float | None = None, retry: Mapping[str, Any] | None = None, once: str | None = None,
    by: Mapping[str, str] | None = None,
) -> int:  # fmt: skip
    """Runs a command inside an allocation, on all of its cards unless `gpus` says otherwise; its job. While another runs inside
    it is refused, unless it is to run `beside` it. `label`: what the job is called."""
    row = of_name(session, name)
    count = len(row["gpus"]) or row["gpu_request"][1]
    if gpus is not None and gpus[0] > count:
        raise Invalid(session.message("alloc_too_few", name=name, n=count, asked=gpus[0]))
    words: Any = command[0] if len(command) == 1 else list(command)
    job = spec.job(
        name=label or spec.name_of([words]), commands=[words], gpus=list(gpus or (count, count)), memory_mib=memory_mib,
        workdir=workdir or os.getcwd(), env=dict(env or {}), log=log, time_limit=time_limit, retry=retry, inside=row["id"],
        share=beside,
    )  # fmt: skip
    head = {"key": PROGRAMS, "name": PROGRAMS, "join": True, "policy": {}}
    return _submitted(session, {**request(head, [job], once=once), "beside": beside, **_author(by)}, None)


def _author(by: Mapping[str, str] | None) -> dict[str, Any]:
    return {} if by is None else {"by": dict(by)}


def release(session: Session, name: str, *, now: bool = False, by: Mapping[str, str] | None = None) -> int:
    """Gives its cards back, when what runs inside has been ended; one that waits is given up. Its job. `now`: what runs inside is
    killed at once."""
    row = of_name(session, name)
    give_up(session, row["id"], now=now, by=by)
    return int(row["id"])


def _submitted(session: Session, asked: dict[str, Any], devices: str | None) -> int:
    try:
        answer = sent(session, asked, again="`jostle ps` shows whether it was taken", devices=devices)
    except Declined as e:
        raise Declined(declined(e.why, session.language), str(e.why["code"]), dict(e.why["params"])) from None  # type: ignore[call-overload]
    return int(answer["ids"][0])


def give_up(session: Session, id: int, *, now: bool = False, by: Mapping[str, str] | None = None) -> None:
    """Ends an allocation, whatever has become of it."""
    client = session.client()
    try:
        client.call("intent", ids=[id], batch=None, do="cancel", now=now, **_author(by))
    finally:
        client.close()


def keep(session: Session, id: int) -> None:
    """Who waited for it knows of its cards: from now on it stays, whatever becomes of them."""
    client = session.client()
    try:
        answer = client.call("intent", ids=[id], batch=None, do="keep")
    finally:
        client.close()
    for _, why in answer["refused"]:
        raise Declined(declined(why, session.language), why["code"], why["params"])


def wait_gone(session: Session, id: int) -> None:
    """Waits until it has ended: then its name and its cards can be had again."""
    while (row := session.reader.job(id)) is not None and row["state"] not in FINAL:
        time.sleep(0.02)


def of_name(session: Session, name: str) -> dict[str, Any]:
    """The row of the allocation of this name (or of the job of this number) that has not ended."""
    numbered = [row for row in allocationreads.allocations(session.reader) if str(row["id"]) == name]
    rows = allocationreads.named(session.reader, name) + numbered
    if not rows:
        raise NotFound(session.message("alloc_unknown", name=name))
    return max(rows, key=lambda row: row["name"] == name)


# --- until its cards are there


def _timeless(value: Any) -> Any:
    """A reason, or a part of one, without its durations."""
    if isinstance(value, Mapping):
        return {key: _timeless(of) for key, of in value.items() if not key.endswith("_s")}
    return [_timeless(of) for of in value] if isinstance(value, list | tuple) else value


class Applicant:
    """Somebody who waits for cards: hears why, whenever that changes; or, who wants them now or not at all, that they cannot be
    had."""

    def __init__(self, session: Session, tell: Callable[[str], None], *, now: bool) -> None:
        self._session, self._tell, self._now = session, tell, now
        self._began, self._last = time.monotonic(), ("", "")

    def hear(self, name: str, why: Mapping[str, Any], give_up: Callable[[], None], *, at_least: float = 0.0) -> None:
        """`at_least`: s in which no reason is more than that of a moment."""
        text, waited = worded(why, self._session.language)["text"], time.monotonic() - self._began
        if self._now and waited >= at_least and settled(why, waited):
            give_up()
            raise Declined(self._session.message("alloc_not_now", name=name, why=text), "not_now")
        lasting = str(_timeless(why))
        if text != self._last[0] and lasting != self._last[1]:  # that a second more has passed is no news
            self._last = text, lasting
            self._tell(text)

    def pause(self) -> None:
        time.sleep(0.02 if time.monotonic() - self._began < 2.0 else 0.5)


def held(
    session: Session, id: int, *, now: bool = False, tell: Callable[[str], None] = lambda why: None
) -> dict[str, str]:
    """Waits until an allocation holds its cards; what a program is to be told of them, as variables. `tell` hears why it waits,
    whenever that changes. `now`: gives it up and raises why, if it cannot have them at once."""
    waiting = Applicant(session, tell, now=now)
    while (row := session.reader.job(id)) is not None and row["state"] not in ("running", "stopping", *FINAL):
        why = reason(session, id)
        if why is not None and row["state"] == "queued":
            waiting.hear(row["name"], why, lambda: give_up(session, id))
        waiting.pause()
    if row is None:
        raise NotFound(session.message("alloc_unknown", name=str(id)))
    if row["state"] != "running":
        why = worded(row["reason"], session.language)["text"] if row["reason"] else row["state"]
        raise JostleError(session.message("alloc_ended", name=row["name"], id=id, why=why))
    return variables(session, id)


def settled(why: Mapping[str, Any], waited: float) -> bool:
    """Whether a reason is more than that of a moment."""
    momentary = why["code"] in SOON or any(refusal["code"] in PASSING for refusal in why.get("gpus") or ())
    return not momentary or waited > NOW_WITHIN


def reason(session: Session, id: int) -> dict[str, Any] | None:
    """Why it waits, as the engine says it."""
    client = session.client()
    try:
        answer: dict[str, Any] | None = client.call("why", id=id)["reason"]
        return answer
    finally:
        client.close()


def variables(session: Session, id: int) -> dict[str, str]:
    """What a program on its cards is to be told."""
    client = session.client()
    try:
        return {**client.call("held", id=id)["env"], ALLOCATION: str(id)}
    finally:
        client.close()


# --- what it is tied to


def process(session: Session, pid: int) -> list[int | str]:
    """A process, as an allocation that ends with it knows it."""
    from jostle import proc

    stat = proc.stat(pid)
    if stat is None:
        raise Usage(session.message("alloc_no_process", pid=pid))
    return [stat.pid, stat.ticks, proc.boot_id()]


def myself(session: Session) -> list[int | str] | None:
    """This process; None: the engine counts processes otherwise (we are in a container, and it is not), and would not find it."""
    client = session.client()
    try:
        return process(session, os.getpid()) if client.call("hello", counts=False)["pid"] == client.pid else None
    finally:
        client.close()


def shell() -> int:
    """The shell that evaluates what this program prints; it may have one of its own, alike, between us and itself."""
    from jostle import proc

    pid = os.getppid()
    while (stat := proc.stat(pid)) is not None and (above := proc.stat(stat.ppid)) is not None:
        if proc.command_line(pid) != proc.command_line(above.pid) or os.getpgid(pid) != os.getpgid(above.pid):
            break
        pid = above.pid
    return pid
