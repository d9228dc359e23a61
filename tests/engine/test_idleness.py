"""C13: a job that holds a card and lets it stand idle is named, once told, and so is the card; also where a stranger does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jostle.engine import checks
from jostle.engine.answers import Answers
from jostle.store.reads import Reader
from tests.engine.fakes import FOREVER, Host

HALF_AN_HOUR = 1800.0


@pytest.fixture
def host(tmp_path: Path) -> Host:
    tmp_path.chmod(0o700)
    return Host(str(tmp_path), gpus=4)


def running(host: Host, gpus: int = 1, **more: Any) -> int:
    (id,) = host.submit({"gpus": [gpus, gpus], **more})
    host.disk.durations[id] = (FOREVER, 0, "")
    host.step()
    host.step(1.0)
    assert host.states()[id] == "running"
    return id


def pass_by(host: Host, seconds: float, step: float = 10.0) -> None:
    until = host.clock.at + seconds
    while host.clock.at < until:
        host.step(min(step, until - host.clock.at))


def told(host: Host) -> list[tuple[str, dict[str, Any]]]:
    reader = Reader(host.home)
    try:
        return [(event["kind"], event["data"]) for event in reader.events() if event["kind"] in ("idle", "busy_again")]
    finally:
        reader.close()


def card(host: Host, index: int) -> dict[str, Any]:
    reader = Reader(host.home)
    try:
        gpus: list[dict[str, Any]] = Answers(host.engine, host.engine.cards, reader, {}).gpus()["gpus"]
        return gpus[index]
    finally:
        reader.close()


def load(host: Host, **by_index: int) -> None:
    uuids = host.disk.uuids()
    host.disk.loads.update({uuids[int(name[1:])]: percent for name, percent in by_index.items()})


def test_c13_a_job_that_lets_its_card_stand_idle_for_half_an_hour_is_named(host: Host) -> None:
    id = running(host)
    pass_by(host, HALF_AN_HOUR - 60)
    assert host.engine.remarks() == {} and told(host) == [] and card(host, 0)["idle_s"] is None
    pass_by(host, 120)
    remark = host.engine.remarks()[id]
    assert remark.code == "no_load" and {**remark.params, "idle_s": 0} == {"cards": [0], "of": 1, "idle_s": 0}
    assert HALF_AN_HOUR <= remark.params["idle_s"] <= HALF_AN_HOUR + 120
    assert card(host, 0)["idle_s"] == pytest.approx(remark.params["idle_s"], abs=15)
    assert card(host, 1)["idle_s"] is None, "nobody holds it"


def test_c13_a_spell_is_told_once_and_its_end_once(host: Host) -> None:
    id = running(host)
    pass_by(host, 3 * HALF_AN_HOUR)
    ((kind, data),) = told(host)
    uuid = host.disk.uuids()[0]
    assert (kind, data["gpus"], data["uuids"]) == ("idle", [0], [uuid]) and data["idle_s"] >= HALF_AN_HOUR
    load(host, g0=40)
    pass_by(host, 30)
    assert [kind for kind, _ in told(host)] == ["idle", "busy_again"] and host.engine.remarks() == {}
    load(host, g0=0)
    pass_by(host, HALF_AN_HOUR / 2)
    load(host, g0=1)
    pass_by(host, 20)
    load(host, g0=0)
    pass_by(host, HALF_AN_HOUR / 2 + 60)
    assert len(told(host)) == 2, "any load begins the time anew"
    pass_by(host, HALF_AN_HOUR)
    assert [kind for kind, _ in told(host)] == ["idle", "busy_again", "idle"] and id in host.engine.remarks()


def test_c13_of_several_cards_those_that_do_nothing_are_named(host: Host) -> None:
    id = running(host, gpus=3)
    load(host, g0=90, g2=5)
    pass_by(host, HALF_AN_HOUR + 60)
    assert host.engine.remarks()[id].params["cards"] == [1] and host.engine.remarks()[id].params["of"] == 3
    assert [card(host, k)["idle_s"] is None for k in range(3)] == [True, False, True]


def test_c13_the_next_engine_neither_tells_it_again_nor_forgets_since_when(host: Host) -> None:
    id = running(host)
    pass_by(host, HALF_AN_HOUR + 60)
    host.crash()
    host.clock.at += 5
    host.boot()
    host.step(1.0)
    assert host.engine.remarks()[id].params["idle_s"] >= HALF_AN_HOUR
    assert [kind for kind, _ in told(host)] == ["idle"]
    host.crash()
    host.boot()
    load(host, g0=3)
    pass_by(host, 20)
    assert [kind for kind, _ in told(host)] == ["idle", "busy_again"]


def test_c13_time_in_which_nobody_looked_and_load_that_nobody_tells_speak_against_nobody(host: Host) -> None:
    id = running(host)
    pass_by(host, HALF_AN_HOUR - 300)
    host.probe.silent = True
    pass_by(host, 400)
    host.probe.silent = False
    pass_by(host, 60)
    assert id not in host.engine.remarks()
    host.disk.loads[host.disk.uuids()[0]] = None  # type: ignore[assignment]  # as drivers do that do not say
    pass_by(host, 2 * HALF_AN_HOUR)
    assert host.engine.remarks() == {} and told(host) == []


def test_c13_a_stranger_who_lets_a_card_stand_idle_is_seen_from_when_they_came(host: Host) -> None:
    pass_by(host, HALF_AN_HOUR)
    host.disk.strangers[host.disk.uuids()[2]] = 9000
    pass_by(host, HALF_AN_HOUR - 60)
    assert card(host, 2)["idle_s"] is None, "the card was idle before, but nobody's"
    pass_by(host, 120)
    assert HALF_AN_HOUR <= card(host, 2)["idle_s"] <= HALF_AN_HOUR + 120 and told(host) == []


def test_c13_how_long_is_a_setting_and_0_is_never(host: Host) -> None:
    soon, never = ({"idle_after": after} for after in (60.0, 0.0))
    host.engine.reload(soon, checks.settings(soon))
    id = running(host)
    pass_by(host, 75)
    assert id in host.engine.remarks() and len(told(host)) == 1
    host.engine.reload(never, checks.settings(never))
    pass_by(host, 2 * HALF_AN_HOUR)
    assert host.engine.remarks() == {} and card(host, 0)["idle_s"] is None and len(told(host)) == 1


def test_c13_a_run_that_has_ended_takes_its_spell_with_it(host: Host) -> None:
    id = running(host)
    pass_by(host, HALF_AN_HOUR + 60)
    host.cancel(id)
    host.settle()
    other = running(host)
    pass_by(host, HALF_AN_HOUR / 2)
    assert other not in host.engine.remarks() and [kind for kind, _ in told(host)] == ["idle"]
