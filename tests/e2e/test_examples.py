"""The workspaces of examples/, run as a newcomer would; and their script by hand, without a scheduler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.instance import Instance

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def copied(instance: Instance) -> Path:
    """The examples in a place of their own, with `jostle` on the PATH."""
    for name in ("compete", "compete-older"):
        ignored = shutil.ignore_patterns("logs", "experiments")
        shutil.copytree(EXAMPLES / name, instance.work / name, ignore=ignored)
    instance.env["PATH"] = f"{os.path.dirname(sys.executable)}:{instance.env['PATH']}"
    return instance.work


@pytest.mark.parametrize(
    ("space", "words", "tasks"),
    [
        ("compete/workspace", (), 3),
        ("compete/workspace", ("--config-index", "1"), 2),
        ("compete/workspace", ("--mode", "multi"), 2),
        ("compete-older", (), 3),
        ("compete-older", ("--command-file", "command_bk.txt"), 1),
    ],
)
def test_a1_a2_a3_a7_a33_each_workspace_of_the_examples_runs(
    instance: Instance, copied: Path, space: str, words: tuple[str, ...], tasks: int
) -> None:
    out = instance.ok("compete", "--gpus", "sim:4x24", *words, cwd=copied / space)
    assert f"{tasks} succeeded" in out
    assert {row["state"] for row in instance.newest(tasks)} == {"succeeded"}
    mode = "gpus" if "multi" in words else "gpu"
    assert (copied / space / "logs" / f"compete_{mode}.log").read_text().count("started") == tasks
    assert "Test Accuracy: 91.25" in instance.ok("logs", "last")
    assert not list((copied / space / "logs" / "state").glob("*.json")), "the state file goes with the scheduler"


def test_a22_a24_the_script_of_the_examples_works_with_and_without_an_id(instance: Instance, copied: Path) -> None:
    script = str(copied / "compete" / "scripts" / "run_pipeline.sh")
    file = copied / "uni_id.json"
    for fail, code, kind in (("", 0, None), ("oom", 1, "oom"), ("error", 1, "runtime_error")):
        env = {**instance.env, "FAIL": fail, "JOSTLE_UNI_ID_FILE": str(file)}
        for words in ((), ("--uni_id", f"id-{fail}")):
            done = subprocess.run(["bash", script, "car", *words], env=env, capture_output=True, text=True, timeout=60)
            assert done.returncode == code, done.stderr
        said = instance.json("uni-id", "get", f"id-{fail}", "--file", str(file))
        assert said["state"] == ("normal_exit" if code == 0 else "abnormal_exit") and said.get("error_type") == kind


def test_b1_b3_b9_b10_b12_the_suites_of_the_examples_run_to_the_end_within_their_gates(instance: Instance) -> None:
    """24, 6 and 6 jobs on four cards; one of them has a stranger who leaves too little memory."""
    folder = instance.work / "study"
    shutil.copytree(EXAMPLES / "experiments", folder, ignore=shutil.ignore_patterns("logs", "temp"))
    gpus = instance.scenario("gpus: {count: 4, total: 24GiB}\nstrangers: [{gpu: 1, user: alice, used: 18000}]\n")
    out = instance.run("run", "--gpus", gpus, "suites.yaml", cwd=folder)
    assert out[0] == 0, out
    rows = list(instance.jobs().values())
    assert [len([r for r in rows if r["batch"] == n]) for n in (1, 2, 3)] == [24, 6, 6]
    assert {row["state"] for row in rows} == {"succeeded"}
    assert {card for row in rows for card in row["gpus"]} == {0, 2, 3}, "never beside the stranger"
    for name, count in (("multi_seed", 24), ("gamma_sensitivity", 6), ("lambda_max_sensitivity", 6)):
        assert len(list((folder / "logs" / name).glob("*.log"))) == count
    again = instance.ok("run", "jobs_multi_seed.yaml", "jobs_gamma_sensitivity.yaml", "--dry-run", cwd=folder)
    assert again.count("done before") >= 30, "the same jobs by hand are the same work"
