"""jostle from Python: `jostle.submit(...)` gives a handle that can be waited for, `jostle.gpus(...)` cards for this process.

Jobs are said in the words of a job file (docs/jobfile.md): a command, a dictionary of its keys, or one of the tuples that
`parse_command_file` gives (commands, queue, memory in GB) or (commands, queue, GPUs, memory in GB).
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from signal import SIGINT, SIGTERM
from typing import Any

from jostle.core.devices import EXPECTED, known
from jostle.core.states import UNFINISHED
from jostle.errors import TIME_IS_UP, JostleError, Usage
from jostle.follow.ends import until_ended
from jostle.follow.feed import Feed
from jostle.follow.followed import Followed, signal_feed
from jostle.follow.listener import Listener
from jostle.follow.progress import Progress
from jostle.formats import jobfile
from jostle.intake.held import Cards, gpus
from jostle.intake.request import request, sent
from jostle.session import Session
from jostle.store.reads import Reader
from jostle.wording.sentences import worded

__all__ = ["Batch", "Cards", "Failed", "gpus", "submit"]

Job = str | Mapping[str, Any] | Sequence[Any]


class Failed(JostleError):
    """Not all jobs succeeded."""


def submit(
    jobs: Job | Sequence[Job],
    *,
    name: str | None = None,
    policy: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    own_queues: bool = False,
    devices: str | None = None,
    gpus: str | None = None,
    params: Sequence[Mapping[str, str]] | None = None,
    once: str | None = None,
    strict: bool = False,
) -> Batch:
    """Queues jobs as one batch, starting an engine if need be; relative paths start at the present directory. `defaults`: keys
    for each job that does not say otherwise. `devices`: of an engine that is started for it, such as "sim:8x24"; its older name
    is `gpus`. `params`: what each job stands for in a sweep; `jostle results` groups by it. `once`: a key; what it has brought
    before is not taken again. `strict`: what can never run here is refused, instead of a warning."""
    for argument, value in (("devices", devices), ("gpus", gpus)):
        if value is not None and not (isinstance(value, str) and known(value)):
            cards = 'How many cards a job gets stands in the job: {"run": …, "gpus": 1}'
            raise Usage(f"jostle.submit: {argument}={value!r}: expected {EXPECTED}. {cards}")
    listed = [jobs] if isinstance(jobs, str | Mapping) or _is_task(jobs) else list(jobs)
    document: dict[str, Any] = {"jobs": [_mapping(job) for job in listed], "own_queues": own_queues}
    document |= {key: dict(value) for key, value in (("policy", policy), ("defaults", defaults)) if value}
    if name is not None:
        document["name"] = name
    batch = jobfile.of_values(document, os.getcwd(), "jostle.submit")
    for job, said_of in zip(batch["jobs"], params or [{}] * len(batch["jobs"]), strict=True):
        job["params"] = dict(said_of)
    head = {"key": None, "name": batch["name"] or "submit", "policy": batch["policy"], "queues": batch["queues"]}
    asked = {**request(head, batch["jobs"], once=once), "strict": strict}
    session = Session()
    again = f"The same submit with once={asked['once']!r} takes it once only"
    answer = sent(session, asked, again=again, devices=devices or gpus)
    first, last = answer["ids"]
    for entry in answer.get("never") or ():
        text = worded(entry["reason"], "en")["text"]
        warnings.warn(f"{entry['count']} of these jobs (the first: {entry['jobs'][0]}): {text}", stacklevel=2)
    return Batch(session, answer["batch"], list(range(first, last + 1)))


def _is_task(job: Any) -> bool:
    """A tuple of a task file: its first part is the commands, its others numbers."""
    return isinstance(job, tuple) and len(job) in (3, 4) and isinstance(job[0], list) and not isinstance(job[1], str | list)


def _mapping(job: Any) -> Any:
    if isinstance(job, str):
        return {"run": job}
    if _is_task(job):
        commands, queue, *count, memory = job
        return {"run": list(commands), "queue": str(queue), "gpus": count[0] if count else 1, "memory": f"{memory}GB"}
    return dict(job) if isinstance(job, Mapping) else job


class Notes(Listener):
    """Of a batch that is attended to: only what concerns whoever attends."""

    def __init__(self, session: Session, say: Callable[[str], None]) -> None:
        super().__init__(session)
        self.say = say

    def note(self, text: str) -> None:
        self.say(text)


class Batch:
    """Jobs that were submitted together."""

    def __init__(self, session: Session, number: int, ids: list[int]) -> None:
        self.home, self.number, self.ids = session.home, number, ids
        self._session = session

    def __repr__(self) -> str:
        return f"<jostle batch {self.number}: jobs {self.ids[0]}-{self.ids[-1]}>"

    def jobs(self) -> list[dict[str, Any]]:
        """How they stand: the rows of `jostle ps --json`."""
        reader = Reader(self.home)
        try:
            return [{**row, "reason": row["reason"] and worded(row["reason"], "en")} for row in reader.jobs(ids=self.ids)]
        finally:
            reader.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Until all have ended, also over a restart of the engine: whether all succeeded. TimeoutError when time is up."""
        end = None if timeout is None else time.monotonic() + timeout
        feed = Feed(self._session.client, after=self._newest(), batch=self.number, again=self._session.client_again)
        states = {row["id"]: row["state"] for row in self.jobs()}
        if any(state in UNFINISHED for state in states.values()):
            feed.start()
            try:
                if until_ended(feed, states, end) == TIME_IS_UP:
                    raise TimeoutError(f"batch {self.number} has not ended after {timeout:g} s")
            finally:
                feed.close()
        return all(state == "succeeded" for state in states.values())

    def attend(self, say: Callable[[str], None]) -> bool:
        """Until all have ended, as `jostle run` does: Ctrl-C and SIGTERM cancel them, a second one at once. Whether somebody did;
        what is to be told of that is given to `say`."""
        main = threading.current_thread() is threading.main_thread()  # others hear no signals
        feed = signal_feed(self._session, gpus=None, after=self._newest(), signals=(SIGINT, SIGTERM) if main else ())
        feed.batch = self.number
        progress = Progress(self.jobs(), self._session.language)
        listener = Notes(self._session, say)
        feed.start()
        try:
            interrupted = Followed(self._session, self.number, progress, feed, listener).to_the_end()
        finally:
            feed.close()
        if interrupted:
            say(self._session.message("batch_summary", batch=self.number, summary=progress.summary()))
        return interrupted

    def _newest(self) -> int:
        """What happens after this is heard."""
        reader = Reader(self.home)
        try:
            return reader.last_seq()
        finally:
            reader.close()

    def result(self, timeout: float | None = None) -> list[dict[str, Any]]:
        """The rows of all jobs when they have succeeded; Failed, naming the others, when not."""
        if self.wait(timeout):
            return self.jobs()
        bad = [f"job {row['id']} ({row['name']}) {row['state']}" for row in self.jobs() if row["state"] != "succeeded"]
        raise Failed("; ".join(bad[:10]) + (" …" if len(bad) > 10 else ""))

    def cancel(self, now: bool = False) -> None:
        engine = self._session.client()
        try:
            engine.call("intent", ids=None, batch=self.number, do="cancel", now=now)
        finally:
            engine.close()
