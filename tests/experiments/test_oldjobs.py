"""The job files of the source's scheduler (B1), copies of config files (B2), gates (B3) and suites (B9)."""

import json
import os

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import Usage
from jostle.experiments import configcopy
from jostle.experiments.load import load
from jostle.formats.flaws import BadFiles
from jostle.formats.nodes import Scalar

CONFIG = """# how we train
seed: 1        # of everything
lr: 1e-3       # as tuned
optimizer: {name: adam, betas: [0.9, 0.999]}
"""
OLD = """jobs:
  - name: first
    config: configs/A.yaml
    algorithm: FedAvg
    log_path: logs/first.log
    extra_args: {seed: 42, gamma_reg: 1e-5, tag: a b}
  - name: second
    config: configs/A.yaml
    algorithm: FedETF
    log_path: logs/second.log
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "configs").mkdir()
    for name in "AB":
        (tmp_path / "configs" / f"{name}.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def read(project):
    def read(text, suites=(), name="jobs.yaml", **how):
        (project / name).write_text(text)
        return load([str(project / name)], suites, **how)

    return read


def flaws(read, text):
    with pytest.raises(BadFiles) as caught:
        read(text)
    return [f"{line}: {words}" for _, line, words in caught.value.flaws]


def commands(batch):
    return [job["commands"][0] for job in batch["jobs"]]


def test_b1_a_file_of_the_old_shape_is_read_as_it_is(read, project):
    (batch,) = read(OLD)
    assert commands(batch) == [
        "python test.py --cfp configs/temp/A_seed42.yaml --algo FedAvg --gamma_reg 1e-5 --tag 'a b'",
        "python test.py --cfp configs/A.yaml --algo FedETF",
    ]
    first = batch["jobs"][0]
    assert (first["name"], first["log"], first["workdir"]) == ("first", str(project / "logs/first.log"), str(project))
    assert first["params"] == {"config": "configs/A.yaml", "algorithm": "FedAvg", "seed": "42", "gamma_reg": "1e-5", "tag": "a b"}
    assert first["inputs"] == [str(project / "configs/A.yaml")]
    assert batch["kind"] == "old" and batch["name"] == "jobs"


def test_b1_the_template_is_a_key_of_the_file(read):
    (batch,) = read("command: run {config.stem} {args} -a {algorithm}\n" + OLD)
    assert commands(batch) == ["run A_seed42 --gamma_reg 1e-5 --tag 'a b' -a FedAvg", "run A  -a FedETF"]
    job = "{config: configs/A.yaml, extra_args: {tag: x y, k: 1, flag: null}}"
    (batch,) = read(f"command: [run, '{{tag}}', '{{config}}']\njobs: [{job}]\n")
    assert commands(batch) == [["run", "x y", "configs/A.yaml", "--k", "1", "--flag"]]


def test_b1_errors_are_told_at_once_with_their_lines(read):
    jobs = ("{name: a, config: configs/A.yaml, algoritm: X}", "{config: none.yaml, algorithm: X, extra_args: {seed: 1}}", "7")
    found = flaws(read, "jobs:\n" + "".join(f"  - {job}\n" for job in jobs))
    assert '2: unknown key "algoritm"; expected algorithm?' in found
    assert any(line.startswith("2: a job without `algorithm`; the command needs it") for line in found)
    assert any(line.startswith('3: the config file "') and "cannot be read: No such file" in line for line in found)
    assert any(line.startswith("4: a value in jobs") for line in found)


def test_b1_two_jobs_with_one_log_are_an_error(read):
    (found,) = flaws(read, OLD.replace("second.log", "first.log"))
    assert "is the log of \"first\" and of \"second\"" in found


def test_b1_a_plain_job_file_stays_one(read):
    (batch,) = read("jobs:\n  - {name: a, run: \"echo 'config: x'\"}\n")
    assert (batch["kind"], batch["policy"], batch["jobs"][0]["params"]) == ("jobs", {}, {})


def test_b3_the_gates_of_old_files_are_a_policy_and_a_promise(read):
    (batch,) = read(OLD)
    assert batch["policy"] == {"min_free_mib": 8000, "max_utilization": 30, "strangers": "share"}
    assert {(job["memory_mib"], job["share"]) for job in batch["jobs"]} == {(8000, False)}


def test_b3_the_command_line_goes_over_the_file_and_the_job_s_own_memory_over_both(read):
    text = "policy: {min_free: 6000MiB, choice: most-free}\n" + OLD + "    memory: 4GiB\n"
    assert [job["memory_mib"] for job in read(text)[0]["jobs"]] == [6000, 4096]
    (batch,) = read(text, min_memory=12000)
    assert batch["policy"] == {"min_free_mib": 12000, "max_utilization": 30, "choice": "most-free", "strangers": "share"}
    assert [job["memory_mib"] for job in batch["jobs"]] == [12000, 4096]


def test_b3_gates_are_the_default_of_old_files_only(read):
    (batch,) = read("command: x {a}\nmatrix: {a: [1]}\n")
    assert batch["policy"] == {} and batch["jobs"][0]["memory_mib"] is None


# copies


def test_b2_the_seed_is_written_into_a_copy_that_keeps_comments_and_numbers(read, project):
    batches = read(OLD)
    assert not (project / "configs/temp").exists(), "reading writes nothing"
    assert configcopy.write(batches) == 1
    copy = (project / "configs/temp/A_seed42.yaml").read_text()
    head, rest = copy.split("\n", 1)
    assert head == "# a copy made by jostle of A.yaml with seed: 42"
    assert rest == CONFIG.replace("seed: 1 ", "seed: 42 ")
    assert (project / "configs/A.yaml").read_text() == CONFIG
    assert configcopy.write(batches) == 0, "the same copy is not written again"


@pytest.mark.parametrize(
    ("way", "command"),
    [
        ("argument", "python test.py --cfp configs/A.yaml --algo X --seed 42"),
        ("config", "python test.py --cfp configs/temp/A_seed42.yaml --algo X"),
        ("both", "python test.py --cfp configs/temp/A_seed42.yaml --algo X --seed 42"),
    ],
)
def test_b2_each_key_says_how_it_is_given(read, way, command):
    job = "{config: configs/A.yaml, algorithm: X, extra_args: {seed: 42}}"
    assert commands(read(f"into_config: {{seed: {way}}}\njobs: [{job}]\n")[0]) == [command]
    sweep = f"into_config: {{seed: {way}}}\ncommand: python test.py --cfp {{config}} --algo X {{args}}\n"
    assert commands(read(sweep + "matrix: {config: configs/A.yaml, seed: 42}\n")[0]) == [command]


def test_b2_nested_keys_new_keys_and_a_place_of_the_author_s(read, project):
    batches = read(
        "command: x {config_file}\nconfig_file: configs/{data}.yaml\nconfig_copy: made/{name}.yaml\n"
        "into_config: [optimizer.name, extra, lr]\njob: {name: '{data}-{lr}'}\n"
        "matrix: {data: [A, B], optimizer.name: [sgd], extra: ['1'], lr: [1e-5, 0.10]}\n"
    )
    assert commands(batches[0])[1] == "x made/A-0.10.yaml"
    assert configcopy.write(batches) == 4
    text = (project / "made/B-1e-5.yaml").read_text()
    assert "lr: 1e-5       # as tuned" in text and "{name: sgd, betas: [0.9, 0.999]}" in text
    assert yaml.safe_load(text)["extra"] == "1", "a quoted text stays a text"


def test_b2_json_keeps_being_json(read, project):
    (project / "configs/A.json").write_text('{"seed": 1, "name": "x"}\n')
    batches = read("command: x {config}\ninto_config: [seed, name]\nmatrix: {config: configs/A.json, seed: [7], name: [y]}\n")
    configcopy.write(batches)
    (made,) = os.listdir(project / "configs/temp")
    assert made.startswith("A_seed7_namey-") and made.endswith(".json")
    assert json.loads((project / "configs/temp" / made).read_text()) == {"seed": 7, "name": "y"}


def test_b2_a_file_that_is_no_copy_is_never_overwritten(read, project):
    batches = read(OLD)
    place = project / "configs/temp/A_seed42.yaml"
    place.parent.mkdir()
    place.write_text("seed: 42\nmine: true\n")
    with pytest.raises(BadFiles, match=r"A_seed42.yaml: is no copy made by jostle and says something else; move it away"):
        configcopy.write(batches)
    assert place.read_text() == "seed: 42\nmine: true\n"


def test_b2_a_copy_of_the_source_s_own_that_says_the_same_is_used(read, project):
    place = project / "configs/temp/A_seed42.yaml"
    place.parent.mkdir()
    place.write_text("optimizer: {betas: [0.9, 0.999], name: adam}\nlr: 1e-3\nseed: 42\n")
    assert configcopy.write(read(OLD)) == 0


def test_b2_a_copy_follows_its_original(read, project):
    configcopy.write(read(OLD))
    (project / "configs/A.yaml").write_text(CONFIG.replace("1e-3", "2e-3"))
    assert configcopy.write(read(OLD)) == 1
    assert "lr: 2e-3 " in (project / "configs/temp/A_seed42.yaml").read_text()
    assert [name for name in os.listdir(project / "configs/temp") if name.startswith(".")] == []


def test_b2_the_original_is_never_the_place_of_a_copy(read, project):
    matrix = "matrix: {config: configs/A.yaml, seed: 42}\n"
    batches = read(f"command: x {{config}}\ninto_config: [seed]\nconfig_copy: configs/A.yaml\n{matrix}")
    with pytest.raises(BadFiles, match="is a config file that copies are made of"):
        configcopy.write(batches)
    assert (project / "configs/A.yaml").read_text() == CONFIG


def test_b2_two_copies_in_one_place_are_an_error(read):
    text = "command: x {config}\ninto_config: [seed]\nconfig_copy: t.yaml\nmatrix: {config: configs/A.yaml, seed: [1, 2]}\n"
    assert any("would be two different copies; expected a place for each" in line for line in flaws(read, text))


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20) | st.integers().map(str), st.booleans())
def test_b2_any_value_is_read_back_as_it_was_meant(tmp_path_factory, text, plain):
    path = tmp_path_factory.getbasetemp() / "any-config.yaml"
    path.write_text(CONFIG)
    plain = plain and text.isascii() and text.removeprefix("-").isdigit()
    made = configcopy.Original(str(path)).copy({"seed": configcopy.spelled(Scalar(0, text, plain))})
    assert str(yaml.load(made, Loader=yaml.BaseLoader)["seed"]) == text
    assert yaml.safe_load(made)["optimizer"]["betas"] == [0.9, 0.999]


# suites

SUITES = """
command: x {args}
logs: logs/all
job: {memory: 8GiB}
suites:
  one: {matrix: {a: [1, 2]}, job: {gpus: 2}, logs: logs/one}
  two: {command: "y {a}", matrix: {a: [3]}}
  old: {file: old.yaml, logs: logs/old}
"""


@pytest.fixture
def suites(read, project):
    (project / "old.yaml").write_text(OLD.replace("    log_path: logs/second.log\n", ""))

    def suites(*names):
        return read(SUITES, names)

    return suites


def test_b9_suites_are_batches_one_after_another_each_with_its_folder_of_logs(suites, project):
    one, two, old = suites()
    assert [batch["name"] for batch in (one, two, old)] == ["one", "two", "old"]
    assert commands(one) == ["x --a 1", "x --a 2"] and commands(two) == ["y 3"] and len(old["jobs"]) == 2
    assert (one["jobs"][0]["memory_mib"], one["jobs"][0]["gpus"]) == (8192, [2, 2])
    assert [os.path.relpath(batch["jobs"][-1]["log"], project) for batch in (one, two, old)] == [
        "logs/one/a=2.log", "logs/all/a=3.log", "logs/old/second.log",
    ]  # fmt: skip
    file = str(project / "jobs.yaml")
    assert [batch["about"] for batch in (one, old)] == [
        {"file": file, "suite": "one"}, {"file": file, "suite": "old", "source": str(project / "old.yaml")},
    ]  # fmt: skip


def test_b9_suites_are_chosen_by_name(suites):
    assert [batch["name"] for batch in suites("old", "one")] == ["old", "one"]
    assert [batch["name"] for batch in suites("two", "all")] == ["two", "one", "old"]


def test_b9_an_unknown_suite_is_answered_with_the_list(suites):
    with pytest.raises(Usage, match=r"there is no suite 'three'; there are one, two, old \(or all\)") as caught:
        suites("three")
    assert caught.value.exit_code == 2


def test_b9_files_are_suites_by_their_names(project):
    for name in ("jobs_multi_seed", "jobs_gamma"):
        (project / f"{name}.yaml").write_text(OLD)
    files = [str(project / f"{name}.yaml") for name in ("jobs_multi_seed", "jobs_gamma")]
    assert [batch["name"] for batch in load(files, ["gamma"])] == ["jobs_gamma"]
    assert [batch["name"] for batch in load(files, ["jobs_multi_seed", "gamma"])] == ["jobs_multi_seed", "jobs_gamma"]
    assert [batch["name"] for batch in load(files)] == ["jobs_multi_seed", "jobs_gamma"]


def test_b9_what_is_wrong_with_suites_names_the_file_it_stands_in(read, project):
    (project / "bad.yaml").write_text("matrix: {a: [1]}\n")
    with pytest.raises(BadFiles) as caught:
        read("suites:\n  a: bad.yaml\n  b: none.yaml\n  c: 7.5\n  d: [1]\n  e: {suites: {}}\n  f: {jobs: [{run: x}]}\n")
    said = [(os.path.basename(file), line) for file, line, _ in caught.value.flaws]
    assert set(said) == {("bad.yaml", 1), ("none.yaml", 0), ("7.5", 0), ("jobs.yaml", 5), ("jobs.yaml", 6), ("jobs.yaml", 7)}


def test_b9_plain_job_files_side_by_side_are_one_batch_still(project):
    for name in "ab":
        (project / f"{name}.yaml").write_text(f"jobs: [{{name: {name}, run: 'true'}}]\n")
    (project / "s.yaml").write_text("command: x {a}\nmatrix: {a: [1]}\n")
    files = [str(project / f"{name}.yaml") for name in "abs"]
    assert [len(batch["jobs"]) for batch in load(files)] == [2, 1]
