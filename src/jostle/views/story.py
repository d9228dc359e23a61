"""All that is known of one job: how it stands, its runs, and what happened to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from jostle.views.why import Explained, explained

if TYPE_CHECKING:
    from jostle.session import Session
    from jostle.store.reads import Reader


class Story(NamedTuple):
    why: Explained
    runs: list[dict[str, Any]]
    events: list[dict[str, Any]]
    needs: list[dict[str, Any]]  # the jobs it comes after
    code: dict[str, Any] | None  # commit, and whether there were changes
    env: dict[str, str]  # given for this very job

    def plain(self) -> dict[str, Any]:
        """Without the environment: it may hold secrets, and scripts have not asked for it."""
        return {"job": self.why.job, "runs": self.runs, "events": self.events, "needs": self.needs, "code": self.code}


def story(session: Session, id: int) -> Story:
    why, reader = explained(session, id), session.reader
    return Story(why, reader.runs(id), reader.events(job=id), reader.needs(id), code_of(why.job, reader), reader.env(id))


def code_of(job: dict[str, Any], reader: Reader) -> dict[str, Any] | None:
    """The code of its batch, or of the batch that did it before."""
    from jostle.experiments import code

    reason = job["reason"] or {}
    by = reason["params"]["job"] if job["state"] == "skipped" and reason.get("code") == "done_before" else None
    did = reader.job(by) if by else job
    found = code.recorded((reader.batch(did["batch"]) or {}).get("about")) if did else None
    return {key: found[key] for key in ("commit", "dirty")} if found else None
