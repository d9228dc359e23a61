"""Why a run has no value in a table: a code and what it is about, with words in both languages."""

import re
import string
from pathlib import Path

import pytest

from jostle.experiments.absence import NO_LINE, Absence
from jostle.experiments.metrics import parsed, read
from jostle.wording.absences import ABSENCES, absence

ROOT = Path(__file__).parents[2] / "src" / "jostle" / "experiments"
VALUES = {
    "state": "failed", "error_type": "oom", "exit_code": 3, "reason": "queue_failed", "path": "/x.log", "why": "no such file",
    "key": "acc", "tail": 10_000, "text": "1,5", "value": "nan", "winner": "job 7 (x)", "job": 7, "label": "job 7 (x)",
    "metric": "acc", "codes": "a1 (2), b2 (1)",
}  # fmt: skip


def values(words: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(words) if name}


@pytest.mark.parametrize("code", ABSENCES)
def test_each_code_has_words_in_both_languages_of_the_same_values(code):
    english, chinese = ABSENCES[code]
    assert values(english) == values(chinese) <= set(VALUES)
    told = Absence(code, **{name: VALUES[name] for name in values(english)})
    assert told.worded("en") == told and "{" not in told + told.worded("zh")
    assert re.search("[\u4e00-\u9fff]", told.worded("zh")) and "failed" not in told.worded("zh")


def test_a_reason_inside_another_is_worded_with_it():
    inner = Absence("failed_with", exit_code=1)
    told = Absence("instead", why=inner.plain(), winner="job 9 (b)")
    assert told == "failed: exit code 1; job 9 (b) counts"
    assert told.worded("zh") == "失败：退出码 1；以 job 9 (b) 为准"


def test_the_codes_are_those_that_results_give():
    said = "".join(path.read_text() for path in ROOT.glob("*.py"))
    given = set(re.findall(r'Absence\("(\w+)"', said)) | {"no_line", "no_key", "no_line_near", "no_key_near"}
    assert given == set(ABSENCES) and absence("failed", {}, "en") == "failed"


def test_where_a_log_has_no_line_that_was_looked_for_is_known_by_its_code(tmp_path):
    (tmp_path / "log").write_text("epoch 1\n")
    asked = [(parsed([text]), tail) for text in ("m=x: (.*)", "m") for tail in (None, 4)]
    lacks = {read(str(tmp_path / "log"), metrics, tail).problems["m"].code for metrics, tail in asked}
    assert lacks == NO_LINE
