"""What is said of a job or a card, around its reason. A reason comes as it is kept and sent: code, numbers, perhaps refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jostle.core.reasons import Reason, Refusal
from jostle.core.states import SUMMED
from jostle.wording.reasons import language as column
from jostle.wording.reasons import parts, refusal_text, still_there, text, trouble
from jostle.wording.text import gpus, message, plain
from jostle.wording.words import REFUSALS, STATES, TEXTS

STANDS = {
    "queued": ("is queued", "正在排队"), "starting": ("is starting", "正在启动"), "running": ("is running", "正在运行"),
    "stopping": ("is stopping", "正在停止"), "succeeded": ("succeeded", "已成功"), "failed": ("failed", "已失败"),
    "cancelled": ("was cancelled", "已取消"), "skipped": ("was skipped", "已跳过"),
}  # fmt: skip
"""How a job stands."""

SAYS_STATE = {"cancelled": ("It was cancelled", "它已被取消"), "after_failed": ("It was skipped", "已跳过")}
"""How a reason begins that says the state itself."""


def worded(reason: Mapping[str, Any], language: str) -> dict[str, Any]:
    """The reason, or what is said against one card, with its text in this language, and so each of its refusals. `decides`: where
    in the text what decides begins and ends, if its words mark it."""
    code, params = reason["code"], reason.get("params") or {}
    refusals, decides = reason.get("gpus") or (), {}
    if code in REFUSALS:
        sentence = refusal_text(Refusal(code, "", 0, params), language)
    elif code not in TEXTS and reason.get("text"):
        sentence = str(reason["text"])  # of a newer or older version: its own words are better than none
    else:
        against = tuple(Refusal(r["code"], r["uuid"], r["index"], r.get("params") or {}) for r in refusals)
        before, deciding, after = parts(Reason(code=code, params=params, gpus=against), language)
        sentence = before + deciding + after
        decides = {"decides": [len(before), len(before) + len(deciding)]} if deciding else {}
    with_text = {**reason, "text": sentence, **decides, "params": params}
    return {**with_text, "gpus": [worded(refusal, language) for refusal in refusals]} if "gpus" in reason else with_text


def jobs(rows: Iterable[Mapping[str, Any]], language: str) -> list[dict[str, Any]]:
    """The rows with the text of their reasons; one that several share is worded once."""
    texts: dict[int, dict[str, Any]] = {}
    worded_rows = []
    for row in rows:
        reason = row["reason"]
        if reason and id(reason) not in texts:
            texts[id(reason)] = worded(reason, language)
        worded_rows.append({**row, "reason": texts[id(reason)] if reason else None})
    return worded_rows


def explained(answer: Mapping[str, Any], language: str) -> dict[str, Any]:
    """The answer to `why`, whose refusals stand beside the reason, too."""
    reason = worded(answer["reason"], language) if answer["reason"] else None
    return {**answer, "reason": reason, "gpus": (reason or {}).get("gpus") or []}


def card(gpu: Mapping[str, Any], language: str) -> dict[str, Any]:
    """A card with the text of what is said against it, and of why it is set aside."""
    worded_card, refusal, faulty = dict(gpu), gpu.get("refusal"), gpu.get("faulty")
    worded_card.pop("faulty", None)
    if isinstance(worded_card.get("quarantine"), list):
        worded_card["quarantine"] = still_there(worded_card["quarantine"], language)
    if faulty and not worded_card.get("quarantine"):
        worded_card["quarantine"] = worded(faulty, language)["text"]
    return {**worded_card, "refusal": worded(refusal, language) if refusal else None}


def status(view: Mapping[str, Any], language: str) -> dict[str, Any]:
    """How the engine stands, with the text of what keeps all from starting, of what is wrong with its cards, and, where they are
    looked at, of why allocations wait."""
    texts = {"hold_text": on_hold(view["hold"], language), "probe": trouble(view["probe"], language)}
    return {**view, **texts, **({"allocations": jobs(view["allocations"], language)} if "allocations" in view else {})}


def event(row: Mapping[str, Any], language: str) -> dict[str, Any]:
    """An event with the text of its reason, if it has one."""
    reason = row["data"].get("reason")
    return {**row, "data": {**row["data"], "reason": worded(reason, language)}} if reason else dict(row)


def refused(error: Mapping[str, Any], language: str, *, alone: bool = False, strict: bool = True) -> str:
    """What is wrong with one job of a submit, none of which was taken: none has a number yet, only a place in it. `strict`:
    somebody asked for that."""
    why = worded(error["reason"], language)["text"]
    if column(language):
        which = error["name"] if alone else f"其中第 {error['job']} 个任务（{error['name']}）"
        return f"{which}：{why}没有任务排队{'（--strict）' if strict else ''}"
    which = error["name"] if alone else f"job {error['job']} of these ({error['name']})"
    return f"{which}: {why} Nothing was queued{' (--strict)' if strict else ''}"


def on_hold(hold: str, language: str) -> str:
    """Why nothing starts; "" if something does."""
    return hold and text(Reason(code="on_hold", params={"hold": hold}), language)


def set_aside(health: Mapping[str, Any] | None, language: str) -> list[str]:
    """The faulty cards that the store knows of, a line each: `GPU 3: set aside as faulty: …`."""
    cards = sorted(((health or {}).get("faulty") or {}).values(), key=lambda card: int(card["index"]))
    return [against(card, worded(card, language)["text"], language) for card in cards]


def against(card: Mapping[str, Any], sentence: str, language: str) -> str:
    """One card and what is said against it."""
    return f"GPU {card['index']}{'：' if column(language) else ': '}{sentence}"


def never(answer: Mapping[str, Any], language: str, batch: str = "") -> list[str]:
    """What the engine said of jobs that can never run here, a line for each kind of them. `batch`: which batch they are of."""
    lines = []
    for entry in answer.get("never") or ():
        more = entry["count"] - len(entry["jobs"])
        ids = ", ".join(map(str, entry["jobs"])) + (message("and_others", language, n=more) if more else "")
        code = "never_one" if entry["count"] == 1 else "never_many"
        line = message(code, language, ids=ids, why=worded(entry["reason"], language)["text"])
        of = message("of_batch", language, name=batch) if batch else ""
        lines.append(message("warning", language, text=of + line))
    return lines


def states(counts: Mapping[str, int], language: str) -> list[str]:
    """How many jobs are in which state: `2 running`, `1 failed`."""
    return [f"{counts[state]:,} {STATES[state] if column(language) else state}" for state in SUMMED if counts.get(state)]


def beside(reason: Mapping[str, Any] | None) -> str:
    """The reason as it stands beside the state, without saying that again; nothing if there is no more to say."""
    if not reason:
        return ""
    sentence = str(reason["text"])
    for beginning in SAYS_STATE.get(reason["code"], ()):
        if sentence.startswith(beginning):
            rest = sentence[len(beginning) :].lstrip(" :：.。")
            return rest[:1].upper() + rest[1:]
    return sentence


def headline(job: Mapping[str, Any], name: str, cards: str, language: str) -> str:
    """How a job stands and why, in a sentence; `cards` are those it has, as they are written."""
    at = column(language)
    who, colon, stop = (f"任务 {job['id']}（{name}）", "：", "。") if at else (f"job {job['id']} ({name})", ": ", ".")
    stands = STANDS[job["state"]][at]
    sentence = continued(beside(job["reason"]))
    if not sentence and job["state"] == "failed":
        code = job["exit_code"]
        sentence = (job["error_type"] or (f"退出码 {code}" if at else f"exit code {code}")) + stop
    if not sentence and job["state"] == "running" and cards:
        stands += f"，使用 GPU {cards}" if at else f" on GPU {cards}"
    return who + ("" if at else " ") + stands + (colon + sentence if sentence else stop)


def continued(sentence: str) -> str:
    """A sentence after a colon: `It waits` becomes `it waits`, `GPU` stays."""
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() or sentence[1:2] == " " else sentence


def why_lines(job: Mapping[str, Any], behind: int, language: str) -> list[str]:
    """Why a job waits or ended so, with what is said against each card. `behind`: jobs like it that come before it."""
    lines = [headline(job, plain(job["name"]), gpus(job["gpus"]) if job["gpus"] else "", language)]
    if behind:
        lines.append("  " + message("jobs_before", language, n=behind))
    for refusal in (job["reason"] or {}).get("gpus") or []:
        lines.append("  " + against(refusal, refusal["text"], language))
    if job["state"] == "failed" and job["attempt"]:
        lines.append("  " + message("logs_show", language, id=job["id"]))
    return lines
