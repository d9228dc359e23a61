"""Why a job waits, or why it ended as it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jostle.core.states import UNFINISHED
from jostle.errors import NoEngine, NotFound
from jostle.views import estimates
from jostle.views.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jostle.session import Session
    from jostle.views.types import Job, Why


class Explained(NamedTuple):
    job: Job  # with the reason that holds now
    behind: int = 0  # jobs like it that come before it
    silent: str = ""  # an engine that is there gave no answer: why; then this is what is recorded
    used: dict[str, Any] | None = None  # of a job that runs: how it has used its cards until now
    on_cards: Sequence[Mapping[str, Any]] = ()  # … and which of its processes are on them

    def plain(self, engine: bool) -> Why:
        """`engine`: whether one runs; else this is how the last one left it."""
        job, reason = self.job, self.job["reason"]
        gpus = reason.get("gpus") or [] if reason else []
        return {
            "id": job["id"], "state": job["state"], "reason": reason, "gpus": gpus, "behind": self.behind, "engine": engine,
        }  # fmt: skip


def explained(session: Session, id: int) -> Explained:
    job = session.reader.job(id)
    if job is None:
        raise NotFound(f"there is no job {id}; `jostle ps --all` lists them")
    answer: dict[str, Any] = {}
    silent = ""
    client = session.engine_if_any() if job["state"] in UNFINISHED else None
    if client is not None:
        try:
            answer = client.call("why", id=id)
        except NoEngine as e:
            silent = str(e)
        finally:
            client.close()
    if answer.get("reason"):
        job["reason"] = answer["reason"]
    else:
        Waits([job], {} if client is not None else None, session.reader.needs).fill([job])
    estimates.fill([job], session.reader, answer)
    return Explained(cast("Job", job), answer.get("behind") or 0, silent, answer.get("used"), answer.get("on_cards") or ())
