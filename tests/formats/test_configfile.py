"""config.yaml: what it may say, and what is said about what it may not."""

import pytest

from jostle import config
from jostle.engine import checks
from jostle.formats import configfile
from jostle.formats.flaws import BadFiles


@pytest.fixture
def load(tmp_path):
    def load(text):
        path = tmp_path / "config.yaml"
        path.write_text(text)
        return configfile.load(str(path))

    return load


def flaws(load, text):
    with pytest.raises(BadFiles) as caught:
        load(text)
    assert caught.value.exit_code == 6
    return [line.partition("config.yaml:")[2] for line in str(caught.value).split("\n")]


def test_settings_come_out_as_plain_values(load):
    text = "gpus: sim:4x24\ngrace: 1m30s\nlog_cap_mib: 1GiB\ncuda_ids: uuid\npolicy: {min_free: 8GiB, gpus: 0-2, idle_for: 1m}\n"
    values = load(text)
    assert values == {
        "gpus": "sim:4x24", "grace": 90.0, "log_cap_mib": 1024, "cuda_ids": "uuid",
        "policy": {"min_free_mib": 8192, "gpus": [0, 1, 2], "idle_for": 60.0},
    }  # fmt: skip
    assert checks.policy(values["policy"]).min_free_mib == 8192


def test_c13_what_the_host_hands_out_and_counters_are_settings(load):
    values = load("cpus: 6\nhost_memory: 32GiB\ncounters:\n  licence: 4\n  tape: 0\n")
    assert values == {"cpus": 6, "host_memory": 32768, "counters": {"licence": 4, "tape": 0}}
    checks.settings(values)
    assert flaws(load, "cpus: 0\ncounters:\n  licence: -1\n  a b: 1\n") == [
        '1: cpus: "0" is not understood; expected a whole number from 1 to 65536',
        '3: counters.licence: "-1" is not understood; expected a whole number of at least 0',
        '4: counters: "a b" is not understood; expected a name of letters, digits, _, - and .',
    ]


def test_a_bare_log_cap_is_mib_as_its_name_says(load):
    assert load("log_cap_mib: 256\n") == {"log_cap_mib": 256}


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "grace:\npolicy: ~\n"])
def test_nothing_said_is_nothing_set(load, text):
    assert load(text) == {}


def test_all_errors_are_told_with_line_and_what_was_expected(load):
    text = "grase: 5s\ngpus: cuda\nlog_cap_mib: lots\ncuda_ids: uuids\ngrace: [1]\n"
    text += "policy:\n  min_free_mib: 8\n  gpu_left: -1\ngrace: 3\n"
    assert flaws(load, text) == [
        '1: unknown key "grase"; expected grace?',
        '2: gpus: "cuda" is not understood; expected nvml, sim:8x24 (8 GPUs of 24 GiB) or sim:FILE',
        '3: log_cap_mib: "lots" is not understood; expected a size such as 1GiB, or a number of MiB',
        '4: cuda_ids: "uuids" is not understood; expected one of index, uuid',
        "5: grace: a list; expected a duration such as 90, 45s, 30m or 2h30m",
        '7: unknown key "min_free_mib" in policy; expected min_free?',
        '8: policy.gpu_left: "-1" is not understood; expected a whole number from 0 to 1024',
        '9: the key "grace" is there twice; expected it once',
    ]


@pytest.mark.parametrize(
    ("text", "words"), [("- a\n", "1: a list; expected"), ("a: ]", "1: not YAML"), ("policy: 3\n", "expected rules")]
)
def test_what_is_no_settings_at_all_is_told(load, text, words):
    assert words in flaws(load, text)[0]


@pytest.mark.parametrize("rule", ["gpu_left: 2000", "gpus: 0-5000", "max_gpu: 9999", "gpus: ''"])
def test_what_the_engine_would_refuse_is_refused_with_its_line(load, rule):
    assert flaws(load, f"policy:\n  {rule}\n")[0].startswith("2: policy.")


def test_a_scenario_is_looked_for_beside_the_settings(tmp_path):
    (tmp_path / "config.yaml").write_text("gpus: sim:world.yaml\n")
    assert config.load(str(tmp_path))["gpus"] == f"sim:{tmp_path}/world.yaml"


def test_no_file_is_no_settings(tmp_path):
    assert config.load(str(tmp_path)) == {}
