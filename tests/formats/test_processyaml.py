"""ProcessYAML: dotted keys, and a save that touches nothing but what was updated; the other names of the Python API."""

import os
import stat
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jostle.formats
from jostle.errors import Invalid
from jostle.formats import (
    ProcessYAML,
    RetryConfig,
    parse_command_file,
    parse_gpu_command_file,
    parse_gpus_command_file,
    processyaml,
    yamledit,
)
from jostle.formats.flaws import BadFiles

TEXT = """\
# 调度配置
check_time: 5  # 调度间隔（秒）
rate: 1e-5
use_all_gpus: yes

compete_gpus: [0, 1,  2]   # by hand
names:
  - 'a'
  # the second
  - "b"
retry_config:      # retry
    max_retry_before_backoff: 3
    backoff_duration: 600   # ten minutes

work_dir: null  # the parent
empty:
'quoted': 'it''s'
# the end
"""


@pytest.fixture
def file(tmp_path):
    def make(text=TEXT, encoding="utf-8"):
        path = tmp_path / "config.yaml"
        path.write_bytes(text.encode(encoding))
        return path

    return make


def saved(path, **updates):
    config = ProcessYAML(path)
    for key, value in updates.items():
        config.update(key.replace("__", "."), value)
    config.save()
    return path.read_bytes().decode()


def test_a11_values_are_got_by_dotted_keys(file):
    config = ProcessYAML(file())
    assert config.get("check_time", 9) == 5
    assert config.get("retry_config.backoff_duration", 1) == 600
    assert config.get("retry_config") == {"max_retry_before_backoff": 3, "backoff_duration": 600}
    assert (config.get("none", 7), config.get("check_time.deeper", 8), config.get("retry_config.none")) == (7, 8, None)
    assert (config.get("use_all_gpus"), config.get("rate"), config.get("work_dir", 1)) == (True, 1e-5, None)
    assert (config.get("compete_gpus"), config.get("names"), config.get("quoted")) == ([0, 1, 2], ["a", "b"], "it's")


def test_a11_an_update_is_in_memory_until_it_is_saved(file):
    path = file()
    config = ProcessYAML(path)
    config.update("new_key", "new_value")
    config.update("retry_config.backoff_duration", 5)
    config.update("deep.er", [1])
    assert config.get("new_key") == "new_value"
    assert (config.get("retry_config.backoff_duration"), config.get("deep.er")) == (5, [1])
    assert path.read_text() == TEXT
    config.save()
    assert ProcessYAML(path).data == config.data
    config.save()


def test_a11_the_methods_of_the_source_are_there(file):
    path = file()
    config = ProcessYAML(path)
    assert config.update("check_time", 7) is True
    whole = config.get_config()
    assert (whole["check_time"], whole["retry_config"]["backoff_duration"]) == (7, 600)
    whole["retry_config"]["backoff_duration"] = 1
    assert config.get("retry_config.backoff_duration") == 600, "it is a copy"
    keys = ("check_time", "retry_config.backoff_duration", "rate", "names", "work_dir", "none")
    assert [config.get_int(key, 9) for key in keys] == [7, 600, 0, 9, 9, 9] and config.get_int("none") == 0
    path.write_text("check_time: 8\n")
    assert config.load() == {"check_time": 8} == config.get_config()
    config.save()
    assert path.read_text() == "check_time: 8\n", "what was not saved before a load is forgotten"


def test_a11_a_file_that_is_not_there_is_an_empty_configuration_and_a_save_makes_it(tmp_path):
    path = tmp_path / "none.yaml"
    config = ProcessYAML(path)
    assert (config.load(), config.get("check_time", 5), config.get_int("gpu_left", 1)) == ({}, 5, 1)
    config.save()
    assert not path.exists()
    config.update("retry_config.backoff_duration", 60)
    config.save()
    assert ProcessYAML(path).get_config() == {"retry_config": {"backoff_duration": 60}}


@pytest.mark.parametrize("updates, old, new", [
    ({"check_time": 10}, "check_time: 5  #", "check_time: 10  #"),
    ({"retry_config__backoff_duration": 1200.5}, "600   # ten", "1200.5   # ten"),
    ({"work_dir": "../"}, "null  # the parent", "../  # the parent"),
    ({"work_dir": "a: b"}, "null  # the parent", '"a: b"  # the parent'),
    ({"quoted": "don't"}, "'it''s'", "'don''t'"),
    ({"compete_gpus": [0, 7, 2]}, "[0, 1,  2]", "[0, 7,  2]"),
    ({"compete_gpus": [4]}, "[0, 1,  2]", "[4]"),
    ({"compete_gpus": "0-3"}, "[0, 1,  2]", '"0-3"'),
    ({"names": ["a", "c"]}, '- "b"', '- "c"'),
    ({"names": ["x"]}, "- 'a'\n  # the second\n  - \"b\"", "- x"),
    ({"names": None}, "names:\n  - 'a'\n  # the second\n  - \"b\"", "names: null"),
    ({"empty": 3}, "empty:", "empty: 3"),
    ({"empty__a__b": 3}, "empty:", "empty: {a: {b: 3}}"),
    ({"use_all_gpus": False}, "yes", "false"),
    ({"rate": 1e-5}, "", ""),
    ({"check_time": 5, "names": ["a", "b"]}, "", ""),
    ({"gpu_left": 1}, "'it''s'", "'it''s'\ngpu_left: 1"),
    ({"retry_config__max_retries": None}, "# ten minutes", "# ten minutes\n    max_retries: null"),
    ({"retry_config": {"max_retry_before_backoff": 5, "backoff_duration": 600, "x": "y"}},
     "3\n    backoff_duration: 600   # ten minutes", "5\n    backoff_duration: 600   # ten minutes\n    x: y"),
])  # fmt: skip
def test_a11_a_save_changes_the_value_and_nothing_else(file, updates, old, new):
    assert saved(file(), **updates) == TEXT.replace(old, new, 1)


def test_a11_a_save_without_updates_does_not_even_write(file):
    path = file()
    before = path.stat()
    ProcessYAML(path).save()
    assert saved(path) == TEXT
    assert path.stat() == before


@pytest.mark.parametrize("text, result", [
    ("", "a: 1\n"),
    ("# only\n", "# only\na: 1\n"),
    ("# only", "# only\na: 1\n"),
    ("b: 2", "b: 2\na: 1"),
    ("b: 2\r\n", "b: 2\r\na: 1\r\n"),
    ("{b: 2}", "{b: 2, a: 1}"),
    ("{}", "{a: 1}"),
    ("b: |\n  text\n", "b: |\n  text\na: 1\n"),
    ("---\nb: 2\n...\n", "---\nb: 2\na: 1\n...\n"),
    ("b: &x 2\nc: *x\n", "b: &x 2\nc: *x\na: 1\n"),
    ("b: &x 2\na: *x\n", "b: &x 2\na: 1\n"),
    ("b: &x {a: 2}\nc:\n  <<: *x\n", "b: &x {a: 2}\nc:\n  <<: *x\na: 1\n"),
    ("a: |\n  old\nb: 2\n", "a: 1\nb: 2\n"),
    ('"a": "old"\n', '"a": 1\n'),
    ("a: # none\nb: 2\n", "a: 1 # none\nb: 2\n"),
    ("b: 2\nc:\n- 1\n- 2 # two\n\n# end\n", "b: 2\nc:\n- 1\n- 2 # two\na: 1\n\n# end\n"),
])  # fmt: skip
def test_a11_keys_are_added_and_set_in_files_of_any_style(file, text, result):
    assert saved(file(text), a=1) == result


@pytest.mark.parametrize("encoding", ["utf-8-sig", "gbk", "utf-16"])
def test_a11_encoding_and_line_ends_stay(file, encoding):
    text = "# 配置\r\na: 5 # 五\r\nb: 6"
    path = file(text, encoding)
    saved_text = text.replace("5", "7")
    config = ProcessYAML(path)
    config.update("a", 7)
    config.save()
    assert path.read_bytes() == saved_text.encode(encoding)


def test_a11_the_mode_of_the_file_and_a_link_to_it_stay(file, tmp_path):
    path = file()
    path.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    saved(link, check_time=7)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["config.yaml", "link.yaml"]


def test_a11_what_somebody_else_wrote_meanwhile_stays(file):
    path = file()
    config = ProcessYAML(path)
    config.update("check_time", 7)
    path.write_text(TEXT + "other: 1\n")
    config.save()
    assert path.read_text() == TEXT.replace("check_time: 5", "check_time: 7") + "other: 1\n"
    assert config.get("other") == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"x", [object()]])
def test_a11_what_yaml_cannot_say_is_refused_and_the_file_untouched(file, value):
    path = file()
    with pytest.raises(Invalid, match="cannot be saved"):
        saved(path, check_time=value)
    assert path.read_text() == TEXT


def test_a11_an_edit_that_would_change_more_is_refused(file):
    text = "a: &x\n  k: 1\nb: *x\n"
    path = file(text)
    with pytest.raises(Invalid, match="cannot be changed here by program; edit the file"):
        saved(path, a=5)
    assert path.read_text() == text


def test_a11_files_that_are_no_settings_are_told(tmp_path, file):
    for text, words in (("- a", "expected `key: value` lines"), ("a: [", "not YAML"), ("a: 1\na: 2", "twice")):
        with pytest.raises(BadFiles, match=words):
            ProcessYAML(file(text))
    with pytest.raises(BadFiles, match="cannot be read"):
        ProcessYAML(tmp_path / "config.yaml" / "none.yaml").load()
    with pytest.raises(Invalid, match="is no key"):
        ProcessYAML(file()).update("a..b", 1)


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(-1e90, 1e90),
    st.text(alphabet=st.characters(max_codepoint=0xD7FF), max_size=10),
    st.sampled_from(["yes", "null", "~", "1e5", ".5", "0x1", "- a", "a: b", "#", "a #b", " a ", "'", '"']),
)  # fmt: skip
data = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=6,
)
keys = st.sampled_from(["a", "b", "c", "a.a", "a.b", "b.a", "c.a.b", "a.b.c"])


@given(st.dictionaries(st.sampled_from("abc"), data, max_size=3), st.lists(st.tuples(keys, data), max_size=3), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a11_a_saved_file_says_what_was_updated_or_is_untouched(tmp_path_factory, start, updates, flow):
    import yaml

    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(yaml.safe_dump(start, default_flow_style=flow, allow_unicode=True, sort_keys=False), encoding="utf-8")
    before = path.read_bytes()
    try:
        config = ProcessYAML(path)
    except BadFiles:
        return
    for key, value in updates:
        config.update(key, value)
    try:
        config.save()
    except Invalid:
        assert path.read_bytes() == before
    else:
        assert ProcessYAML(path).data == config.data
        assert updates or path.read_bytes() == before


@given(st.text(max_size=60))
def test_a11_no_text_makes_it_crash(text):
    try:
        processyaml.values(text, "f")
        result = yamledit.updated(text, ("a", "b"), 1)
        changed = processyaml.values(result, "f")
    except (BadFiles, Invalid) as e:
        assert str(e)
    else:
        assert changed["a"]["b"] == 1


# --- A8


def test_a8_task_files_as_tuples_with_numbers_as_they_were_written(tmp_path):
    path = tmp_path / "command.txt"
    path.write_text("python a.py\npython b.py\n1,20\n\n2\nbash c.sh\n2.5\n")
    assert parse_command_file(str(path)) == [(["python a.py", "python b.py"], 1, 20), (["bash c.sh"], 2, 2.5)]
    assert [type(memory) for _, _, memory in parse_command_file(path)] == [int, float]
    assert parse_gpu_command_file is parse_command_file
    path.write_text("1\npython a.py\n2\n20\n\npython b.py\n3,5\n")
    assert parse_gpus_command_file(path) == [(["python a.py"], 1, 2, 20), (["python b.py"], 3, 1, 5)]
    with pytest.raises(BadFiles, match="--mode multi"):
        parse_command_file(path)


def test_a8_retry_config_has_the_defaults_of_the_source():
    assert RetryConfig() == RetryConfig(max_retry_before_backoff=3, backoff_duration=600)
    assert RetryConfig(5, 1200).backoff_duration == 1200


def test_a8_the_names_are_there_and_cost_nothing_before_they_are_used():
    assert set(jostle.formats.__all__) <= set(dir(jostle.formats))
    with pytest.raises(AttributeError, match="no attribute"):
        _ = jostle.formats.nothing
    script = "import sys, jostle.formats; assert not any(m in sys.modules for m in ('yaml', 'typing', 'jostle.formats.taskfile'))"
    subprocess.run([sys.executable, "-I", "-c", script], check=True, timeout=60)
