"""How a batch stands, from its events; and the lines that tell it. Pure but for the clock that is handed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from jostle import units
from jostle.cli import render

FINISHED = ("succeeded", "failed", "cancelled", "skipped")
LIVE = ("starting", "running", "stopping")


class Progress:
    """One batch."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], language: str = "en") -> None:
        self.language = language
        self.names: dict[int, str] = {}
        self.states: dict[int, str] = {}
        self.gpus: dict[int, list[int]] = {}
        self.since: dict[int, float] = {}
        for row in rows:
            self.names[row["id"]] = row["name"]
            self.states[row["id"]] = row["state"]
            if row["state"] in LIVE:
                self.gpus[row["id"]] = list(row["gpus"])
                self.since[row["id"]] = row["started_at"] or 0.0
        self.counts = Counter(self.states.values())

    @property
    def over(self) -> bool:
        return all(self.counts[state] == 0 for state in ("queued", *LIVE))

    @property
    def succeeded(self) -> bool:
        return self.over and self.counts["succeeded"] == len(self.states)

    def label(self, id: int) -> str:
        return f"{id} {render.plain(self.names.get(id, ''))}".rstrip()

    def take(self, event: Mapping[str, Any]) -> str | None:
        """What the event means to a person, or None if it is not worth a line."""
        id, kind, data = event["job"], event["kind"], event["data"]
        if kind == "retried" and id in self.states:
            self._set(data["as_job"], "queued")
            self.names[data["as_job"]] = self.names.get(id, "")
            return None
        if id is None or id not in self.states:
            return None
        if kind == "starting":
            self._set(id, kind)
            self.gpus[id] = data.get("gpus") or []
            self.since[id] = event["at"]
            again = f" (try {event['run']})" if (event["run"] or 1) > 1 else ""
            where = f" on GPU {render.gpus(self.gpus[id])}" if self.gpus[id] else ""
            return f"started    {self.label(id)}{where}{again}"
        if kind in ("running", "stopping"):
            self._set(id, kind)
            return None
        if kind == "requeued":
            self._set(id, "queued")
            return f"again      {self.label(id)}: {_why(data, self.language) or 'it is queued again'}"
        if kind in FINISHED:
            self._set(id, kind)
            began = self.since.pop(id, None)
            took = f" after {units.show_duration(event['at'] - began)}" if began else ""
            why = _why(data, self.language) if kind != "succeeded" else ""
            return f"{kind:<10} {self.label(id)}{took}{': ' + why if why else ''}"
        return None

    def _set(self, id: int, state: str) -> None:
        old = self.states.get(id)
        if old in FINISHED:
            return  # final states are final; a replayed event changes nothing
        if old is not None:
            self.counts[old] -= 1
        self.states[id] = state
        self.counts[state] += 1

    def first_waiting(self, count: int) -> list[int]:
        found = []
        for id, state in self.states.items():
            if state == "queued":
                found.append(id)
                if len(found) == count:
                    break
        return found

    def summary(self) -> str:
        parts = [f"{self.counts[s]:,} {s}" for s in ("running", "starting", "stopping", "queued", *FINISHED) if self.counts[s]]
        return ", ".join(parts) or "nothing to do"

    def view(self, now: float, columns: int, rows: int, waiting: str) -> list[str]:
        """The live picture: one line in all, the running jobs, why the next one waits."""
        live = [id for id, state in self.states.items() if state in LIVE]
        lines = [self.summary()]
        for id in live[: max(1, rows - 3)]:
            where = f"GPU {render.gpus(self.gpus.get(id, []))}"
            lines.append(f"  {self.label(id)}  {where}  {units.show_duration(now - self.since.get(id, now))}")
        if len(live) > max(1, rows - 3):
            lines.append(f"  … and {len(live) - max(1, rows - 3)} more")
        if waiting:
            lines.append(f"  {waiting}")
        return [render.cut(line, columns - 1) for line in lines]


def _why(data: Mapping[str, Any], language: str) -> str:
    reason = data.get("reason")
    if reason:
        from jostle.cli.waits import beside, reworded

        return beside(reworded(reason, language))
    if data.get("error_type"):
        return str(data["error_type"])
    return f"exit code {data['exit_code']}" if data.get("exit_code") else ""
