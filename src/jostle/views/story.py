"""All that is known of one job: how it stands, its runs, and what happened to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from jostle.backends.local.outside import runs_of
from jostle.core.reasons import done_by
from jostle.views.processes import processes
from jostle.views.why import Explained, explained

if TYPE_CHECKING:
    from jostle.session import Session
    from jostle.store.reads import Reader
    from jostle.views.types import Code, Event, Job, Need, Process, Run
    from jostle.views.types import Story as Plain


class Story(NamedTuple):
    why: Explained
    runs: list[Run]
    events: list[Event]
    needs: list[Need]  # the jobs it comes after
    code: Code | None
    env: dict[str, str]  # given for this very job
    processes: list[Process]  # of its run, on this host

    def plain(self) -> Plain:
        """Without the environment: it may hold secrets, and scripts have not asked for it."""
        return {
            "job": self.why.job, "runs": self.runs, "events": self.events, "needs": self.needs, "code": self.code,
            "processes": self.processes,
        }  # fmt: skip


def story(session: Session, id: int) -> Story:
    why, reader = explained(session, id), session.reader
    runs, events = cast("list[Run]", runs_of(reader, id)), cast("list[Event]", reader.events(job=id))
    if why.used and runs and runs[-1]["ended_at"] is None:
        runs[-1]["peak_mib"], runs[-1]["profile"] = why.used["peak_mib"], why.used["profile"]
    lives = processes(runs[-1], why.on_cards) if runs and runs[-1]["ended_at"] is None else []
    return Story(why, runs, events, cast("list[Need]", reader.needs(id)), code_of(why.job, reader), reader.env(id), lives)


def code_of(job: Job, reader: Reader) -> Code | None:
    """The code of its batch, or of the batch that did it before."""
    from jostle.experiments import code

    by = done_by(job["state"], job["reason"])
    did = reader.job(by["job"]) if by else job
    recorded = code.recorded((reader.batch(did["batch"]) or {}).get("about")) if did else None
    return {"commit": recorded["commit"], "dirty": recorded["dirty"]} if recorded else None
