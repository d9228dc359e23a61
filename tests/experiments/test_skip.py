"""Which jobs run again, and what makes a job the same job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from jostle.backends.local import inputs
from jostle.experiments import skip
from jostle.experiments.fingerprint import Contents, compared, fingerprint, named_files
from jostle.experiments.skip import DONE, LOGGED, NOT_FAILED, RUN, Rule, Verdict
from jostle.formats import spec
from jostle.store.reads import LastRun


def made(name: str = "a", **values: Any) -> dict[str, Any]:
    return {**spec.job(name=name, commands=["python test.py"], workdir="/w"), "params": {}, "inputs": [], **values}


def of(job: dict[str, Any]) -> str:
    return fingerprint(job, Contents())


# --- the fingerprint


@pytest.mark.parametrize(
    "other",
    [
        {"commands": ["python test.py --k 2"]},
        {"commands": [["python", "test.py"]]},
        {"params": {"seed": "42"}},
        {"env": {"A": "1"}},
        {"workdir": "/elsewhere"},
        {"inputs": ["/nowhere/a.yaml"]},
    ],
)
def test_b7_another_command_value_variable_or_directory_is_another_job(other: dict[str, Any]) -> None:
    assert of(made()) != of(made(**other))


@pytest.mark.parametrize(
    "other", [{"log": "/l"}, {"gpus": [2, 4]}, {"memory_mib": 8}, {"priority": 3}, {"needs": [["job", 1, False]]}]
)
def test_b7_name_log_and_what_it_asks_for_do_not_make_another_job(other: dict[str, Any]) -> None:
    assert of(made("a")) == of(made("b", **other))


def test_b7_the_order_of_values_and_variables_does_not_count() -> None:
    assert of(made(params={"a": "1", "b": "2"}, env={"x": "1", "y": "2"})) == of(
        made(params={"b": "2", "a": "1"}, env={"y": "2", "x": "1"})
    )


def test_b7_the_content_of_a_config_counts_not_its_place_or_its_time(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("lr: 1e-5\n")
    two.write_text("lr: 1e-5\n")
    os.utime(two, (1, 1))
    before = of(made(inputs=[str(one)]))
    assert before == of(made(inputs=[str(two)]))
    one.write_text("lr: 1e-4\n")
    assert before != of(made(inputs=[str(one)]))


def test_b7_what_cannot_be_read_is_not_what_is_empty_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    empty, pipe = tmp_path / "empty", tmp_path / "pipe"
    empty.touch()
    os.mkfifo(pipe)
    assert of(made(inputs=[str(empty)])) != of(made(inputs=[str(tmp_path / "none")]))
    assert of(made(inputs=[str(pipe)])) == of(made(inputs=[str(tmp_path)]))


def test_b7_a_file_is_read_once_for_ten_thousand_jobs(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("a")
    contents = Contents()
    first = contents.digest(str(config))
    config.write_text("b")
    assert contents.digest(str(config)) == first != Contents().digest(str(config))


def test_b7_a_plain_command_is_made_of_the_files_it_names(tmp_path: Path) -> None:
    for name in ("train.py", "a.yaml", "with space.yaml"):
        (tmp_path / name).touch()
    at = str(tmp_path)
    found = named_files(["python train.py --config=a.yaml 'with space.yaml' no.yaml .", ["cat", "a.yaml"]], at)
    assert found == [f"{at}/train.py", f"{at}/a.yaml", f"{at}/with space.yaml"]
    assert named_files(["echo it's a.yaml", "x\0y"], at) == [f"{at}/a.yaml"]


# --- what runs


def verdicts(jobs: list[dict[str, Any]], rule: Rule | None = None, logs: tuple[str, ...] = (), **more: Any) -> list[str]:
    return [v.what for v in skip.judged(jobs, rule or Rule(), exists=lambda path: path in logs, **more)]


def success(job: int, n: int, log: str, named: str | None = None) -> LastRun:
    return LastRun(job=job, n=n, log=log, named=named, outcome="succeeded", began=1.0, batch=1)


SUCCESS = {"f1": [success(3, 2, "/logs/1")]}


def test_b7_a_recorded_success_whose_log_exists_is_skipped_and_all_else_runs() -> None:
    jobs = [made("a", fingerprint="f1"), made("b", fingerprint="f2"), made("c", fingerprint=None)]
    assert verdicts(jobs, ran=SUCCESS, logs=("/logs/1",)) == [DONE, RUN, RUN]
    assert skip.judged(jobs, Rule(), SUCCESS, exists=lambda _: True)[0].by == (3, 2)


def test_b7_a_deleted_log_makes_it_run_again() -> None:
    jobs = [made("a", fingerprint="f1")]
    assert verdicts(jobs, ran=SUCCESS) == [RUN]


def test_b7_a_log_without_a_success_is_done_only_by_the_old_rule() -> None:
    jobs = [made("a", fingerprint="f2", log="/logs/2"), made("b", fingerprint="f3", log="/logs/3"), made("c", log=None)]
    assert verdicts(jobs, ran={}, logs=("/logs/2",)) == [RUN, RUN, RUN]
    assert verdicts(jobs, Rule(trust_logs=True), ran={}, logs=("/logs/2",)) == [LOGGED, RUN, RUN]


def test_b7_redo_runs_all() -> None:
    jobs = [made("a", fingerprint="f1", log="/logs/1")]
    assert verdicts(jobs, Rule(redo=True, trust_logs=True), ran=SUCCESS, logs=("/logs/1",)) == [RUN]


def test_b7_only_failed_takes_those_and_no_others() -> None:
    jobs = [made("a", fingerprint="f1"), made("b"), made("c")]
    assert verdicts(jobs, Rule(only_failed=True), ran=SUCCESS, failed=frozenset("b"), logs=("/logs/1",)) == [
        NOT_FAILED, RUN, NOT_FAILED,
    ]  # fmt: skip


def test_b7_what_comes_after_a_job_that_runs_runs_again_as_well() -> None:
    done = {f"f{k}": [success(k, 1, "/log")] for k in (1, 2, 3, 4)}
    jobs = [
        made("prepare", fingerprint="changed"),
        made("train", fingerprint="f2", needs=[["index", 0, False]]),
        made("report", fingerprint="f3", needs=[["index", 1, True]]),
        made("other", fingerprint="f4", needs=[["job", 7, False]]),
    ]
    assert verdicts(jobs, ran=done, logs=("/log",)) == [RUN, RUN, RUN, DONE]


def test_b7_who_came_after_a_job_that_is_left_out_does_not_wait_for_it() -> None:
    jobs = [made("a"), made("b", needs=[["index", 0, False]]), made("c", needs=[["index", 1, False], ["job", 5, True]])]
    taken = skip.taken(jobs, [Verdict(what=LOGGED), Verdict(what=DONE, by=(3, 2)), Verdict(what=RUN)])
    assert [(j["name"], j["needs"], j.get("done_by")) for j in taken] == [
        ("b", [], [3, 2]),
        ("c", [["index", 0, False], ["job", 5, True]], None),
    ]
    assert jobs[2]["needs"][0] == ["index", 1, False], "what was loaded is as it was"


def row(name: str, state: str, code: str | None = None) -> dict[str, Any]:
    return {"name": name, "state": state, "reason": {"code": code, "params": {"job": 1, "run": 1}} if code else None}


def test_b7_the_newest_run_of_a_name_says_whether_it_failed() -> None:
    newest = [row("a", "failed"), row("b", "succeeded"), row("c", "cancelled"), row("d", "skipped", "done_before"),
              row("e", "skipped", "after_failed"), row("f", "failed"), row("f", "succeeded")]  # fmt: skip
    older = [row(name, "failed") for name in "abcde"]
    never_asked = iter([newest, older])
    assert skip.failed_names(never_asked, "abcdef") == {"a", "c", "e"}
    assert skip.failed_names([[row("a", "succeeded")], [row("a", "failed")]], ["a", "never ran"]) == frozenset()


# --- what a run compares before its first command


def test_b7_a_run_compares_the_files_of_its_job_and_a_file_that_was_just_written_by_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    for path in (old, new):
        path.write_text("lr: 1\n")
    os.utime(old, (1, 1))
    contents = Contents()
    job = made(inputs=[str(old), str(new), str(tmp_path / "none")], copy=None)
    assert [entry[2] for entry in compared(job, contents, contents)] == [None] * 3, "written again now, it would look the same"
    monkeypatch.setattr("jostle.experiments.fingerprint.SETTLED", -1.0)
    contents = Contents()
    entries = compared(job, contents, contents)
    assert [entry[2] for entry in entries] == [inputs.identity(os.stat(old)), inputs.identity(os.stat(new)), None]
    assert [entry[1] for entry in entries] == [contents.digest(str(old))] * 2 + [None]
    assert inputs.compared(entries) == inputs.SAME


def test_b7_of_frozen_code_the_copy_is_compared_with_what_has_the_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jostle.experiments.fingerprint.SETTLED", -1.0)
    config, frozen = tmp_path / "a.yaml", tmp_path / "frozen.yaml"
    config.write_text("lr: 1\n")
    for text, found in (("lr: 1\n", inputs.SAME), ("lr: 2\n", inputs.OTHER)):
        frozen.write_text(text)
        contents = Contents()
        entries = compared(made(inputs=[str(config)], copy=None), contents, Contents(), lambda _: str(frozen))
        assert (inputs.compared(entries), entries[0][2] is None) == (found, found == inputs.OTHER)


def test_b7_a_copy_that_was_made_of_another_content_than_was_fingerprinted_is_nobodys(tmp_path: Path) -> None:
    config, copy = tmp_path / "a.yaml", tmp_path / "a_seed1.yaml"
    config.write_text("lr: 1\n")
    copy.write_text("lr: 1\nseed: 1\n")
    job = made(inputs=[str(config)], copy={"of": str(config), "to": str(copy), "values": {"seed": "1"}})
    contents = Contents()
    fingerprint(job, contents)
    (entry,) = compared(job, contents, Contents())
    assert entry[0] == str(copy) and inputs.compared([entry]) == inputs.SAME
    config.write_text("lr: 2\n")
    assert inputs.compared(compared(job, contents, Contents())) == inputs.OTHER
