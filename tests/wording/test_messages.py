"""What is said on the way is said in both languages, with the same values, and by somebody."""

import pathlib
import re
import string

import pytest

from jostle.wording.history import WORDS as HISTORY
from jostle.wording.messages import MESSAGES, STEPS, message

SAID = r'(?:(?:session|terminal)\.(?:tell|message)|\bmessage|_note|_words)\(\s*"(\w+)"'
SOURCE = pathlib.Path(__file__).parents[2] / "src"


def values(words):
    return {name for _, name, _, _ in string.Formatter().parse(words) if name}


@pytest.mark.parametrize("code", MESSAGES)
def test_both_languages_tell_the_same_values(code):
    english, chinese = MESSAGES[code]
    assert values(english) == values(chinese)
    assert re.search("[\u4e00-\u9fff]", chinese) or english == chinese or not re.search("[a-z]", re.sub(r"\{.*?\}", "", english))


def code():
    return {path: path.read_text("utf-8") for path in SOURCE.rglob("*.py") if not path.name.endswith("messages.py")}


def test_each_message_is_said_somewhere_and_nothing_else_is():
    said = {word for text in code().values() for word in re.findall(SAID, text)}
    named = {word for text in code().values() for word in re.findall(r"[\"'](\w+)[\"']", text)}
    assert sorted(said - set(MESSAGES)) == []
    assert sorted(set(MESSAGES) - named) == []


def test_numbers_have_their_nouns_and_texts_are_one_line():
    assert message("submitted", "en", batch=12345, n=1, ids="7") == "batch 12345: 1 job (7)"
    assert message("submitted", "en", batch=1, n=12345, ids="1-12345") == "batch 1: 12,345 jobs (1-12345)"
    assert message("submitted", "zh", batch=1, n=12345, ids="1-12345") == "批次 1：12,345 个任务（1-12345）"
    assert "\x1b" not in message("note", "en", text="a\x1b[2Jb\nc") and "\n" not in message("note", "en", text="b\nc")


def test_the_steps_of_a_language_are_equally_wide():
    for words in zip(*STEPS.values(), strict=True):
        assert len({len(word) for word in words}) == 1


@pytest.mark.parametrize("code", HISTORY)
def test_both_languages_tell_the_same_of_the_history(code):
    english, chinese = HISTORY[code]
    assert values(english) == values(chinese)
