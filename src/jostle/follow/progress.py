"""How a batch stands, from its events; and the lines that tell it. The clock is handed in."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any

from jostle import units
from jostle.core.reasons import done_by
from jostle.core.states import FINAL, OPEN, RAN, UNFINISHED
from jostle.views.batches import LAST, remaining
from jostle.wording.messages import step
from jostle.wording.sentences import beside, states, worded
from jostle.wording.text import gpus, listed, message, plain


class Progress:
    """One batch."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], language: str = "en") -> None:
        self.language = language
        self.names: dict[int, str] = {}
        self.states: dict[int, str] = {}
        self.gpus: dict[int, list[int]] = {}
        self.since: dict[int, float] = {}
        self.done_before: set[int] = set()  # skipped, because an earlier run did the same with success
        self.why: dict[int, str] = {}  # of those that failed
        self.never_ran: set[int] = set()  # … without a run, and so without a log
        self.took: deque[float] = deque(maxlen=LAST)
        self.at_once = 0  # jobs that ran when the last one started: between an end and the next start there are fewer
        self.join(rows)

    def join(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Jobs of the batch as they stand now."""
        for row in rows:
            self.names[row["id"]] = row["name"]
            self.states[row["id"]] = row["state"]
            if done_by(row["state"], row.get("reason")):
                self.done_before.add(row["id"])
            if row["state"] == "failed":
                self._failed(row["id"], self._why(row), ran=row["started_at"] is not None)
            if row["state"] in RAN and row.get("ran_s") is not None:
                self.took.append(row["ran_s"])
            if row["state"] in OPEN:
                self.gpus[row["id"]] = list(row["gpus"])
                self.since[row["id"]] = row["started_at"] or 0.0
        self.counts = Counter(self.states.values())
        self.at_once = self._live()

    @property
    def over(self) -> bool:
        return all(self.counts[state] == 0 for state in UNFINISHED)

    @property
    def succeeded(self) -> bool:
        return self.over and self.counts["succeeded"] + len(self.done_before) == len(self.states)

    def label(self, id: int) -> str:
        return f"{id} {plain(self.names.get(id, ''))}".rstrip()

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
            self.at_once = self._live()
            self.gpus[id] = data.get("gpus") or []
            self.since[id] = event["at"]
            where = self._words("on_gpus", gpus=gpus(self.gpus[id])) if self.gpus[id] else ""
            again = self._words("try", n=event["run"]) if (event["run"] or 1) > 1 else ""
            return self._line(kind, self.label(id) + where + again)
        if kind == "quarantined":
            return self._line(kind, f"GPU {data.get('gpu')}", self._why(data))
        if kind in ("running", "stopping"):
            self._set(id, kind)
            return None
        if kind == "background":
            return self.waits(id, self._why(data))
        if kind == "requeued":
            self._set(id, "queued")
            return self._line(kind, self.label(id), self._why(data) or self._words("queued_again"))
        if kind in FINAL:
            if id in self.done_before:
                return None  # told when it was submitted, all in one line
            ran, took = self.since.pop(id, None) is not None, data.get("ran_s")  # None: it was found dead, perhaps hours later
            after = self._words("after", time=units.show_duration(took)) if took is not None else ""
            why = self._why(data) if kind != "succeeded" else ""
            if self.states[id] not in FINAL:
                self._ended(id, kind, data, why, ran=ran)
            return self._line(kind, self.label(id) + after, why)
        return None

    def waits(self, id: int, why: str) -> str:
        return self._line("background", self.label(id), why)

    def _line(self, kind: str, what: str, why: str = "") -> str:
        return f"{step(kind, self.language)} {what}" + (self._words("because", why=why) if why else "")

    def _words(self, code: str, /, **values: Any) -> str:
        return message(code, self.language, **values)

    def _why(self, data: Mapping[str, Any]) -> str:
        """What a row or an event says of a failure or a wait."""
        if data.get("reason"):
            return plain(beside(worded(data["reason"], self.language)))
        if data.get("error_type"):
            return plain(str(data["error_type"]))
        return self._words("exit_code", code=data["exit_code"]) if data.get("exit_code") else ""

    def _ended(self, id: int, kind: str, data: Mapping[str, Any], why: str, *, ran: bool) -> None:
        self._set(id, kind)
        if kind == "failed":
            self._failed(id, why, ran=ran)
        if done_by(kind, data.get("reason")):
            self.done_before.add(id)
        if kind in RAN and data.get("ran_s") is not None:
            self.took.append(data["ran_s"])

    def _failed(self, id: int, why: str, *, ran: bool) -> None:
        self.why[id] = why
        if not ran:
            self.never_ran.add(id)

    def _set(self, id: int, state: str) -> None:
        old = self.states.get(id)
        if old in FINAL:
            return  # final states are final; a replayed event changes nothing
        if old is not None:
            self.counts[old] -= 1
        self.states[id] = state
        self.counts[state] += 1

    def _live(self) -> int:
        return sum(self.counts[state] for state in OPEN)

    def first_waiting(self, count: int) -> list[int]:
        waiting = []
        for id, state in self.states.items():
            if state == "queued":
                waiting.append(id)
                if len(waiting) == count:
                    break
        return waiting

    def summary(self) -> str:
        counts = self.counts.copy()
        counts["skipped"] -= len(self.done_before)
        parts = states(counts, self.language)
        parts += [self._words("done_before", n=len(self.done_before))] if self.done_before else []
        return listed(parts, self.language) or self._words("nothing_to_do")

    def left(self, now: float) -> float | None:
        """Seconds until all is done, from what finished so far and with as many jobs at once as now; None while there is nothing
        to tell it from, or a job takes much longer than those before it."""
        if not self.took or not self._live():
            return None
        live = [id for id, state in self.states.items() if state in OPEN]
        ages = [now - self.since.get(id, now) for id in live]
        return remaining(sum(self.took) / len(self.took), ages, self.counts["queued"], self.at_once)

    def left_words(self, now: float) -> str:
        """`about 12m left`; nothing while there is nothing to tell it from."""
        left = self.left(now)
        if left is None:
            return ""
        return self._words("progress_left", time=units.show_duration(left) if left >= 60 else f"{max(1, round(left))}s")
