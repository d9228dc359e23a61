"""Clocks that jump, stand still and begin anew: nothing fires early, nothing is forgotten (F31, F32)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jostle.engine.clock import Clock
from jostle.store import runs
from jostle.store.store import Store
from tests.engine.fakes import Host

HOUR, YEAR = 3600.0, 365 * 86400.0


class Watch(Clock):
    """The engine's clock with hands that a test turns."""

    wall_at, boottime_at = 1.8e9, 5000.0

    def wall(self) -> float:
        return self.wall_at

    def boottime(self) -> float:
        return self.boottime_at


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    store = Store(str(home))
    yield store
    store.close()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return Host(str(home))


@pytest.mark.parametrize("jump", [-HOUR, YEAR, -30 * YEAR])
def test_the_engines_clock_knows_nothing_of_wall_clock_changes(store: Store, jump: float) -> None:
    clock = Watch(store)
    before = clock.now()
    clock.wall_at += jump
    assert clock.now() == before
    clock.boottime_at += 7
    assert clock.now() == before + 7
    again = Watch(store)
    again.boottime_at = clock.boottime_at
    assert again.now() == clock.now(), "the next engine of the same boot reads the same time"


def test_it_runs_on_while_the_host_sleeps(store: Store) -> None:
    clock = Watch(store)
    before = clock.now()
    clock.boottime_at += 8 * HOUR  # what the kernel does; the monotonic clock would have stood still
    assert clock.now() == before + 8 * HOUR


@pytest.mark.parametrize("drift", [-YEAR, -HOUR, HOUR])
def test_after_a_reboot_it_never_goes_back_behind_what_it_has_seen(
    store: Store, monkeypatch: pytest.MonkeyPatch, drift: float
) -> None:
    monkeypatch.setenv("JOSTLE_TEST_BOOT_ID", "first")
    clock = Watch(store)
    with store.transaction() as db:
        runs.begin(store, (1, 1), batch=1, uni_id="u", memory_mib=None, share=False, log="", leases=[],
                   at=clock.wall(), now=clock.now())  # fmt: skip
        assert db.in_transaction
    monkeypatch.setenv("JOSTLE_TEST_BOOT_ID", "second")
    Watch.wall_at, before = 1.8e9 + drift, clock.now()
    try:
        later = Watch(store)
    finally:
        Watch.wall_at = 1.8e9
    assert later.now() >= before
    assert later.now() == max(before, 1.8e9 + drift)


@pytest.mark.parametrize("jump", [-HOUR, YEAR, -30 * YEAR])
def test_waits_are_neither_cut_short_nor_drawn_out_when_the_wall_clock_jumps(host: Host, jump: float) -> None:
    later, failing = host.submit(
        {"begin": host.clock.wall() + 100}, {"retry": {"max": 1, "backoff_after": 1, "backoff": 50}}
    )
    host.disk.durations[failing] = (1.0, 1, "")
    for _ in range(4):
        host.step(1)
    began = host.clock.at
    host.clock.wall = lambda: host.clock.at + 5e8 + jump  # type: ignore[method-assign]
    while host.clock.at < 1099:
        host.step(1)
        assert (later, 1) not in host.disk.processes
    host.settle(step=1.0)
    assert host.disk.processes[(later, 1)].began == pytest.approx(1100, abs=2)
    assert host.disk.processes[(failing, 2)].began - host.disk.processes[(failing, 1)].ends == pytest.approx(50, abs=3)
    assert began < 1010
    assert host.states() == {later: "succeeded", failing: "failed"}


def test_a_night_of_sleep_fails_nobody(host: Host) -> None:
    ids = host.submit(*[{"time_limit": HOUR}] * 3, {"gpus": [4, 4]}, policy={"max_wait": 10 * HOUR})
    for id in ids[:3]:
        host.disk.durations[id] = (9 * HOUR, 0, "")
    host.step()
    host.step(1)
    host.clock.at += 8 * HOUR
    host.step(0.1)
    assert [host.states()[i] for i in ids] == ["running"] * 3 + ["queued"], "time limits are the shim's, which slept too"
    host.settle(step=60, at_most=12 * HOUR)
    assert set(host.states().values()) == {"succeeded"}
