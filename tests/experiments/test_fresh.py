"""A success counts only for what its run has read: edits while jobs wait, copies that others would rewrite."""

import os

import pytest
import yaml

from jostle.experiments import configcopy
from jostle.experiments.fresh import Unchanged, users
from jostle.experiments.load import load
from jostle.formats.flaws import BadFiles
from jostle.store.reads import LastRun


def run(began):
    return LastRun(job=3, n=1, log="/l", named=None, outcome="succeeded", began=began, batch=1)


SWEEP = "command: train {config}\ninto_config: [seed]\nmatrix: {config: configs/a.yaml, seed: [1, 2]}\n"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.yaml").write_text("lr: 1\n")
    return tmp_path


def read(project, text=SWEEP, name="sweep.yaml"):
    (project / name).write_text(text)
    return load([str(project / name)])


def began_after(*paths):
    """A run that began when these files were as they are."""
    return run(max(os.stat(path).st_ctime for path in paths) + 0.001)


def test_b7_a_file_that_was_modified_since_the_run_began_is_not_what_it_read(project):
    config = project / "configs" / "a.yaml"
    job = {"inputs": [str(config)], "copy": None}
    assert Unchanged()(job, began_after(config))
    assert not Unchanged()(job, run(os.stat(config).st_ctime))
    began = os.stat(config).st_ctime
    os.utime(config, (1, 1))
    assert not Unchanged()(job, run(began)), "an old date that somebody gave it does not count"


def test_b7_a_link_that_leads_elsewhere_is_a_change(project):
    link = project / "current"
    link.symlink_to("configs")
    job = {"inputs": [str(link / "a.yaml")], "copy": None}
    began = max(os.lstat(link).st_ctime, os.stat(link / "a.yaml").st_ctime)
    assert Unchanged()(job, run(began + 0.001))
    assert not Unchanged()(job, run(os.lstat(link).st_ctime))


def test_b7_of_a_copied_config_the_copy_counts_and_must_be_what_would_be_written(project):
    batches = read(project)
    job = batches[0]["jobs"][0]
    config, copy = project / "configs" / "a.yaml", project / "configs" / "temp" / "a_seed1.yaml"
    configcopy.write(batches)
    before = began_after(config, copy)
    os.utime(config)
    assert Unchanged()(job, before), "the original may be touched"
    for other in ("lr: 2\n", "lr: 1\n"):
        config.write_text(other)
        assert Unchanged()(job, before) == (other == "lr: 1\n")
    copy.write_text("lr: 7\n")
    assert not Unchanged()(job, before)
    copy.unlink()
    assert not Unchanged()(job, before)


# --- places of copies


@pytest.mark.parametrize(
    ("command", "uses"),
    [
        ("train configs/temp/a_seed1.yaml", True),
        ("train --config=configs/temp/a_seed1.yaml", True),
        (["train", "{at}/configs/temp/a_seed1.yaml"], True),
        ("train a_seed1", True),
        ("train 'cfg={{path: configs/temp/a_seed1.yaml}}'", True),
        ("train configs/temp/a_seed12.yaml", False),
        ("train configs/temp/a_seed1.5.yaml", False),
        ("train configs/a.yaml", False),
    ],
)
def test_b2_a_job_uses_a_copy_that_its_command_names(project, command, uses):
    said = command.format(at=project) if isinstance(command, str) else [word.format(at=project) for word in command]
    row = {"id": 9, "workdir": str(project), "commands": [said]}
    place = str(project / "configs" / "temp" / "a_seed1.yaml")
    assert users([row], {place: str(project)}) == ({place: 9} if uses else {})
    elsewhere = {**row, "workdir": "/elsewhere"}
    assert users([elsewhere], {place: str(project)}) == ({place: 9} if isinstance(command, list) else {})


def test_b2_a_copy_that_an_unfinished_job_uses_is_not_rewritten(project):
    batches = read(project)

    def needed(places):
        return dict.fromkeys(places, 9)

    configcopy.write(batches)
    assert configcopy.write(batches, needed=needed) == 0, "the same may be used by any number of jobs"
    (project / "configs" / "a.yaml").write_text("# a remark\nlr: 1\n")
    assert configcopy.write(read(project), needed=needed) == 2, "a remark changes nothing for those who wait"
    (project / "configs" / "a.yaml").write_text("lr: 2\n")
    with pytest.raises(BadFiles, match="is the config copy of job 9, which has not ended, and would say something else"):
        configcopy.write(read(project), needed=needed)
    assert "lr: 1" in (project / "configs" / "temp" / "a_seed1.yaml").read_text()
    assert configcopy.write(read(project)) == 2


def test_b2_b9_suites_of_one_file_do_not_claim_one_place_for_different_copies(project):
    suites = (
        "command: x {config}\ninto_config: [lr]\nconfig_copy: t.yaml\nsuites:\n"
        "  one: {matrix: {config: configs/a.yaml, lr: 1}}\n  two: {matrix: {config: configs/a.yaml, lr: LR}}\n"
    )
    assert len(read(project, suites.replace("LR", "1"))) == 2
    with pytest.raises(BadFiles, match="would be two different copies; expected a place for each"):
        read(project, suites.replace("LR", "2"))
    assert len(read(project, suites.replace("LR", "2").replace("t.yaml", "t-{suite}.yaml"))) == 2


def test_b2_a_pipe_at_the_place_of_a_copy_is_not_waited_for(project):
    batches = read(project)
    (project / "configs" / "temp").mkdir()
    os.mkfifo(project / "configs" / "temp" / "a_seed1.yaml")
    with pytest.raises(BadFiles, match=r"a_seed1.yaml: cannot be read \(it is no file\)"):
        configcopy.write(batches)


@pytest.mark.parametrize("config", ["lr: 1\nv: 0  # x\n", "m: {v: 0, w: 1}\n"])
def test_b2_a_value_without_quotes_stays_without_them(project, config):
    (project / "configs" / "a.yaml").write_text(config)
    key = "m.v" if "m:" in config else "v"
    head, matrix = f"command: x {{config}}\ninto_config: [{key}]\n", "matrix:\n  config: configs/a.yaml\n"
    values = ["yes", "0x1F", "2020-01-01", "0o17", ".inf", "~", "sgd", "1:30"]
    head += "config_copy: t/{index}.yaml\n"
    batches = read(project, f"{head}{matrix}  {key}: [{', '.join(values)}, 'no', '0x1F ', \"7\"]\n")
    configcopy.write(batches)
    texts = [(project / "t" / f"{k}.yaml").read_text() for k in range(1, 12)]
    assert all(f"v: {value}" in text for value, text in zip(values, texts, strict=False)), texts
    assert all("v: '" in text or 'v: "' in text for text in texts[8:])
    (batch,) = read(project, f"{head}{matrix}  {key}:\n  - a, b]\n")
    assert list(batch["jobs"][0]["copy"]["values"].values()) == ['"a, b]"'], "what means something else there is quoted"


@pytest.mark.parametrize(
    ("there", "said", "written"),
    [
        ("0.01", "1e-3", "1.0e-3"),
        ("1.0e-2", "1e-3", "1.0e-3"),
        ("0.01", "-2.5E4", "-2.5e+4"),
        ("0.01", ".5e-3", "0.5e-3"),
        ("0.01", "3.e-1", "3.0e-1"),
        ("10", "1e3", "1.0e+3"),
        ("1e-2", "1e-3", "1e-3"),
        ("adam", "1e-3", "1e-3"),
        ("0.01", "0.001", "0.001"),
        ("0.01", "'1e-3'", '"1e-3"'),
        ("true", "1e-3", "1e-3"),
    ],
)
def test_b2_a_power_of_ten_over_a_number_is_a_number_for_pyyaml(project, there, said, written):
    (project / "configs" / "a.yaml").write_text(f"lr: 1\nopt: {{lr: {there}}}  # tuned\n")
    head = "command: x {config}\ninto_config: [opt.lr]\n"
    batches = read(project, f"{head}matrix: {{config: configs/a.yaml, opt.lr: [{said}]}}\n")
    configcopy.write(batches)
    text = next((project / "configs" / "temp").iterdir()).read_text()
    assert f"opt: {{lr: {written}}}  # tuned" in text
    before, after = yaml.safe_load(f"v: {there}")["v"], yaml.safe_load(text)["opt"]["lr"]
    assert isinstance(after, float) == (isinstance(before, int | float) and not isinstance(before, bool) and "'" not in said)
    assert batches[0]["jobs"][0]["params"]["opt.lr"] == said.strip("'"), "in names, arguments and results it is as written"
    assert configcopy.write(batches) == 0


def test_b2_values_in_json_are_json(project):
    (project / "configs" / "a.json").write_text('{"v": 1}')
    text = "command: x {config}\ninto_config: [v]\nmatrix: {config: configs/a.json, v: [1e-5, .5, +3, True, ~, yes, '1']}\n"
    said = [job["copy"]["values"]["v"] for job in read(project, text)[0]["jobs"]]
    assert said == ["1e-5", "0.5", "3", "true", "null", '"yes"', '"1"']


# --- names


def test_b10_values_that_no_name_can_hold_make_numbered_jobs(project):
    (batch,) = read(project, 'command: x {args}\nmatrix: {prompt: ["one\\ntwo", three], k: [1, 2]}\n')
    assert [job["name"] for job in batch["jobs"]] == ["job 1", "job 2", "job 3", "job 4"]


def test_b10_a_long_name_has_a_log_that_a_file_system_takes(project):
    long = "é" * 150
    (batch,) = read(project, f"command: x {{a}}\nmatrix: {{a: [{long}1, {long}2]}}\nlogs: out\njob: {{name: '{{a}}'}}\n")
    logs = [os.path.basename(job["log"]) for job in batch["jobs"]]
    assert len(set(logs)) == 2 and all(len(log.encode()) <= 240 and log.endswith(".log") for log in logs)
    with pytest.raises(BadFiles, match="is too long for a file; expected at most 240 bytes"):
        read(project, f"command: x {{a}}\nmatrix: {{a: [{long}1]}}\njob: {{name: '{{a}}', log: 'out/{{name}}.log'}}\n")
    (batch,) = read(project, f"command: x {{config}}\ninto_config: [a]\nmatrix: {{config: configs/a.yaml, a: [{long}]}}\n")
    assert len(os.path.basename(batch["jobs"][0]["copy"]["to"]).encode()) <= 240
