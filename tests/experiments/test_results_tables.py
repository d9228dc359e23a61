"""Groups, means, the best, what is missing, and each format. The numbers are computed by hand."""

import csv
import io
import json
import math
import shutil
import statistics
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import Usage
from jostle.experiments import tables
from jostle.experiments.absence import Absence
from jostle.experiments.grouping import Trial, direction, mean, std, summary
from jostle.experiments.tables import Look

NO_LINE = Absence("no_line")


def trial(value=None, *, label="x", why_not="", age=(), chain=None, metric="accuracy", problem=NO_LINE, **params):
    values = {} if value is None else value if isinstance(value, dict) else {metric: value}
    params = {key: str(text) for key, text in params.items()}
    problems = {} if values else {metric: problem}
    not_counted = Absence("failed_as", error_type=why_not.removeprefix("failed: ")) if why_not else None
    return Trial(label=label, params=params, values=values, problems=problems, why_not=not_counted, age=age, chain=chain)


def table():
    """Two data sets, two algorithms, three seeds; one run has failed and one has no value."""
    rows = [
        ("CIFAR", "FedAvg", 70, 72, 74),
        ("CIFAR", "FedETF", 80, 80, 83),
        ("SVHN", "FedAvg", 91, 92, 93),
        ("SVHN", "FedETF", 90, None, None),
    ]
    made = [
        trial(value, label=f"{c}_{a}_seed{s}", config=c, algorithm=a, seed=s)
        for c, a, *values in rows
        for s, value in zip((1, 2, 3), values, strict=True)
    ]
    made[-1] = trial(99, label="SVHN_FedETF_seed3", why_not="failed: exit code 1", config="SVHN", algorithm="FedETF", seed=3)
    return made


# --- numbers


def test_b11_mean_and_sample_deviation_by_hand():
    found = summary(table(), ["accuracy"])
    cells = [group.cells["accuracy"] for group in found.groups]
    assert [cell.mean for cell in cells] == [72, 81, 92, 90]
    # (4 + 0 + 4) / 2 = 4; (1 + 1 + 4) / 2 = 3; (1 + 0 + 1) / 2 = 1; one run: 0
    assert [cell.std for cell in cells] == [2, math.sqrt(3), 1, 0]
    assert [cell.values for cell in cells] == [(70, 72, 74), (80, 80, 83), (91, 92, 93), (90,)]
    assert [group.runs for group in found.groups] == [3, 3, 3, 3]


finite = st.floats(-1e9, 1e9, allow_nan=False)


@given(st.lists(finite, min_size=1, max_size=50))
def test_b11_the_same_as_the_standard_library_on_any_data(values):
    assert mean(values) == pytest.approx(statistics.mean(values), rel=1e-12, abs=1e-12)
    expected = statistics.stdev(values) if len(values) > 1 else 0.0
    assert std(values) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), finite), max_size=40, unique_by=lambda t: t[:2]))
def test_b11_every_run_is_in_one_group_and_none_is_lost(runs):
    found = summary([trial(v, k=k, seed=s) for k, s, v in runs], ["accuracy"])
    assert found.counted == len(runs) and found.missing == ()
    for group in found.groups:
        own = [v for k, _, v in runs if k == group.params["k"]]
        assert list(group.cells["accuracy"].values) == own


def test_values_too_large_for_a_sum_still_have_a_mean():
    assert mean([1.7e308, 1.7e308]) == pytest.approx(1.7e308) and std([1.7e308, -1.7e308]) == math.inf


# --- groups


def test_b11_groups_are_everything_but_the_seed():
    found = summary(table(), ["accuracy"])
    assert found.keys == ("config", "algorithm") and found.seed_keys == ("seed",)
    assert [tuple(group.params.values()) for group in found.groups] == [
        ("CIFAR", "FedAvg"),
        ("CIFAR", "FedETF"),
        ("SVHN", "FedAvg"),
        ("SVHN", "FedETF"),
    ]


def test_b11_another_key_may_be_the_seed_and_keys_may_be_chosen():
    runs = [trial(v, fold=f, lr=lr) for f, lr, v in ((1, "1e-3", 1), (2, "1e-3", 3), (1, "1e-4", 5))]
    found = summary(runs, ["accuracy"], seed_keys=["fold"])
    assert [(dict(g.params), g.cells["accuracy"].mean) for g in found.groups] == [({"lr": "1e-3"}, 2), ({"lr": "1e-4"}, 5)]
    (only,) = summary(runs, ["accuracy"], by=[]).groups
    assert only.cells["accuracy"].values == (1, 3, 5)
    with pytest.raises(Usage, match="they have fold, lr"):
        summary(runs, ["accuracy"], by=["gamma"])
    with pytest.raises(Usage, match="not grouped by it"):
        summary(runs, ["accuracy"], by=["lr"], across="fold")


def test_b11_runs_that_lack_a_key_are_a_group_of_their_own():
    found = summary([trial(1, a=1, seed=1), trial(2, a=1, b=2, seed=1)], ["accuracy"])
    assert [dict(group.params) for group in found.groups] == [{"a": "1"}, {"a": "1", "b": "2"}]


def test_b11_missing_and_failed_runs_are_named_and_do_not_count():
    found = summary(table(), ["accuracy"])
    assert [(m.trial.label, m.why) for m in found.missing] == [
        ("SVHN_FedETF_seed2", "no line that matches"),
        ("SVHN_FedETF_seed3", "failed: exit code 1"),
    ]


def test_b11_a_group_without_any_value_stays_in_the_table():
    found = summary([trial(None, a=1, seed=1), trial(5, a=2, seed=1)], ["accuracy"])
    assert tables.text_cells(found, Look())[1] == [["1", "-", "0/1", ""], ["2", "5.00 ± 0.00  ", "1", "5.00"]]


def test_b11_one_metric_may_be_missing_where_the_other_is_not():
    runs = [trial({"acc": 1.0, "loss": 2.0}, seed=1, a=1), trial({"acc": 3.0}, seed=2, a=1)]
    found = summary(runs, ["acc", "loss"])
    assert [(m.metric, m.trial.params["seed"]) for m in found.missing] == [("loss", "2")]
    assert tables.text_cells(found, Look())[1][0][-2] == "1/2"


def test_b11_what_was_run_again_counts_once_and_the_older_is_named():
    old, new = trial(1, label="old", age=(1,), a=1, seed=1), trial(2, label="new", age=(2,), a=1, seed=1)
    found = summary([new, old], ["accuracy"])
    assert found.groups[0].cells["accuracy"].values == (2,) and found.groups[0].runs == 1
    assert [(m.trial.label, m.why) for m in found.missing] == [("old", "the same was run again; new counts")]


def test_b11_a_rerun_that_failed_takes_nothing_away():
    old = trial(1, label="old", age=(1,), a=1, seed=1)
    new = trial(None, label="new", age=(2,), why_not="failed: exit code 1", a=1, seed=1)
    found = summary([old, new], ["accuracy"])
    assert found.counted == 1 and [m.why for m in found.missing] == ["failed: exit code 1; old counts"]


def test_b11_without_a_seed_each_run_is_one_of_its_own_unless_it_retries_another():
    assert summary([trial(1, a=1, age=(1,)), trial(2, a=1, age=(2,))], ["accuracy"]).counted == 2
    first = trial(None, label="first", why_not="failed", chain=7, age=(1, 0), a=1)
    found = summary([first, trial(2, chain=7, age=(1, 9), a=1)], ["accuracy"])
    assert found.groups[0].runs == 1 and found.missing[0].trial.label == "first"


# --- the best


def best(found, metric="accuracy"):
    return [tuple(group.params.values()) for group in found.groups if metric in group.cells and group.cells[metric].best]


def test_b11_the_best_is_that_of_one_data_set():
    assert best(summary(table(), ["accuracy"])) == [("CIFAR", "FedETF"), ("SVHN", "FedAvg")]
    assert best(summary(table(), ["accuracy"], best={"accuracy": "min"})) == [("CIFAR", "FedAvg"), ("SVHN", "FedETF")]
    assert best(summary(table(), ["accuracy"], across="config")) == [("CIFAR", "FedETF"), ("SVHN", "FedAvg")]
    assert best(summary(table(), ["accuracy"], across="algorithm")) == [], "each has one of each data set"


@pytest.mark.parametrize("key", ["dataset", "data_set", "data", "Dataset", "data.name", "cfg.dataset", "train_data"])
def test_b11_what_is_called_a_data_set_is_one_and_then_a_config_is_not(key):
    rows = [(1, "a", "small"), (2, "a", "big"), (8, "b", "small"), (9, "b", "big")]
    found = summary([trial(value, **{key: data, "config": config}) for value, data, config in rows], ["accuracy"])
    assert best(found) == [("a", "big"), ("b", "big")]
    other = summary([trial(value, database=data, lr=config) for value, data, config in rows], ["accuracy"])
    assert best(other) == [("b", "big")], "without one all are compared"


def test_b11_equals_are_both_the_best_and_one_alone_is_not():
    assert len(best(summary([trial(1, a=1), trial(1, a=2), trial(0, a=3)], ["accuracy"]))) == 2
    assert best(summary([trial(1, a=1)], ["accuracy"])) == []


def test_means_that_look_the_same_are_equal_and_where_all_are_none_is_the_best():
    noise = [trial(0.2, a=1), trial(0.1 + 0.1 + 1e-16 * 3, a=2)]
    assert noise[0].values != noise[1].values
    assert best(summary(noise, ["accuracy"])) == []
    assert best(summary([*noise, trial(0.1, a=3)], ["accuracy"])) == [("1",), ("2",)]
    near = [trial(0.911, a=1), trial(0.914, a=2), trial(0.5, a=3)]
    assert best(summary(near, ["accuracy"])) == [("1",), ("2",)]
    assert best(summary(near, ["accuracy"], decimals=3)) == [("2",)]


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("accuracy", "max"),
        ("val_loss", "min"),
        ("Test Error", "min"),
        ("closs", "max"),
        ("eval/loss", "min"),
        ("lifetime", "max"),
    ],
)
def test_less_of_a_loss_is_better(name, way):
    assert direction(name) == way


# --- formats


def test_b11_the_table_of_the_terminal():
    head, rows = tables.text_cells(summary(table(), ["accuracy"]), Look(rename={"FedETF": "FAFI"}))
    assert head == ["config", "algorithm", "accuracy ↑", "n", "values"]
    assert rows[1] == ["CIFAR", "FAFI", "81.00 ± 1.73 *", "3", "80.00 80.00 83.00"]
    assert rows[2] == ["SVHN", "FedAvg", "92.00 ± 1.00 *", "3", "91.00 92.00 93.00"]
    assert rows[3][-2:] == ["1/3", "90.00"]


def test_b11_across_makes_a_column_of_each_value():
    head, rows = tables.text_cells(summary(table(), ["accuracy"], across="config"), Look(decimals=1))
    assert head == ["algorithm", "CIFAR", "SVHN", "n", "values"]
    assert rows[0] == ["FedAvg", "72.0 ± 2.0  ", "92.0 ± 1.0 *", "3", "CIFAR: 70.0 72.0 74.0; SVHN: 91.0 92.0 93.0"]
    assert rows[1][1:4] == ["81.0 ± 1.7 *", "90.0 ± 0.0  ", "3 1/3"]


def test_b11_runs_of_different_code_are_told():
    rows = [replace(trial(value, a=1, seed=value), code=code) for value, code in ((1, "a1b2c3d"), (2, "a1b2c3d"), (3, ""))]
    assert summary(rows, ["accuracy"]).notes == ()
    rows.append(replace(trial(4, a=2, seed=4), code="c3d4e5f with changes"))
    (note,) = summary(rows, ["accuracy"]).notes
    assert note == "the runs that count are not all of the same code: a1b2c3d (2), c3d4e5f with changes (1)"


def test_b11_markdown():
    text = tables.markdown(summary(table(), ["accuracy"]), Look())
    lines = text.split("\n")
    assert lines[:3] == [
        "| config | algorithm | accuracy ↑ | n | values |",
        "| --- | --- | ---: | ---: | --- |",
        "| CIFAR | FedAvg | 72.00 ± 2.00 | 3 | 70.00 72.00 74.00 |",
    ]
    assert "| **92.00 ± 1.00** |" in lines[4]
    assert "- SVHN_FedETF_seed3: failed: exit code 1" in lines


HOSTILE = ["a|b", "50%_&#", "{x}$\\y", '~^<>"', "a\nb\x1b[0m", "λ_max γ Ω", "[0]", "准确", "**b**", "`x`", "_i_"]


@pytest.mark.parametrize("name", HOSTILE)
def test_b11_no_name_breaks_a_markdown_row(name):
    text = tables.markdown(summary([trial(1, label=name, a=name), trial(2, a=2)], ["accuracy"]), Look())
    row = text.split("\n")[2]
    assert row.replace("\\|", "").count("|") == 5 and "\x1b" not in text


def tex():
    runs = [trial({"acc %": 1.0 + k, "loss_x": 1e300}, label=name, a_b=name, c=k, seed=1) for k, name in enumerate(HOSTILE[:7])]
    runs.append(trial(None, label="lost\n\\bad % &", why_not="\n\\x", a_b="z", c=9, seed=1))
    return tables.latex(summary(runs, ["acc %", "loss_x"]), Look())


def test_b11_latex_is_booktabs_with_means_and_deviations():
    text = tables.latex(summary(table(), ["accuracy"]), Look(rename={"FedETF": "FAFI", "algorithm": "Method"}))
    assert text.split("\n") == [
        r"% \usepackage{booktabs}",
        r"\begin{tabular}{llrr}",
        r"\toprule",
        r"config & Method & accuracy $\uparrow$ & $n$ \\",
        r"\midrule",
        r"CIFAR & FedAvg & $72.00 \pm 2.00$ & 3 \\",
        r"CIFAR & FAFI & $\mathbf{81.00 \pm 1.73}$ & 3 \\",
        r"SVHN & FedAvg & $\mathbf{92.00 \pm 1.00}$ & 3 \\",
        r"SVHN & FAFI & $90.00 \pm 0.00$ & 1/3 \\",
        r"\bottomrule",
        r"\end{tabular}",
        "% not counted: SVHN_FedETF_seed2: no line that matches",
        "% not counted: SVHN_FedETF_seed3: failed: exit code 1",
    ]


def test_b11_latex_has_the_structure_it_says_whatever_the_names():
    import re

    lines = tex().split("\n")
    columns = len(re.search(r"\{([lr]+)\}$", lines[1])[1])
    rows = [line for line in lines if line.endswith(r"\\")]
    assert len(rows) == 9 and all(len(re.findall(r"(?<!\\)&", row)) == columns - 1 for row in rows)
    for row in rows:
        bare = re.sub(r"\\[\\{}$&#%_]", "", row)
        assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0
        assert not re.search(r"[%#~\x00-\x1f]|\^(?!\{)", bare)
    assert [line for line in lines if "lost" in line] == [r"% not counted: lost \bad % &: failed: \x"]


@pytest.mark.skipif(not (shutil.which("pdflatex") or shutil.which("tectonic")), reason="no pdflatex and no tectonic on this host")
def test_b11_latex_compiles(tmp_path):
    page = (
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs}\\begin{document}\n"
        + tex()
        + "\n\\end{document}\n"
    )
    (tmp_path / "t.tex").write_text(page)
    command = (
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"] if shutil.which("pdflatex") else ["tectonic", "t.tex"]
    )
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "t.pdf").stat().st_size > 1000


def test_b11_csv_has_full_numbers_and_any_name():
    runs = [trial(0.1, a='x,"y"\nz', seed=1), trial(0.2, a='x,"y"\nz', seed=2), trial(None, a="b", seed=1)]
    rows = list(csv.DictReader(io.StringIO(tables.csv(summary(runs, ["accuracy"]), Look()))))
    assert rows[0]["a"] == 'x,"y"\nz' and float(rows[0]["mean"]) == mean([0.1, 0.2]) and rows[0]["values"] == "0.1 0.2"
    assert (rows[1]["n"], rows[1]["runs"], rows[1]["mean"]) == ("0", "1", "")


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "-1-2", "\t=1"])
def test_b11_a_text_that_a_spreadsheet_would_compute_is_guarded_in_csv(text):
    found = summary([trial(0.5, **{text: text})], ["accuracy"])
    head, row = csv.reader(io.StringIO(tables.csv(found, Look(rename={"accuracy": text}))))
    assert head[0] == row[0] == row[1] == "'" + text


@pytest.mark.parametrize("text", ["-1", "+3", "-1e-5", "-.5", "1e-3", "-inf", "a=b", "x-1", "'"])
def test_b11_a_number_is_never_guarded_in_csv(text):
    found = summary([trial(-0.25, a=text, seed=1), trial(-2, a=text, seed=2)], ["accuracy"])
    _, row = csv.reader(io.StringIO(tables.csv(found, Look())))
    assert (row[0], row[4], row[-1]) == (text, "-1.125", "-0.25 -2")


def test_b11_json_has_everything():
    told = json.loads(
        json.dumps(tables.as_json(summary(table(), ["accuracy"]), Look(rename={"FedETF": "FAFI"})), allow_nan=False)
    )
    assert told["keys"] == ["config", "algorithm"] and told["metrics"] == [{"name": "accuracy", "best": "max"}]
    group = told["groups"][1]
    assert group["params"]["algorithm"] == "FedETF" and group["shown"]["algorithm"] == "FAFI" and group["runs"] == 3
    cell = group["metrics"]["accuracy"]
    assert (cell["n"], cell["mean"], cell["values"], cell["best"]) == (3, 81, [80, 80, 83], True)
    assert [run["params"]["seed"] for run in cell["runs"]] == ["1", "2", "3"]
    assert [one["why"] for one in told["missing"]] == ["no line that matches", "failed: exit code 1"]
