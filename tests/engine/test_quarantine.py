"""A faulty card does not eat the queue: the engine on a fake host, with real SQLite and time as a number."""

import json

import pytest

from jostle.engine.writes import Writes
from tests.engine.fakes import Host

ECC = (1.0, 1, "RuntimeError: CUDA error: uncorrectable ECC error encountered")
SILENT = (1.0, 1, "boom")


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return str(home)


def events(host, kind):
    rows = host.store.db.execute("SELECT job, run, data FROM event WHERE kind = ? ORDER BY seq", (kind,)).fetchall()
    return [(job, run, json.loads(data)) for job, run, data in rows]


def aside(host):
    return sorted(host.engine.cards.observer.health.faulty)


def on(host, uuid):
    return [p.run for p in host.disk.processes.values() if uuid in p.uuids]


def include(host, *indices):
    writes = Writes(host.engine, host.engine.cards)
    writes.begin()
    with host.store.transaction():
        writes.exclude({"gpus": list(indices), "on": False})
    writes.recorded()
    host.engine.soon()


def test_ten_jobs_and_a_card_with_memory_errors_lose_nothing(home):
    """Without a retry of their own: what the card did is no try of theirs."""
    host = Host(home, gpus=2, broken={"GPU-0": ECC})
    ids = host.submit(*[{}] * 10)
    host.settle()
    assert set(host.states().values()) == {"succeeded"}
    assert aside(host) == ["GPU-0"] and len(on(host, "GPU-0")) == 1
    ((job, run, told),) = events(host, "quarantined")
    assert (job, run, told["gpu"], told["uuid"], told["reason"]["code"]) == (ids[0], 1, 0, "GPU-0", "faulty_said")
    assert host.job(ids[0])["retries"] == 0 and host.job(ids[0])["excused"] == 1


def test_the_end_that_shows_it_and_the_record_are_one_commit_and_no_job_slips_in_between(home):
    host = Host(home, gpus=2, broken={"GPU-0": ECC})
    host.submit(*[{"queue": "a"}] * 2, {"queue": "b"})
    host.step()
    host.step(0.5)
    before = host.store.generation
    host.step(1.0)
    kinds = [k for (k,) in host.store.db.execute("SELECT kind FROM event ORDER BY seq DESC LIMIT 2")]
    assert sorted(kinds) == ["quarantined", "requeued"] and host.store.generation == before + 1
    assert host.why(1) == "gpus"


def test_it_survives_the_engine_and_ends_when_a_person_takes_the_card_back(home):
    host = Host(home, gpus=2, broken={"GPU-0": ECC})
    host.submit({})
    host.settle()
    host.crash()
    host.boot()
    assert aside(host) == ["GPU-0"]
    (later,) = host.submit({"gpus": [2, 2]})
    host.step(1.0)
    refused = {r.index: r.code for r in host.engine.waits[host.job(later)["shape"]].gpus}
    assert refused == {0: "faulty_said"}
    host.disk.broken.clear()
    include(host, 0)
    host.settle()
    assert host.job(later)["state"] == "succeeded" and aside(host) == []
    host.crash()
    host.boot()
    assert aside(host) == []


@pytest.mark.parametrize("restart", [False, True])
def test_errors_that_the_driver_counts_set_a_card_aside_and_those_from_before_do_not(home, restart):
    host = Host(home, gpus=3, errors={"GPU-0": 7, "GPU-1": 0})
    host.disk.durations[1] = (100.0, 0, "")
    host.submit({})
    host.step(1.0)
    assert aside(host) == [] and on(host, "GPU-0") == [(1, 1)]
    if restart:
        host.crash()
    host.disk.errors["GPU-0"] = 9
    if restart:
        host.boot()
    host.step(1.0)
    assert aside(host) == ["GPU-0"]
    ((_, _, told),) = events(host, "quarantined")
    assert told["reason"] == {"code": "faulty_memory", "params": {"errors": 2}}
    host.settle()
    assert host.job(1)["state"] == "succeeded"  # what runs there is not touched
    host.disk.errors["GPU-0"] = 0  # the driver was loaded anew
    include(host, 0)
    host.step(1.0)
    assert aside(host) == []
    host.disk.errors["GPU-0"] = 1
    host.step(1.0)
    assert aside(host) == ["GPU-0"]


def test_a_person_who_takes_a_card_back_is_not_contradicted_by_old_facts(home):
    host = Host(home, gpus=2, errors={"GPU-0": 0}, rows={"GPU-1"})
    host.step(1.0)
    assert aside(host) == ["GPU-1"]
    include(host, 1)
    host.step(1.0)
    host.crash()
    host.boot()
    host.step(1.0)
    assert aside(host) == []
    host.disk.errors["GPU-0"] = 5
    host.step(1.0)
    assert aside(host) == ["GPU-0"]
    include(host, 0)
    host.step(1.0)
    assert aside(host) == []


def test_what_is_pardoned_is_not_held_against_a_card_when_others_come_back(home):
    """It was not set aside, for it was the last; the person has said what they think of it all the same."""
    host = Host(home, gpus=2, errors={"GPU-0": 0}, rows={"GPU-1"})
    host.step(1.0)
    host.disk.errors["GPU-0"] = 4
    host.step(1.0)
    assert aside(host) == ["GPU-1"]
    include(host, 0)
    include(host, 1)
    host.step(1.0)
    assert aside(host) == []


def test_tries_from_before_a_pardon_do_not_count_after_it(home):
    host = Host(home, gpus=2, broken={"GPU-0": SILENT})
    for id in (1, 2, 3):
        host.disk.durations[id] = (20.0, 0, "")
    ids = host.submit(*[{"retry": {"max": 2, "backoff_after": 1, "backoff": 100.0}}] * 3, policy={"gpus": [0]})
    for _ in range(10):
        host.step(1.0)
    assert [host.job(id)["retries"] for id in ids] == [1, 1, 1]  # all of them failed there
    host.step(1.0)
    include(host, 0)
    with host.store.transaction():
        host.store.db.execute("UPDATE batch SET policy = '{\"gpus\": [1]}'")
    host.engine.rules.of_batch.clear()
    host.settle()
    assert set(host.states().values()) == {"succeeded"} and aside(host) == [] and not host.engine.cards.observer.health.doubts


def test_a_failure_on_a_card_that_is_set_aside_meanwhile_is_not_counted(home):
    host = Host(home, gpus=2, errors={"GPU-0": 0})
    host.disk.durations[1] = (20.0, 1, "boom")
    host.submit({})
    host.step(1.0)
    host.disk.errors["GPU-0"] = 1
    host.step(1.0)
    host.disk.durations[1] = (20.0, 0, "")
    host.settle()
    assert host.job(1)["state"] == "succeeded" and host.job(1)["excused"] == 1
    assert [host.disk.processes[1, n].uuids for n in (1, 2)] == [("GPU-0",), ("GPU-1",)]


def test_the_last_card_is_used_and_a_job_is_excused_three_times(home):
    host = Host(home, gpus=1, broken={"GPU-0": ECC}, errors={"GPU-0": 0})
    (id,) = host.submit({})
    host.step(1.0)
    host.disk.errors["GPU-0"] = 3
    host.settle()
    assert aside(host) == [] and host.job(id)["state"] == "failed"
    assert (host.job(id)["excused"], len(on(host, "GPU-0"))) == (3, 4)


def test_a_card_on_which_three_jobs_fail_at_once_and_not_elsewhere_is_set_aside(home):
    host = Host(home, gpus=4, broken={"GPU-0": SILENT})
    for id in range(1, 9):
        host.disk.durations[id] = (60.0, 0, "")
    host.submit(*[{"retry": {"max": 2}}] * 8)
    host.settle()
    assert set(host.states().values()) == {"succeeded"} and aside(host) == ["GPU-0"]
    ((_, _, told),) = events(host, "quarantined")
    assert told["reason"]["code"] == "faulty_jobs" and len(told["reason"]["params"]["failed"].split(", ")) == 3
    assert len(on(host, "GPU-0")) <= 6  # no more than began there before three had lasted elsewhere
    host.disk.broken.clear()
    include(host, 0)
    host.step(30.0)
    assert aside(host) == []


def test_doubts_survive_the_engine(home):
    host = Host(home, gpus=2, broken={"GPU-0": SILENT})
    for id in (1, 2, 3):
        host.disk.durations[id] = (15.0, 0, "")
    host.submit(*[{"retry": {"max": 2}, "queue": "one"}] * 3, policy={"choice": "first-fit"})
    for _ in range(400):
        host.step(1.0)
        if not host.clock.at % 7:
            host.crash()
            host.boot()
    assert set(host.states().values()) == {"succeeded"} and aside(host) == ["GPU-0"]


@pytest.mark.parametrize("restart", [False, True])
def test_short_jobs_that_fail_now_and_then_speak_against_no_card_that_does_others_well(home, restart):
    """Three fail on one card in a bad moment, another goes well there, and then the three go well elsewhere."""
    host = Host(home, gpus=2)
    for id in (1, 2, 3):
        host.disk.durations[id] = (0.5, 1, "connection refused")
    host.submit(*[{"retry": {"max": 2, "backoff_after": 1, "backoff": 20.0}}] * 3, policy={"gpus": [0]})
    for _ in range(12):
        host.step(0.5)
    assert [p.uuids for p in host.disk.processes.values()] == [("GPU-0",)] * 3
    host.disk.durations[4] = (0.5, 0, "")
    host.submit({}, policy={"gpus": [0]})
    for _ in range(4):
        host.step(0.5)
    assert host.job(4)["state"] == "succeeded" and on(host, "GPU-0")[-1] == (4, 1)
    with host.store.transaction():
        host.store.db.execute("UPDATE batch SET policy = '{\"gpus\": [1]}'")
    host.engine.rules.of_batch.clear()
    for id in (1, 2, 3):
        host.disk.durations[id] = (2.0, 0, "")
    if restart:
        host.crash()
        host.boot()
    host.settle()
    assert set(host.states().values()) == {"succeeded"} and len(on(host, "GPU-1")) == 3
    assert aside(host) == [] and not any(host.engine.cards.observer.health.doubts.values())


def test_what_goes_well_on_a_card_while_a_witness_runs_elsewhere_speaks_for_it(home):
    host = Host(home, gpus=2)
    host.disk.durations[1] = (0.5, 1, "connection refused")
    host.submit({"retry": {"max": 2}}, policy={"choice": "first-fit"})
    host.step()
    host.step(1.0)
    host.disk.durations[1] = (8.0, 0, "")
    host.step(2.0)
    assert [p.uuids for p in host.disk.processes.values()] == [("GPU-0",), ("GPU-1",)]
    host.disk.durations[2] = (1.0, 0, "")
    host.submit({})
    for _ in range(4):
        host.step(0.5)
    assert host.job(2)["state"] == "succeeded" and (2, 1) in on(host, "GPU-0") and host.job(1)["state"] == "running"
    host.settle()
    assert host.job(1)["state"] == "succeeded" and not any(host.engine.cards.observer.health.doubts.values())


def test_a_job_that_needs_all_cards_starts_also_where_jobs_spoke_against_one(home):
    host = Host(home, gpus=4, broken={"GPU-0": SILENT})
    for id in range(1, 9):
        host.disk.durations[id] = (60.0, 0, "")
    host.submit(*[{"retry": {"max": 2}}] * 8)
    host.settle()
    assert aside(host) == ["GPU-0"]
    host.disk.broken.clear()
    three, four = host.submit({"gpus": [3, 3]}, {"gpus": [4, 4]})
    host.settle()
    assert [host.disk.processes[id, 1].uuids for id in (three, four)] == [
        ("GPU-1", "GPU-2", "GPU-3"), ("GPU-0", "GPU-1", "GPU-2", "GPU-3"),
    ]  # fmt: skip
    assert host.job(four)["state"] == "succeeded" and aside(host) == ["GPU-0"]  # only a person takes it back for everybody


def test_programs_that_somebody_told_to_end_and_that_then_failed_speak_against_no_card(home):
    host = Host(home, gpus=2)
    host.disk.told_to_end = {(id, 1) for id in (1, 2, 3)}
    for id in (1, 2, 3):
        host.disk.durations[id] = (1.0, 1, "interrupted")
    host.submit(*[{"retry": {"max": 2, "backoff_after": 1, "backoff": 20.0}}] * 3, policy={"gpus": [0]})
    for _ in range(10):
        host.step(0.5)
    assert len(on(host, "GPU-0")) == 3
    with host.store.transaction():
        host.store.db.execute("UPDATE batch SET policy = '{\"gpus\": [1]}'")
    host.engine.rules.of_batch.clear()
    for id in (1, 2, 3):
        host.disk.durations[id] = (20.0, 0, "")
    host.settle()
    assert set(host.states().values()) == {"succeeded"} and len(on(host, "GPU-1")) == 3
    assert aside(host) == [] and not host.engine.cards.observer.health.doubts


def test_a_broken_command_says_nothing_about_cards(home):
    """It fails at once everywhere; a person mends it, and the next tries last."""
    host = Host(home, gpus=4)
    for id in range(1, 13):
        host.disk.durations[id] = (0.5, 1, "ModuleNotFoundError: no module named trainer")
    host.submit(*[{"retry": {"max": None}}] * 12)
    for _ in range(30):
        host.step(0.5)
    for id in range(1, 13):
        host.disk.durations[id] = (600.0, 0, "")
    host.settle(at_most=20000.0, step=2.0)
    assert aside(host) == [] and set(host.states().values()) == {"succeeded"}


def test_however_often_jobs_fail_at_once_the_decision_looks_at_few_shapes(home):
    host = Host(home, gpus=6)
    for id in range(1, 41):
        host.disk.durations[id] = (0.5, 1, "boom")
    host.submit(*[{"retry": {"max": None, "backoff_after": 1000, "backoff": 1.0}}] * 40)
    for _ in range(600):
        host.step(1.0)
    (shapes,) = host.store.db.execute("SELECT count(*) FROM shape").fetchone()
    assert len(host.disk.processes) > 300 and shapes <= 1 + 6 + 6 * 5 // 2
    assert aside(host) == []


def test_the_slices_of_a_card_are_taken_back_together(home):
    host = Host(home, gpus=3)
    plain = type(host.probe).line

    def sliced(self):
        data = json.loads(plain(self))
        for card in data["gpus"][1:]:
            card.update(index=1, mig_slice=True)
        return json.dumps(data).encode()

    host.probe.__class__ = type("Sliced", (type(host.probe),), {"line": sliced})
    host.disk.rows = {"GPU-1", "GPU-2"}
    host.step(1.0)
    assert aside(host) == ["GPU-1", "GPU-2"]
    include(host, 1)
    host.step(1.0)
    assert aside(host) == []


def test_a_disk_that_is_full_when_a_card_fails_delays_the_record_and_loses_nothing(home):
    from jostle import failpoint

    host = Host(home, gpus=2, broken={"GPU-0": ECC})
    host.submit({})
    host.step()
    failpoint.arm("store.before_commit=ENOSPC")
    host.step(2.0)
    assert aside(host) == []
    failpoint.arm("")
    host.settle()
    assert aside(host) == ["GPU-0"] and len(events(host, "quarantined")) == 1
