"""The job file: what it means, and that all its errors are told at once, each with its line."""

import json
import pathlib

import pytest

from jostle.core.model import Policy
from jostle.engine import checks
from jostle.formats import jobfile, order, policyfile, spec

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def load(tmp_path):
    def load(text, **others):
        path = tmp_path / "jobs.yaml"
        path.write_text(text, encoding="utf-8")
        return jobfile.load([str(path)], now=1000.0)

    return load


def flaws(load, text):
    with pytest.raises(jobfile.BadFiles) as caught:
        load(text)
    return [(line, words) for _, line, words in caught.value.flaws]


def only_flaw(load, text):
    found = flaws(load, text)
    assert len(found) == 1, found
    return found[0]


WHOLE = """
name: night
defaults:
  gpus: 1
  env: {A: 1, B: two}
policy:
  gpus: 0-2,5
  gpu_left: 1
  min_free: 1GiB
  max_utilization: 30%
  idle_for: 1m
  choice: most-free
jobs:
  - name: one
    queue: q
    run: |
      echo a
      echo b
    gpus: 1-4
    memory: 20GiB
    env: {B: 1e-5}
    workdir: sub/../dir
    log: out/one.log
    priority: -3
    begin: +10m
    time_limit: 2h30m
    retry: {max: unlimited, backoff_after: 2, backoff: 1m}
    share: true
    on: [slurm, local, slurm]
    tags: [x, 'y z']
    leftovers: wait
  - name: two
    run: [echo a, [python, train.py, "--x y"]]
    gpus: 0
    after: [one, 17]
    after_any: three
  - {name: three, run: 'true', memory: 500MiB, retry: 2}
"""


def test_every_key_is_read(load, tmp_path):
    batch = load(WHOLE)
    one, two, three = batch["jobs"]
    assert one == spec.job(
        name="one",
        queue="q",
        commands=["echo a\necho b\n"],
        gpus=[1, 4],
        memory_mib=20480,
        env={"A": "1", "B": "1e-5"},
        workdir=str(tmp_path / "dir"),
        log=str(tmp_path / "out/one.log"),
        priority=-3,
        begin=1600.0,
        time_limit=9000.0,
        retry={"max": None, "backoff_after": 2, "backoff": 60.0},
        share=True,
        on=["slurm", "local"],
        tags=["x", "y z"],
        leftovers="wait",
    )
    assert two["commands"] == ["echo a", ["python", "train.py", "--x y"]]
    assert two["gpus"] == [0, 0]
    assert two["needs"] == [["index", 0, False], ["job", 17, False], ["index", 2, True]]
    assert three["memory_mib"] == 500 and three["retry"] == {"max": 2, "backoff_after": 3, "backoff": 600.0}
    assert three["workdir"] == str(tmp_path) and three["needs"] == []
    assert batch["name"] == "night"
    assert batch["policy"] == {
        "gpus": [0, 1, 2, 5],
        "gpu_left": 1,
        "min_free_mib": 1024,
        "max_utilization": 30,
        "idle_for": 60.0,
        "choice": "most-free",
    }


def test_the_engine_takes_what_the_file_gives(load):
    batch = load(WHOLE)
    request = {"batch": {"policy": batch["policy"]}, "context": {}, "jobs": batch["jobs"]}
    checked = checks.request(json.loads(json.dumps(request)))
    assert [job["name"] for job in checked["jobs"]] == ["one", "two", "three"]


def test_every_rule_of_the_policy_can_be_written():
    written = {field.name for field in policyfile.KEYS.values()}
    assert written == set(Policy.__dataclass_fields__)


def test_a_job_without_a_name_is_called_by_its_command(load):
    jobs = load("jobs:\n  - run: python train.py\n  - run: |\n\n      set -e\n      x\n")["jobs"]
    assert [job["name"] for job in jobs] == ["python train.py", "set -e"]


def test_a_job_may_run_on_one_target_and_on_this_host_if_nothing_is_said(load):
    jobs = load("defaults: {on: lab}\njobs:\n  - {run: x}\n  - {run: x, on: null}\n  - {run: x, on: slurm-2}\n")["jobs"]
    assert [job["on"] for job in jobs] == [["lab"], ["local"], ["slurm-2"]]


def test_c13_a_job_says_what_it_takes_of_the_host_and_of_counters(load):
    text = """
defaults: {cpus: 4, host_memory: 16GiB, counters: {licence: 1}, nice: 10}
jobs:
  - {run: x}
  - {run: x, cpus: null, host_memory: ~, counters: null, nice: null}
  - {run: x, cpus: 64, host_memory: 2, counters: "tape=2,licence", nice: 19}
"""
    keys = ("cpus", "host_memory_mib", "counters", "nice")
    assert [tuple(job[key] for key in keys) for job in load(text)["jobs"]] == [
        (4, 16384, {"licence": 1}, 10), (None, None, {}, 0), (64, 2048, {"tape": 2, "licence": 1}, 19),
    ]  # fmt: skip


def test_null_takes_a_default_back(load):
    job = load("defaults: {memory: 5, queue: q, time_limit: 5m}\njobs:\n  - {run: x, memory: null, queue: ~, time_limit: }\n")[
        "jobs"
    ][0]
    assert (job["memory_mib"], job["queue"], job["time_limit"]) == (None, None, None)


def test_files_of_one_batch_keep_their_own_names(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text("jobs:\n  - {name: x, run: y}\n  - {name: z, run: y, after: x}\n")
    batch = jobfile.load([str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")])
    assert [job["needs"] for job in batch["jobs"]] == [[], [["index", 0, False]], [], [["index", 2, False]]]
    assert batch["name"] == "a, b"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda p: p.name)
def test_the_examples_are_good(path):
    if "jobs:" in path.read_text("utf-8"):  # others are scenarios of the simulator
        assert jobfile.load([str(path)])["jobs"]


def test_all_errors_are_told_at_once_with_their_lines(load):
    text = (
        "defaults:\n  gpu: 1\njobs:\n  - name: a\n    run: x\n    memory: lots\n    gpus: -1\n"
        "  - runn: x\n  - text\n  - {run: [], priority: true}\n"
    )
    assert flaws(load, text) == [
        (2, 'unknown key "gpu" in defaults; expected gpus?'),
        (6, 'memory: "lots" is not understood; expected a size such as 20GiB, 500MiB or 20 (GB)'),
        (7, 'gpus: "-1" is not understood; expected a count of GPUs such as 2, or a range such as 1-4'),
        (8, "a job without `run`; expected a command such as `run: python train.py`"),
        (8, 'unknown key "runn"; expected run?'),
        (9, "a value in jobs; expected a job with keys such as `run: python train.py`"),
        (10, 'priority: "true" is not understood; expected a whole number from -2147483648 to 2147483648'),
        (10, "run: an empty list; expected a command or a list of commands"),
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("gpus: true", "gpus"),
        ("gpus: 1.0", "gpus"),
        ("gpus: [1]", "a list"),
        ("memory: .nan", "a size"),
        ("memory: .inf", "a size"),
        ("memory: -1", "a size"),
        ("memory: 0", "more than 0"),
        ("memory: 1e309", "a size"),
        ("memory: {a: 1}", "a mapping"),
        ("time_limit: 0", "more than 0"),
        ("time_limit: -5", "a duration"),
        ("begin: yesterday", "a time"),
        ("share: yes", "true or false"),
        ("share: true", "share without memory"),
        ("retry: {maxx: 1, max: 1}", "expected max?"),
        ("retry: {backoff: 5}", "without max"),
        ("retry: {max: 1, backoff_after: 0}", "retry.backoff_after"),
        ("retry: -1", "unlimited"),
        ("priority: 1.5", "whole number"),
        ("env: [A]", "NAME: value"),
        ("env: {A: [1]}", "a text"),
        ("env: {'A=': 1}", "without ="),
        ('env: {"A\\0": 1}', "without ="),
        ('env: {A: "x\\0"}', "without NUL"),
        ("env: {A: 1, A: 2}", "twice"),
        ('name: ""', "not empty"),
        ('name: "a\\nb"', "one line"),
        ("name: " + "x" * 300, "at most 200"),
        ('queue: "\\u202e"', "printable"),
        ("tags: [[x]]", "a list"),
        ("on: local,slurm", "the name of a target"),
        ("on: [local, a b]", "the name of a target"),
        ("on: []", "a target, or a list of them"),
        ("cpus: 0", "a whole number from 1 to 65536"),
        ("cpus: 1.5", "a whole number from 1 to 65536"),
        ("host_memory: much", "a size such as 20GiB"),
        ("nice: -5", "a whole number from 0 to 19"),
        ("counters: {licence: 0}", "a whole number of at least 1"),
        ("counters: {licence: 1, licence: 2}", "twice"),
        ("counters: {a b: 1}", "letters, digits"),
        ("counters: [licence]", "a list"),
        ("counters: licence=1,licence=2", "each name once"),
        ("counters: {" + ", ".join(f"c{k}: 1" for k in range(17)) + "}", "at most 16 names"),
        ('tags: ["a\\tb"]', "printable"),
        ('workdir: ""', "a path"),
        ("leftovers: maybe", "one of kill, wait"),
        ("after: nobody", "no job is named"),
        ("after: {a: 1}", "a mapping"),
        ("after: [~]", "nothing"),
        ("run: y", "twice"),
        ("after: x", "wait for each other"),
    ],
)
def test_a_wrong_value_is_told_at_its_line(load, line, words):
    number, text = only_flaw(
        load,
        f"jobs:\n  - name{'d' if line.startswith('name') else ''}: x\n    run: x\n    {line}\n"
        if not line.startswith("name")
        else f"jobs:\n  - run: x\n    queue: q\n    {line}\n",
    )
    assert words in text
    assert number == (2 if words in ("share without memory", "wait for each other") else 4)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 0, "is empty"),
        ("# nothing\n", 0, "is empty"),
        ("- a\n", 1, "a list"),
        ("x\n", 1, "a value"),
        ("jobs:\n", 1, "no jobs"),
        ("defaults: {}\n", 1, "no jobs"),
        ("jobs: {a: 1}\n", 1, "expected a list"),
        ("jobs: [x]\ndefaults: [y]\n", 2, "keys of a job"),
        ("defaults: {name: x}\njobs:\n  - run: x\n", 1, "in the jobs"),
        ("jobs:\n  - run: x\njob: 1\n", 3, "expected jobs?"),
        ("policy: 5\njobs:\n  - run: x\n", 1, "expected rules"),
        ("policy: {order: up}\njobs:\n  - run: x\n", 1, "one of file"),
        ("policy: {min_gpu: 3, max_gpu: 1}\njobs:\n  - run: x\n", 1, "smaller first"),
        ("policy:\n  gpu_lef: 1\njobs:\n  - run: x\n", 2, "expected gpu_left?"),
        ("jobs:\n  - run: x\njobs:\n  - run: y\n", 3, "twice"),
        ("policy: {choice: best}\njobs:\n  - run: x\n", 1, "best-fit"),
        ("policy: {max_utilization: 130}\njobs:\n  - run: x\n", 1, "0 to 100"),
    ],
)
def test_a_wrong_file_is_told_at_its_line(load, text, line, words):
    found = flaws(load, text)
    assert any(number == line and words in said for number, said in found), found


def test_an_ambiguous_name_is_told_with_the_lines_it_could_mean(load):
    line, text = only_flaw(load, "jobs:\n  - {name: a, run: x}\n  - {name: a, run: x}\n  - {run: y, after: a}\n")
    assert (line, text) == (4, 'after: "a" names 2 jobs (lines 2, 3); expected one')


def test_a_near_name_is_suggested(load):
    _, text = only_flaw(load, "jobs:\n  - {name: train, run: x}\n  - {run: y, after: trian}\n")
    assert text.endswith("expected a name in this file or an id, perhaps train")


def test_a_circle_is_told_with_names_and_lines(load):
    text = "jobs:\n  - {name: a, run: x, after: b}\n  - {name: b, run: x, after: c}\n  - {name: c, run: x, after_any: a}\n"
    line, words = only_flaw(load, text)
    assert line == 2 and '"a" (line 2) → "b" (line 3) → "c" (line 4) → "a" (line 2)' in words


def test_an_order_that_a_queue_makes_impossible_is_told(load):
    _, words = only_flaw(load, "jobs:\n  - {name: a, run: x, queue: q, after: b}\n  - {name: b, run: x, queue: q}\n")
    assert "jobs of one queue run in the order of the file" in words


def test_a_long_chain_is_no_circle():
    assert order.circle({k: [k - 1] for k in range(1, 50_000)}, [None] * 50_000) == []


def test_two_policies_in_one_batch_are_refused(tmp_path):
    for name, left in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.yaml").write_text(f"policy: {{gpu_left: {left}}}\njobs:\n  - run: x\n")
    with pytest.raises(jobfile.BadFiles, match="a second policy"):
        jobfile.load([str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")])


def test_thousands_of_errors_are_cut_short(load):
    with pytest.raises(jobfile.BadFiles, match=r"and 900 more"):
        load("jobs:\n" + "  - run: []\n" * 1000)


def test_placeholders_and_shell_text_are_kept_literally(load):
    job = load("jobs:\n  - run: 'echo {__class__} %s $(id) ; rm -rf ~'\n    env: {X: '$(id)'}\n")["jobs"][0]
    assert job["commands"] == ["echo {__class__} %s $(id) ; rm -rf ~"] and job["env"] == {"X": "$(id)"}


def test_a_file_needs_at_least_one_job(load):
    assert only_flaw(load, "name: x\njobs: []\n") == (2, "jobs: an empty list; expected at least one job")


def test_a_colon_in_a_plain_text_gets_a_hint(load):
    line, words = only_flaw(load, "jobs:\n  - run: echo a: b\n")
    assert line == 2 and words.endswith("; put quotes around a text that contains `: `")


def test_null_for_a_rule_that_may_have_no_limit_says_so_over_the_engines_own(tmp_path):
    file = tmp_path / "jobs.yaml"
    rules = "{gpus: null, max_gpu: null, command_limit: ~, gpu_left: null, choice: null}"
    file.write_text(f"policy: {rules}\njobs: [{{run: 'true'}}]\n")
    assert jobfile.load([str(file)])["policy"] == {"gpus": None, "max_gpu": None, "command_limit": None}
