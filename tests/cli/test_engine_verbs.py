"""`up` and the devices: what reaches the engine, and what is told before one is started."""

import os

import pytest

from jostle import __version__, client, config
from jostle.errors import Forbidden, Invalid, Usage
from jostle.store import seen, store
from jostle.views import status
from jostle.wording.text import message


@pytest.fixture
def running(engine):
    engine.answers["hello"] = {**engine.answers["hello"], "version": __version__, "store_version": store.version()}
    engine.answers["up"] = engine.answers["hello"]
    engine.answers["reload"] = {}
    return engine


def test_up_on_a_running_engine_sends_it_the_settings(jostle, home, running):
    (home / "config.yaml").write_text("grace: 10s\npolicy: {min_free: 2GiB}\n")
    code, _, err = jostle("up")
    assert code == 0 and "runs already: pid 4711" in err and "settings reloaded" in err
    assert running.asked("reload")[0]["config"] == {"grace": 10.0, "policy": {"min_free_mib": 2048}}


def test_up_with_bad_settings_leaves_the_engine_alone(jostle, home, running):
    (home / "config.yaml").write_text("grace: soon\n")
    code, _, err = jostle("up")
    assert code == 6 and err.startswith(f"{home}/config.yaml:1: grace") and running.requests == []


def test_up_says_that_the_settings_name_other_devices(jostle, home, running):
    (home / "config.yaml").write_text("gpus: sim:8x24\n")
    assert "config.yaml names other GPUs (sim:8x24)" in jostle("up")[2]


def test_up_says_what_became_of_the_engine_that_ran():
    old = {"pid": 1, "version": "1", "store_version": 1, "gpus_spec": "sim:1x1"}
    new = {**old, "pid": 2, "gpus_spec": "sim:2x2"}

    def arrival(before):
        code, values = status.arrival(before, new)
        return message(code, "en", **values)

    assert arrival({}) == "the engine is up: pid 2, GPUs sim:2x2"
    assert arrival(old) == "the engine is up: pid 2, GPUs sim:2x2; it replaces an idle one with GPUs sim:1x1"
    assert "replaces one of version 0" in arrival({**old, "version": "0"})


@pytest.mark.parametrize("verb", [("up",), ("gpus",), ("run",)])
@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        ("cuda", 2, "expected nvml, sim:8x24 (8 GPUs of 24 GiB) or sim:FILE"),
        ("sim:", 2, "expected nvml"),
        ("sim:none.yaml", 6, "neither a scenario file that exists nor a shape"),
        ("sim:8x", 6, "nor a shape"),
        ("sim:bad.yaml", 6, "bad.yaml:1: unknown key"),
    ],
)
def test_bad_devices_are_told_before_an_engine_is_started(jostle, home, tmp_path, monkeypatch, verb, spec, code, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("gpus: {count: 4, totl: 24GiB}\n")
    (tmp_path / "jobs.yaml").write_text("jobs: [{run: 'true'}]\n")
    found, _, err = jostle(*verb, "--gpus", spec, *(["jobs.yaml"] if verb == ("run",) else []))
    assert found == code and words in err
    assert not (home / "engine.log").exists()


def test_bad_devices_do_not_send_an_idle_engine_away(jostle, running):
    assert jostle("up", "--gpus", "sim:none.yaml")[0] == 6
    assert running.asked("yield") == []


def test_the_path_of_a_scenario_is_made_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config.devices("sim:world.yaml") == f"sim:{tmp_path}/world.yaml"
    assert config.devices("sim:../w.json", "/a/b") == "sim:/a/w.json"
    assert config.devices("sim:~/w.yaml") == "sim:" + os.path.expanduser("~/w.yaml")
    assert [config.devices(spec) for spec in ("nvml", "sim:8x24", "sim:4x80+4x24")] == ["nvml", "sim:8x24", "sim:4x80+4x24"]


def test_the_same_devices_written_otherwise_are_the_same(tmp_path, monkeypatch, running):
    monkeypatch.chdir(tmp_path)
    running.answers["hello"] = {**running.answers["hello"], "gpus_spec": f"sim:{tmp_path}/world.yaml"}
    client.connect(running.home, start=False, gpus="sim:./world.yaml").close()
    assert running.asked("yield") == []


def test_a_setting_of_devices_that_is_none_is_a_usage_error():
    with pytest.raises(Usage):
        config.devices("8x24")
    with pytest.raises(Invalid):
        config.check_devices("sim:0x24")


def test_down_now_is_for_jobs_that_are_stopped(jostle, engine):
    assert jostle("down", "--now")[0] == 2 and engine.asked("down") == []


@pytest.mark.parametrize("name", ["engine.log", "jostle.db-seen"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(home, name):
    os.mkfifo(home / name, 0o600)
    if name == "engine.log":
        with pytest.raises(Forbidden, match=r"engine\.log"):
            client.start_engine(str(home), gpus="sim:1x1")
    else:
        assert seen.noted(str(home / "jostle.db")) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--stop-jobs"], "2 running jobs were stopped; 1 job was not stopped"),
        ([], "3 running jobs go on"),
    ],
)
def test_down_says_what_it_could_not_stop(jostle, engine, options, said):
    engine.answers["down"] = {"pid": 1, "runs": 3, "absent": 1}
    code, _, err = jostle("down", *options)
    assert code == 0 and said in err
