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
    "unread": ("the history cannot be read: {why}", "历史记录无法读取：{why}"),
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
