"""`add`: what is submitted for what was typed."""

import os

import pytest

from jostle import context
from jostle.engine import checks
from jostle.intake.request import request


@pytest.fixture
def sent(jostle, engine):
    engine.answers["submit"] = {"batch": 1, "ids": [12, 12], "count": 1}

    def sent(*argv):
        code, out, err = jostle("add", *argv)
        assert (code, out) == (0, "12\n"), err
        return engine.asked("submit")[-1]

    return sent


@pytest.fixture
def added(sent):
    """As the engine takes it."""
    return lambda *argv: checks.request(sent(*argv))


def test_what_would_be_so_anyway_is_not_sent(sent):
    assert set(sent("--", "true")["jobs"][0]) == {"name", "commands", "workdir"}
    assert set(sent("-g", "1", "-p", "0", "--", "true")["jobs"][0]) == {"name", "commands", "workdir"}
    assert set(sent("-g", "2", "-p", "1", "--", "true")["jobs"][0]) == {"name", "commands", "workdir", "gpus", "priority"}


@pytest.mark.parametrize("field, value", [("share", 0), ("priority", False), ("leftovers", "keep"), ("commands", [])])
def test_what_only_looks_like_a_default_is_sent_and_judged_by_the_engine(field, value):
    job = {"commands": ["true"], "workdir": "/", field: value}
    assert request({}, [job])["jobs"] == [job]


def test_arguments_are_executed_as_they_are(added):
    job = added("--", "python", "train.py", "--x", "a b; rm -rf $HOME")["jobs"][0]
    assert job["commands"] == [["python", "train.py", "--x", "a b; rm -rf $HOME"]]
    assert job["workdir"] == os.getcwd() and job["gpus"] == [1, 1] and job["memory_mib"] is None and job["retry"] is None


def test_one_text_with_shell_characters_is_given_to_bash(added):
    assert added("--", "echo a && echo b")["jobs"][0]["commands"] == ["echo a && echo b"]
    assert added("--", "./train.sh")["jobs"][0]["commands"] == [["./train.sh"]]


def test_options_of_the_command_are_not_ours(added):
    assert added("-g", "2", "--", "ls", "-g", "--json")["jobs"][0]["commands"] == [["ls", "-g", "--json"]]


def test_every_option_reaches_the_job(added, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FROM_HERE", "yes")
    (tmp_path / "sub").mkdir()
    job = added(
        "-g",
        "1-4",
        "-m",
        "20GiB",
        "-q",
        "q",
        "-n",
        "name",
        "--after",
        "3,5",
        "--after-any",
        "4",
        "-p",
        "-2",
        "--time-limit",
        "2h",
        "--retry",
        "3",
        "--share",
        "--on",
        "slurm,local",
        "--hold",
        "--log",
        "out.log",
        "--workdir",
        "sub",
        "-e",
        "A=1=2",
        "-e",
        "FROM_HERE",
        "--tag",
        "x",
        "--",
        "true",
    )["jobs"][0]
    assert job["gpus"] == [1, 4] and job["memory_mib"] == 20480 and job["queue"] == "q" and job["name"] == "name"
    assert job["needs"] == [["job", 3, False], ["job", 5, False], ["job", 4, True]]
    assert (job["priority"], job["time_limit"], job["share"], job["intent"]) == (-2, 7200.0, True, "hold")
    assert job["retry"] == {"max": 3, "backoff_after": 3, "backoff": 600.0}
    assert job["log"] == str(tmp_path / "out.log") and job["workdir"] == str(tmp_path / "sub")
    assert job["env"] == {"A": "1=2", "FROM_HERE": "yes"} and job["tags"] == ["x"] and job["on"] == ["slurm", "local"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["-g", "x", "--", "true"], "a count of GPUs"),
        (["-m", "lots", "--", "true"], "a size such as"),
        (["--on", "a b", "--", "true"], "the name of a target"),
        (["--", ""], "is empty"),
        (["--share", "--", "true"], "--share needs -m"),
        (["-e", "=x", "--", "true"], "without ="),
        (["-n", "", "--", "true"], "not empty"),
        (["--begin", "soon", "--", "true"], "a time such as"),
        (["--after", "1.3", "--", "true"], "is no job id"),
        (["--after", "all", "--", "true"], "expected ids such as 12, 3-7, 1,4, last, a name, queue:Q, tag:T or batch:N"),
        ([], "COMMAND"),
        (["--retry", "-1", "--", "true"], "unlimited"),
        (["-n", "a\nb", "--", "true"], "one line"),
        (["--", " "], "not empty"),
    ],
)
def test_bad_input_is_a_usage_error_and_nothing_is_sent(jostle, engine, store, argv, words):
    store(rows=5)
    code, out, err = jostle("add", *argv)
    assert (code, out) == (2, "") and words in err
    assert engine.asked("submit") == []


@pytest.mark.parametrize(
    ("argv", "way"),
    [
        (["python", "train.py", "--lr", "1e-5"], "-- python train.py --lr 1e-5"),
        (["-g", "2", "--name=x", "python", "train.py", "--seed=1"], "-g 2 --name=x -- python train.py --seed=1"),
        (["--hold", "python", "-m", "pkg.train"], "--hold -- python -m pkg.train"),
        (["bash", "-c", "a b"], "-- bash -c 'a b'"),
    ],
)
def test_a_forgotten_double_dash_is_explained_with_the_command_that_was_meant(jostle, engine, argv, way):
    code, out, err = jostle("add", *argv)
    assert (code, out) == (2, "") and f"Options of the command come behind `--`: `jostle add {way}`" in err
    assert engine.asked("submit") == []


def test_an_option_behind_the_command_is_taken_with_a_note(jostle, engine):
    engine.answers["submit"] = {"batch": 1, "ids": [7, 7], "count": 1}
    code, out, err = jostle("add", "python", "train.py", "-p", "5")
    assert (code, out) == (0, "7\n") and "`jostle add -- python train.py -p 5`" in err
    [job] = engine.asked("submit")[0]["jobs"]
    assert (job["commands"], job["priority"]) == ([["python", "train.py"]], 5)
    for argv in (("-p", "5", "python", "train.py"), ("--", "python", "train.py", "-p", "5"), ("-p5", "true", "-")):
        assert jostle("add", *argv)[2] == ""


def test_the_environment_goes_along_without_the_terminals(added, monkeypatch):
    monkeypatch.setenv("MY_VAR", "1")
    for name in ("TERM", "SSH_CLIENT", "TMUX_PANE", "DISPLAY", "LS_COLORS"):
        monkeypatch.setenv(name, "x")
    request = added("--", "true")["context"]
    assert request["env"]["MY_VAR"] == "1" and "PATH" in request["env"]
    assert not {"TERM", "SSH_CLIENT", "TMUX_PANE", "DISPLAY", "LS_COLORS"} & set(request["env"])
    assert request["limits"]["nofile"][0] > 0 and 0 <= request["umask"] <= 0o777


def test_a_job_that_submits_a_job_does_not_pass_on_its_cards():
    inside = {"JOSTLE_UNI_ID": "x", "CUDA_VISIBLE_DEVICES": "3", "JOSTLE_HOME": "/h", "A": "1"}
    assert context.environment(inside) == {"JOSTLE_HOME": "/h", "A": "1"}
    assert context.environment({"CUDA_VISIBLE_DEVICES": "3"}) == {"CUDA_VISIBLE_DEVICES": "3"}


def test_single_commands_join_one_standing_batch(added):
    assert added("--", "true")["batch"] == {"key": "add", "name": "add", "join": True, "owner": None, "policy": {}}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("-e", "JOSTLE_NOT_SET_ANYWHERE"), "JOSTLE_NOT_SET_ANYWHERE"),
        (("--workdir", "/no/such/place"), "/no/such/place"),
        (("--log", "/proc"), "is a directory"),
        (("-g", "0", "-m", "4"), "a job without GPUs needs no memory"),
        (("--memry=4",), "did you mean --memory?"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(jostle, engine, argv, said):
    code, _, err = jostle("add", *argv, "--", "true")
    assert code == 2 and said in err and engine.asked("submit") == []


def test_a_number_that_was_meant_in_mib_gets_a_hint(jostle, engine):
    engine.answers["submit"] = {"batch": 1, "ids": [12, 12], "count": 1}
    assert "write 20000MiB if that is meant" in jostle("add", "-m", "20000", "--", "true")[2]
    assert jostle("add", "-m", "20000MiB", "--", "true")[2] == ""


def test_what_is_refused_has_no_number(jostle, engine):
    reason = {"code": "impossible_count", "params": {"needed": 9, "cards": 2, "refused_at_once": True}}
    engine.answers["submit"] = {"ok": False, "error": {"code": "invalid", "job": 1, "name": "wide", "reason": reason}}
    code, _, err = jostle("add", "--strict", "-g", "9", "-n", "wide", "--", "true")
    assert code == 6 and err.startswith("jostle: wide: It can never start") and "job 1" not in err


def test_what_is_refused_is_refused_in_the_language_of_the_person(jostle, engine, monkeypatch):
    monkeypatch.setenv("JOSTLE_LANG", "zh")
    reason = {"code": "impossible_count", "params": {"needed": 9, "cards": 2, "refused_at_once": True}}
    engine.answers["submit"] = {"ok": False, "error": {"code": "invalid", "job": 1, "name": "wide", "reason": reason}}
    code, _, err = jostle("add", "--strict", "-g", "9", "-n", "wide", "--", "true")
    assert code == 6 and err.startswith("jostle: wide：以本机现有的卡无法运行") and "没有任务排队（--strict）" in err
    declined = {"code": "of_another_batch", "params": {"job": 3, "batch": 7}}
    engine.answers["submit"] = {"ok": False, "error": {"code": "declined", "declined": declined}}
    assert jostle("add", "--", "true")[2] == "jostle: 任务 3 不属于批次 7\n"
