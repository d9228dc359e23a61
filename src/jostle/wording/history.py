"""The history of cards as lines of text: what each showed as a row of blocks, and who had it, the newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jostle import units
from jostle.wording.text import plain

Row = Mapping[str, Any]

BLOCKS = "▁▂▃▄▅▆▇█"
MOST = 100  # marks of a line
LEAST = 20
SPANS = 5  # of a card
NAME = 24  # characters of a job's name

# code: (English, Chinese)
WORDS: dict[str, tuple[str, str]] = {
    "head": ("the last {time}, up to {step} a mark; a gap: not read", "最近 {time}，每格至多 {step}；空白：没有读数"),
    "nothing": ("nothing is known of any card in the last {time}", "最近 {time} 内没有任何显卡的记录"),
    "unread": (
        "the history cannot be read ({why}): `history.db` in JOSTLE_HOME may be removed, and another is begun",
        "历史记录无法读取（{why}）：可以删除 JOSTLE_HOME 中的 `history.db`，之后会重新开始记录",
    ),
    "load": ("load  ", "负载"),
    "memory": ("memory", "显存"),
    "free": ("free for {time}", "已空闲 {time}"),
    "unused": ("nobody has had it", "无人使用过"),
    "idle": ("idle for {time}", "已闲置 {time}"),
    "there": ("{who} {time} until now", "{who} 至今 {time}"),
    "was": ("{who} {time}", "{who} {time}"),
    "job": ("job {id} {name}", "任务 {id} {name}"),
    "job_ended": ("job {id} {name} ({outcome})", "任务 {id} {name}（{outcome}）"),
    "hidden": ("somebody who cannot be seen", "无法看到的用户"),
    "more": ("{n} more", "另有 {n} 个"),
    # what is to come
    "ends": ("ends at about {time}", "预计 {time} 结束"),
    "ends_between": (
        "ends at about {time} ({low} to {high}), by {n} like it", "预计 {time} 结束（{low} 至 {high}），依据 {n} 次同类运行"
    ),
    "limited": ("at the latest {time}", "最迟 {time}"),
    "starts": ("may start at about {time}", "预计 {time} 可开始"),
    "free_at": ("free at about {time}", "预计 {time} 空闲"),
    "free_by": ("free at the latest {time}", "最迟 {time} 空闲"),
    # how a run used its cards
    "used": ("memory: median {half}, p95 {most}", "显存：中位 {half}，p95 {most}"),
    "peak": ("peak after {time}", "峰值在 {time} 后"),
    "loaded": ("load: mean {mean:.0f}%, p95 {most}%", "负载：平均 {mean:.0f}%，p95 {most}%"),
    "without_load": (", 0% for {share:.0%} of the time", "，{share:.0%} 的时间为 0%"),
    "beside": ("{who} beside it for {time}", "{who} 同卡 {time}"),
    "seen": ("seen for {time}", "观测时长 {time}"),
}


def word(code: str, language: str, **values: Any) -> str:
    return WORDS[code][language == "zh"].format(**values)


def lines(history: Row, width: int, language: str) -> Iterator[str]:
    """`history` is the plain form of the view, `width` that of the screen."""
    whole, now = history["ended_at"] - history["began_at"], history["at"]
    if not history["gpus"]:
        yield word("nothing", language, time=units.show_duration(whole))
    else:
        room = max(LEAST, min(MOST, width - 30))
        count = len(history["gpus"][0]["load"])
        step = history["step_s"] * -(-count // min(room, count))
        yield word("head", language, time=units.show_duration(whole), step=units.show_duration(step))
    for card in history["gpus"]:
        used, load = last(card["used_mib"]), last(card["load"])
        yield f"GPU {card['index']}  {plain(card['name'])}"
        yield f"  {word('load', language)} {spark(card['load'], 100, room)} {'-' if load is None else f'{load}%'}"
        figures = f"{units.show_size(used)} / {units.show_size(card['total_mib'])}"
        yield f"  {word('memory', language)} {spark(card['used_mib'], card['total_mib'], room)} {figures}"
        yield "  " + ("，" if language == "zh" else ", ").join(stays(card, now, language))
    if history["error"]:
        yield word("unread", language, why=plain(history["error"]))


def spark(values: Sequence[float | None], top: float, room: int) -> str:
    """One block for each few values, as high as their mean; nothing where none of them is known."""
    each = -(-len(values) // min(room, len(values))) if values else 1
    groups = [[v for v in values[k : k + each] if v is not None] for k in range(0, len(values), each)]
    return "".join(_block(sum(group) / len(group) / top) if group and top else " " for group in groups)


def _block(share: float) -> str:
    return BLOCKS[max(0, min(len(BLOCKS) - 1, round(share * (len(BLOCKS) - 1))))]


def last(values: Sequence[int | None]) -> int | None:
    return next((value for value in reversed(values) if value is not None), None)


def stays(card: Row, now: float, language: str) -> Iterator[str]:
    """Who had a card, the newest first."""
    spans = card["spans"][::-1]
    if card["idle_since"] is not None:
        yield word("idle", language, time=units.show_duration(now - card["idle_since"]))
    if card["free_since"] is not None:
        yield word("free", language, time=units.show_duration(now - card["free_since"]))
        spans = spans or [card["before"]]
    if not spans:
        yield word("unused", language)
    for span in spans[:SPANS]:
        ended = span["ended_at"]
        time = units.show_duration((now if ended is None else ended) - span["began_at"])
        yield word("there" if ended is None else "was", language, who=who(span, language), time=time)
    if len(spans) + card["left_out"] > SPANS:
        yield word("more", language, n=len(spans) + card["left_out"] - SPANS)


def who(span: Row, language: str) -> str:
    """`job 17 train`, `bob`."""
    if span["job"] is None:
        return plain(span["user"] or "") or word("hidden", language)
    name = plain(span["name"] or "")
    name = name if len(name) <= NAME else name[: NAME - 1] + "…"
    code = "job" if span["outcome"] in (None, "succeeded") else "job_ended"
    return word(code, language, id=span["job"], name=name, outcome=span["outcome"])


def used(run: Row, language: str) -> str:
    """How a run used its cards: nothing if nobody saw it."""
    profile = run.get("profile")
    if not profile or not profile["observed_s"]:
        return ""
    parts = []
    if profile["memory_p50_mib"] is not None:
        half, most = units.show_size(profile["memory_p50_mib"]), units.show_size(profile["memory_p95_mib"])
        parts.append(word("used", language, half=half, most=most))
    if profile["peak_at_s"] is not None:
        parts.append(word("peak", language, time=units.show_duration(profile["peak_at_s"])))
    if profile["load_mean"] is not None:
        share = profile["idle_share"]
        without = word("without_load", language, share=share) if round(100 * share) else ""
        parts.append(word("loaded", language, mean=profile["load_mean"], most=profile["load_p95"]) + without)
    for other in profile["shared"]:
        name = word("job", language, id=other["job"], name="").strip() if other["job"] else plain(other["user"] or "")
        name = name or word("hidden", language)
        parts.append(word("beside", language, who=name, time=units.show_duration(other["for_s"])))
    parts.append(word("seen", language, time=units.show_duration(profile["observed_s"])))
    return ("；" if language == "zh" else "; ").join(parts)


def foreseen(job: Row, language: str, *, whole: bool = False) -> str:
    """When a job ends, or may start: `ends at about 14:20:00`; `whole`: also between when and when, and by what. Nothing if
    there is no telling."""
    estimate = job.get("estimate")
    if not estimate:
        return ""
    at = {name: units.show_instant(estimate[name]) for name in ("starts_at", "ends_at", "earliest_at", "latest_at", "limit_at")}
    parts = []
    if estimate["starts_at"] is not None:
        parts.append(word("starts", language, time=at["starts_at"]))
    if estimate["ends_at"] is not None:
        code = "ends_between" if whole else "ends"
        parts.append(word(code, language, time=at["ends_at"], low=at["earliest_at"], high=at["latest_at"], n=estimate["runs"]))
    if estimate["limit_at"] is not None and (whole or not parts):
        parts.append(word("limited", language, time=at["limit_at"]))
    return ("；" if language == "zh" else "; ").join(parts)


def freed(card: Row, language: str) -> str:
    """When a card of ours will be free."""
    for name in ("free_at", "free_by"):
        if card.get(name) is not None:
            return word(name, language, time=units.show_instant(card[name]))
    return ""
