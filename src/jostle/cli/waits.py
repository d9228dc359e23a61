"""Why each listed job waits: what the engine says, and what the rows themselves tell when it is not asked or not there.

Words come from core.reasons alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

STATES = {
    "queued": "排队", "starting": "启动", "running": "运行", "stopping": "停止", "succeeded": "成功", "failed": "失败",
    "cancelled": "取消", "skipped": "跳过",
}  # fmt: skip
"""The states inside Chinese sentences."""

Row = Mapping[str, Any]
Ahead = Callable[[int], tuple[int, int | None]]


class Waits:
    """The reasons of one listing. `engine` is the answer to `reasons`, None if no engine runs; `needs` looks up dependencies."""

    def __init__(
        self,
        rows: Sequence[Row],
        engine: Mapping[str, Any] | None,
        language: str,
        needs: Callable[[int], list[Any]] | None = None,
        ahead: Ahead | None = None,
    ) -> None:
        self.needs = needs
        self.ahead = ahead  # for a queue that is not listed whole
        self.engine = engine
        self.shapes = (engine or {}).get("shapes") or {}
        self.running = (engine or {}).get("running") or {}
        self.language = language
        self.position: dict[int, int] = {}
        self.head: dict[str, int] = {}
        waiting = [row for row in rows if row["queue"] is not None and row["ended_at"] is None]
        counts: dict[str, int] = {}
        for row in sorted(waiting, key=_turn):
            queue = row["queue"]
            self.position[row["id"]] = counts.get(queue, 0)
            self.head.setdefault(queue, row["id"])
            counts[queue] = counts.get(queue, 0) + 1

    def fill(self, rows: Iterable[dict[str, Any]]) -> None:
        """Sets `reason`, worded, on these rows."""
        for row in rows:
            if row["state"] == "queued":
                row["reason"] = self._of(row)
            elif row["state"] == "stopping":
                row["reason"] = worded("cancelling", {}, self.language)
            elif row["reason"]:
                row["reason"] = reworded(row["reason"], self.language)
            elif row["state"] == "running":
                row["reason"] = self.running.get(str(row["id"]))

    def _of(self, row: Row) -> dict[str, Any] | None:
        """In the words that the engine has for one job; only what it says of shapes it has to be asked for."""
        from jostle.core.explain import explain

        if self.engine is None and row["intent"] != "hold":
            return worded("no_engine", {}, self.language)
        ahead: tuple[int, int | None] = (0, None)
        if row["queue"] is not None:
            ahead = self.ahead(row["id"]) if self.ahead else (self.position.get(row["id"], 0), self.head.get(row["queue"]))
        needs = self.needs(row["id"]) if self.needs is not None and not row["ready"] and not ahead[0] else ()
        now = float((self.engine or {}).get("now") or 0.0)
        reason = explain(row, now=now, wall=time.time(), ahead=ahead, needs=needs)
        said: dict[str, Any] | None = self.shapes.get(str(row["shape"])) if row["ready"] == 1 else None
        if reason is None or (said is not None and reason.code == "starting_soon"):
            return said
        return worded(reason.code, reason.params, self.language)


def _turn(row: Row) -> tuple[bool, bool, float, int]:
    """As the engine takes them: what runs, then what has begun and waits for another try, then the places."""
    return (row["state"] == "queued", not row["attempt"], row.get("place") or 0.0, row["id"])


def reworded(stored: Mapping[str, Any], language: str) -> dict[str, Any]:
    """A reason of the store is a code and numbers; it is worded when it is shown, in the reader's language."""
    from jostle.core.words import REFUSALS, TEXTS

    if stored["code"] in REFUSALS:
        return {**stored, "text": refused(stored, language)}
    if stored["code"] not in TEXTS and stored.get("text"):
        return dict(stored)  # of a newer or older version: its own words are better than none
    return {**stored, **worded(stored["code"], stored.get("params") or {}, language)}


def refused(stored: Mapping[str, Any], language: str) -> str:
    """What is said against one card, worded."""
    from jostle.core.reasons import Refusal, refusal_text

    return refusal_text(Refusal(stored["code"], "", 0, stored.get("params") or {}), language)


def set_aside(health: Mapping[str, Any] | None, language: str) -> list[str]:
    """The faulty cards that the store knows of, a line each: `GPU 3: set aside as faulty: …`."""
    found = sorted(((health or {}).get("faulty") or {}).values(), key=lambda card: int(card["index"]))
    return [f"GPU {card['index']}{'：' if language == 'zh' else ': '}{refused(card, language)}" for card in found]


# how a reason begins that says the state itself
SAYS_STATE = {"cancelled": ("It was cancelled", "它已被取消"), "after_failed": ("It was skipped", "已跳过")}


def beside(reason: Mapping[str, Any] | None) -> str:
    """The reason as it stands beside the state, without saying that again; nothing if there is no more to say."""
    if not reason:
        return ""
    text = str(reason["text"])
    for beginning in SAYS_STATE.get(reason["code"], ()):
        if text.startswith(beginning):
            rest = text[len(beginning) :].lstrip(" :：.。")
            return rest[:1].upper() + rest[1:]
    return text


def worded(code: str, params: Mapping[str, Any], language: str) -> dict[str, Any]:
    from jostle.core.reasons import Reason, text

    shown = dict(params)
    if language == "zh" and "state" in shown:
        shown["state"] = STATES.get(shown["state"], shown["state"])
    return {"code": code, "text": text(Reason(code=code, params=shown), language), "params": dict(params)}


def never(answer: Mapping[str, Any], language: str) -> list[str]:
    """What the engine said of jobs that can never run here, a line for each kind of them."""
    lines = []
    for entry in answer.get("never") or ():
        more = entry["count"] - len(entry["jobs"])
        ids = ", ".join(map(str, entry["jobs"])) + (f" and {more} more" if more else "")
        told = reworded(entry["reason"], language)["text"]
        lines.append(f"warning: job{'' if entry['count'] == 1 else 's'} {ids}: {told}")
    return lines
