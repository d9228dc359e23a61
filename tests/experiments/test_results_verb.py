"""`jostle results` as people call it: batches of a real store, files, folders of logs, and pictures."""

import json
import os
import sys
import time

import pytest

from jostle.cli.main import main
from jostle.experiments import collect, plot
from jostle.experiments.grouping import Trial, summary
from jostle.experiments.tables import Look
from jostle.formats import spec
from jostle.store import jobs
from jostle.store.store import Store
from tests.cli.conftest import WHOLE

SEEDS = (42, 114514, 350234)


@pytest.fixture
def jostle(tmp_path, monkeypatch, capfd):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("JOSTLE_HOME", str(home))
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        code = main(["results", *map(str, argv)])
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return code, out, err

    run.home = home
    return run


@pytest.fixture
def history(jostle):
    """batch(key, (name, params, state, text of the log)…) records a batch as the engine would have; gives its first id."""
    store = Store(str(jostle.home))
    store.db.execute("DROP TRIGGER IF EXISTS temp.job_way")  # rows here are made as a scene, not lived through

    def batch(key, *rows, about=None, at=None, log=None, **fields):
        at = time.time() if at is None else at
        specs = [{**WHOLE, **spec.job(name=name, commands=["true"]), "params": params} for name, params, _, _ in rows]
        request = {"batch": {"key": key, "name": "n", "policy": {}, "about": about}, "context": {}, "once": None, "jobs": specs}
        with store.transaction() as db:
            first = jobs.submit(store, request, at=at, now=0.0, rank=lambda: 0.0)["ids"][0]
            for id, (_, _, state, text) in enumerate(rows, first):
                changes = {"state": state, "attempt": int(text is not None), "ended_at": at, **fields}
                for column, value in changes.items():
                    db.execute(f"UPDATE job SET {column} = ? WHERE id = ?", (value, id))
                if text is not None:
                    path = log or str(jostle.home / f"{id}.log")
                    with open(path, "w") as f:
                        f.write(text)
                    os.utime(path, (at, at))
                    db.execute(
                        "INSERT INTO run (job, n, uni_id, state, share, log, clock_at, started_at, ended_at)"
                        " VALUES (?, 1, ?, 'ended', 0, ?, 0, ?, ?)",
                        (id, f"u{id}", path, at - 1, at),
                    )
        return first

    yield batch
    store.db.close()


def foreign(folder, **more):
    folder.mkdir(parents=True)
    for k, name in enumerate(("FedAvg", "OursV14", "OursV7")):
        for s, seed in enumerate(SEEDS):
            (folder / f"CIFAR100_alpha0.05_{name}_seed{seed}.log").write_text(f"The test accuracy of x: {40 + k + s}\n")
    for name, text in more.items():
        (folder / f"{name}.log").write_text(text)


def test_b11_logs_that_jostle_did_not_write_are_grouped_by_their_names(jostle, tmp_path):
    foreign(tmp_path / "logs" / "multi_seed")
    code, out, err = jostle("logs/multi_seed", "--rename", "OursV14=Ours")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["config", "algorithm", "accuracy", "↑", "n", "values"],
        ["CIFAR100_alpha0.05", "FedAvg", "41.00", "±", "1.00", "3", "40.00", "41.00", "42.00"],
        ["CIFAR100_alpha0.05", "OursV7", "43.00", "±", "1.00", "*", "3", "42.00", "43.00", "44.00"],
        ["CIFAR100_alpha0.05", "Ours", "42.00", "±", "1.00", "3", "41.00", "42.00", "43.00"],
    ]
    assert not (jostle.home / "engine.sock").exists()


def test_b11_folders_and_other_names_are_parameters_and_nothing_is_dropped(jostle, tmp_path):
    foreign(tmp_path / "logs" / "a", notes="no number here\n")
    foreign(tmp_path / "logs" / "b")
    told = json.loads(jostle("logs", "--json")[1])
    assert told["keys"] == ["folder", "config", "algorithm", "name"] and len(told["groups"]) == 7
    assert [one["label"] for one in told["missing"]] == ["logs/a/notes.log"]
    code, out, _ = jostle("logs/a", "--names", r"(.+)_seed(?P<seed>\d+)", "--format", "csv")
    assert code == 0 and out.startswith("part1,name,metric,") and "CIFAR100_alpha0.05_FedAvg" in out


def test_b11_a_batch_counts_what_succeeded_and_lists_the_rest(jostle, history):
    first = history(
        "run:/x.yaml",
        ("a1", {"lr": "1e-5", "seed": "1"}, "succeeded", "Test Accuracy: 80\n"),
        ("a2", {"lr": "1e-5", "seed": "2"}, "succeeded", "Test Accuracy: 84"),
        ("a3", {"lr": "1e-5", "seed": "3"}, "failed", "Test Accuracy: 99\n"),
        ("b1", {"lr": "1e-4", "seed": "1"}, "running", "Test Accuracy: 10\n"),
        ("b2", {"lr": "1e-4", "seed": "2"}, "succeeded", "nothing\n"),
        ("b3", {"lr": "1e-4", "seed": "3"}, "queued", None),
    )
    code, out, err = jostle()
    lines = out.splitlines()
    assert (code, err) == (0, "batch 1 (n), 6 jobs\n")
    assert lines[1].split() == ["1e-5", "82.00", "±", "2.83", "2/3", "80.00", "84.00"]  # sqrt((4 + 4) / 1)
    assert lines[2].split() == ["1e-4", "-", "0/3"]
    assert lines[4:] == [
        "not counted: 4",
        f"  job {first + 2} (a3): failed",
        f"  job {first + 3} (b1): running, not finished",
        f"  job {first + 4} (b2): no line that matches",
        f"  job {first + 5} (b3): queued, not finished",
    ]
    told = json.loads(jostle("1", "--any-state", "--json")[1])
    assert [group["metrics"]["accuracy"]["n"] for group in told["groups"]] == [3, 1]
    assert any("failed, and what it printed counts" in note for note in told["notes"])


def test_where_nothing_matched_it_is_said_how_to_look_for_another_line(jostle, history):
    history("run:/x.yaml", ("a1", {"seed": "1"}, "succeeded", "F1: 80\n"))
    for words, begins in (((), "unless a metric is named"), (("-m", "f1"), "only a name"), (("-m", "f1=top1: (.*)"), "")):
        code, _, err = jostle(*words)
        note = err.splitlines()[1:]
        assert code == 1 and [begins in line and "-m 'f1=F1: ([0-9.]+)'" in line for line in note] == [True] * bool(begins), err
    assert jostle("-m", "f1=F1: ([0-9.]+)")[0] == 0
    history("run:/y.yaml", ("b1", {"seed": "1"}, "failed", "F1: 80\n"))
    assert "-m" not in jostle()[2], "what failed has no value whatever is looked for"


def test_b11_work_that_was_done_before_has_the_value_of_the_run_that_did_it(jostle, history):
    first = history("run:/x", ("a", {"seed": "1"}, "succeeded", "Test Accuracy: 5\n"))
    reason = json.dumps({"code": "done_before", "params": {"job": first, "run": 1}})
    history("run:/x", ("a", {"seed": "1"}, "skipped", None), reason=reason)
    told = json.loads(jostle("2", "--json")[1])
    assert told["groups"][0]["metrics"]["accuracy"]["values"] == [5] and told["missing"] == []


def test_b11_the_log_that_a_later_run_put_aside_is_found(jostle, history, tmp_path):
    log = str(tmp_path / "x.log")
    history("run:/x", ("a", {"seed": "1"}, "succeeded", "Test Accuracy: 5\n"), log=log, at=1000.0)
    os.rename(log, log + ".1")
    history("run:/x", ("a", {"seed": "1"}, "succeeded", "Test Accuracy: 6\n"), log=log, at=2000.0)
    assert [json.loads(jostle(n, "--json")[1])["groups"][0]["metrics"]["accuracy"]["mean"] for n in (1, 2)] == [5, 6]


def test_b11_a_log_that_is_gone_is_told(jostle, history):
    first = history("run:/x", ("a", {"seed": "1"}, "succeeded", "Test Accuracy: 5\n"))
    os.unlink(jostle.home / f"{first}.log")
    code, out, _ = jostle("1")
    assert code == 1 and "cannot be read: No such file or directory" in out


def test_b11_a_file_stands_for_its_newest_batch_of_each_suite(jostle, history, tmp_path):
    file = tmp_path / "jobs.yaml"
    file.write_text("")
    one = ("a", {"seed": "1"}, "succeeded", "Test Accuracy: 5\n")
    assert jostle("jobs.yaml")[0] == 4
    history(f"run:{file}", one)
    history(f"run:{file}", one, ("b", {"seed": "2"}, "succeeded", "Test Accuracy: 7\n"))
    history("run:/other", one)
    history(f"run:{file}", one)
    code, out, err = jostle("jobs.yaml", "--json")
    assert code == 0 and [run["job"] for run in json.loads(out)["groups"][0]["metrics"]["accuracy"]["runs"]] == [5]
    assert "has 1 job that this one has not; --last 2 takes both" in err
    assert json.loads(jostle("jobs.yaml", "--last", "2", "--json")[1])["groups"][0]["metrics"]["accuracy"]["n"] == 2
    suites = tmp_path / "suites.yaml"
    suites.write_text("")
    for name in ("gamma", "lambda", "gamma"):
        history(f"run:{suites}#{name}", one, about={"file": str(suites), "suite": name})
    from jostle.store.reads import Reader

    assert collect.batches_of_file(Reader(str(jostle.home)), str(suites)) == [6, 7]
    told = json.loads(jostle("suites.yaml", "--json")[1])
    assert [group["params"] for group in told["groups"]] == [{"suite": "lambda"}, {"suite": "gamma"}] and told["missing"] == []


def test_b11_without_arguments_the_newest_batch_that_has_logs_is_shown_and_named(jostle, history, tmp_path):
    about = {"file": str(tmp_path / "gamma.yaml"), "code": {"commit": "a1b2c3d4e5f6", "dirty": True, "tree": "t"}}
    done = history("run:/gamma.yaml", ("a", {"lr": "1"}, "succeeded", "Test Accuracy: 80\n"), about=about)
    history("run:/later.yaml", ("b", {"lr": "1"}, "queued", None))
    gone = history("compete:/x", ("c", {"lr": "1"}, "failed", "Test Accuracy: 10\n"))
    (jostle.home / f"{gone}.log").unlink()
    history("add", ("d", {}, "succeeded", "Test Accuracy: 7\n"))
    code, out, err = jostle()
    assert (code, err) == (0, "batch 1 (gamma.yaml), 1 job, code a1b2c3d with changes\n") and "80.00" in out
    told = json.loads(jostle("--json")[1])
    assert told["groups"][0]["metrics"]["accuracy"]["runs"][0]["code"] == "a1b2c3d with changes"
    by = json.dumps({"code": "done_before", "params": {"job": done, "run": 1}})
    history("run:/again.yaml", ("a", {"lr": "1"}, "skipped", None), reason=by)
    code, out, err = jostle()
    assert err.startswith("batch 5 (n)") and "80.00" in out, "what was done before has a log, too"
    assert json.loads(jostle("--json")[1])["groups"][0]["metrics"]["accuracy"]["runs"][0]["code"] == "a1b2c3d with changes"


def test_b11_names_of_jobs_without_parameters_tell_them(jostle, history):
    history(
        "run:/x",
        *((f"SVHN_A_seed{s}", {}, "succeeded", f"Accuracy: {s}%\n") for s in (1, 2)),
        ("eval", {}, "succeeded", "Accuracy: 9%\n"),
    )
    told = json.loads(jostle("--json")[1])
    assert [group["params"] for group in told["groups"]] == [{"config": "SVHN", "algorithm": "A"}, {"name": "eval"}]


def test_b11_a_value_in_the_last_half_line_of_a_foreign_log_is_doubted(jostle, tmp_path):
    (tmp_path / "x.log").write_text("Test Accuracy: 9")
    code, _, err = jostle("x.log")
    assert code == 0 and "perhaps not all of it is written" in err


def test_b11_values_are_scaled_where_that_is_asked_for(jostle, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text('{"acc": 0.07, "loss": 0.5}\n')
    metrics = ("-m", "acc", "-m", "loss")

    def values(*words):
        cells = json.loads(jostle("logs", *metrics, "--json", *words)[1])["groups"][0]["metrics"]
        return cells["acc"]["values"] + cells["loss"]["values"]

    assert values() == [0.07, 0.5]
    assert values("--scale", "100") == [7.0, 50.0], "in decimal: not 7.000000000000001"
    assert values("--scale", "acc=100") == [7.0, 0.5]
    assert values("--scale", "100", "--scale", "loss=1") == [7.0, 0.5]
    assert "7.00" in jostle("logs", *metrics, "--scale", "100")[1]
    for wrong in ("x", "0", "inf", "other=3", "acc="):
        code, _, err = jostle("logs", *metrics, "--scale", wrong)
        assert code == 2 and f"--scale '{wrong}' is not understood; expected a number such as 100" in err


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "csv", "json"])
def test_b11_what_is_missing_is_told_in_every_format(jostle, tmp_path, form):
    foreign(tmp_path / "logs", CIFAR100_X_seed1="nothing\n")
    _, out, err = jostle("logs", "--format", form)
    assert "CIFAR100_X_seed1" in (err if form == "csv" else out)


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (["99"], 4, "no batch 99"),
        (["nowhere"], 4, "nowhere"),
        (["empty"], 4, "there are no logs in empty"),
        ([], 4, "there is no batch yet"),
        (["logs", "--metric", "a=("], 2, "no regular expression"),
        (["logs", "--names", "("], 2, "no regular expression"),
        (["logs", "--by", "lr"], 2, "no run has a parameter 'lr'"),
        (["logs", "--best", "most"], 2, "--best"),
        (["logs", "--best", "loss=min"], 2, "--best"),
        (["logs", "--rename", "x"], 2, "OLD=NEW"),
        (["logs", "--tail", "x"], 2, "--tail"),
        (["logs", "--decimals", "-1"], 2, "--decimals"),
        (["logs", "--x", "config"], 2, "--plot"),
        (["logs", "--plot", "x.bmp"], 2, ".png, .svg, .pdf"),
        (["logs", "--plot", "x.png", "--x", "lr"], 2, "not grouped by it"),
        (["logs", "--plot", "no/x.png"], 1, "cannot be written"),
        (["logs", "--metric", "nothing", "--plot", "x.png"], 1, "nothing to plot"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_a_sentence(jostle, tmp_path, argv, code, word):
    foreign(tmp_path / "logs")
    (tmp_path / "empty").mkdir()
    found, _, err = jostle(*argv)
    assert found == code and word in err and "Traceback" not in err


# --- plots


def sweep(gammas, algorithms=("A", "B")):
    runs = [
        Trial(label="x", params={"algorithm": a, "gamma_reg": g, "seed": str(s)}, values={"accuracy": 50.0 + k + s})
        for a in algorithms
        for k, g in enumerate(gammas)
        for s in (1, 2)
    ]
    return summary(runs, ["accuracy"])


def test_b11_a_line_over_a_numeric_key_in_the_order_of_its_numbers():
    (drawing,) = plot.drawings(sweep(["1e-1", "0", "1e-5"]), Look(rename={"A": "Ours"}), "gamma_reg")
    assert drawing.numbers == [0, 1e-5, 0.1] and list(drawing.places) == ["0", "1e-5", "1e-1"] and drawing.scale == "symlog"
    assert [series.name for series in drawing.series] == ["Ours", "B"]
    assert [cell.mean for cell in drawing.series[0].cells] == [52.5, 53.5, 51.5]


@pytest.mark.parametrize(
    ("numbers", "scale"),
    [([20, 30, 50, 75, 100, 150], "linear"), ([1e-5, 1e-1], "log"), ([0, 1e-5, 1e-1], "symlog"), ([0, 1], "linear")],
)
def test_b11_the_axis_is_logarithmic_where_it_spans_decades(numbers, scale):
    assert plot.scale_of(numbers) == scale


def test_b11_without_numbers_bars_over_the_first_key_that_differs():
    (drawing,) = plot.drawings(sweep(["x", "y"]), Look())
    assert drawing.numbers is None and list(drawing.places) == ["A", "B"] and [s.name for s in drawing.series] == ["x", "y"]
    assert plot.drawings(sweep(["x", "y"]), Look(), "gamma_reg")[0].numbers is None


def test_b11_the_only_key_with_numbers_that_differs_is_the_axis_of_a_line():
    for algorithms in (("A", "B"), ("A",)):
        (drawing,) = plot.drawings(sweep(["1e-1", "0"], algorithms), Look())
        assert (drawing.x, drawing.numbers, len(drawing.series)) == ("gamma_reg", [0, 0.1], len(algorithms))
    (drawing,) = plot.drawings(sweep(["1e-1", "0"], ("1", "2")), Look())
    assert drawing.numbers is None, "two of them: nobody can say which"


def suites_and_a_few_keys():
    runs = [{"suite": "seeds", "algorithm": a} for a in "ABCD"] + [{"suite": "gamma", "gamma": g} for g in ("0", "1")]
    return summary([Trial(label="x", params={**run, "seed": "1"}, values={"accuracy": 5.0}) for run in runs], ["accuracy"])


def test_b11_bars_stand_around_their_ticks_whatever_series_are_not_there():
    assert [plot.offsets(there) for there in ([True] * 3, [False, True, False], [True, False, True])] == [
        [-1, 0, 1], [0, 0, 1], [-0.5, 0.5, 0.5],
    ]  # fmt: skip
    figure = pytest.importorskip("matplotlib.figure")
    (drawing,) = plot.drawings(suites_and_a_few_keys(), Look())
    assert [series.name for series in drawing.series] == [*(f"algorithm={a}" for a in "ABCD"), "gamma=0", "gamma=1"]
    ax = figure.Figure().subplots()
    plot.draw(ax, drawing, Look())
    middles = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]
    assert [round(middle, 3) for middle in middles] == [-0.3, -0.1, 0.1, 0.3, 0.9, 1.1]


@pytest.mark.parametrize("x", ["lr", "algorithm"])
def test_b11_a_legend_is_no_longer_than_the_picture_and_says_what_it_leaves_out(x):
    figure = pytest.importorskip("matplotlib.figure")
    names = ["_" + "x" * 100, *map(str, range(64))]
    runs = [{"algorithm": a, "lr": lr, "data": name} for a in "AB" for lr in ("1", "2") for name in names]
    found = summary([Trial(label="x", params=run, values={"accuracy": 5.0}) for run in runs], ["accuracy"], by=[x, "data"])
    whole = figure.Figure(figsize=(9, 3.6), layout="constrained")
    ax = whole.subplots()
    (drawing,) = plot.drawings(found, Look(), x)
    plot.draw(ax, drawing, Look())
    told = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(told) == plot.NAMED and told[-1] == f"… and {65 - plot.NAMED + 1} more"
    assert told[0] == " _" + "x" * 46 + "…" and told[1] == "0"
    whole.canvas.draw()
    assert ax.get_legend().get_window_extent().height <= whole.bbox.height


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
@pytest.mark.parametrize("x", ["algorithm", "gamma_reg"])
def test_b11_pictures_are_made_and_are_the_same_each_time(tmp_path, kind, x):
    pytest.importorskip("matplotlib")
    found = sweep(["0", "1e-5", "1e-1"], algorithms=("$x^", "_y\n"))
    pictures = []
    for name in "ab":
        path = tmp_path / f"{name}.{kind}"
        assert plot.save(str(path), found, Look(), x) == []
        pictures.append(path.read_bytes())
    assert pictures[0] == pictures[1] and len(pictures[0]) > 2000 and sorted(os.listdir(tmp_path)) == [f"a.{kind}", f"b.{kind}"]
    assert pictures[0].startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind])


def test_b11_too_many_bars_are_refused(jostle, tmp_path):
    (tmp_path / "logs").mkdir()
    for k in range(plot.MOST + 1):
        (tmp_path / "logs" / f"{k}.log").write_text(f"Accuracy: {k}%\n")
    code, _, err = jostle("logs", "--plot", "x.png")
    assert code == 2 and "--by" in err


def test_without_matplotlib_a_sentence_says_how_to_get_it(jostle, tmp_path, monkeypatch):
    foreign(tmp_path / "logs")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = jostle("logs", "--plot", "x.png")
    assert code == 1 and "pip install 'jostle[plot]'" in err


def test_tables_need_neither_matplotlib_nor_numpy(tmp_path, jostle):
    import subprocess

    foreign(tmp_path / "logs")
    code = "import sys\nfrom jostle.cli.main import main\nassert main(['results', 'logs']) == 0\n"
    code += "print([name for name in ('numpy', 'matplotlib', 'statistics', 'yaml') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stdout.endswith("\n[]\n"), done.stderr
