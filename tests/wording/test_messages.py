"""What is said on the way is said in both languages, with the same values, and by somebody."""

import ast
import pathlib
import re
import string

import pytest

from jostle.experiments import skip
from jostle.wording import labels, limits, rows
from jostle.wording.history import WORDS as HISTORY
from jostle.wording.messages import MESSAGES, STEPS
from jostle.wording.text import message
from jostle.wording.words import TEXTS

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


def tables(module):
    """The codes of each table of a module and of those that it puts its own together from."""
    folder = SOURCE / "jostle" / "wording"
    parts = re.findall(r"from jostle\.wording(?:\.(\w+) import| import (\w+))", (folder / f"{module}.py").read_text("utf-8"))
    for name in {module, *("".join(pair) for pair in parts)}:
        for table in ast.walk(ast.parse((folder / f"{name}.py").read_text("utf-8"))):
            if isinstance(table, ast.Dict):
                pairs = zip(table.keys, table.values, strict=True)
                yield {key.value for key, value in pairs if isinstance(key, ast.Constant) and isinstance(value, ast.Tuple)}


@pytest.mark.parametrize(("module", "whole"), [("messages", MESSAGES), ("words", TEXTS)])
def test_no_code_has_words_in_two_places(module, whole):
    """Tables of several modules are put together: of two entries with one code only one would ever be said."""
    parts = [codes for codes in tables(module) if codes and codes <= set(whole)]
    assert sum(map(len, parts)) == len(whole)


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


HELD = {
    "name": "nb", "gpus": [0, 1], "gpu_request": [2, 2], "node": "vm", "since": 0.0, "until": None, "idle_s": None,
    "programs": [], "reason": None,
}  # fmt: skip


def test_an_allocation_that_has_just_got_its_cards_is_not_called_idle() -> None:
    assert labels.allocation({**HELD, "idle_s": 2.0}, 59.0, "en") == "nb: 2 GPUs on vm, GPU 0,1, for 59s"
    assert labels.allocation({**HELD, "idle_s": 61.0}, 61.0, "en") == "nb: 2 GPUs on vm, GPU 0,1, for 1m01s, idle for 1m01s"


def test_the_file_behind_a_limit_follows_the_colon_of_its_language() -> None:
    limit, view = {"name": "max_total_gpus", "source": "lab"}, {"lab_file": "/etc/l.yaml", "manager_file": ""}
    assert limits.source(limit, view, "en") == "set in the lab's file: /etc/l.yaml"
    assert limits.source(limit, view, "zh") == "由实验室的文件设定：/etc/l.yaml"


def test_the_list_of_jobs_tells_the_leg_in_the_language_of_the_reader() -> None:
    row = {
        "id": 1, "name": "train", "queue": None, "state": "running", "reason": None, "attempt": 1, "leg": 2,
        "gpus": [0, 1], "gpu_request": [1, 4], "submitted_at": 0.0, "started_at": 0.0, "ended_at": None,
        "error_type": None, "exit_code": None,
    }  # fmt: skip
    assert "1, leg 2" in rows.job(row, 1.0, "en") and "1，第 2 段" in rows.job(row, 1.0, "zh")


def test_what_a_dry_run_would_do_with_a_job_is_said_in_both_languages():
    job = {"name": "a", "do": "done", "by": [7, 1], "other_code": ["a1b2c3d", "c3d4e5f"], "commands": ["cd x", "true"]}
    assert rows.planned(job, "en") == ("a", "done before by job 7 with other code (a1b2c3d → c3d4e5f)", "cd x && true")
    assert rows.planned(job, "zh") == ("a", "此前已完成（任务 7），所用代码不同（a1b2c3d → c3d4e5f）", "cd x && true")
    for what in (skip.RUN, skip.DONE, skip.LOGGED, skip.NOT_FAILED):
        text = rows.planned({**job, "do": what, "by": None, "other_code": None}, "zh")[1]
        assert re.fullmatch("[\u4e00-\u9fff]+", text)
