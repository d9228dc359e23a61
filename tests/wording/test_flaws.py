"""What is wrong with a file: one text for all who read it as such, and in Chinese for who asks."""

import ast
import copy
import pickle
import re
import string
from pathlib import Path

import pytest

import jostle
from jostle.core.fields import CHANNEL, JOB, LIMITS, NOTIFY, RETRY, RULES, SETTINGS
from jostle.experiments.load import load
from jostle.formats import configfile, gpumanage, jobfile, spec, taskfile
from jostle.formats.flaws import BadFiles
from jostle.formats.wording import expectation
from jostle.wording.expected import PATTERNS, PHRASES
from jostle.wording.flaws import FlawText, _phrase, flaw, worded
from jostle.wording.flawwords import FLAWS

CHINESE = re.compile(r"[\u4e00-\u9fff]")
ENGLISH = re.compile(r"\b[a-z]+ [a-z]+ [a-z]+\b")  # three words of it are no key
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|\([^()]*\)|No such file or directory")  # also what the system says


def names(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("code", FLAWS)
def test_both_languages_tell_the_same(code):
    english, chinese = FLAWS[code]
    assert names(english) == names(chinese) and (CHINESE.search(chinese) or code == "told_at") and not CHINESE.search(english)


def test_no_code_stands_twice():
    room = Path(jostle.__file__).parent / "wording"
    texts = [(room / f"{name}.py").read_text("utf-8") for name in ("flawwords", "sweepwords", "consoleflaws")]
    assert sorted(FLAWS) == sorted(code for text in texts for code in re.findall(r'^    "(\w+)": \(', text, re.MULTILINE))


def test_it_is_its_english_text_wherever_it_goes_and_keeps_its_code():
    text = flaw("value_odd", key="gpus", value='"x"', expected="true or false")
    assert text == 'gpus: "x" is not understood; expected true or false' == worded(text, "en") and isinstance(text, str)
    for same in (copy.copy(text), copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert isinstance(same, FlawText) and same == text and worded(same, "zh") == 'gpus：无法理解 "x"；应为 true 或 false'
    assert worded("a plain text", "zh") == "a plain text"


@pytest.mark.parametrize(
    ("expected", "chinese"),
    [("indices of GPUs", "应为 GPU 编号"), ("`key: value` lines", "应为 `键"), ("a path", "应为路径")],
)
def test_between_chinese_and_a_value_in_latin_letters_stands_a_space(expected, chinese):
    assert chinese in worded(flaw("value_odd", key="gpus", value="中x", expected=expected), "zh")


def test_what_people_wrote_is_no_phrase_of_ours():
    assert worded(flaw("block_odd", text='"a list"', expected="a path"), "zh") == '无法理解 "a list"；应为路径'


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


KINDS = [(name, field) for table in (JOB, RULES, RETRY, LIMITS, SETTINGS, CHANNEL, NOTIFY) for name, field in table.items()]


@pytest.mark.parametrize("field", [pytest.param(field, id=name) for name, field in KINDS])
def test_what_each_kind_of_value_may_be_is_known_in_chinese(field):
    assert CHINESE.search(_phrase(field.kind.expected)), field.kind.expected


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


SWEEPS = [
    "matrix: {}\ncommand: a\n", "matrix: 1\ncommand: a\n", "matrix: {a: [1]}\n", "matrix: {a: [1, 1]}\ncommand: x {a}\n",
    "matrix: {a: []}\ncommand: x {a}\n", "matrix: {a: [[1]]}\ncommand: x {a}\n", "matrix: {a: {b: 1}}\ncommand: x {a}\n",
    "matrix: {a: {range: [1, 2, 0]}}\ncommand: x {a}\n", "matrix: {a: {range: [0, 99999999999]}}\ncommand: x {a}\n",
    "matrix: {a: {logspace: [1e-5, 1, 2]}}\ncommand: x {a}\n", "matrix: {a: {linspace: x}}\ncommand: x {a}\n",
    "matrix: {a: 0-9}\ncommand: x {a}\n", "matrix: {a b: [1]}\ncommand: x\n", "matrix: {args: [1]}\ncommand: x\n",
    "matrix: {a: {range: [0, 1000]}, b: {range: [0, 1000]}}\ncommand: x {a} {b}\n", "zip: 1\ncommand: a\n",
    "zip: {a: [1], b: [1, 2]}\ncommand: x {a} {b}\n", "zip: {a: [1], a: [2]}\ncommand: x {a}\n",
    "matrix: {a: [1]}\nzip: {a: [2]}\ncommand: x {a}\n",
    "matrix: {a: [1]}\nexclude: [{b: 1}, 3, {a: 7}, {aa: 1}]\ncommand: x {a}\n",
    "matrix: {a: [1]}\nexclude: {a: 1}\ncommand: x {a}\n", "include: [{a: 1, a: 2}, {b: 1}]\ncommand: x {a}\n",
    "matrix: {a: [1]}\ncommand: x\n", "matrix: {aaa: [1]}\ncommand: x {aaa} {aab}\n",
    "matrix: {a: [1, 2]}\ncommand: x {a}\njob: {name: same}\n", "matrix: {a: [1, 2]}\ncommand: x {a}\njob: {log: same}\n",
    "matrix: {a: [1]}\ncommand: x {a}\njob: {name: '{nothing}', nam: x}\n", "matrix: {a: [1]}\ncommand: x {a}\njob: 3\n",
    "matrix: {a: [1]}\ncommand: x {a}\njob: {share: true, log: %s}\n" % ("l" * 300),
    "matrix: {a: [1]}\ncommand: {a: 1}\n", "matrix: {a: [1]}\ncommand: ['', x]\n", "matrix: {a: [1]}\ncommand: x `{a}`\n",
    "matrix: {a: [1]}\ncommand: x $'{a}'\n", "matrix: {a: [1]}\ncommand: 'x $b{a}'\n", "matrix: {a: [1]}\ncommand: \"x # {a}\"\n",
    "matrix: {a: [1]}\ncommand: x {a}\ninto_config: [b]\ninputs: [[1]]\n", "matrix: {a: [1]}\ncommand: x\ninto_config: a\n",
    "matrix: {config: [nowhere.yaml], a: [1]}\ncommand: x {config}\ninto_config: a\n",
    "matrix: {a: [1]}\ncommand: x {a}\npolicy: 3\n",
    "matrix: {a: [1]}\ncommand: x {a}\npolicy: {min_gpu: 2, max_gpu: 1, gpu_lef: 1}\n", "matix: {a: [1]}\ncommand: x\n",
    "suites: 3\n", "suites: {a: }\n", "suites: {a: [1]}\n", "suites: {a: {suites: {}}}\n", "suites: {a: x.yaml, a: y.yaml}\n",
    "suites: {a: {nam: 1}}\n", "suites: {a: {file: [1], lgs: 1}}\n", "suites: {a: nested.yaml}\n", "suites: {a: nowhere.yaml}\n",
    "jobs: [{config: a.yaml, algorithm: b}]\nmatrix: {a: [1]}\n", "jobs: [{config: a.yaml}, 3]\n",
    "jobs: [{config: a.yaml, algorithm: b, log: x, log_path: y, extra_args: {config: 1, a: 1, a: 2}}]\n",
    "jobs: [{config: a.yaml, algorithm: b, extra_args: 3, retry: {backoff: 3}, on: [], run: x}]\n",
]  # fmt: skip


@pytest.mark.parametrize("text", SWEEPS)
def test_errors_in_sweeps_and_suites_are_told_in_chinese(tmp_path, text):
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    (tmp_path / "nested.yaml").write_text("suites: {b: c.yaml}\n")
    with pytest.raises(BadFiles) as found:
        load([str(path)])
    assert str(found.value) == found.value.worded("en") and not CHINESE.search(str(found.value))
    for _, _, what in found.value.flaws:
        told = worded(what, "zh")
        assert isinstance(what, FlawText) and CHINESE.search(told), told
        assert not ENGLISH.search(QUOTED.sub("", told)), told


CHANNELS = [
    "notify: 3\n", "notify: {channel: {}}\n", "notify: {channels: 3}\n", "notify: {channels: {a b: {}, c: 3}}\n",
    "notify: {channels: {a: {}}}\n", "notify: {channels: {a: {kind: mail}}}\n",
    "notify: {channels: {a: {kind: slack, host: x}}}\n",
    "notify: {channels: {a: {kind: slack, url: https://x.example/}, a: {kind: slack}}}\n",
    "notify: {channels: {a: {kind: mail, host: h, sender: a@b.cd, to: a@b.cd, user: x}}}\n",
    "notify: {channels: {a: {kind: mail, host: h, sender: a@b.cd, to: a@b.cd, user: x, password: y, events: nope}}}\n",
    "notify: {channels: {a: {kind: mail, host: h, sender: x, to: '', security: none, user: x, password: {file: y}}}}\n",
    "notify:\n  channels:\n" + "".join(f"    c{k}: {{kind: slack, url: 'https://x.example/'}}\n" for k in range(200)),
    "policy: 3\n", "- a\n", "counters: {a b: 1}\n", "cpus: x\n",
]


@pytest.mark.parametrize("text", CHANNELS)
def test_errors_in_settings_are_told_in_chinese(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(BadFiles) as found:
        configfile.load(str(path))
    for _, _, what in found.value.flaws:
        told = worded(what, "zh")
        assert isinstance(what, FlawText) and CHINESE.search(told), told
        assert not ENGLISH.search(QUOTED.sub("", told)), told


def test_nobody_who_reads_a_file_tells_a_flaw_that_has_no_code():
    """Each call of `wrong` is given what `flaw` makes, or what somebody else has made; never a text of its own."""
    bare = []
    for path in [*Path(jostle.__path__[0]).glob("formats/*.py"), *Path(jostle.__path__[0]).glob("experiments/*.py")]:
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute | ast.Name) and len(call.args) > 1:
                name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
                if name in ("wrong", "FlawText") and isinstance(call.args[1], ast.Constant | ast.JoinedStr | ast.BinOp):
                    bare.append(f"{path.name}:{call.lineno}")
    assert bare == []


def test_no_phrase_is_there_for_nothing():
    assert all(CHINESE.search(chinese) or not english for english, chinese in PHRASES.items() if english != "true or false")
    assert all(CHINESE.search(chinese) for _, chinese in PATTERNS)
