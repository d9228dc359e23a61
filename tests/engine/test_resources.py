"""C13: cores and memory of the host, and counters: kept with the job, counted over restarts, told with numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from jostle import proc
from jostle.core.reasons import Reason
from jostle.engine import capacity, checks, launch
from jostle.errors import Invalid
from jostle.store import intents, runs
from tests.engine.fakes import Host

SETTINGS = {"cpus": 1, "host_memory": 1024, "counters": {"licence": 2}}  # any host has so much


@pytest.fixture
def host(tmp_path: Path) -> Host:
    tmp_path.chmod(0o700)
    host = Host(str(tmp_path), gpus=1)
    host.engine.reload(SETTINGS, checks.settings(SETTINGS))
    return host


def cpu_job(**more: Any) -> dict[str, Any]:
    return {"gpus": [0, 0], **more}


def reason(host: Host, id: int) -> Reason | None:
    return host.engine.waits.get(host.job(id)["shape"])


def test_c13_what_runs_is_counted_and_the_rest_waits_with_the_numbers(host: Host) -> None:
    first, second, silent = host.submit(cpu_job(cpus=1), cpu_job(cpus=1), cpu_job())
    host.step()
    assert host.states() == {first: "starting", second: "queued", silent: "starting"}
    assert reason(host, second) == Reason("cpus", {"needed": 1, "available": 0, "total": 1})
    host.settle()
    assert set(host.states().values()) == {"succeeded"}


@pytest.mark.parametrize("wants", [{"cpus": 1}, {"host_memory_mib": 600}, {"counters": {"licence": 2}}])
def test_c13_the_next_engine_counts_what_the_last_one_has_started(host: Host, wants: dict[str, Any]) -> None:
    first, second = host.submit(cpu_job(**wants), cpu_job(**wants))
    host.step()
    host.crash()
    host.boot()
    host.engine.reload(SETTINGS, checks.settings(SETTINGS))
    host.engine.soon()
    host.step()
    assert host.states() == {first: "running", second: "queued"}


def test_c13_a_setting_counts_from_the_moment_it_is_given(host: Host) -> None:
    _, second = host.submit(cpu_job(counters={"licence": 2}), cpu_job(counters={"licence": 1}))
    host.step()
    assert host.states()[second] == "queued"
    more = {**SETTINGS, "counters": {"licence": 3}}
    host.engine.reload(more, checks.settings(more))
    host.engine.soon()
    host.step()
    assert host.states()[second] in ("starting", "running")


def test_c13_what_a_job_asks_for_is_kept_changed_and_copied(host: Host) -> None:
    (id,) = host.submit(cpu_job(cpus=3, host_memory_mib=2048, counters={"tape": 1, "licence": 2}, nice=7))
    with host.store.transaction():
        values = checks.settable({"cpus": 4, "counters": {"licence": 1}})
        assert intents.change(host.store, id, values, at=0.0, now=0.0) is None
    host.cancel(id)
    with host.store.transaction():
        new, _ = intents.retry(host.store, [id], at=0.0, now=0.0)
    ((job,),) = host.store.lanes.read(8)
    assert (job.id, job.cpus, job.host_memory_mib, job.counters) == (new[id], 4, 2048, (("licence", 1),))
    assert host.job(job.id)["nice"] == 7


def test_c13_a_run_is_told_how_many_cores_it_has(host: Host) -> None:
    told, silent = host.submit(cpu_job(cpus=12), cpu_job())
    env = {id: launch.environment({}, runs.job_to_start(host.store, id), (id, 1), "x") for id in (told, silent)}
    assert env[told]["JOSTLE_CPUS"] == "12" and "JOSTLE_CPUS" not in env[silent]


@pytest.mark.parametrize(
    "wrong",
    [{"cpus": 0}, {"cpus": True}, {"cpus": 1.5}, {"host_memory_mib": 0}, {"nice": 20}, {"nice": -1}, {"counters": {"a": 0}},
     {"counters": {"a b": 1}}, {"counters": [["a", 1]]}, {"counters": {f"c{k}": 1 for k in range(17)}}, {"counters": None}],
)  # fmt: skip
def test_c13_what_is_no_amount_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(Invalid, match=f"job 1: {name} must be"):
        checks.request({"jobs": [{"commands": ["true"], "workdir": "/", **wrong}]})


# What there is: files as the kernel writes them, in a folder of ours.


@pytest.fixture
def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The control groups of this process, each with no limit yet."""
    root = tmp_path / "cgroup"
    monkeypatch.setattr(proc, "CGROUPS", str(root))
    for controller in ("cpu", "memory"):
        for folder in proc.cgroup_folders(controller):
            Path(folder).mkdir(parents=True, exist_ok=True)
    return root


def cores() -> int:
    return len(os.sched_getaffinity(0))


def test_c13_there_are_as_many_cores_as_the_engine_may_use(cgroups: Path) -> None:
    assert capacity.cores() == cores()
    one, *_ = sorted(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {one})
        assert capacity.cores() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", None), ("150000 100000", 1), ("50000 100000", 1), ("-1", None), ("", None)]
)
def test_c13_a_quota_of_the_outermost_group_counts_and_a_part_of_a_core_is_none(
    cgroups: Path, quota: str, expected: int | None
) -> None:
    (Path(proc.cgroup_folders("cpu")[0]) / "cpu.max").write_text(quota + "\n")
    assert capacity.cores() == (cores() if expected is None else expected)


def test_c13_the_least_limit_of_memory_counts(cgroups: Path) -> None:
    host = proc.memory_bytes() // capacity.MIB
    folders = [Path(folder) for folder in proc.cgroup_folders("memory")]
    assert capacity.memory_mib() == host
    (folders[0] / "memory.max").write_text("max\n")
    assert capacity.memory_mib() == host
    (folders[-1] / "memory.limit_in_bytes").write_text(f"{64 << 20}\n")
    assert capacity.memory_mib() == 64
    (folders[0] / "memory.max").write_text(f"{32 << 20}\n")
    assert capacity.memory_mib() == 32


def test_c13_settings_lower_what_there_is_and_never_raise_it() -> None:
    there = capacity.Capacity().here({}, 0.0)
    assert there == {"cpus": capacity.cores(), "host_memory_mib": capacity.memory_mib()}
    assert capacity.Capacity().here({"cpus": 1, "host_memory": 7}, 0.0) == {"cpus": 1, "host_memory_mib": 7}
    assert capacity.Capacity().here({"cpus": 1 << 16, "host_memory": 1 << 30}, 0.0) == there
