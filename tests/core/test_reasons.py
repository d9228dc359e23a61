"""Every reason has words in both languages, uses only its own numbers, and is documented."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jostle.core.reasons import (
    GPU_HOLDS,
    IMPOSSIBLE,
    PROBE_TROUBLES,
    UNREADABLE,
    Hold,
    Reason,
    Refusal,
    as_text,
    counted,
    hold_of,
    plain,
)
from jostle.wording.holds import HOLDS
from jostle.wording.reasons import refusal_text, text
from jostle.wording.sentences import worded
from jostle.wording.words import REFUSALS, TEXTS

DOCS = Path(__file__).parents[2] / "docs" / "reasons.md"
RETRIED = {"failures": 2, "error_type": "oom", "left_s": 0.0, "asked_mib": 8192, "peak_mib": 5120, "next_mib": 8192}

REFUSED: dict[str, dict[str, Any]] = {
    "memory": {"available_mib": 4200, "needed_mib": 20480},
    "min_free": {"available_mib": 4200, "needed_mib": 8000},
    "not_empty": {"used_mib": 3072},
    "stranger": {"user": "alice", "pid": 4242, "used_mib": 18432},
    "newcomer": {"user": "alice", "pid": 4242, "used_mib": 300, "left_s": 42.5, "idle_for_s": 120.0},
    "neighbour": {"uid": 1001, "user": "bob"},
    "neighbour_idle": {"uid": 1001, "user": "bob", "held_s": 720.0},
    "taken": {"job": 12, "run": 1},
    "taken_elsewhere": {"sid": 4242},
    "own_process": {"pid": 4242, "name": "python", "used_mib": 3072},
    "misplaced": {"job": 12, "pid": 4242},
    "leaving": {"job": 12, "pid": 4242, "used_mib": 3072},
    "unexplained": {"used_mib": 3072, "card_mib": 20480, "utilization": 85},
    "utilization": {"utilization": 85, "most": 30},
    "utilization_unknown": {"most": 30},
    "idle": {"left_s": 42.5, "idle_for_s": 300.0},
    "kept": {"job": 17},
    "avoided": {},
    "over_limit": {},
    "left": {"left": 2},
    "out_of_range": {},
    "excluded": {},
    "faulty_memory": {"errors": 2},
    "faulty_row": {},
    "faulty_said": {"job": 12, "run": 1, "words": "uncorrectable ECC"},
    "faulty_jobs": {"failed": "12, 14, 17"},
    "prohibited": {},
    "exclusive": {},
    "quarantined": {"processes": [[4242, 12, 1]]},
    "lost": {"error": "GPU is lost"},
    "unreadable": {"error": "Unknown Error"},
    "silent": {"silent_s": 45.0, "error": "no answer"},
    "starting": {"silent_s": 24.0, "error": ""},
    "unknown": {"error": ""},
    "slice": {},
    "mig": {"error": ""},
}
CARDS = (
    *(
        Refusal(code="memory", uuid=f"GPU-{i}", index=i, params={"available_mib": 4200 - i, "needed_mib": 20480})
        for i in range(3)
    ),
    *(
        Refusal(code="stranger", uuid=f"GPU-{i}", index=i, params={"user": u, "pid": 1, "used_mib": 9})
        for i, u in enumerate("aab", 3)
    ),
)
EXAMPLES: dict[str, dict[str, Any]] = {
    "gpus": {"needed": 1, "fit": 0, "total": 6},
    "gpus_unknown": {"total": 6},
    "on_hold": {"hold": "disk_full"},
    "limit": {"limit": 6, "held": 5, "more": 1, "needed": 2, "available": 8, "left": 2, "least": 2, "most": 7},
    "impossible": {"needed": 2, "needed_mib": 40960, "able": 1, "largest_mib": 81920, "cards": 8},
    "impossible_slices": {"needed": 2, "slices": 4, "cards": 0},
    "impossible_count": {"needed": 10, "needed_mib": 0, "able": 8, "largest_mib": 24576, "cards": 8},
    "impossible_limit": {"needed": 4, "limit": 3},
    "user_limit": {"limit": "max_manual_gpus", "most": 6, "held": 5, "needed": 2, "source": "lab"},
    "impossible_user_limit": {"limit": "max_gpus_per_task", "most": 4, "needed": 5, "source": "own"},
    "cpus": {"needed": 4, "available": 2, "total": 8},
    "host_memory": {"needed_mib": 8192, "available_mib": 20480, "total_mib": 131072, "kept_mib": 16384, "job": 12},
    "counter": {"name": "licence", "needed": 2, "available": 1, "total": 4},
    "impossible_cpus": {"needed": 64, "total": 8},
    "impossible_host_memory": {"needed_mib": 262144, "total_mib": 131072},
    "impossible_counter": {"name": "licence", "needed": 2, "total": 0},
    "no_load": {"cards": [2, 3], "of": 4, "idle_s": 2700.0},
    "free_cards": {"more": 2},
    "asked_for": {"least": 1, "most": 4},
    "for_job": {"job": 12},
    "courtesy": {"limit": 4, "held": 6},
    "low_load": {"load": 12, "least": 30},
    "stranger_came": {"gpu": 3, "user": "bob"},
    "keeps_cards": {"has": 2, "least": 1, "most": 4, "leg": 3,
                    "because": {"code": "resize_pause", "params": {"left_s": 50.0, "lost": 1}}},
    "at_most": {"most": 4},
    "at_minimum": {"least": 1, "gpu": 3, "user": "bob"},
    "too_dear": {"more": 1, "left_s": 60.0},
    "resize_pause": {"left_s": 50.0, "lost": 1},
    "load_too_low": {"load": 40, "least": 80},
    "resizing": {"leg": 2, "gpus": [0, 1]},
    "not_left": {"leg": 2, "gpus": [3]},
    "unreachable": {},
    "resize_failed": {"why": "no_listener", "left_s": 8.0},
    "gives_way": {},
    "pausing": {"gpu": 3, "user": "bob", "times": 1},
    "paused": {"gpu": 3, "user": "bob", "times": 1, "held_mib": 8192, "quiet_s": 30.0},
    "paused_until": {"gpu": 3, "user": "bob", "times": 2, "held_mib": None, "left_s": 50.0},
    "quiet_again": {"quiet_s": 30.0},
    "unwatched": {},
    "yielded": {"left_s": 60.0, "times": 2},
    "max_concurrent": {"running": 2, "most": 2},
    "start_interval": {"left_s": 12.2, "interval_s": 30.0},
    "no_target": {"target": "slurm", "known": "local"},
    "no_room": {"target": "slurm"},
    "nowhere": {
        "places": [
            {"place": "local", "code": "gpus", "params": {"needed": 2, "fit": 1, "total": 2},
             "refused": [{"code": "excluded", "n": 1}]},
            {"place": "slurm", "code": "no_room", "params": {"target": "slurm"}, "refused": []},
        ]
    },
    "inside_waits": {"allocation": 12},
    "inside_releasing": {"allocation": 12},
    "inside_resizing": {"allocation": 12},
    "inside_full": {"allocation": 12, "needed": 1, "fit": 0, "total": 6},
    "inside_impossible": {"allocation": 12, "needed": 4, "total": 2, "most_mib": 16384, "asked_mib": 20480},
    "held_idle": {"idle_s": 900.0},
    "held_idle_until": {"idle_s": 900.0, "left_s": 900.0},
    "visited": {"gpu": 3, "user": "bob", "pid": 4242},
    "releasing": {"job": 13},
    "released": {},
    "released_time": {"limit_s": 7200.0},
    "released_process": {},
    "released_idle": {"idle_s": 1800.0},
    "tied_ended": {}, "waiter_ended": {},
    "allocation_over": {"job": 12},
    "starting_soon": {},
    "behind": {"queue": "3", "n": 4, "job": 12},
    "after": {"jobs": [12, 13]},
    "held": {},
    "begin": {"at": 1.7e9, "left_s": 7200.0},
    "backoff": {"failures": 3, "error_type": "exit_code_1", "left_s": 600.0},
    "cancelled": {},
    "dropped": {},
    "beyond": {"gpu": 3, "used_mib": 9421, "asked_mib": 8192},
    "cancelling": {},
    "waits_there": {"target": "slurm", "why": "Priority"},
    "target_absent": {"target": "slurm"},
    "background": {"pids": [4711, 4712]},
    "no_engine": {},
    "retry": {"failures": 1, "error_type": "exit_code_1", "left_s": 0.0},
    "not_started": {},
    "no_process": {"error": "/bin/bash: Resource temporarily unavailable", "left_s": 4.0},
    "card_failed": {"card": "3", "error_type": "runtime_error"},
    "oom_squeezed": RETRIED,
    "oom_raised": {**RETRIED, "peak_mib": 8100, "next_mib": 10240},
    "oom_larger_card": {**RETRIED, "asked_mib": None, "next_mib": 24577},
    "oom_beyond_any_card": {"peak_mib": 24000, "largest_mib": 24576},
    "oom": {"peak_mib": 8100, "failures": 1},
    "exit_code": {"exit_code": 1, "error_type": "runtime_error", "failures": 4},
    "signal": {"signal": 9, "error_type": "signal_9", "failures": 1},
    "reported": {"exit_code": 0, "error_type": "nan_loss", "failures": 1},
    "start_failed": {"error": "no such file: trian.py", "failures": 1},
    "time_limit": {"limit_s": 7200.0, "failures": 1},
    "wait_timeout": {"limit_s": 3600.0, "last": "gpus", "refused": counted(CARDS)},
    "exit_unknown": {"failures": 1},
    "host_rebooted": {"failures": 1},
    "after_failed": {"job": 12, "state": "failed"},
    "done_before": {"job": 12, "run": 1},
    "queue_failed": {"job": 12},
}


def example(code: str) -> Reason:
    return Reason(code=code, params=EXAMPLES[code], gpus=CARDS if code in ("gpus", "inside_full") else ())


def test_every_code_has_an_example() -> None:
    assert EXAMPLES.keys() == TEXTS.keys() and REFUSED.keys() == REFUSALS.keys()


@pytest.mark.parametrize("code", sorted(TEXTS))
def test_a_reason_is_a_full_sentence_in_both_languages(code: str) -> None:
    english, chinese = text(example(code)), text(example(code), "zh-CN")
    assert re.fullmatch(r"[A-Z0-9].*\.", english) and chinese.endswith("。")
    assert not re.search(r"[?{}]|None|  |\.\.", english + chinese)
    assert re.search(r"[一-鿿]", chinese) and not re.search(r"[一-鿿]", english)


def histogram(refusals: list[Refusal], lang: str = "en") -> str:
    """The refusals as a reason tells them, counted: what stands in its parentheses."""
    told = text(Reason(code="gpus_unknown", gpus=tuple(refusals)), lang)
    return told.split("（" if lang == "zh" else " (", 1)[1].removesuffix("）。" if lang == "zh" else ").")


@pytest.mark.parametrize("code", sorted(REFUSALS))
def test_a_refusal_is_worded_in_both_languages_alone_and_counted(code: str) -> None:
    refusal = Refusal(code=code, uuid="GPU-0", index=0, params=REFUSED[code])
    words = [refusal_text(refusal), refusal_text(refusal, "zh"), histogram([refusal, refusal]), histogram([refusal], "zh")]
    assert all(words) and not any(re.search(r"[?{}]|None|  ", w) for w in words)
    assert words[2].startswith("2 ") and words[3].startswith("1 张")


def test_refusals_are_counted_the_most_frequent_first() -> None:
    cards = [
        *(Refusal(code="memory", uuid="", index=0, params={"available_mib": m, "needed_mib": 20480}) for m in (4200, 4199, 3000)),
        *(
            Refusal(code="stranger", uuid="", index=0, params={"user": u, "pid": 1, "used_mib": 5})
            for u in ("bob", "alice") * 2 + ("alice",)
        ),
    ]
    reason = Reason(code="gpus", params={"needed": 1, "fit": 0, "total": 8}, gpus=tuple(cards))
    assert text(reason) == (
        "0 of 8 GPUs fit: 5 are used by others (alice 3, bob 2), 3 have too little memory (most 4.1 GiB free, 20 GiB needed)."
    )
    assert text(reason, "zh") == (
        "8 张 GPU 中有 0 张可用：5 张被他人使用（alice 3, bob 2），3 张显存不足（最多可用 4.1 GiB，需要 20 GiB）。"
    )


def test_counted_refusals_can_be_kept_and_are_worded_later_in_either_language() -> None:
    cards = [Refusal(code=code, uuid=f"GPU-{i}", index=i, params=REFUSED[code]) for code in REFUSED for i in range(2)]
    kept = json.loads(json.dumps(counted(cards)))
    assert {"code": "stranger", "n": 2, "users": {"alice": 2}} in kept and {"code": "taken", "n": 2, "jobs": [12]} in kept
    for lang in ("en", "zh"):
        assert histogram(cards, lang) in text(Reason(code="wait_timeout", params={"limit_s": 3.0, "refused": kept}), lang)


def test_cards_are_counted_together_of_which_only_some_tell_their_load() -> None:
    loads: list[dict[str, Any]] = [{}, {"utilization": 30}, {"utilization": 7}]
    cards = [Refusal(code="unexplained", uuid=f"GPU-{i}", index=i, params=load) for i, load in enumerate(loads)]
    for order in (cards, cards[::-1]):
        assert counted(order) == [{"code": "unexplained", "n": 3, "utilization": 7}]


def test_one_is_worded_as_one() -> None:
    assert histogram([Refusal(code="lost", uuid="", index=0)]) == "1 is lost"
    assert text(Reason(code="backoff", params={"failures": 1, "left_s": 1})) == "It failed 1 time and is tried again in 1 s."


def test_a_range_of_one_number_is_that_number() -> None:
    def asked(least: int, most: int, language: str) -> str:
        return text(Reason("asked_for", {"least": least, "most": most}), language)

    assert [asked(1, 4, "en"), asked(3, 3, "en"), asked(1, 1, "en")] == [
        "A person asked for 1 to 4 cards.", "A person asked for 3 cards.", "A person asked for 1 card."
    ]  # fmt: skip
    assert [asked(1, 4, "zh"), asked(3, 3, "zh")] == ["按人的要求改为 1 到 4 张卡。", "按人的要求改为 3 张卡。"]


def test_free_memory_is_rounded_down_and_needed_memory_up() -> None:
    close = Refusal(code="memory", uuid="", index=0, params={"available_mib": 20479, "needed_mib": 20481})
    assert refusal_text(close) == "too little memory: 19.9 GiB available, 20.1 GiB needed"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.2, "1 s"),
        (59.0, "59 s"),
        (119, "119 s"),
        (120, "2 min"),
        (125, "2 min 5 s"),
        (3599, "59 min"),
        (3600, "1 h"),
        (7260, "2 h 1 min"),
    ],
)
def test_durations_are_shown_as_people_say_them(seconds: float, shown: str) -> None:
    assert text(Reason(code="time_limit", params={"limit_s": seconds})) == f"It ran longer than its time limit of {shown}."


def test_what_may_be_missing_is_left_out() -> None:
    assert text(Reason(code="behind", params={"queue": "3", "n": 2, "job": None})) == "It waits behind 2 other jobs of queue 3."
    assert text(Reason(code="after", params={"jobs": [5]})) == "It waits for job 5 to end."
    assert (
        text(Reason(code="on_hold", params={"hold": "a person is at work"}))
        == "Nothing starts at the moment: a person is at work."
    )


def test_a_hold_that_concerns_gpus_only_says_so() -> None:
    missing = Reason(code="on_hold", params={"hold": "gpus: no NVML on this host"})
    assert text(missing) == "No job with a GPU starts at the moment: no NVML on this host."
    assert text(missing, "zh") == "目前暂停启动需要 GPU 的任务：no NVML on this host。"
    broken = Reason(code="on_hold", params={"hold": "driver_mismatch"})
    assert text(broken).startswith("No job with a GPU starts at the moment: the NVIDIA driver was updated")


def test_a_hold_is_read_again_from_its_text() -> None:
    for code in HOLDS:
        for detail in ("", "24", "/there, with spaces: No space left on device"):
            hold = Hold(code, detail, gpus_only=code in GPU_HOLDS)
            assert hold_of(as_text(hold)) == hold
    assert as_text(None) == "" and GPU_HOLDS - {UNREADABLE} | PROBE_TROUBLES <= HOLDS.keys()


def test_what_never_starts_is_known_by_its_code() -> None:
    assert {code for code in TEXTS if code.startswith("impossible")} == IMPOSSIBLE


def test_wording_never_fails() -> None:
    assert text(Reason(code="new_code", params={"x": 1})) == "new_code {'x': 1}"
    assert refusal_text(Refusal(code="new_code", uuid="", index=0)) == "new_code"
    assert histogram([Refusal(code="new_code", uuid="", index=0)]) == "1 new_code"
    for code in TEXTS:
        assert text(Reason(code=code)) and text(Reason(code=code), "zh")
    for code in REFUSALS:
        assert refusal_text(Refusal(code=code, uuid="", index=0))


def test_a_reason_can_be_sent_as_json() -> None:
    sent = worded(plain(example("gpus")), "en")
    assert json.loads(json.dumps(sent)) == sent
    assert sent["code"] == "gpus" and sent["text"] == text(example("gpus")) and len(sent["gpus"]) == 6
    assert sent["gpus"][0] == {
        "index": 0, "uuid": "GPU-0", "code": "memory", "params": {"available_mib": 4200, "needed_mib": 20480},
        "text": "too little memory: 4.1 GiB available, 20 GiB needed",
    }  # fmt: skip


def test_what_decides_is_told_by_where_it_stands_and_no_name_can_mark_anything() -> None:
    for lang, decides in (("en", "0 of 6 GPUs fit"), ("zh", "0 张可用")):
        sent = worded(plain(example("gpus")), lang)
        assert sent["text"][slice(*sent["decides"])] == decides
    assert "decides" not in worded(plain(example("backoff")), "en")
    for code in TEXTS:
        assert not {"⟦", "⟧"} & {*text(example(code)), *text(example(code), "zh")}, code
    hostile = {"code": "gpus", "params": {"needed": 1, "fit": 0, "total": 1, "refused": [
        {"code": "stranger", "n": 1, "users": {"⟦eve⟧": 1}}]}}  # fmt: skip
    sent = worded(hostile, "en")
    assert "⟦eve⟧" in sent["text"] and sent["text"][slice(*sent["decides"])] == "0 of 1 GPU fit"


def test_the_documentation_lists_every_code_with_its_words() -> None:
    page = DOCS.read_text(encoding="utf-8")
    for code in TEXTS:
        assert f"| `{code}` |" in page and text(example(code)) in page, code
    for code, params in REFUSED.items():
        assert f"| `{code}` |" in page and refusal_text(Refusal(code=code, uuid="", index=0, params=params)) in page, code
    for hold in HOLDS:
        assert f"`{hold}`" in page


def test_two_sizes_of_one_sentence_that_differ_do_not_read_alike() -> None:
    params = {"needed": 1, "needed_mib": 24576, "able": 0, "largest_mib": 24564, "cards": 8}
    for lang in ("en", "zh"):
        told = text(Reason(code="impossible", params=params), lang)
        assert "24576 MiB" in told and "24564 MiB" in told and "GiB" not in told
    assert "24 GiB" in text(Reason(code="impossible", params={**params, "largest_mib": 12288}))
    assert text(Reason(code="impossible", params={**params, "largest_mib": 24576})).count("24 GiB") == 2
