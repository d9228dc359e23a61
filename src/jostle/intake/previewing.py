"""What would become of jobs if they were queued now: asked of the engine, which decides as it would then, and put into words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.core.fields import PRIVATE
from jostle.core.model import LOCAL
from jostle.units import ranges
from jostle.wording import sentences
from jostle.wording.text import message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jostle.client import Client

MOST = 200  # jobs that an engine looks at at once


def previewed(client: Client, head: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], language: str) -> dict[str, Any]:
    """Each of the first jobs with `text`, what would become of it; `never`: what this host can never run, a line each; `holds`:
    how many cards would then be held, in words, where one job is asked for and that can be told."""
    asked = [{key: value for key, value in job.items() if key not in PRIVATE} for job in jobs[:MOST]]
    answer = client.call("preview", batch=dict(head), jobs=asked)
    previews = [_worded(job, answer, language) for job in answer["jobs"]]
    cards = [{**card, "refusal": sentences.worded(card["refusal"], language) if card["refusal"] else None}
             for card in answer["cards"]]  # fmt: skip
    held = set(answer["held"] or ()) | {card["uuid"] for card in cards if card["index"] in previews[0]["gpus"]}
    holds = _holds(len(held), answer["may"], language) if answer["held"] is not None and previews[0]["gpus"] else ""
    return {
        "jobs": previews, "more": len(jobs) - len(asked), "never": sentences.never(answer, language), "cards": cards,
        "checked": answer["checked"], "drawn": message("would_drawn", language) if answer["drawn"] else "", "holds": holds,
    }  # fmt: skip


def _worded(job: Mapping[str, Any], answer: Mapping[str, Any], language: str) -> dict[str, Any]:
    reason = sentences.worded(job["reason"], language) if job["reason"] else None
    return {**job, "reason": reason, "text": reason["text"] if reason else _sentence(job, answer, language)}


def _sentence(job: Mapping[str, Any], answer: Mapping[str, Any], language: str) -> str:
    if job["after"]:
        return message("would_follow", language, jobs=", ".join(answer["jobs"][k]["name"] for k in job["after"]))
    if job["chance"]:
        return message("might_start", language)
    if answer["drawn"] and job.get("target") == LOCAL:
        return message("would_start_drawn", language)
    if job["gpus"]:
        return message("would_start", language, gpus=ranges(job["gpus"]))
    if job.get("target") not in (None, LOCAL):
        return message("would_hand_over", language, target=job["target"])
    return message("would_start_bare", language)


def _holds(count: int, most: int | None, language: str) -> str:
    if most is None:
        return message("would_hold", language, n=count)
    return message("would_hold_of", language, n=count, most=most)
