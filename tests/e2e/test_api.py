"""`jostle.submit()`: a batch from Python, and its handle."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

import jostle
from jostle.errors import Invalid, Usage
from tests.e2e.instance import PATIENCE, Instance


@pytest.fixture
def here(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> Iterator[Instance]:
    """A process that lives in the instance's home and directory."""
    instance.up("sim:2x24")
    instance.see_cards()
    for name in [name for name in os.environ if name.startswith("JOSTLE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("JOSTLE_HOME", str(instance.home))
    monkeypatch.chdir(instance.work)
    yield instance


def test_a_batch_is_waited_for_and_gives_its_rows(here: Instance) -> None:
    second = {"run": "echo two > b", "name": "second", "gpus": 2, "memory": "1GiB"}
    batch = jostle.submit(["echo one > a", second], name="from python")
    rows = batch.result(timeout=PATIENCE)
    assert [(row["id"], row["state"]) for row in rows] == [(id, "succeeded") for id in batch.ids]
    assert rows[1]["name"] == "second" and rows[1]["gpu_request"] == [2, 2]
    assert (here.work / "a").read_text() + (here.work / "b").read_text() == "one\ntwo\n"
    assert batch.wait(timeout=1) is True


def test_a8_the_tuples_of_task_files_can_be_submitted(here: Instance) -> None:
    tasks = [(["echo 1 >> log"], 1, 20), (["echo 2 >> log", "echo 3 >> log"], 1, 0.5), (["true"], 2, 2, 20)]
    rows = jostle.submit(tasks, own_queues=True).result(timeout=PATIENCE)
    assert [row["queue"] for row in rows] == ["1/1", "1/1", "1/2"]
    assert [row["memory_mib"] for row in rows] == [20480, 512, 20480]
    assert [row["gpu_request"] for row in rows] == [[1, 1], [1, 1], [2, 2]]
    assert (here.work / "log").read_text() == "1\n2\n3\n"
    (one,) = jostle.submit((["true"], 3, 1)).result(timeout=PATIENCE)
    assert one["queue"] == "3"


def test_a_failure_names_its_job_and_a_time_limit_is_a_timeout(here: Instance) -> None:
    bad = jostle.submit({"run": "exit 3", "name": "bad"})
    with pytest.raises(jostle.Failed, match=r"job 1 \(bad\) failed"):
        bad.result(timeout=PATIENCE)
    slow = jostle.submit("sleep 1000")
    with pytest.raises(TimeoutError, match="batch 2"):
        slow.wait(timeout=0.2)
    slow.cancel(now=True)
    assert slow.wait(timeout=PATIENCE) is False


def test_what_a_job_file_would_refuse_is_refused_with_the_same_words(here: Instance) -> None:
    with pytest.raises(Invalid, match=r'unknown key "memroy"; expected memory\?'):
        jostle.submit({"run": "true", "memroy": 3})
    with pytest.raises(Invalid, match="an empty list"):
        jostle.submit([])
    assert here.jobs() == {}


@pytest.mark.parametrize("value", [0, 2, "2", "1-4", [1, 2], True])
@pytest.mark.parametrize("argument", ["gpus", "devices"])
def test_a_count_of_cards_is_no_set_of_devices_and_says_where_it_belongs(here: Instance, argument: str, value: object) -> None:
    with pytest.raises(Usage) as e:
        jostle.submit("true", **{argument: value})  # type: ignore[arg-type]
    assert f"{argument}={value!r}: expected nvml" in str(e.value) and '{"run": …, "gpus": 1}' in str(e.value)
    assert here.jobs() == {}


@pytest.mark.parametrize("argument", ["gpus", "devices"])
def test_devices_are_named_by_either_name(here: Instance, argument: str) -> None:
    defaults = {"gpus": 3, "memory": "1GiB"}
    (row,) = jostle.submit("true", defaults=defaults, **{argument: "sim:4x24"}).result(timeout=PATIENCE)  # type: ignore[arg-type]
    assert row["gpu_request"] == [3, 3]


def test_a_wait_goes_on_when_the_engine_is_killed_in_between(here: Instance) -> None:
    batch = jostle.submit("while [ ! -e go ]; do sleep 0.01; done")
    here.reach(batch.ids[0], "running")
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(batch.wait(timeout=60)))
    waiter.start()
    here.kill_engine()
    (here.work / "go").touch()
    waiter.join(timeout=60)
    assert answers == [True]


def test_a_batch_that_can_never_run_here_is_taken_with_a_warning(here: Instance) -> None:
    with pytest.warns(UserWarning, match="needs 3 cards and may use 2"):
        batch = jostle.submit({"run": "true", "gpus": 3})
    batch.cancel()
    assert batch.wait(timeout=PATIENCE) is False
