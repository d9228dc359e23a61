"""Codes and numbers into sentences, English and Chinese: of reasons, refusals and holds. Wording never fails.

A test holds that each code has both languages, is documented, and that its words use only the numbers it carries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jostle.core.reasons import UNREADABLE, Reason, Refusal, counted, hold_of
from jostle.wording.holds import HOLDS, NO_GPU_JOB, NOTHING
from jostle.wording.limits import limit_by
from jostle.wording.resizing import KEPT, KEPT_UNKNOWN, failure
from jostle.wording.words import REFUSALS, SIGNALS, STATES, TEXTS

EN, ZH = 0, 1
PLACES = 4  # that are told one by one
STAYS = (" It stays queued in case this changes.", "任务保留在队列中，以备情况变化。")


def text(reason: Reason, lang: str = "en") -> str:
    """The reason as a full sentence; never fails, whatever the reason carries."""
    return "".join(parts(reason, lang))


def parts(reason: Reason, lang: str = "en") -> tuple[str, str, str]:
    """That sentence in three: what decides, between what stands before and after it; all is before where nothing is marked."""
    words = TEXTS.get(reason.code)
    if words is None:
        return (f"{reason.code} {dict(reason.params)}" if reason.params else reason.code), "", ""
    at = language(lang)
    shown = _Shown({**reason.params, **_derived(reason, at)}, at)
    before, _, rest = words[at].partition("⟦")  # taken apart before anything is put in: what others call themselves marks nothing
    decides, _, after = rest.partition("⟧")
    return before.format_map(shown), decides.format_map(shown), after.format_map(shown)


def refusal_text(refusal: Refusal, lang: str = "en") -> str:
    words = REFUSALS.get(refusal.code)
    if words is None:
        return refusal.code
    at = language(lang)
    because = str(refusal.params.get("error") or "")
    processes = refusal.params.get("processes")
    why = {"why": still_there(processes, lang)} if processes else {}
    return words[at].format_map(_Shown({**refusal.params, **why, "because": f": {because}" if because else ""}, at))


def still_there(processes: Iterable[Sequence[int]], lang: str) -> str:
    """What is left of ended runs on a card: (pid, job, run) each."""
    words = "运行 {1}.{2} 的进程 {0} 仍在上面" if language(lang) else "process {0} of run {1}.{2} is still on it"
    return ("，" if language(lang) else ", ").join(words.format(*process) for process in processes)


def language(lang: str) -> int:
    return ZH if lang.lower().startswith("zh") else EN


def _span(least: Any, most: Any, at: int) -> str:
    """From least to most, or the one number that both are."""
    return str(most) if least == most else f"{least} {'到' if at else 'to'} {most}"


def _derived(reason: Reason, at: int) -> dict[str, Any]:
    """Words that depend on several numbers, or on there being any."""
    params = reason.params
    gpus = _counts_text(counted(reason.gpus) or params.get("refused") or (), at)
    needed, kind, head = params.get("needed", 1), params.get("error_type"), params.get("job")
    peak = params.get("peak_mib")
    hold, hint = str(params.get("hold", "")), SIGNALS.get(params.get("signal", 0))
    derived: dict[str, Any] = {
        "gpus": gpus,
        "details": _if(gpus, "（{}）" if at else " ({})"),
        "wanted": _if("" if needed == 1 else needed, "，需要 {} 张" if at else " ({} needed)"),
        "able_have": "has" if params.get("able") == 1 else "have",
        "kept_for": _kept_for(params, at),
        "nothing": (NO_GPU_JOB if hold_of(hold).gpus_only else NOTHING)[at],
        "hold": hold_text(hold, at),
        "hint": _if(hint and hint[at], "（{}）" if at else ", {}"),
        "seen": _if(peak and _gib("", peak), "（观测到最多使用 {}）" if at else " (it was seen to use {})"),
        "unkept": _unkept(params, at),
        "stays": "" if params.get("refused_at_once") else STAYS[at],
        "last": _if(kind, "（最近一次：{}）" if at else " (last: {})"),
        "head": _if(head, "；队首是任务 {}" if at else "; job {} is at its head"),
        "asked": _request(params, "asked_mib", at),
        "next": _request(params, "next_mib", at),
        "span": _span(params.get("least"), params.get("most"), at),
        "most_cards": "card" if params.get("most") == 1 else "cards",
        "by": limit_by(str(params.get("source", "")), at),
    }
    if isinstance(params.get("because"), Mapping):
        derived["because"] = text(Reason(params["because"]["code"], params["because"]["params"]), ("en", "zh")[at])
    if reason.code == "resize_failed":
        derived["what"] = failure(str(params.get("why")), at)
    if reason.code.startswith("paused"):
        held = params.get("held_mib")
        derived["kept"] = KEPT[at].format(_gib("", held)) if held else KEPT_UNKNOWN[at]
    if reason.code == "not_left":
        derived["gpus"] = f"GPU {_ids(params.get('gpus') or ())}"
    if at and "state" in params:
        derived["state"] = STATES.get(params["state"], params["state"])
    if isinstance(params.get("jobs"), (list, tuple)):
        derived["jobs"] = _jobs(params["jobs"], at)
    if isinstance(params.get("cards"), (list, tuple)):
        derived["cards"] = _ids(params["cards"])
    if isinstance(params.get("places"), (list, tuple)):
        derived |= {"n": len(params["places"]), "places": _places(params["places"], at)}
    if isinstance(params.get("pids"), (list, tuple)):
        shown = params["pids"]
        derived["pids"] = f"进程 {_ids(shown)}" if at else f"process{'' if len(shown) == 1 else 'es'} {_ids(shown)}"
    return derived


def _places(places: Sequence[Mapping[str, Any]], at: int) -> str:
    """Each place with its own sentence; of many the first."""
    lang, shown = ("en", "zh")[at], places[:PLACES]
    reasons = [Reason(p["code"], {**p["params"], "refused": p["refused"], "refused_at_once": True}) for p in shown]
    each = [f"{p['place']}{'：' if at else ': '}{text(reason, lang)}" for p, reason in zip(shown, reasons, strict=True)]
    more = len(places) - len(shown)
    rest = (f"另有 {more} 处。" if at else f"And {more} more.") if more else ""
    return ("" if at else " ").join([*each, *([rest] if rest else [])])


def _kept_for(params: Mapping[str, Any], at: int) -> str:
    """Of what is free: how much is kept for a job that has waited longer."""
    if "kept" not in params and "kept_mib" not in params:
        return ""
    kept = _size("", params["kept_mib"], _look_alike(params)) if "kept_mib" in params else params["kept"]
    return ("（其中 {} 为任务 {} 保留）" if at else " ({} kept for job {})").format(kept, params.get("job", "?"))


def _unkept(params: Mapping[str, Any], at: int) -> str:
    """Of a job that cards would be kept for: why none are."""
    if "coming" in params:
        en = " No cards are kept for it: what is free and what your own jobs will leave is {} of them."
        return ("没有为它保留卡：空闲的加上您自己的任务将让出的只有 {} 张。" if at else en).format(params["coming"])
    if "allowed" in params:
        en = " No cards are kept for it: you may use no more than {}."
        return ("没有为它保留卡：您最多只能用 {} 张。" if at else en).format(params["allowed"])
    return ""


def hold_text(hold: str, at: int) -> str:
    """What keeps all from starting: a code, perhaps with seconds or another detail, or else words."""
    code, detail, _ = hold_of(hold)
    if code in HOLDS:
        return HOLDS[code][at].format(s=_duration(int(detail), at) if detail.isdecimal() else detail)
    return detail if code == UNREADABLE else hold


def trouble(words: str, lang: str) -> str:
    """Why the cards cannot be read: a hold, or words of the driver, or nothing."""
    return hold_text(words, language(lang))


def _if(value: Any, words: str) -> str:
    return words.format(value) if value else ""


def _request(params: Mapping[str, Any], key: str, at: int) -> str:
    mib = params.get(key)
    return ("整张卡" if at else "a whole card") if mib is None else _size("", mib, _look_alike(params))


def _jobs(jobs: Iterable[Any], at: int) -> str:
    shown = list(dict.fromkeys(jobs))
    return f"任务 {_ids(shown)} " if at else f"job{'' if len(shown) == 1 else 's'} {_ids(shown)}"


def _ids(jobs: Sequence[Any]) -> str:
    return ", ".join(map(str, jobs[:8])) + (", …" if len(jobs) > 8 else "")


def _counts_text(counts: Iterable[Mapping[str, Any]], at: int) -> str:
    return ("，" if at else ", ").join(_count_text(count, at) for count in counts)


def _count_text(count: Mapping[str, Any], at: int) -> str:
    words = REFUSALS.get(count["code"])
    if words is None:
        return f"{count['n']} {count['code']}"
    who = ", ".join(f"{user} {n}" for user, n in (count.get("users") or {}).items())
    return words[2 + at].format_map(_Shown({**count, "who": who or "?", "jobs": _ids(count.get("jobs") or ("?",))}, at))


class _Shown(dict[str, Any]):
    """Parameters as people read them; one that is missing shows as a question mark."""

    def __init__(self, params: Mapping[str, Any], at: int) -> None:
        super().__init__(params)
        self._at = at
        self._exact = _look_alike(params)

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if _is_size(key, value):
            return _size(key, value, self._exact)
        if key.endswith("_s") and isinstance(value, (int, float)):
            return _duration(value, self._at)
        return _Word(value)

    def __missing__(self, key: str) -> Any:
        return "?"


def _is_size(key: str, value: Any) -> bool:
    return key.endswith("_mib") and isinstance(value, (int, float))


def _look_alike(params: Mapping[str, Any]) -> bool:
    """Whether two sizes that differ would read the same: 24564 and 24576 MiB are not both 24 GiB in one sentence."""
    sizes = {(value, _gib(key, value)) for key, value in params.items() if _is_size(key, value)}
    return len({text for _, text in sizes}) < len({mib for mib, _ in sizes})


def _size(key: str, mib: float, exact: bool) -> str:
    return f"{mib:.0f} MiB" if exact else _gib(key, mib)


class _Word(str):
    """A value whose format says the noun or verb for one and for many: {n:is|are}."""

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        one, _, many = spec.partition("|")
        return f"{self} {one if self == '1' else many}"


def _gib(key: str, mib: float) -> str:
    tenths = mib / 102.4
    rounded = math.floor if key.startswith("available") else math.ceil if key.startswith("needed") else round
    return f"{rounded(tenths) / 10:.1f}".removesuffix(".0") + " GiB"


def _duration(seconds: float, at: int) -> str:
    total = max(0, math.ceil(seconds)) if math.isfinite(seconds) else 0
    hours, minutes = total // 3600, total % 3600 // 60
    units = (" 小时", " 分钟", " 秒") if at else (" h", " min", " s")
    if total < 120:
        return f"{total}{units[2]}"
    if not hours:
        return f"{minutes}{units[1]}" + (f" {total % 60}{units[2]}" if total % 60 and minutes < 10 else "")
    return f"{hours}{units[0]}" + (f" {minutes}{units[1]}" if minutes else "")
