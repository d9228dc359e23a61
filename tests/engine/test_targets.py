"""A job says where it may run: kept, changed, copied, and told when there is no such place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jostle.core.model import LOCAL
from jostle.engine import checks
from jostle.errors import Invalid
from jostle.store import intents, jobrow
from tests.engine.fakes import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    tmp_path.chmod(0o700)
    return Host(str(tmp_path), gpus=2)


def seen(host: Host) -> dict[int, tuple[str, ...]]:
    """Of each job that waits, where a decision may send it."""
    return {job.id: job.on for lane in host.store.lanes.read(8) for job in lane}


def test_where_a_job_may_run_is_kept_and_part_of_its_shape(host: Host) -> None:
    here, there, both = host.submit({"gpus": [9, 9]}, {"gpus": [9, 9], "on": ["lab"]}, {"gpus": [9, 9], "on": ["lab", LOCAL]})
    assert seen(host) == {here: (LOCAL,), there: ("lab",), both: ("lab", LOCAL)}
    with host.store.transaction():
        intents.change(host.store, there, {"on": ["slurm", "lab"]}, at=0.0, now=0.0)
    assert seen(host)[there] == ("slurm", "lab")
    assert len({host.job(id)["shape"] for id in (here, there, both)}) == 3


def test_a_copy_of_a_job_may_run_where_it_could(host: Host) -> None:
    (id,) = host.submit({"on": ["lab"]})
    host.cancel(id)
    with host.store.transaction():
        new, _ = intents.retry(host.store, [id], at=0.0, now=0.0)
    assert seen(host) == {new[id]: ("lab",)}


def test_a_job_for_a_target_that_is_not_there_waits_with_the_reason_and_holds_up_nobody(host: Host) -> None:
    away, here = host.submit({"on": ["lab"]}, {"on": ["lab", LOCAL]})
    host.step()
    assert (host.states()[away], host.why(away)) == ("queued", "no_target")
    assert host.states()[here] == "starting"
    with host.store.transaction():
        intents.change(host.store, away, {"on": [LOCAL]}, at=0.0, now=0.0)
    host.engine.soon()
    host.settle()
    assert host.states() == {away: "succeeded", here: "succeeded"}


def test_a_key_of_a_shape_from_before_means_this_host(host: Host) -> None:
    (id,) = host.submit({"gpus": [9, 9]})
    with host.store.transaction():
        for _ in jobrow.SHAPE[jobrow.SHAPE.index("targets") :]:
            host.store.db.execute("UPDATE shape SET key = json_remove(key, '$[7]')")
    host.crash()
    host.boot()
    assert seen(host) == {id: (LOCAL,)}


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        "local",
        ["local", "local"],
        ["a b"],
        ["a,b"],
        [""],
        [1],
        ["ä"],
        ["x" * 201],
        None,
        ["-o"],
        [".."],
        [f"t{k}" for k in range(17)],
    ],
)
def test_what_is_no_list_of_targets_is_refused(wrong: Any) -> None:
    with pytest.raises(Invalid, match="on must be 1 to 16 names of targets"):
        checks.request({"jobs": [{"commands": ["true"], "workdir": "/", "on": wrong}]})
