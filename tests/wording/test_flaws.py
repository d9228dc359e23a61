"""What is wrong with a file: one text for all who read it as such, and in Chinese for who asks."""

import copy
import pickle
import re
import string

import pytest

from jostle.core.fields import JOB, LIMITS, RETRY, RULES, SETTINGS
from jostle.formats import gpumanage, jobfile, spec, taskfile
from jostle.formats.flaws import BadFiles
from jostle.formats.wording import expectation
from jostle.wording.expected import PATTERNS, PHRASES
from jostle.wording.flaws import Said, _phrase, said, worded
from jostle.wording.flawwords import FLAWS

CHINESE = re.compile(r"[\u4e00-\u9fff]")


def names(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("code", FLAWS)
def test_both_languages_tell_the_same(code):
    english, chinese = FLAWS[code]
    assert names(english) == names(chinese) and (CHINESE.search(chinese) or code == "told_at") and not CHINESE.search(english)


def test_it_is_its_english_text_wherever_it_goes_and_keeps_its_code():
    text = said("value_odd", key="gpus", value='"x"', expected="true or false")
    assert text == 'gpus: "x" is not understood; expected true or false' == worded(text, "en") and isinstance(text, str)
    for same in (copy.copy(text), copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert isinstance(same, Said) and same == text and worded(same, "zh") == 'gpus：无法理解 "x"；应为true 或 false'
    assert worded("a plain text", "zh") == "a plain text"


def test_what_people_wrote_is_no_phrase_of_ours():
    assert worded(said("block_odd", text='"a list"', expected="a path"), "zh") == '无法理解 "a list"；应为路径'


def checks():
    """Every check that a file of a workspace, a job file or settings may be held to."""
    yield from gpumanage.KEYS.items()
    for table in (JOB, RULES, RETRY, LIMITS, SETTINGS):
        for name, field in table.items():
            try:
                yield name, spec.reader(field.kind)
            except (KeyError, ValueError):
                continue  # no single value


@pytest.mark.parametrize(("name", "check"), [pytest.param(*one, id=one[0]) for one in checks()])
def test_what_is_expected_of_a_value_is_known_in_chinese(name, check):
    expected = expectation(check)
    assert CHINESE.search(_phrase(expected)), expected


BAD = {
    "twice": "gpu_left: 1\ngpu_left: 2\n", "odd": "gpu_left: x\n", "shape": "gpu_left: [1]\n", "root": "- a\n", "yaml": "a: [\n",
    "tab": "retry_config:\n\tmax_retries: 1\n", "colon": "gpu_left: 1: 2\n", "loop": "gpu_left: &a [*a]\n", "tag": "a: !!x y\n",
    "cards": "compete_gpus: []\nuse_all_gpus: false\n", "retry": "retry_config: 3\n", "path": "work_dir: 3\n", "key": "[a]: 1\n",
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_errors_in_rules_are_told_in_chinese_with_their_lines(tmp_path, what):
    path = tmp_path / "gpu_manage.yaml"
    path.write_text(BAD[what])
    with pytest.raises(BadFiles) as found:
        gpumanage.load(str(path))
    assert str(found.value) == found.value.worded("en") and not CHINESE.search(str(found.value))
    for line in found.value.worded("zh").splitlines():
        assert line.startswith(f"{path}:") and CHINESE.search(line), line


def test_warnings_of_rules_are_told_in_chinese(tmp_path):
    text = "gpuleft: 1\nxyz: 2\nmin_gpu: 3\nmax_gpu: 1\nlaunch_delay: 1\nstart_interval: 2\n"
    _, warnings, flaws = gpumanage.read("w/gpu_manage.yaml", text)
    assert flaws == [] and len(warnings) == 4
    assert all(CHINESE.search(worded(warning, "zh")) for warning in warnings)


TASKS = {
    "single": ["1\n2\n", "x\n", "1,2\n", "true\n-1\n", "1\ntrue\nnan\n", "1\ntrue\n2\n3\n", '"a",\n1,\n20\n', "1,2\ntrue\n",
               "true\n1,2,3\n", "1\ntrue\nx\n", "true\n5\n"],
    "multi": ["1\ntrue\n2\n", "1\ntrue\n0\n2\n", "1\n2\n", "true\n", '"a",\n1,\n20\n'],
}  # fmt: skip


@pytest.mark.parametrize(("mode", "text"), [(mode, text) for mode, texts in TASKS.items() for text in texts])
def test_errors_in_task_files_are_told_in_chinese(mode, text):
    _, flaws = taskfile.parse(text, mode)
    assert flaws and all(CHINESE.search(worded(what, "zh")) for _, what in flaws), flaws


JOBS = [
    "", "- a\n", "jobs: 1\n", "jobs: []\n", "jobs:\n- a\n", "job: 1\n", "defaults: 1\njobs:\n- run: a\n",
    *(f"jobs:\n- {{{job}}}\n" for job in (
        "name: x", "run: a, rn: b", "run: a, gpus: x", "run: a, after: b", "run: a, env: 1", "run: a, share: true",
        "run: [], after: {a: 1}", "run: a, env: {A=B: 1}",
    )),
]  # fmt: skip


@pytest.mark.parametrize("text", JOBS)
def test_errors_in_job_files_are_told_in_chinese(tmp_path, text):
    path = tmp_path / "jobs.yaml"
    path.write_text(text)
    with pytest.raises(BadFiles) as found:
        jobfile.load([str(path)])
    for line in found.value.worded("zh").splitlines():
        assert CHINESE.search(line), line


def test_no_phrase_is_there_for_nothing():
    assert all(CHINESE.search(chinese) or not english for english, chinese in PHRASES.items() if english != "true or false")
    assert all(CHINESE.search(chinese) for _, chinese in PATTERNS)
