"""Sweeps, suites and old job files run for real: stopped and run again, edited, failing, behind gates, from frozen code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.instance import PATIENCE, Instance, listening, until
from tests.e2e.test_placing import TELL, have_begun, most_at_once, spans

SWEEP = """
command: sh train.sh {config} {seed}
matrix: {config: [a, b], seed: [1, 2, 3]}
config_file: configs/{config}.yaml
job: {name: "{config}{seed}", log: "logs/{name}.log"}
"""
OLD = """
command: sh train.sh {config} {algorithm}
jobs:
  - {name: one, config: configs/a.yaml, algorithm: FedAvg, log_path: logs/one.log, extra_args: {seed: 42, gamma_reg: 1e-5}}
  - {name: two, config: configs/b.yaml, algorithm: FedAvg, log_path: logs/two.log}
  - {name: three, config: configs/b.yaml, algorithm: FedETF, log_path: logs/three.log}
"""


class Project:
    """A folder of one experiment; its script tells in `ran` that it ran."""

    def __init__(self, instance: Instance, name: str, script: str = "") -> None:
        self.jostle, self.at = instance, instance.work / name
        self.put("configs/a.yaml", "lr: 1e-5  # small\n")
        self.put("configs/b.yaml", "lr: 1e-4\n")
        self.put("train.sh", f'echo "$*" >> ran\n{script}\necho "Test Accuracy: 0.9"\n')

    def put(self, name: str, text: str) -> str:
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def run(self, *words: str) -> tuple[int, str, str]:
        return self.jostle.run("run", *words, cwd=self.at)

    def ok(self, *words: str) -> str:
        code, out, err = self.run(*words)
        assert code == 0, (out, err)
        return err

    def ran(self) -> list[str]:
        """What ran since this was last asked."""
        path = self.at / "ran"
        told = sorted(path.read_text().splitlines()) if path.exists() else []
        path.unlink(missing_ok=True)
        return told


@pytest.fixture(scope="module")
def jostle(shared: Instance) -> Instance:
    return shared


def six() -> list[str]:
    return [f"{config} {seed}" for config in "ab" for seed in (1, 2, 3)]


# --- B7: again


def test_b7_only_what_is_missing_or_changed_runs_again(jostle: Instance) -> None:
    p = Project(jostle, "again")
    p.put("sweep.yaml", SWEEP)
    p.ok("sweep.yaml")
    assert p.ran() == six()
    assert "nothing to run (6 jobs: 6 done before)" in p.ok("sweep.yaml") and p.ran() == []
    p.put("configs/b.yaml", "lr: 1e-3\n")
    err = p.ok("sweep.yaml")
    assert p.ran() == ["b 1", "b 2", "b 3"], "exactly those that use the file"
    assert "3 succeeded, 3 done before" in err
    skipped = [row for row in jostle.newest(6) if row["state"] == "skipped"]
    assert [(row["name"], row["reason"]["code"]) for row in skipped] == [(f"a{k}", "done_before") for k in (1, 2, 3)]
    assert jostle.job(skipped[0]["reason"]["params"]["job"])["name"] == "a1", "it names the job that did it"
    (p.at / "logs" / "a2.log").unlink()
    p.ok("sweep.yaml")
    assert p.ran() == ["a 2"], "a deleted log makes it run again"
    p.ok("sweep.yaml", "--redo")
    assert p.ran() == six()


def test_b7_a_config_that_is_changed_back_runs_again_for_its_log_is_that_of_the_change(jostle: Instance) -> None:
    p = Project(jostle, "back")
    p.put("sweep.yaml", SWEEP.replace("[a, b]", "[a]").replace("[1, 2, 3]", "[1]"))
    for text in ("lr: 1\n", "lr: 2\n", "lr: 1\n"):
        p.put("configs/a.yaml", text)
        p.ok("sweep.yaml")
        assert p.ran() == ["a 1"]


def test_b7_what_was_edited_while_jobs_waited_is_not_what_they_ran(jostle: Instance) -> None:
    p = Project(jostle, "edited", 'cat "configs/$1.yaml"; until [ -e go ]; do sleep 0.02; done')
    p.put("sweep.yaml", SWEEP.replace("[1, 2, 3]", "[1, 2]"))
    child = jostle.start("run", "sweep.yaml", "--max-concurrent", "1", cwd=p.at)
    first = p.at / "logs" / "a1.log"
    until(lambda: first.exists() and "lr" in first.read_text())
    p.put("configs/a.yaml", "lr: 2\n")
    p.put("go", "")
    assert child.wait(PATIENCE) == 0
    assert "lr: 2" in (p.at / "logs" / "a2.log").read_text()
    p.ran()
    p.put("configs/a.yaml", "lr: 1e-5  # small\n")
    p.ok("sweep.yaml")
    assert p.ran() == ["a 2"], "the fingerprint is that of a success, but of another content; a1 had read the first"
    assert "4 done before" in p.ok("sweep.yaml")


def test_b7_the_time_of_a_file_does_not_count_but_its_content(jostle: Instance) -> None:
    p = Project(jostle, "touched")
    p.put("sweep.yaml", SWEEP)
    p.put("copied.yaml", COPIED.replace("WHO", "x"))
    git(p.at, "init", "-q")
    git(p.at, "add", "configs", "train.sh")
    git(p.at, "commit", "-qm", "one")
    for file in ("sweep.yaml", "copied.yaml"):
        p.ok(file)
    assert len(p.ran()) == 8
    touched = list((p.at / "configs").rglob("*.yaml"))
    assert len(touched) == 4
    for path in touched:
        os.utime(path)
    (p.at / "configs" / "b.yaml").unlink()
    git(p.at, "checkout", "configs")
    p.put("configs/a.yaml", "edited: 1\n")
    p.put("configs/a.yaml", "lr: 1e-5  # small\n")
    assert "6 done before" in p.ok("sweep.yaml") and "2 done before" in p.ok("copied.yaml") and p.ran() == []
    (p.at / "configs" / "temp" / "a_seed1.yaml").unlink()
    assert "2 done before" in p.ok("copied.yaml"), "what it read is known, whatever became of the copy"
    p.put("configs/b.yaml", "lr: 2\n")
    p.ok("sweep.yaml")
    assert p.ran() == ["b 1", "b 2", "b 3"]


def test_b7_a_config_that_is_touched_while_jobs_wait_is_read_and_known(jostle: Instance) -> None:
    p = Project(jostle, "touched-early", "until [ -e go ]; do sleep 0.02; done")
    p.put("sweep.yaml", SWEEP.replace("[1, 2, 3]", "[1, 2]"))
    child = jostle.start("run", "sweep.yaml", "--max-concurrent", "1", cwd=p.at)
    until(lambda: (p.at / "ran").exists())
    for name in "ab":
        (p.at / "configs" / f"{name}.yaml").rename(p.at / "x")
        p.put(f"configs/{name}.yaml", (p.at / "x").read_text())
    p.put("go", "")
    assert child.wait(PATIENCE) == 0
    with jostle.reader() as reader:
        assert [run["inputs"] for row in jostle.newest(4) for run in reader.runs(row["id"])] == ["same"] * 4
    assert "4 done before" in p.ok("sweep.yaml")


def test_b7_what_was_done_with_other_code_is_told_and_runs_again_if_wanted(jostle: Instance) -> None:
    p = Project(jostle, "other-code")
    p.put("sweep.yaml", SWEEP)
    git(p.at, "init", "-q")
    git(p.at, "add", ".")
    git(p.at, "commit", "-qm", "one")
    one = git(p.at, "rev-parse", "HEAD")[:7]
    p.ok("sweep.yaml")
    p.put("sweep.yaml", SWEEP.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
    p.put("configs/a.yaml", "lr: 7\n")
    git(p.at, "commit", "-qam", "no code: what jobs are made of is known by their fingerprints")
    p.ran()
    assert "; 3 done before\n" in p.ok("sweep.yaml")
    assert p.ran() == ["a 1", "a 2", "a 3", "a 4", "b 4"]
    script = (p.at / "train.sh").read_text()
    p.put("train.sh", script + "# edited\n")
    told = p.ok("sweep.yaml")
    two = git(p.at, "rev-parse", "HEAD")[:7]
    assert f"(8 jobs: 8 done before, 8 of them with other code ({two}, {one} → {two} with changes))" in told, told
    assert "--redo-changed those with other code" in told and p.ran() == []
    git(p.at, "commit", "-qam", "code")
    three = git(p.at, "rev-parse", "HEAD")[:7]
    code, out, err = p.run("sweep.yaml", "--dry-run")
    assert code == 0 and f"8 of them with other code ({two}, {one} → {three})" in err, err
    assert f"with other code ({two} → {three})" in out and f"with other code ({one} → {three})" in out
    (p.at / "logs" / "b4.log").unlink()
    assert f"; 7 done before, 7 of them with other code ({two}, {one} → {three})\n" in p.ok("sweep.yaml")
    p.ran()
    assert "1 done before\n" in p.ok("sweep.yaml", "--redo-changed")
    assert len(p.ran()) == 7
    assert "(8 jobs: 8 done before)" in p.ok("sweep.yaml", "--redo-changed")
    p.put("train.sh", script)
    git(p.at, "commit", "-qam", "back")
    with jostle.reader() as reader:
        batch = reader.batch(jostle.newest()[0]["batch"])
    assert batch is not None and batch["about"]["code"]["commit"][:7] == three and batch["about"]["code"]["dirty"] is False
    assert f"code          {three}\n" in jostle.ok("show", "last") and jostle.json("show", "last")["code"]["dirty"] is False
    told, noted = jostle.run("results", "sweep.yaml", "--format", "json", cwd=p.at)[1:]
    commits = {run["code"] for group in json.loads(told)["groups"] for run in group["metrics"]["accuracy"]["runs"]}
    assert commits == {three} and f"code {three}" in noted
    status = git(p.at, "status", "--porcelain", "--untracked-files=no")
    assert status == "", "nothing was done to the tree or its index"


COPIED = """
command: sh train.sh {config} {who}
matrix: {config: [configs/a.yaml], seed: [1, 2]}
into_config: [seed]
include: [{who: WHO}]
"""


def test_b2_b7_a_copy_is_not_rewritten_under_jobs_that_wait_for_it(jostle: Instance) -> None:
    p = Project(jostle, "shared-copies", 'cat "$1"; until [ -e go ]; do sleep 0.02; done')
    p.put("one.yaml", COPIED.replace("WHO", "x"))
    p.put("two.yaml", COPIED.replace("WHO", "y"))
    ids = jostle.ok("run", "--detach", "one.yaml", "--max-concurrent", "1", cwd=p.at).strip().split("-")
    p.put("configs/a.yaml", "lr: 7\n")
    code, _, err = p.run("two.yaml", "--detach")
    assert code != 0 and f"is the config copy of job {ids[0]}, which has not ended" in err, err
    p.put("go", "")
    assert set(jostle.end(*range(int(ids[0]), int(ids[1]) + 1))) == {"succeeded"}
    p.ok("two.yaml")
    assert "lr: 7" in (p.at / "configs" / "temp" / "a_seed2.yaml").read_text()
    assert "2 done before" in p.ok("two.yaml")


def test_b7_a_second_run_changes_the_rules_of_the_batch_it_attaches_to(jostle: Instance) -> None:
    p = Project(jostle, "attached", "until [ -e go ]; do sleep 0.02; done")
    p.put("sweep.yaml", SWEEP)
    jostle.ok("run", "--detach", "sweep.yaml", "--max-util", "90", cwd=p.at)
    code, _, err = p.run("sweep.yaml", "--detach", "--max-concurrent", "1", "--redo", "--freeze")
    assert code == 0 and "goes on under other rules: max_concurrent 1\n" in err, err
    assert "no effect on a batch that is under way: --redo, --freeze; run it again when" in err
    with jostle.reader() as reader:
        batch = reader.batch(jostle.newest()[0]["batch"])
    assert batch is not None and batch["policy"] == {"max_utilization": 90, "max_concurrent": 1}
    p.put("go", "")
    err = p.ok("sweep.yaml")
    assert "other rules" not in err and "no effect" not in err


def test_b7_b11_results_know_what_batches_of_other_files_did(jostle: Instance) -> None:
    p = Project(jostle, "elsewhere")
    p.put("sweep.yaml", SWEEP)
    p.put("same.yaml", SWEEP)
    indented = SWEEP.strip().replace("\n", "\n    ")
    two, three = (f"{{command: 'sh train.sh {{k}}', matrix: {{k: [{k}]}}}}" for k in (7, 8))
    p.put("suites.yaml", f"suites:\n  one:\n    {indented}\n  two: {two}\n  three: {three}\n")
    p.ok("sweep.yaml")
    assert "nothing to run" in p.ok("same.yaml")
    told = json.loads(jostle.ok("results", "same.yaml", "--json", cwd=p.at))
    assert [group["runs"] for group in told["groups"]] == [3, 3] and not told["missing"], told
    assert "one: nothing to run" in p.ok("suites.yaml", "--suite", "one", "--suite", "two")
    code, out, err = jostle.run("results", "suites.yaml", "--format", "csv", cwd=p.at)
    assert (code, [line.split(",")[0] for line in out.splitlines()]) == (0, ["suite", "two", "one", "one"]), (out, err)
    assert "note: nothing of three in suites.yaml has run" in err
    p.put("suites.yaml", f"suites: {{two: {three}}}\n")
    assert "has run" not in jostle.run("results", "suites.yaml", cwd=p.at)[2], "edited, not run: the batch is what there is"
    p.put("eight.yaml", three)
    p.ok("eight.yaml")
    assert "nothing to run" in p.ok("suites.yaml")
    code, out, err = jostle.run("results", "suites.yaml", "--format", "csv", cwd=p.at)
    assert out.splitlines()[1].startswith("8,") and "is of an older suites.yaml" in err, (out, err)
    p.put("other.yaml", SWEEP.replace("[1, 2, 3]", "[4]"))
    code, _, err = jostle.run("results", "other.yaml", cwd=p.at)
    assert code != 0 and "there is no batch of other.yaml, and none has done what it says" in err


def test_b7_b12_equal_work_under_another_log_runs_and_its_log_is_there(jostle: Instance) -> None:
    p = Project(jostle, "own-log")
    one = "command: sh train.sh {lambda_max} {gamma}\nmatrix: {lambda_max: [50], gamma: [0.001]}\n"
    p.put("gamma.yaml", one + "job: {log: 'logs/gamma/gamma_{gamma}.log'}\n")
    p.put("lambda.yaml", one + "job: {log: 'logs/lambda/lambdamax_{lambda_max}.log'}\n")
    p.put("plain.yaml", one)
    p.ok("gamma.yaml")
    p.ok("lambda.yaml")
    assert p.ran() == ["50 0.001"] * 2 and (p.at / "logs" / "lambda" / "lambdamax_50.log").exists()
    for file in ("gamma.yaml", "lambda.yaml", "plain.yaml"):
        assert "nothing to run (1 job: 1 done before)" in p.ok(file), "one that names no log is done by whoever did it"
    (p.at / "logs" / "lambda" / "lambdamax_50.log").unlink()
    assert "1 done before" in p.ok("gamma.yaml")
    p.ok("lambda.yaml")
    assert p.ran() == ["50 0.001"] and (p.at / "logs" / "lambda" / "lambdamax_50.log").exists()


def test_b7_only_failed_and_trust_logs(jostle: Instance) -> None:
    p = Project(jostle, "failed", 'test ! -e broken || test "$2" != 2 || exit 7')
    p.put("sweep.yaml", SWEEP)
    p.put("broken", "")
    code, _, err = p.run("sweep.yaml")
    assert (code, "4 succeeded, 2 failed" in err) == (1, True), err
    (p.at / "broken").unlink()
    (p.at / "logs" / "a1.log").unlink()
    p.ran()
    assert "nothing to run" not in p.ok("sweep.yaml", "--only-failed") and p.ran() == ["a 2", "b 2"]
    assert "6 that did not fail" in p.ok("sweep.yaml", "--only-failed") and p.ran() == []
    p.put("logs/a1.log", "by hand")
    p.put("configs/a.yaml", "lr: 7\n")
    err = p.ok("sweep.yaml", "--trust-logs")
    assert "3 done before, 3 with a log (--trust-logs)" in err and p.ran() == [], "the old rule: a log is enough"
    p.ok("sweep.yaml")
    assert p.ran() == ["a 1", "a 2", "a 3"]
    assert jostle.run("run", "--redo", "--only-failed", "x.yaml")[0] == 2


def test_b7_plain_jobs_run_each_time_unless_they_are_told_to_be_skipped(jostle: Instance) -> None:
    p = Project(jostle, "plain")
    p.put("jobs.yaml", "jobs:\n  - {name: x, run: sh train.sh configs/a.yaml}\n  - {name: y, run: sh train.sh configs/b.yaml}\n")
    p.ok("jobs.yaml")
    p.ok("jobs.yaml")
    assert len(p.ran()) == 4
    p.ok("jobs.yaml", "--skip-done")
    p.ran()
    p.put("configs/b.yaml", "lr: 9\n")
    p.ok("jobs.yaml", "--skip-done")
    assert p.ran() == ["configs/b.yaml"], "the files that its command names are part of it"


def test_b7_a_dry_run_tells_what_would_run_and_does_nothing(jostle: Instance) -> None:
    p = Project(jostle, "dry")
    p.put("old.yaml", OLD)
    p.ok("old.yaml")
    p.ran()
    p.put("configs/b.yaml", "lr: 5\n")
    before = jostle.newest()[0]["id"]
    code, out, err = p.run("old.yaml", "--dry-run")
    assert code == 0 and "2 of 3 jobs would run (1 done before)" in err
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["one", "done"], ["two", "run"], ["three", "run"]]
    told = json.loads(p.run("old.yaml", "--dry-run", "--json")[1])
    assert [(j["name"], j["do"], bool(j["by"])) for j in told["jobs"]] == [
        ("one", "done", True), ("two", "run", False), ("three", "run", False),
    ]  # fmt: skip
    assert told["jobs"][0]["params"]["gamma_reg"] == "1e-5"
    assert (p.ran(), jostle.newest()[0]["id"]) == ([], before)


# --- B7, B12: stopped in the middle

WAITS = 'touch "at-$1-$2"; test -e go || test "$1 $2" = "a 1" || exec sleep 600'


def stopped_in_the_middle(p: Project) -> subprocess.Popen[str]:
    p.put("sweep.yaml", SWEEP)
    child = p.jostle.start("run", "sweep.yaml", "--max-concurrent", "2", cwd=p.at)
    listening(child)
    until(lambda: (p.at / "at-a-2").exists() and (p.at / "at-a-3").exists(), "the first has ended, two run")
    return child


def test_b6_b7_after_an_interrupt_only_what_is_missing_runs(jostle: Instance) -> None:
    p = Project(jostle, "interrupt", WAITS)
    child = stopped_in_the_middle(p)
    assert "Accuracy" in (p.at / "logs" / "a1.log").read_text()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, "1 succeeded, 5 cancelled" in err) == (130, True), err
    p.put("go", "")
    p.ran()
    assert "5 succeeded, 1 done before" in p.ok("sweep.yaml")
    assert p.ran() == six()[1:]


def test_b6_b7_after_kill_9_of_client_and_engine_nothing_runs_twice(jostle: Instance) -> None:
    p = Project(jostle, "kill9", WAITS.replace("exec sleep 600", "until [ -e go ]; do sleep 0.02; done"))
    child = stopped_in_the_middle(p)
    child.kill()
    child.communicate()
    jostle.kill_engine()
    again = jostle.start("run", "sweep.yaml", cwd=p.at)
    assert again.stderr is not None
    said = "".join(iter_until(again.stderr, "attached to it again"))
    p.put("go", "")  # not before: an engine needs no client to go on
    said += again.communicate(timeout=PATIENCE)[1]
    assert again.returncode == 0 and "attached to it again" in said and "has changed" not in said, said
    assert p.ran() == six(), "each ran once"


def iter_until(lines: Iterable[str], text: str) -> Iterator[str]:
    for line in lines:
        yield line
        if text in line:
            return


def test_b12_the_log_is_at_its_path_and_can_be_read_while_the_job_runs(jostle: Instance) -> None:
    p = Project(jostle, "log", "echo epoch 1; until [ -e go ]; do sleep 0.02; done")
    p.put("old.yaml", OLD)
    child = jostle.start("run", "--job-file", "old.yaml", cwd=p.at)
    log = p.at / "logs" / "two.log"
    until(lambda: log.exists() and "epoch 1" in log.read_text())
    p.put("go", "")
    assert child.wait(PATIENCE) == 0
    assert "Accuracy" in log.read_text()
    assert p.ran() == ["configs/b.yaml FedAvg", "configs/b.yaml FedETF", "configs/temp/a_seed42.yaml FedAvg --gamma_reg 1e-5"]
    assert (p.at / "configs" / "temp" / "a_seed42.yaml").read_text().endswith("lr: 1e-5  # small\nseed: 42\n")


# --- B6: one failure does not stop the others


def test_b6_one_that_fails_one_that_hangs_and_one_that_floods_do_not_disturb_the_others(jostle: Instance) -> None:
    p = Project(jostle, "bad")
    p.put("train.sh", """echo "$1" >> ran
case $1 in
fails) echo "ValueError: bad"; exit 3;;
hangs) exec sleep 600;;
floods) yes flood | head -c 30000000;;
esac
echo "Test Accuracy: 0.9"
""")
    p.put("sweep.yaml", """
command: sh train.sh {what}
matrix: {what: [fails, hangs, floods, w, x, y, z], limit: [10min]}
include: [{what: hangs, limit: 5s}]
exclude: [{what: hangs, limit: 10min}]
job: {name: "{what}", log: "logs/{what}.log", time_limit: "{limit}"}
""")  # fmt: skip
    code, _, err = p.run("sweep.yaml")
    assert (code, len(p.ran())) == (1, 7)
    rows = {row["name"]: row for row in jostle.newest(7)}
    assert {name: row["state"] for name, row in rows.items()} == {
        "fails": "failed", "hangs": "failed", "floods": "succeeded", **dict.fromkeys("wxyz", "succeeded"),
    }  # fmt: skip
    assert "5 succeeded, 2 failed" in err
    told = [line for line in err.splitlines() if line.startswith("  failed ")]
    assert len(told) == 2 and " fails: " in told[0] and " hangs: " in told[1] and "time limit" in told[1], err
    assert all(row["attempt"] == 1 for row in rows.values()), "nothing is tried again unless that is asked for"


# --- B3, B4, B5, B8: gates


def test_b3_b4_b5_b8_options_go_over_what_the_file_says(jostle: Instance) -> None:
    p = Project(jostle, "rules")
    p.put("old.yaml", OLD + "policy: {max_concurrent: 3, choice: first-fit}\n")
    p.ok("old.yaml")
    with jostle.reader() as reader:
        before = reader.batch(jostle.newest()[0]["batch"])
        assert before is not None
        said = {"min_free_mib": 8000, "max_utilization": 30, "max_concurrent": 3, "choice": "first-fit", "strangers": "share"}
        assert before["policy"] == said
        assert {row["memory_mib"] for row in jostle.newest(3)} == {8000}
        gates = ("--min-memory", "12000", "--max-util", "20", "--max-concurrent", "2", "--policy", "round-robin", "--share")
        p.ok("old.yaml", "--redo", *gates, "--max-wait", "1h", "--launch-delay", "0.1s")
        after = reader.batch(jostle.newest()[0]["batch"])
    assert after is not None and after["policy"] == {
        "min_free_mib": 12000, "max_utilization": 20, "max_concurrent": 2, "choice": "round-robin", "share": True,
        "strangers": "share",
        "max_wait": 3600.0, "start_interval": 0.1,
    }  # fmt: skip
    assert {(row["memory_mib"], row["share"]) for row in jostle.newest(3)} == {(12000, True)}
    for wrong in (("--max-util", "130"), ("--min-memory", "lots"), ("--policy", "best"), ("--max-concurrent", "0")):
        code, _, err = p.run("old.yaml", *wrong)
        assert (code, "expected" in err) == (2, True), err


def test_b3_with_max_concurrent_2_there_are_never_3(jostle: Instance) -> None:
    p = Project(jostle, "two", "")
    p.put("train.sh", f"{TELL.format('began')} until {have_begun(2)}; do sleep 0.02; done; sleep 0.05; {TELL.format('ended')}")
    p.put("sweep.yaml", SWEEP)
    p.ok("sweep.yaml", "--max-concurrent", "2")
    found = list(spans(at(p)).values())
    steps = sorted([(s.began, 1) for s in found] + [(s.ended, -1) for s in found])
    most = max(sum(change for _, change in steps[: k + 1]) for k in range(len(steps)))
    assert (len(found), most) == (6, 2)
    assert set(most_at_once(found).values()) == {1}
    started = [row["started_at"] for row in jostle.newest(6)]
    assert started == sorted(started) and started[0] < started[2] < started[4], "B4: in the order of the file"


def at(p: Project) -> Any:
    """What `spans` reads: the times of this project."""

    class At:
        work = p.at

    return At


@pytest.mark.parametrize(("used", "load"), [("1GiB", 90), ("20GiB", 0)])
def test_b3_no_job_starts_beside_a_stranger_until_he_leaves(instance: Instance, used: str, load: int) -> None:
    root = os.getuid() == 0
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True, user=4242 if root else None)
    try:
        world = "gpus: {count: 2, total: 24GiB}\n"
        bob = f"strangers: [{{user: bob, pid: {stranger.pid}, gpu: 0, used: {used}, utilization: {load}}}]"
        instance.up(instance.scenario(world + bob))
        p = Project(instance, "gated")
        p.put("train.sh", TELL.format("began") + "sleep 0.05; " + TELL.format("ended"))
        only_gates = "policy: {strangers: share, own_processes: ignore}\n"  # he is no reason by himself, only what he takes
        p.put("old.yaml", OLD + only_gates)
        p.ok("old.yaml")
        assert {s.cards for s in spans(at(p)).values()} == {("1",)}
        instance.ok("gpus", "--exclude", "1")
        (p.at / "times").unlink()
        child = instance.start("run", "old.yaml", "--redo", cwd=p.at)
        first = until(lambda: [row["id"] for row in instance.newest(3) if row["state"] == "queued"])[0]
        reason = instance.reason(first, "gpus")
        assert {g["code"] for g in reason["gpus"] if g["index"] == 0} == {"utilization" if load else "memory"}
        assert not (p.at / "times").exists()
        instance.scenario(world)
        assert child.wait(PATIENCE) == 0
        assert {s.cards for s in spans(at(p)).values()} == {("0",)}
    finally:
        stranger.kill()
        stranger.wait()


def test_b4_who_waits_longer_than_max_wait_fails_and_the_others_go_on(jostle: Instance) -> None:
    p = Project(jostle, "wait")
    p.put("sweep.yaml", """
command: sh train.sh {gpus}
matrix: {gpus: ["1", "4", "1 1"]}
include: [{gpus: "4", cards: "4"}, {gpus: "1", cards: "1"}, {gpus: "1 1", cards: "1"}]
job: {name: "job {gpus}", gpus: "{cards}", memory: 20GiB}
""")  # fmt: skip
    (busy,) = jostle.submit({"commands": ["touch busy; exec sleep 600"]})
    jostle.reach(busy, "running")
    code, _, err = p.run("sweep.yaml", "--max-wait", "5s")  # the others start within it on a slow host, too
    jostle.call("intent", ids=[busy], batch=None, do="cancel", now=True)
    rows = {row["name"]: row for row in jostle.newest(3)}
    assert (code, {name: row["state"] for name, row in rows.items()}) == (
        1, {"job 1": "succeeded", "job 4": "failed", "job 1 1": "succeeded"},
    ), err  # fmt: skip
    assert rows["job 4"]["reason"]["code"] == "wait_timeout"
    assert jostle.end(busy) == ["cancelled"]


# --- B9: suites

SUITES = """
command: sh train.sh {s} {k}
job: {name: "{s}{k}"}
suites:
  first: {logs: logs/first, matrix: {s: [x], k: [1, 2]}}
  second: {logs: logs/second, matrix: {s: [y], k: [1, 2]}}
  third: third.yaml
"""


def suites(jostle: Instance, name: str) -> Project:
    p = Project(jostle, name, "sleep 0.05")
    p.put("suites.yaml", SUITES)
    p.put("third.yaml", OLD)
    return p


def test_b9_suites_run_one_after_another_or_by_name(jostle: Instance) -> None:
    p = suites(jostle, "suites")
    err = p.ok("suites.yaml", "--suite", "second")
    assert p.ran() == ["y 1", "y 2"] and (p.at / "logs" / "second" / "y1.log").exists()
    err = p.ok("suites.yaml")
    assert "second: nothing to run (2 jobs: 2 done before)" in err
    first, third = jostle.newest(5)[:2], jostle.newest(3)
    assert max(row["ended_at"] for row in first) <= min(row["submitted_at"] for row in third)
    assert [row["name"] for row in [*first, *third]] == ["x1", "x2", "one", "two", "three"]
    with jostle.reader() as reader:
        about = reader.batch(third[0]["batch"])
    assert about is not None and about["about"]["suite"] == "third"
    code, _, err = p.run("suites.yaml", "--suite", "fourth")
    assert code == 2 and "first, second, third" in err


def test_b9_detached_suites_keep_their_order(jostle: Instance) -> None:
    p = suites(jostle, "detached")
    out = jostle.ok("run", "--detach", "suites.yaml", "--suite", "first", "--suite", "second", cwd=p.at)
    ids = [id for line in out.split() for id in range(int(line.split("-")[0]), int(line.split("-")[1]) + 1)]
    assert set(jostle.end(*ids)) == {"succeeded"}
    rows = jostle.jobs(ids)
    assert max(rows[id]["ended_at"] for id in ids[:2]) <= min(rows[id]["started_at"] for id in ids[2:])


def test_b9_an_interrupt_ends_the_suite_and_those_that_would_follow(jostle: Instance) -> None:
    p = Project(jostle, "cut", "touch here; exec sleep 600")
    p.put("suites.yaml", SUITES.replace("  third: third.yaml\n", ""))
    child = jostle.start("run", "suites.yaml", cwd=p.at)
    listening(child)
    until((p.at / "here").exists)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, err
    assert {line.split()[0] for line in p.ran()} == {"x"}


# --- frozen code


def git(tree: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", str(tree), *who, *words], check=True, capture_output=True, text=True).stdout


def test_edits_after_the_submit_do_not_change_frozen_jobs_that_wait(jostle: Instance) -> None:
    p = Project(jostle, "frozen", 'cat code.txt "$1"; until [ -e go/on ]; do sleep 0.02; done; cat code.txt "$1"')
    for name, text in (("code.txt", "old code\n"), (".gitignore", "ran\nlogs/\ngo/\nconfigs/temp/\n"), ("go/x", "")):
        p.put(name, text)
    p.put("ran", "")
    p.put("old.yaml", OLD)
    git(p.at, "init", "-q")
    git(p.at, "add", ".")
    git(p.at, "commit", "-qm", "one")
    p.put("code.txt", "frozen code\n")
    child = jostle.start("run", "old.yaml", "--freeze", "--max-concurrent", "1", cwd=p.at)
    until(lambda: p.at.joinpath("ran").read_text())
    p.put("code.txt", "edited\n")
    p.put("configs/a.yaml", "edited: 1\n")
    p.put("configs/b.yaml", "edited: 1\n")
    p.put("configs/temp/a_seed42.yaml", "edited: 1\n")
    (p.at / "train.sh").unlink()
    p.put("go/on", "")
    _, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, " with changes" in err) == (0, True), err
    logs = {name: (p.at / "logs" / f"{name}.log").read_text() for name in ("one", "two", "three")}
    assert all("edited" not in log and log.count("frozen code") == 2 for log in logs.values()), logs
    assert "seed: 42" in logs["one"]
    with jostle.reader() as reader:
        batch = reader.batch(jostle.newest()[0]["batch"])
    assert batch is not None
    frozen = batch["about"]["frozen"]
    assert (frozen["commit"], frozen["dirty"]) == (git(p.at, "rev-parse", "HEAD").strip(), True)
    assert "+frozen code" in frozen["diff"]
    assert len(p.ran()) == 3, "what is ignored is the original: there they have written"


def test_b7_what_frozen_jobs_print_is_no_code_of_theirs(jostle: Instance) -> None:
    """Their logs lie in a git tree that does not ignore them."""
    p = Project(jostle, "frozen-logs")
    p.put("ran", "")
    p.put(".gitignore", "ran\n")
    p.put("sweep.yaml", SWEEP)
    subprocess.run(["git", "init", "-q"], cwd=p.at, check=True)
    p.ok("sweep.yaml", "--freeze")
    assert "6 done before" in p.ok("sweep.yaml", "--freeze")
    p.ok("sweep.yaml", "--freeze", "--redo")  # the logs of before are put aside, beside these
    assert "6 done before" in p.ok("sweep.yaml", "--freeze")


def test_b7_frozen_jobs_are_known_again(jostle: Instance) -> None:
    p = Project(jostle, "frozen-again")
    p.put("ran", "")
    p.put(".jostleignore", "ran\n")
    p.put("sweep.yaml", SWEEP)
    p.ok("sweep.yaml", "--freeze")
    assert p.ran() == six()
    assert "6 done before" in p.ok("sweep.yaml", "--freeze")
    assert "6 done before" in p.ok("sweep.yaml")
    p.put("train.sh", (p.at / "train.sh").read_text() + "# edited\n")
    assert "6 done before" in p.ok("sweep.yaml"), "without --freeze what is known of the code is told, no more"
    code, _, err = p.run("sweep.yaml", "--freeze", "--dry-run")
    assert (code, "6 of 6 jobs would run" in err) == (0, True), err
    p.put("ran", "")
    p.ok("sweep.yaml", "--freeze")
    assert p.ran() == six(), "the snapshot is part of what they are"
    assert "6 done before" in p.ok("sweep.yaml", "--freeze")
    p.put("configs/b.yaml", "lr: 3\n")
    p.put("ran", "")
    p.ok("sweep.yaml", "--freeze")
    assert p.ran() == ["b 1", "b 2", "b 3"]
    p.put("configs/b.yaml", "lr: 1e-4\n")
    p.ok("sweep.yaml", "--redo")
    p.put("ran", "")
    p.ok("sweep.yaml", "--freeze")
    assert p.ran() == six(), "what ran from the tree itself is not from a snapshot"
