"""What people want counts when it is recorded, and not before."""

import os

import pytest

from jostle import failpoint
from jostle.core.claims import Claim, name_of
from jostle.engine.loop import Loop
from jostle.engine.observe import Observer, promises
from jostle.engine.service import Service
from jostle.errors import DiskFull
from tests.engine.fakes import FakeClaimed, Host


@pytest.fixture
def host(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    made = Host(str(home))
    (id,) = made.submit({})
    made.disk.durations[id] = (1000.0, 0, "")
    made.step()
    made.step(1)
    yield made
    failpoint.arm("")


def test_a_refused_stop_of_all_jobs_leaves_them_running_and_the_engine_at_work(host):
    service = Service(host.engine, Loop(), permanent=True)
    failpoint.arm("store.before_commit=ENOSPC@1")
    with pytest.raises(DiskFull):
        service.down(None, {"stop_jobs": True})
    assert (host.engine.ending, service.leaving, host.engine.hold()) == (False, False, "")
    assert [run.intent for run in host.engine.open_runs.values()] == ["run"]


@pytest.mark.parametrize(("armed", "intent"), [("store.before_commit=ENOSPC@1", "run"), ("", "cancel")])
def test_a_cancel_reaches_the_run_only_when_it_is_recorded(host, armed, intent):
    service = Service(host.engine, Loop(), permanent=True)
    failpoint.arm(armed)
    ((_, answer),) = service._serve_writes([(None, {"op": "intent", "do": "cancel", "ids": [1]})])
    assert answer["ok"] is (armed == "")
    assert [run.intent for run in host.engine.open_runs.values()] == [intent]


def test_a_claim_of_another_life_of_this_home_is_a_promise_of_its_own():
    """Both lives have a run 1.1; only the session tells them apart."""
    observer = Observer(os.getuid())
    observer.run_opened((1, 1), "mark", 77, ["GPU-0"])
    leases = {(1, 1): [("GPU-0", 0, None, 0)]}

    def held(uuid, sid):
        claim = Claim(uuid=uuid, mib=None, sid=sid, home="00000000", run=(1, 1))
        return FakeClaimed(claim, name_of(claim), os.getuid(), True)

    assert [p.uuid for p in promises(observer, [held("GPU-0", 77)], leases)] == ["GPU-0"]
    assert [p.uuid for p in promises(observer, [held("GPU-0", 77), held("GPU-1", 99)], leases)] == ["GPU-0", "GPU-1"]
