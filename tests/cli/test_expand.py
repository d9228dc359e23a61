"""`jostle validate --expand`: what would run, before anything is written or started."""

import json
import pathlib

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "experiments"
SWEEP = "command: [x, '{args}']\nmatrix: {seed: [1, 2], lr: [1e-5]}\njob: {gpus: 0}\n"


def test_b10_expand_shows_each_job_with_its_command(jostle, tmp_path):
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    code, out, err = jostle("validate", "--expand", tmp_path / "sweep.yaml")
    assert code == 0 and err.startswith("not checked: ") and err.count("\n") == 1
    assert out.splitlines() == [
        "sweep: 2 jobs",
        "#  NAME    ASKS    COMMAND",
        "1  seed=1  no GPU  x --seed 1 --lr 1e-5",
        "2  seed=2  no GPU  x --seed 2 --lr 1e-5",
        "",
        "good: 2 jobs, 0 queues",
    ]


def test_b10_expand_as_json_has_params_and_commands(jostle, tmp_path):
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    told = json.loads(jostle("validate", "--expand", "--json", tmp_path / "sweep.yaml")[1])
    (batch,) = told["batches"]
    assert [(job["commands"], job["params"]) for job in batch["jobs"]] == [
        ([["x", "--seed", seed, "--lr", "1e-5"]], {"seed": seed, "lr": "1e-5"}) for seed in "12"
    ]


def test_b9_validate_takes_suites_by_name(jostle):
    code, out, _ = jostle("validate", EXAMPLES / "suites.yaml")
    assert (code, out) == (0, "good: 36 jobs, 0 queues, 3 batches\n")
    assert jostle("validate", "--suite", "gamma", EXAMPLES / "suites.yaml")[1] == "good: 6 jobs, 0 queues\n"
    code, _, err = jostle("validate", "--suite", "gama", EXAMPLES / "suites.yaml")
    assert code == 2 and "there are multi_seed, gamma, lambda_max (or all)" in err


def test_b2_looking_writes_nothing(jostle, tmp_path):
    (tmp_path / "c.yaml").write_text("seed: 1\n")
    (tmp_path / "old.yaml").write_text("jobs: [{name: a, config: c.yaml, algorithm: X, extra_args: {seed: 5}}]\n")
    code, out, _ = jostle("validate", "--expand", tmp_path / "old.yaml")
    assert code == 0 and "--cfp configs/temp/c_seed5.yaml" in out
    assert not (tmp_path / "configs").exists()
