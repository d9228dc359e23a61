"""Sweeps: which combinations there are, what their commands are, and what is told of a sweep that is wrong."""

import itertools
import os
import pathlib
import shlex
import subprocess
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.core.fields import PRIVATE
from jostle.engine import checks
from jostle.experiments import matrix
from jostle.experiments.load import load
from jostle.experiments.matrix import Axis
from jostle.experiments.template import NoValue, Template
from jostle.formats.flaws import BadFiles
from jostle.formats.nodes import Scalar

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "experiments"


def scalar(text):
    return Scalar(0, text, True)


def axis(key, *texts):
    return Axis(keys=(key,), values=tuple((scalar(text),) for text in texts))


def texts(rows):
    return [{key: value.text for key, value in row.items()} for row in rows]


@pytest.fixture
def read(tmp_path):
    def read(text, name="sweep.yaml", **how):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return load([str(tmp_path / name)], **how)

    return read


def commands(batch):
    return [job["commands"][0] for job in batch["jobs"]]


def flaws(read, text):
    with pytest.raises(BadFiles) as caught:
        read(text)
    return [f"{line}: {words}" for _, line, words in caught.value.flaws]


# combinations

KEYS = ("a", "b", "c", "d")
VALUES = st.lists(st.sampled_from(("0", "1", "2", "3")), min_size=1, max_size=4, unique=True)


@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1),
    st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1), max_size=3),
)
def test_b10_the_expansion_is_the_product_without_what_is_excluded(axes, exclude):
    exclude = [one for one in exclude if one.keys() <= axes.keys()]
    rows = texts(matrix.expanded([axis(key, *values) for key, values in axes.items()], exclude))
    wanted = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    assert rows == [row for row in wanted if not any(all(row[k] in v for k, v in one.items()) for one in exclude)]


def test_b10_an_exclusion_of_very_many_combinations_takes_no_more_time_than_another():
    axes = [axis(key, *map(str, range(8))) for key in "abcde"]
    some = [str(k) for k in range(1, 8)]
    repeated = dict.fromkeys("abcde", some * 10)  # 70 ** 5, were they not made one
    unlike = {key: [*some, *(f"no {k}" for k in range(60))] for key in "abcde"}  # 67 ** 5, whatever is done about it
    for exclude in ([repeated], [unlike], [unlike, repeated, unlike]):
        rows = texts(matrix.expanded(axes, exclude))
        assert len(rows) == 8**5 - 7**5 and all("0" in row.values() for row in rows)


def test_b10_zipped_keys_advance_together():
    zipped = Axis(keys=("lr", "epochs"), values=((scalar("0.1"), scalar("10")), (scalar("0.01"), scalar("100"))))
    rows = texts(matrix.expanded([axis("seed", "1", "2"), zipped]))
    assert [" ".join(row.values()) for row in rows] == ["1 0.1 10", "1 0.01 100", "2 0.1 10", "2 0.01 100"]


def test_b10_an_inclusion_extends_what_it_matches_and_is_new_where_it_matches_nothing():
    """The worked example of GitHub's documentation."""
    rows = matrix.expanded(
        [axis("fruit", "apple", "pear"), axis("animal", "cat", "dog")],
        include=[
            {key: scalar(value) for key, value in one.items()}
            for one in (
                {"color": "green"},
                {"color": "pink", "animal": "cat"},
                {"fruit": "apple", "shape": "circle"},
                {"fruit": "banana"},
                {"fruit": "banana", "animal": "cat"},
            )
        ],
    )
    assert texts(rows) == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]


# templates


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20))
@settings(max_examples=60, deadline=None)
def test_b10_bash_sees_exactly_the_value_wherever_it_stands(value):
    template = Template("printf '%s\\0' {v} \"a{v}b\" 'c{v}d' x={v}y \"$(printf '%s.' {v})\"", {"v"}, shell=True)
    out = subprocess.run(["bash", "-c", template.filled({"v": value})], capture_output=True, check=True, timeout=60).stdout
    assert out.decode().split("\0")[:5] == [value, f"a{value}b", f"c{value}d", f"x={value}y", f"{value}."]


def test_b10_other_braces_are_left_alone():
    text = "awk '{print $1}' ${seed} {seeds} {a,b} {} | jq '{\"x\": 1}'"
    assert Template(text, {"seed"}, shell=True).filled({"seed": "7"}) == text


def test_a_template_tells_parts_of_paths_and_what_is_missing():
    template = Template("{config.stem} {config.name} {config.dir} {model.lr}", {"config", "model.lr"})
    assert template.filled({"config": "a/b.c.yaml", "model.lr": "1e-5"}) == "b.c b.c.yaml a 1e-5"
    with pytest.raises(NoValue):
        template.filled({"config": "x"})


# files

SWEEP = """
command: python train.py --cfg {config} {args}
matrix:
  config: [a.yaml]
  seed: [1, 2]
zip: {lr: [1e-5, 0.10], note: [x y, "it's"]}
job: {name: "{seed}-{lr}", log: "logs/{name}.log", env: {SEED: "{seed}"}, memory: 8GiB, gpus: 1-2}
"""


def test_b10_a_sweep_is_read_with_values_as_they_are_written(read, tmp_path):
    (batch,) = read(SWEEP)
    assert commands(batch) == [
        "python train.py --cfg a.yaml --seed 1 --lr 1e-5 --note 'x y'",
        "python train.py --cfg a.yaml --seed 1 --lr 0.10 --note 'it'\"'\"'s'",
        "python train.py --cfg a.yaml --seed 2 --lr 1e-5 --note 'x y'",
        "python train.py --cfg a.yaml --seed 2 --lr 0.10 --note 'it'\"'\"'s'",
    ]
    job = batch["jobs"][1]
    assert (job["name"], job["log"], job["env"]) == ("1-0.10", str(tmp_path / "logs/1-0.10.log"), {"SEED": "1"})
    assert (job["memory_mib"], job["gpus"], job["workdir"]) == (8192, [1, 2], str(tmp_path))
    assert job["params"] == {"config": "a.yaml", "seed": "1", "lr": "0.10", "note": "it's"}
    assert job["inputs"] == [str(tmp_path / "a.yaml")]
    assert batch["about"] == {"file": str(tmp_path / "sweep.yaml"), "suite": None}
    assert batch["name"] == batch["kind"] == "sweep"


def test_b10_a_list_of_arguments_needs_no_shell(read):
    (batch,) = read("command: [python, train.py, 'lr={lr}', '{args}']\nmatrix: {lr: [x y], seed: [1]}\n")
    assert batch["jobs"][0]["commands"] == [["python", "train.py", "lr=x y", "--seed", "1"]]


def test_jobs_without_a_name_are_called_after_what_differs(read):
    (batch,) = read("command: x {args}\nmatrix: {config: [c/a.yaml, c/b.yaml], seed: [1, 2], fixed: 3}\n")
    assert [job["name"] for job in batch["jobs"]][:2] == ["config=a.yaml seed=1", "config=a.yaml seed=2"]


def test_the_engine_takes_the_jobs_of_a_sweep(read):
    (batch,) = read(SWEEP)
    jobs = [{key: value for key, value in job.items() if key not in PRIVATE} for job in batch["jobs"]]
    checked = checks.request({"batch": {"policy": batch["policy"], "about": batch["about"]}, "context": {}, "jobs": jobs})
    assert [job["params"]["lr"] for job in checked["jobs"]] == ["1e-5", "0.10"] * 2


def test_b10_all_errors_of_a_sweep_are_told_at_once_with_their_lines(read):
    found = flaws(
        read,
        """command: python x.py {sead} {args}
matrix:
  seed: [1, 2, 1]
  lr: []
  deep: [[1]]
zip: {a: [1, 2], b: [1]}
exclude:
  - {sed: 1}
  - {seed: 3}
job: {name: "{nothing}", memroy: 3}
into_config: [other]
""",
    )
    for wanted in (
        "1: command: {sead} is no key of this sweep; expected {seed}?",
        '3: matrix: seed: "1" is there twice; expected each value once',
        "4: matrix: lr: an empty list; expected a list of values",
        "5: matrix: deep: a list as a value; expected a number or a text",
        "6: zip: lists of different lengths (a has 2, b has 1); expected equally long ones",
        '8: exclude: "sed" is no key of this sweep; expected perhaps seed',
        '9: exclude: seed has no value "3"; expected one of 1, 2',
        '10: unknown key "memroy" in job; expected memory?',
    ):
        assert wanted in found
    assert any(line.startswith("10: name: {nothing} is no key") for line in found)
    assert any(line.startswith('11: into_config: "other" is no key') for line in found)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("command: x\nmatrix: {seed: [1, 2]}\n", '2: "seed" is used nowhere; write {seed} or {args} into command, or seed under'),
        ("command: x {a}\nmatrix: {a: [1, 2]}\njob: {name: same}\n", '3: name: "same" is the name of several jobs'),
        ("command: x {a}\nmatrix: {a: [1, 2]}\njob: {log: one.log}\n", "3: log: "),
        ("command: x {a}\nmatrix: {a: [1]}\nexclude: {a: 1}\n", "1: every combination is excluded"),
        ("matrix: {a: [1]}\n", "1: no command; expected a template"),
        ("command: x\n", "1: nothing to combine; expected `matrix:`"),
        ("command: x {a} {b}\nmatrix: {a: [1, 2]}\ninclude: {a: 1, b: 2}\n", '2: {b} has no value where "a is 2"'),
        ("command: x {args}\nmatrix: {args: [1]}\n", "2: matrix: {args} has a meaning of its own in templates"),
        ("command: x {args}\nmatrix: {a: [1], b: [1]}\nzip: {b: [1]}\n", '3: the key "b" is there twice'),
    ],
)
def test_b10_slips_that_would_waste_a_night_are_errors(read, text, wanted):
    found = flaws(read, text)
    assert any(line.startswith(wanted) for line in found), found


def test_b10_a_product_that_is_too_big_is_refused_before_it_is_made(read):
    many = ", ".join(map(str, range(1000)))
    (found,) = flaws(read, f"command: x {{args}}\nmatrix:\n  a: [{many}]\n  b: [{many}]\n  c: [{many}]\n")
    assert found == "3: 1,000,000,000 combinations; expected at most 200,000: take values away, or split it into suites"


def test_b10_ten_thousand_jobs_have_ten_thousand_names(read):
    many = ", ".join(map(str, range(100)))
    (batch,) = read(f"command: x {{args}}\nmatrix: {{a: [{many}], b: [{many}]}}\nlogs: out\n")
    assert len(batch["jobs"]) == 10_000
    assert all(len({job[key] for job in batch["jobs"]}) == 10_000 for key in ("name", "log"))


PIECES = st.sampled_from(
    ["command:", "matrix:", "zip:", "include:", "exclude:", "into_config:", "job:", "suites:", "jobs:", "config:", "extra_args:",
     "logs:", " a", " [1, 2]", " {a: [1, 2]}", " - {a: 1}", "\n", "\n  ", "x {a} {args}", " {config.stem}", ": ", "- ",
     "config_copy: t", "inputs: [a]", "policy: {share: true}", "name: {a}", " null", "'", "\t", "config_file: x", "algorithm: 1",
     " seed", "run: x", "&a", " *a", "file: x"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_b1_b10_no_text_makes_the_reader_crash(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        load([str(path)])
    except BadFiles as e:
        assert e.flaws


# the examples


@pytest.mark.parametrize(
    ("suite", "count"), [("multi_seed", 24), ("gamma", 6), ("lambda_max", 6)],
)  # fmt: skip
def test_b10_the_matrices_of_the_examples_are_the_same_jobs_as_the_hand_written_lists(suite, count):
    old_name = suite if suite == "multi_seed" else f"{suite}_sensitivity"
    (old,) = load([str(EXAMPLES / f"jobs_{old_name}.yaml")])
    (new,) = load([str(EXAMPLES / "suites.yaml")], [suite])
    assert len(old["jobs"]) == count
    assert new["jobs"] == old["jobs"] and new["policy"] == old["policy"]
    assert {job["log"] for job in new["jobs"]} == {str(EXAMPLES / f"logs/{old_name}/{job['name']}.log") for job in new["jobs"]}


def test_b10_the_values_of_the_source_are_in_the_examples():
    seeds, gamma, lambdas = load([str(EXAMPLES / "suites.yaml")])
    values = {key: list(dict.fromkeys(job["params"][key] for job in seeds["jobs"])) for key in ("config", "algorithm", "seed")}
    assert values == {
        "config": ["configs/CIFAR100_alpha0.05.yaml", "configs/SVHN_alpha0.05.yaml"],
        "algorithm": ["FedAvg", "FedETF", "OursV7", "OursV14"],
        "seed": ["42", "114514", "350234"],
    }
    assert [job["params"]["gamma_reg"] for job in gamma["jobs"]] == ["0", "1e-5", "1e-4", "1e-3", "1e-2", "1e-1"]
    assert [job["params"]["lambda_max"] for job in lambdas["jobs"]] == ["20", "30", "50", "75", "100", "150"]
    assert {job["params"]["lambda_max"] for job in gamma["jobs"]} == {"50"}
    assert {job["params"]["gamma_reg"] for job in lambdas["jobs"]} == {"0.001"}


def test_the_example_prints_an_accuracy(tmp_path):
    (batch,) = load([str(EXAMPLES / "suites.yaml")], ["gamma"])
    words = shlex.split(batch["jobs"][3]["commands"][0])
    out = subprocess.run(["python3", *words[1:]], cwd=EXAMPLES, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "The test accuracy of OursV14: " in out.splitlines()[-1]


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm here")
def test_a_file_in_shared_memory_is_no_pipe():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = os.path.join(folder, "sweep.yaml")
        pathlib.Path(path).write_text("command: echo {a}\nmatrix: {a: [1, 2]}\n")
        (request,) = load([path])
        assert {job["workdir"] for job in request["jobs"]} == {folder}


# values that are said by their ends


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("{range: [0, 10]}", "0 1 2 3 4 5 6 7 8 9"),
        ("{range: [0, 10, 4]}", "0 4 8"),
        ("{range: [3, 0, -1]}", "3 2 1"),
        ("{range: [0, 0.5, 0.1]}", "0 0.1 0.2 0.3 0.4"),
        ("{range: [1_000, 3_000, 1e3]}", "1000 2000"),
        ("{linspace: [0, 1, 5]}", "0 0.25 0.5 0.75 1"),
        ("{linspace: [0, 1, 4]}", "0 0.333333333333 0.666666666667 1"),
        ("{linspace: [7, 9, 1]}", "7"),
        ("{logspace: [-5, -1, 5]}", "1e-5 0.0001 0.001 0.01 0.1"),
        ("{logspace: [0, 3, 4]}", "1 10 100 1000"),
        ("{logspace: [-1, 0, 3]}", "0.1 0.316228 1"),
    ],
)
def test_b10_ranges_are_spelled_as_people_do(read, said, values):
    (batch,) = read(f"command: x {{k}}\nmatrix: {{k: {said}}}\n")
    assert [job["params"]["k"] for job in batch["jobs"]] == values.split()


def test_b10_a_range_can_be_excluded_from_and_zipped(read):
    (batch,) = read("command: x {k} {m}\nzip: {k: {range: [0, 3]}, m: {logspace: [0, 2, 3]}}\nexclude: [{k: {range: [0, 2]}}]\n")
    assert commands(batch) == ["x 2 100"]


@pytest.mark.parametrize("said", ["0-9", "0 - 9", "0..9", "[0-9]", "[a, 00-9]"])
def test_b10_a_value_that_looks_like_a_range_is_refused_with_what_to_write(read, said):
    for key in ("matrix", "zip"):
        (told,) = flaws(read, f"command: x {{k}}\n{key}: {{k: {said}}}\n")
        assert "is one text, not numbers; expected {range: [0, 10]}, or the text in quotes" in told and told.startswith("2: ")


@pytest.mark.parametrize("said", ["'0-9'", "9-0", "2024-01-02", "3-a", "-9", "1e-9", "v0-9"])
def test_b10_what_only_resembles_a_range_is_a_text(read, said):
    (batch,) = read(f"command: x {{k}}\nmatrix: {{k: [{said}]}}\n")
    assert [job["params"]["k"] for job in batch["jobs"]] == [said.strip("'")]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("{range: 10}", "range is not understood; expected numbers such as {range: [0, 10] or [0, 10, 2]}"),
        ("{range: [0, x]}", "range is not understood"),
        ("{range: [0, 5, 0]}", "range in steps of 0 does not end"),
        ("{range: [5, 0]}", "range of 0 values"),
        ("{range: [0, 1e9]}", "range of 1000000000 values"),
        ("{range: [0, 1e999999999]}", "range is not understood"),
        ("{linspace: [0, 1]}", "linspace is not understood"),
        ("{linspace: [0, 1, 2.5]}", "linspace of 2.5 values"),
        ("{logspace: [-400, 1, 3]}", "logspace has ends that no power of ten reaches"),
        ("{logspace: [1e-5, 1e-1, 5]}", "logspace takes exponents of ten: from 1e-5 to 1e-1 is [-5, -1, 5]"),
        ("{logspace: [.nan, 1, 3]}", "logspace is not understood"),
        ("{steps: [0, 1]}", "expected a list of values, or {range: [0, 10]}, {linspace: [0, 1, 5]}"),
        ("{range: [0, 1], linspace: [0, 1, 5]}", "expected a list of values, or {range: [0, 10]}"),
    ],
)
def test_b10_a_range_that_is_none_is_told(read, said, told):
    found = flaws(read, f"command: x {{k}}\nmatrix: {{k: {said}}}\n")
    assert told in found[0], found
