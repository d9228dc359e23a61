"""The manager's file (SPEC C5): every key and default, comments, warnings, and errors with file, line and key."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import Invalid
from jostle.formats import jsonfile
from jostle.formats.flaws import BadFiles
from jostle.formats.managerfile import KEYS, LIMIT_DEFAULTS, NO_EFFECT, PARTS, ManagerConfig, TaskTemplate, load
from jostle.formats.nodes import Flaw, Map, Node, Scalar, Seq
from jostle.wording.flaws import worded

SEED = """{
  "monitor_interval": 5,           // 监控间隔（秒）
  "max_gpus_per_task": 4,         // 每个任务最大 GPU 数
  "auto_scale": true,             // 是否启用自动扩展
  "program_template": {            // 程序启动模板
    "command": "python train.py",
    "args": ["--gpus", "{gpu_list}"],
    "env_vars": {
      "CUDA_VISIBLE_DEVICES": "{gpu_list}"
    }
  },
  "scaling": {                     // 扩展配置
    "enabled": true,
    "min_gpus": 1,
    "max_gpus": 4,
    "scale_up_threshold": 0.8,
    "scale_down_threshold": 0.3
  }
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / "gpu_manager_config.json"
        path.write_text(text)
        return str(path)

    return write


def test_c5_the_file_of_the_source_is_read_as_it_is_printed(file: Any) -> None:
    config, warnings = load(file(SEED))
    assert warnings == []
    assert config.program_template == TaskTemplate(
        command="python train.py", args=("--gpus", "{gpu_list}"), env_vars={"CUDA_VISIBLE_DEVICES": "{gpu_list}"}
    )
    assert (config.monitor_interval, config.max_gpus_per_task, config.auto_scale, config.scaling.enabled) == (5, 4, True, True)


def test_c5_what_is_not_said_has_the_default_of_the_source(file: Any) -> None:
    config, warnings = load(file("{}"))
    assert warnings == [] and config.written == frozenset()
    assert (config.monitor_interval, config.auto_scale, config.min_reserved_gpus, config.job_prefix) == (5, True, 1, "NDFS_")
    assert (config.max_total_gpus, config.max_reserved_gpus, config.max_manual_gpus, config.max_gpus_per_task) == (8, 2, 6, 4)
    scaling = config.scaling
    assert (scaling.min_gpus, scaling.max_gpus, scaling.scale_up_threshold, scaling.scale_down_threshold) == (1, 4, 0.8, 0.3)
    assert not config.notification.enabled
    assert (config.logging.file, config.logging.max_size, config.logging.backup_count) == ("gpu_manager.log", 10 << 20, 5)


def test_c3_limits_that_the_file_says_are_told_from_those_it_leaves_to_defaults(file: Any) -> None:
    assert ManagerConfig().limits() is None, "without a file there are none"
    path = file('{"max_total_gpus": 3}')
    defaults = {name: most for name, most in LIMIT_DEFAULTS.items() if name != "max_total_gpus"}
    told = {"file": path, "values": {"max_total_gpus": 3}, "defaults": defaults, "prefix": "NDFS_"}
    assert load(path)[0].limits() == told


def test_c5_every_key_is_taken(file: Any) -> None:
    said = {
        "monitor_interval": 0.5, "max_gpus_per_task": 2, "auto_scale": False, "auto_manage": False, "queue_waiting": False,
        "min_reserved_gpus": 2, "max_reserved_gpus": 3, "max_total_gpus": 9, "max_manual_gpus": 5, "job_prefix": "LAB_",
        "managed_job_prefixes": ["LAB_", "old_"],
        "program_template": {"command": "python a.py", "args": ["-n", 3], "env_vars": {"A": "1", "B": 2}},
        "scaling": {"enabled": False, "min_gpus": 2, "max_gpus": 6, "scale_up_threshold": 0.9, "scale_down_threshold": 0.1,
                    "resize": "restart"},
        "notification": {"enabled": True, "email": "me@example.org", "gpu_available_threshold": 3},
        "logging": {"level": "debug", "file": "logs/m.log", "max_size": "2MB", "backup_count": 2},
    }  # fmt: skip
    assert set(said) == {*KEYS, *PARTS}
    config, warnings = load(file(json.dumps(said)))
    assert warnings == [] and config.written == frozenset(said)
    assert (config.scaling.resize, config.logging.level, config.logging.max_size) == ("restart", "DEBUG", 2 << 20)
    assert config.program_template.args == ("-n", "3") and config.program_template.env_vars == {"A": "1", "B": "2"}
    assert config.managed_job_prefixes == ("LAB_", "old_") and config.notification.gpu_available_threshold == 3


def test_c5_unknown_keys_warn_with_the_nearest_and_those_without_effect_say_so(file: Any) -> None:
    keys = "".join(f'  "{key}": 1,\n' for key in NO_EFFECT)
    path = file('{\n' + keys + '  "max_gpu_per_task": 4,\n  "scaling": {"max_gpu": 3},\n  "xyzzy": {"any": []}\n}')
    config, warnings = load(path)
    assert config.max_gpus_per_task == 4 and config.written == {"scaling"}
    assert warnings == [
        *(f"{path}:{line}: {key} has no effect here" for line, key in enumerate(NO_EFFECT, 2)),
        f'{path}:6: unknown key "max_gpu_per_task"; max_gpus_per_task?',
        f'{path}:7: unknown key "max_gpu" in scaling; max_gpus?',
        f'{path}:8: unknown key "xyzzy"',
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('"monitor_interval": "5"', 'monitor_interval: the text "5"; expected a number of seconds, more than 0'),
        ('"monitor_interval": 0', "monitor_interval: 0; expected a number of seconds, more than 0"),
        ('"auto_scale": 1', "auto_scale: 1; expected true or false"),
        ('"auto_scale": "true"', 'auto_scale: the text "true"; expected true or false'),
        ('"max_total_gpus": 2.5', "max_total_gpus: 2.5; expected a whole number from 0 to 1024"),
        ('"max_total_gpus": -1', "max_total_gpus: -1; expected a whole number from 0 to 1024"),
        ('"max_total_gpus": null', "max_total_gpus: null; expected a whole number from 0 to 1024"),
        ('"job_prefix": "a b"', 'job_prefix: the text "a b"; expected a prefix of at most 60 letters, digits, _, - and .'),
        ('"managed_job_prefixes": "NDFS_"', "expected a list of prefixes"),
        ('"program_template": "python"', 'program_template: the text "python"; expected an object with command, args, env_vars'),
        ('"program_template": {"command": " "}', "program_template.command: the text \" \"; expected a command"),
        ('"program_template": {"args": "--gpus"}', "program_template.args: the text \"--gpus\"; expected a list of texts"),
        ('"program_template": {"env_vars": {"A=B": "1"}}', "expected a variable's name without = and NUL"),
        ('"program_template": {"env_vars": {"A": null}}', '"A" has none'),
        ('"scaling": {"max_gpus": 0}', "scaling.max_gpus: 0; expected a whole number from 1 to 1024"),
        ('"scaling": {"scale_up_threshold": 80}', "scaling.scale_up_threshold: 80; expected a share from 0 to 1"),
        ('"scaling": {"min_gpus": 5}', "scaling.min_gpus 5 is more than max_gpus 4; expected the smaller first"),
        ('"scaling": {"scale_up_threshold": 0.2}', "scale_down_threshold 0.3 is more than scale_up_threshold 0.2"),
        ('"scaling": {"resize": "kill"}', "expected one of signal, restart"),
        ('"min_reserved_gpus": 3', "min_reserved_gpus 3 is more than max_reserved_gpus 2"),
        ('"notification": {"email": "me"}', "expected an address such as name@example.org"),
        ('"logging": {"max_size": "ten"}', 'expected a size such as "10MB"'),
        ('"logging": {"level": "LOUD"}', "expected one of DEBUG, INFO"),
        ('"auto_scale": true, "auto_scale": true', 'the key "auto_scale" is there twice; expected it once'),
    ],
)  # fmt: skip
def test_c5_what_is_wrong_is_told_with_file_line_and_key(file: Any, said: str, told: str) -> None:
    path = file('{\n  "queue_waiting": true,\n\n  ' + said + "\n}")
    with pytest.raises(Invalid) as e:
        load(path)
    assert f"{path}:4: " in str(e.value) and told in str(e.value)
    assert isinstance(e.value, BadFiles)
    for line in e.value.worded("zh").splitlines():
        assert line.startswith(f"{path}:4: ") and not re.search("[a-z]{3,} [a-z]{2,} ", line.removeprefix(path)), line


def test_c5_all_errors_are_told_at_once_and_no_floor_needs_no_minimum(file: Any) -> None:
    with pytest.raises(Invalid) as e:
        load(file('{"auto_scale": 1,\n"max_total_gpus": "x",\n"nonsense": 1}'))
    assert [line.split(":")[1] for line in str(e.value).splitlines()[:2]] == ["1", "2"] and "nonsense" in str(e.value)
    assert load(file('{"max_reserved_gpus": 0}'))[0].max_reserved_gpus == 0


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("", 1, "the end of the file where a value should be"),
        ('{"a": 1,\n}', 2, "a comma before }; expected another value, or no comma"),
        ('{"a": 1\n"b": 2}', 2, "after a value; expected , or }"),
        ("{'a': 1}", 1, "where a key should be; expected a key in double quotes"),
        ('{\n"a" 1}', 2, 'after the key "a"; expected :'),
        ('{"a": True}', 1, '"True" where a value should be'),
        ('{"a": 01}', 1, "where a value should be"),
        ('{"a": "x\n"}', 1, "a text that is not understood"),
        ('{"a": "x', 1, "a text that is not understood"),
        ('{"a": "\\ud800"}', 1, "half a character"),
        ("{} {}", 1, "after the end of the object"),
        ("[" * 60, 1, "nested deeper than 50 levels"),
        ('{"a": 1} / 2', 1, "after the end of the object"),
    ],
)
def test_c5_text_that_is_no_json_is_told_with_its_line(text: str, line: int, told: str) -> None:
    with pytest.raises(Flaw) as e:
        jsonfile.parse(text)
    assert e.value.line == line and told in e.value.text
    assert re.search("[\u4e00-\u9fff]", worded(e.value.text, "zh"))


def test_c5_two_slashes_in_a_text_are_no_comment() -> None:
    root = jsonfile.parse('{ // first\n "url": "http://x//y" // last\n}//')
    assert plain(root) == {"url": "http://x//y"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES, st.sampled_from([None, 1]))
def test_all_that_json_can_say_is_read_as_json_reads_it(value: Any, indent: int | None) -> None:
    assert plain(jsonfile.parse(json.dumps(value, indent=indent))) == json.loads(json.dumps(value))


def plain(node: Node) -> Any:
    if isinstance(node, Map):
        return {key.text: plain(value) for key, value in node.items}
    if isinstance(node, Seq):
        return [plain(item) for item in node.items]
    assert isinstance(node, Scalar)
    return json.loads(node.text) if node.plain else node.text
