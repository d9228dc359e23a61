"""Why an act is refused: a code and its numbers from whoever refuses it, the words here, in both languages, and on its page."""

import re
import string
from pathlib import Path

import pytest

from jostle.wording.declined import DECLINED, declined
from tests.pages import section

ROOT = Path(__file__).parents[2]
NUMBERS = {"job": 7, "other": 9, "new": 12, "batch": 3, "state": "running", "side": "before"}
NUMBERS |= {"allocation": 12, "name": "train", "key": "queue"}


def values(words):
    return {name for _, name, _, _ in string.Formatter().parse(words) if name}


@pytest.mark.parametrize("code", DECLINED)
def test_each_code_has_words_in_both_languages_of_the_same_numbers(code):
    english, chinese = DECLINED[code]
    assert values(chinese) <= values(english) <= set(NUMBERS)
    assert re.search("[\u4e00-\u9fff]", chinese)
    why = {"code": code, "params": {key: NUMBERS[key] for key in values(english)}}
    assert "{" not in declined(why, "en") + declined(why, "zh")
    about = "job" if "job" in values(english) else "allocation"
    assert "running" not in declined(why, "zh") and str(NUMBERS[about]) in declined(why, "zh")


def test_the_codes_are_those_that_the_store_gives_and_its_page_lists_them():
    given = {
        name
        for file in ("intents", "amend", "allocations")
        for call in re.findall(r"Reason\((.*?), \{", (ROOT / "src/jostle/store" / f"{file}.py").read_text())
        for name in re.findall(r'"(\w+)"', call)
    }
    given |= set(re.findall(r'\("(\w+)", \{', (ROOT / "src/jostle/core/jobflaws.py").read_text()))
    assert given - {"only_of_allocation"} == set(DECLINED), "what that is of cannot be set"
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|$", section("docs/reasons.md", "Acts that are refused"), re.MULTILINE))
    for code, words in DECLINED.items():
        state = "failed" if code in ("ended_already", "needs_another") else "running"
        params = {**{key: NUMBERS[key] for key in values(words[0])}, "state": state}
        assert listed[code] == declined({"code": code, "params": params}, "en")
