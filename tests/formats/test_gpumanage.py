"""gpu_manage.yaml: every key and default, what is warned about and what is refused, and the rules that come of it."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.core.model import Policy
from jostle.engine import checks
from jostle.errors import Invalid
from jostle.formats import gpumanage
from jostle.formats.flaws import BadFiles
from jostle.formats.gpumanage import Settings

SHIPPED = """\
# 调度配置
check_time: 5  # 调度间隔（秒）
maximize_resource_utilization: false
memory_save_mode: true

compete_gpus: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
use_all_gpus: true
gpu_left: 1
min_gpu: 3
max_gpu: 8

retry_config:
  max_retry_before_backoff: 3
  backoff_duration: 600

work_dir: null
gpu_command_file: ./command/command_gpu.txt
gpus_command_file: ./command/command_gpus.txt
log_dir: ./logs
process_json_path: ./logs/uni_id.json
"""


@pytest.fixture
def load(tmp_path):
    def load(text):
        path = tmp_path / "gpu_manage.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return gpumanage.load(str(path))

    return load


def good(load, text):
    settings, warnings = load(text)
    assert warnings == []
    return settings


def flaws(load, text):
    with pytest.raises(BadFiles) as caught:
        load(text)
    return [(line, words) for _, line, words in caught.value.flaws]


# --- A9


def test_a9_the_defaults_hold_for_what_is_absent_or_null(load):
    assert good(load, "") == good(load, "# nothing\n") == Settings()
    assert good(load, "".join(f"{key}:\n" for key in gpumanage.TOP)) == Settings()
    nulls = "retry_config:\n" + "".join(f"  {key.partition('.')[2]}: null\n" for key in gpumanage.KEYS if "." in key)
    assert good(load, nulls) == Settings()
    assert (Settings().check_time, Settings().gpu_left, Settings().compete_gpus) == (5, 0, tuple(range(10)))
    assert (Settings().max_retry_before_backoff, Settings().backoff_duration, Settings().max_retries) == (3, 600, None)


def test_a9_the_shipped_file_is_read(load):
    assert good(load, SHIPPED) == Settings(
        gpu_left=1, min_gpu=3, max_gpu=8, gpu_command_file="./command/command_gpu.txt",
        gpus_command_file="./command/command_gpus.txt", process_json_path="./logs/uni_id.json",
    )  # fmt: skip


def test_a9_every_key_of_the_file_reaches_the_settings(load):
    text = """
check_time: 0.5
maximize_resource_utilization: yes
memory_save_mode: False
compete_gpus: 0-2,5
use_all_gpus: off
gpu_left: 2
min_gpu: 1
max_gpu: 4
retry_config: {max_retry_before_backoff: 5, backoff_duration: 20m, max_retries: 100, on_failure: continue}
work_dir: "../"
gpu_command_file: a.txt
gpus_command_file: b.txt
log_dir: out
process_json_path: ids.json
commands_path: c.txt
start_interval: 30
time_limit: 2h
max_wait: 1h
strangers: avoid
gpu_choice: source-score
"""
    assert good(load, text) == Settings(
        check_time=0.5, maximize_resource_utilization=True, memory_save_mode=False, compete_gpus=(0, 1, 2, 5), use_all_gpus=False,
        gpu_left=2, min_gpu=1, max_gpu=4, max_retry_before_backoff=5, backoff_duration=1200, max_retries=100,
        on_failure="continue", work_dir="../", gpu_command_file="a.txt", gpus_command_file="b.txt", log_dir="out",
        process_json_path="ids.json", commands_path="c.txt", start_interval=30, time_limit=7200, max_wait=3600, strangers="avoid",
        gpu_choice="source-score",
    )  # fmt: skip
    fields = {field.name for field in dataclasses.fields(Settings)}
    assert {key.removeprefix("retry_config.") for key in gpumanage.KEYS} - {"launch_delay"} == fields


@pytest.mark.parametrize("said", ["7", "1.5", "true", "[a]", "{a: b}"])
@pytest.mark.parametrize("key", [key for key in gpumanage.TOP if key.endswith(("_dir", "_file", "_path"))])
def test_a9_a_path_is_a_text(load, key, said):
    [(line, words)] = flaws(load, f"gpu_left: 1\n{key}: {said}\n")
    assert line == 2 and words.startswith(f"{key}: ") and "expected a path" in words
    assert getattr(good(load, f"{key}: '7'"), key) == "7"


@pytest.mark.parametrize(
    "said, gpus",
    [("[0, 2]", (0, 2)), ("3", (3,)), ('"0-2"', (0, 1, 2)), ("[0-1, 4]", (0, 1, 4)), ("\n- 1\n- 1\n", (1,)), ("0 1", (0, 1))],
)
def test_a9_gpus_are_a_list_or_a_text(load, said, gpus):
    assert good(load, f"compete_gpus: {said}").compete_gpus == gpus


def test_a9_unlimited_retries_and_no_time_limit_can_be_written(load):
    assert good(load, "retry_config: {max_retries: unlimited}\ntime_limit: 0\nmax_wait: 0") == Settings()
    assert good(load, "launch_delay: 30").start_interval == 30


@pytest.mark.parametrize("text, line, words", [
    ("a: 1\ngpu_lft: 1\n", 2, 'unknown key "gpu_lft" is not used; did you mean gpu_left?'),
    ("a: 1\nretry_config:\n  backof_duration: 3\n", 3, "did you mean retry_config.backoff_duration?"),
    ("a: 1\nbackoff_duration: 3\n", 2, "did you mean retry_config.backoff_duration?"),
    ("a: 1\nretry_config.backoff_duration: 3\n", 2, "not used"),
    ("a: 1\nmin_gpu: 5\nmax_gpu: 3\n", 2, "max_gpu decides"),
    ("a: 1\nlaunch_delay: 5\nstart_interval: 3\n", 2, "start_interval is taken"),
])  # fmt: skip
def test_a9_what_is_not_understood_but_harms_nobody_is_a_warning_with_its_line(load, text, line, words):
    warnings = load(text)[1]
    assert len(warnings) == 2
    assert f"gpu_manage.yaml:{line}: " in warnings[1] and words in warnings[1]
    assert 'unknown key "a" is not used; known keys are ' in warnings[0]


@pytest.mark.parametrize("text, words", [
    ("check_time: soon", 'check_time: "soon" is not understood; expected a number of seconds'),
    ("check_time: 0", "more than 0"),
    ("check_time: -5", "more than 0"),
    ("check_time: [5]", "check_time: a list; expected a number of seconds"),
    ("check_time: .nan", "expected a number of seconds"),
    ("check_time: 1e999", "expected a number of seconds"),
    ("use_all_gpus: maybe", "expected true or false"),
    ("use_all_gpus: 1", "expected true or false"),
    ("gpu_left: -1", "expected a whole number from 0"),
    ("gpu_left: 1.5", "expected a whole number from 0"),
    ("gpu_left: 99999", "expected a whole number from 0"),
    ("compete_gpus: [a]", "expected indices of GPUs"),
    ("compete_gpus: [-1]", "expected indices of GPUs"),
    ("compete_gpus: [0, null]", "expected indices of GPUs"),
    ("compete_gpus: {a: 1}", "compete_gpus: a mapping; expected"),
    ("compete_gpus: [[0]]", "compete_gpus: a list; expected"),
    ("compete_gpus: 0-99999999", "expected"),
    ("retry_config: 3", "retry_config: a value; expected keys such as"),
    ("retry_config: {max_retry_before_backoff: 0}", "retry_config.max_retry_before_backoff: "),
    ("retry_config: {backoff_duration: long}", "retry_config.backoff_duration: "),
    ("retry_config: {on_failure: panic}", "expected one of stop, continue"),
    ("work_dir: [a]", "work_dir: a list; expected a path"),
    ("gpu_choice: best", "gpu_choice: "),
    ("strangers: shoo", "expected one of share, avoid"),
    ("gpu_left: 1\ngpu_left: 2", 'the key "gpu_left" is there twice'),
    ("- a", "a list; expected `key: value` lines"),
    ("gpu_left 1", "a value; expected `key: value` lines"),
    ("gpu_left: [1", "not YAML"),
    ("gpu_left: !!python/object:os.system 1", "the tag"),
])  # fmt: skip
def test_a9_wrong_values_are_errors_with_file_line_and_key(load, text, words):
    [(line, told)] = flaws(load, "\n" + text)
    assert words in told
    assert line >= 2


def test_a9_all_errors_are_told_at_once(load):
    assert [line for line, _ in flaws(load, "gpu_left: x\nmin_gpu: y\nretry_config:\n  backoff_duration: z\n")] == [1, 2, 4]


def test_a12_an_empty_list_of_gpus_is_refused_only_if_it_is_to_be_used(load):
    assert good(load, "compete_gpus: []").compete_gpus == ()
    [(line, words)] = flaws(load, "use_all_gpus: false\ncompete_gpus: []")
    assert line == 2 and "at least one index" in words


def test_a9_a_gbk_file_is_read_with_a_warning(load):
    settings, warnings = load("gpu_left: 2  # 剩余几张卡\r\n".encode("gbk"))
    assert settings.gpu_left == 2
    assert "was read as GB18030" in warnings[0]


@given(st.text(max_size=100))
def test_a9_no_text_makes_the_reader_crash(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        found, warnings = gpumanage.load(str(path))
    except BadFiles as e:
        assert e.flaws
    else:
        assert isinstance(found, gpumanage.Settings) and all(isinstance(text, str) for text in warnings)


# --- the rules of the batch


def test_a13_a17_a18_the_rules_are_those_of_the_file_and_the_engine_takes_them():
    rules = gpumanage.policy(Settings(), "single", None)
    assert rules == {
        "gpus": None, "gpu_left": 0, "min_gpu": None, "max_gpu": None, "share": False, "strangers": "share",
        "own_processes": "avoid", "choice": "best-fit", "order": "random", "start_interval": 0.0,
        "retry": {"max": None, "backoff_after": 3, "backoff": 600.0}, "on_failure": "stop", "command_limit": None,
        "max_wait": None,
    }  # fmt: skip
    assert set(rules) <= {field.name for field in dataclasses.fields(Policy)}
    checks.policy(rules)
    shared = gpumanage.policy(Settings(maximize_resource_utilization=True, memory_save_mode=False), "multi", None)
    checks.policy(shared)
    assert (shared["share"], shared["own_processes"], shared["choice"], shared["order"]) == (
        True,
        "ignore",
        "least-used",
        "gpus-desc",
    )
    assert gpumanage.policy(Settings(strangers="avoid"), "single", None)["strangers"] == "avoid"
    assert gpumanage.policy(Settings(gpu_choice="source-score"), "single", None)["choice"] == "source-score"
    assert gpumanage.policy(Settings(max_wait=60.0), "single", None)["max_wait"] == 60.0


def test_a12_all_gpus_are_those_that_are_visible_and_a_list_is_the_list():
    assert gpumanage.policy(Settings(), "single", "3,1,3")["gpus"] == [1, 3]
    assert gpumanage.policy(Settings(use_all_gpus=False, compete_gpus=(5, 2)), "single", "0")["gpus"] == [2, 5]


@pytest.mark.parametrize("visible", ["", " ", "-1", "GPU-8f1c", "0,GPU-8f1c", "all", "0,,1", "99999"])
def test_a12_a_restriction_that_cannot_be_kept_is_refused_and_never_forgotten(visible):
    with pytest.raises(Invalid, match="CUDA_VISIBLE_DEVICES"):
        gpumanage.policy(Settings(), "single", visible)


def test_a13_a_minimum_above_the_maximum_gives_the_maximum_as_the_formula_does():
    rules = gpumanage.policy(Settings(min_gpu=5, max_gpu=3), "single", None)
    assert (rules["min_gpu"], rules["max_gpu"]) == (3, 3)
