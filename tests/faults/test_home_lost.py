"""A home that is removed, moved away or replaced under a living engine (promise 1): nothing that was answered is in two minds."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from jostle.errors import JostleError
from tests.e2e.instance import Instance, alive, remove, until

WAITING = "echo $$ > {0}; until [ -e {0}.go ]; do sleep 0.02; done"


@pytest.fixture
def instance(make_instance: Callable[..., Instance], tmp_path: Path) -> Instance:
    """Claims lie elsewhere, as those of real cards do: in the home they would be published again while it is removed."""
    return make_instance(JOSTLE_LEASE_DIR=str(tmp_path / "leases"))


def taken_away(instance: Instance, how: str) -> None:
    if how == "removed":
        remove(instance.home)
    else:
        os.rename(instance.home, instance.root / "moved")


@pytest.mark.parametrize("how", ["removed", "moved"])
def test_an_engine_whose_home_another_has_taken_ends_and_spoils_nothing_of_it(instance: Instance, how: str) -> None:
    instance.up("sim:2x24")
    (running, _) = instance.submit({"commands": [WAITING.format("a")]}, {"intent": "hold"})
    pid = instance.pid_in("a")
    instance.reach(running, "running")
    old = instance.engine
    with open(instance.home / "engine.log") as log:  # read when its name is gone
        taken_away(instance, how)
        instance.up("sim:2x24")
        first = instance.add("--hold", "--", "true")
        new = instance.engine
        assert new != old
        socket = os.stat(instance.home / "engine.sock").st_ino
        ids = [first]
        while alive(old):  # what it can do to the other it does until then
            ids += instance.submit({"intent": "hold"})
        ids += instance.submit({"intent": "hold"})
        assert ids == list(range(1, len(ids) + 1)), "each id is given once"
        assert instance.engine == new and os.stat(instance.home / "engine.sock").st_ino == socket
        os.kill(new, signal.SIGKILL)  # what it has answered is in its journal
        until(lambda: not alive(new))
        instance.up(None)
        assert sorted(instance.states()) == ids
        assert alive(pid), "a running job is left alone"
        said = log.read()
        assert "takes nothing more and ends" in said and "Traceback" not in said
        (instance.work / "a.go").touch()
        until(lambda: not alive(pid))


def test_an_engine_whose_database_was_removed_takes_nothing_more_and_ends(instance: Instance) -> None:
    instance.up("sim:2x24")
    instance.submit({"intent": "hold"})
    with contextlib.closing(instance.client()) as client:
        old = instance.engine
        remove(instance.home)
        with pytest.raises(JostleError, match="takes nothing more"):
            client.call("intent", ids=[1], do="unhold")
    until(lambda: not alive(old), "the end of the engine")
    assert not instance.home.exists(), "nor is anything put there again"


def test_an_engine_whose_home_was_moved_starts_nothing_says_why_and_goes_on_when_it_is_back(instance: Instance) -> None:
    instance.up("sim:2x24")
    cpu = {"gpus": [0, 0], "queue": "q"}
    first, second = instance.submit({"commands": [WAITING.format("a")], **cpu}, cpu)
    pid, client = instance.pid_in("a"), instance.client()
    instance.reach(first, "running")
    try:
        os.rename(instance.home, instance.root / "moved")
        (instance.work / "a.go").touch()
        until(lambda: not alive(pid))
        until(lambda: client.call("hello")["hold"] == "home_moved", "it says why nothing starts")
    finally:
        client.close()
        os.rename(instance.root / "moved", instance.home)
    assert instance.end(first, second) == ["succeeded", "succeeded"]
