"""Order and place of real processes: queues, big jobs, shared cards, strangers. Jobs say themselves when and where they ran."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest

from tests.e2e.instance import Instance, until

TELL = 'echo "$JOSTLE_JOB_ID $CUDA_VISIBLE_DEVICES $(date +%s.%N) {}" >> times; '


class Span(NamedTuple):
    job: int
    cards: tuple[str, ...]
    began: float
    ended: float


def job(seconds: float, until: str = "true", **more: object) -> dict[str, object]:
    """It takes so long, and ends when the condition holds; what a job sees of others it sees in `times`."""
    wait = f"sleep {seconds}; until {until}; do sleep 0.02; done; "
    return {"commands": [TELL.format("began") + wait + TELL.format("ended")], **more}


def have_begun(n: int) -> str:
    """A condition of the shell: at the same time, if all who have begun wait for it."""
    return f"[ $(grep -c began times) -ge {n} ]"


def spans(instance: Instance) -> dict[int, Span]:
    """What the processes of the jobs wrote, by job."""
    told: dict[int, dict[str, tuple[float, str]]] = {}
    for line in (instance.work / "times").read_text().splitlines():
        id, cards, at, what = line.split(" ")
        told.setdefault(int(id), {})[what] = (float(at), cards)
    return {
        id: Span(id, tuple(filter(None, t["began"][1].split(","))), t["began"][0], t["ended"][0]) for id, t in told.items()
    }


def most_at_once(found: list[Span], weight: int = 1) -> dict[str, int]:
    """Per card, the most that ran there at the same time."""
    steps = sorted(
        [(s.ended, -weight, c) for s in found for c in s.cards] + [(s.began, weight, c) for s in found for c in s.cards]
    )
    now: dict[str, int] = {}
    most: dict[str, int] = {}
    for _, change, card in steps:
        now[card] = now.get(card, 0) + change
        most[card] = max(most.get(card, 0), now[card])
    return most


def test_a_queue_is_serial_and_queues_are_parallel(instance: Instance) -> None:
    instance.up("sim:4x24")
    a = instance.submit(*[job(0.05, have_begun(2), queue="a")] * 3)
    b = instance.submit(*[job(0.05, have_begun(2), queue="b")] * 3)
    assert set(instance.end(*a, *b)) == {"succeeded"}
    found = spans(instance)
    for queue in (a, b):
        for first, second in pairwise(queue):
            assert found[first].ended <= found[second].began
    assert any(found[x].began < found[y].ended and found[y].began < found[x].ended for x in a for y in b)
    assert set(most_at_once(list(found.values())).values()) == {1}


def test_a_big_job_is_not_starved_by_later_small_ones(instance: Instance) -> None:
    instance.up("sim:2x24")
    policy = {"reserve_after": 0.2}
    small = instance.submit(*[job(0.15) for _ in range(4)], policy=policy)
    (big,) = instance.submit(job(0.05, gpus=[2, 2]), policy=policy)
    later = instance.submit(*[job(0.15) for _ in range(16)], policy=policy)
    instance.end(*small, big, *later)
    found = spans(instance)
    overtaken = [id for id in later if found[id].began < found[big].began]
    assert len(overtaken) <= 8, "more of the later jobs went first than fit into the time before cards are kept"
    assert max(found[id].began for id in later) > found[big].began
    assert most_at_once(list(found.values())) == {"0": 1, "1": 1}


@pytest.fixture
def lagging(instance: Instance) -> Iterator[Instance]:
    instance.up(instance.scenario("gpus: {count: 2, total: 24GiB}"))
    yield instance


def test_a_shared_card_is_never_promised_beyond_its_memory_however_late_use_shows(lagging: Instance) -> None:
    for n, runs in enumerate(("{}", "{lag: 0.05, ramp: 0.1}", "{lag: 120}", "{ramp: 120, use: 0.5}", "{free_lag: 0.1}")):
        lagging.scenario(f"gpus: {{count: 2, total: 24GiB}}\nruns: {runs}")
        one = job(0.1, have_begun(8 * n + 4), memory_mib=10 << 10, share=True)
        ids = lagging.submit(*[one] * 8, policy={"share": True})
        assert set(lagging.end(*ids)) == {"succeeded"}, runs
        mine = [s for id, s in spans(lagging).items() if id in ids]
        most = most_at_once(mine, weight=10)
        assert max(most.values()) == 20, f"{runs}: two of 10 GiB fit on 24, and no third: {most}"
        first, last = min(s.began for s in mine), max(s.began for s in mine)
        assert last - first < 100, f"{runs}: nobody waits for use to show"


def test_strangers_are_never_disturbed(instance: Instance) -> None:
    root = os.getuid() == 0  # otherwise it is a process the same user started by hand, which is left alone as well
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True, user=4242 if root else None)
    try:
        there = f"strangers: [{{user: bob, pid: {stranger.pid}, gpu: [0, 1], used: 9GiB, utilization: 50}}]"
        instance.up(instance.scenario("gpus: {count: 3, total: 24GiB}\n" + there))
        ids = instance.submit(*[job(0.05, memory_mib=4096) for _ in range(4)])
        instance.end(*ids)
        found = spans(instance)
        assert {found[id].cards for id in ids} == {("2",)}, "bob has the others"
        instance.know_cards()
        (wide,) = instance.submit(job(0.01, gpus=[3, 3]))
        reason = instance.reason(wide, "gpus")
        code = "stranger" if root else "own_process"
        assert {g["index"]: g["code"] for g in reason["gpus"]} == {0: code, 1: code}
        assert stranger.poll() is None
        instance.scenario("gpus: {count: 3, total: 24GiB}")
        assert instance.end(wide) == ["succeeded"], "he left: now his cards may be used"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_f55_who_is_just_beginning_keeps_his_card_and_later_it_is_the_last_to_be_chosen(instance: Instance) -> None:
    """A process with a bare context and without load looks as one that has been forgotten, and may be about to grow."""
    world = "gpus: {{count: 2, total: 24GiB}}\nstrangers: [{{user: bob, gpu: 0, used: {}, utilization: {}}}]"
    instance.up(instance.scenario(world.format("300MiB", 0)))
    instance.see_cards()
    patient, quick = {"small_for": 3600.0, "choice": "first-fit"}, {"small_for": 0.2, "choice": "first-fit"}
    first, second = instance.submit(*[job(0, "[ -e go ]", memory_mib=1000)] * 2, policy=patient)
    instance.reach(first, "running")
    assert instance.job(first)["gpus"] == [1]

    def of_bob() -> dict[str, object]:
        (card,) = (gpu for gpu in instance.reason(second, "gpus")["gpus"] if gpu["index"] == 0)
        return card  # type: ignore[no-any-return]

    assert of_bob()["code"] == "newcomer" and "bob" in str(of_bob()["text"])
    instance.scenario(world.format("9GiB", 0))
    until(lambda: of_bob()["code"] == "stranger", "he has grown")
    instance.scenario(world.format("300MiB", 0))
    until(lambda: of_bob()["code"] == "newcomer", "and begins again")
    (third,) = instance.submit(job(0, "[ -e go ]", memory_mib=1000), policy=quick)
    instance.reach(third, "running")
    assert instance.job(third)["gpus"] == [0] and instance.job(second)["state"] == "queued"
    (instance.work / "go").touch()
    instance.end(first, second, third)
    instance.know_cards()
    both = instance.submit(*[job(0, have_begun(5), memory_mib=1000)] * 2, policy=quick)
    assert instance.end(*both) == ["succeeded"] * 2
    assert [instance.job(id)["gpus"] for id in both] == [[1], [0]]


def test_slices_of_a_card_are_given_by_uuid(instance: Instance) -> None:
    instance.up(instance.scenario("gpus: {count: 2, total: 24GiB}\nmig: [{gpu: 0, slices: 2}]"))
    ids = instance.submit(*[job(0.01, memory_mib=8192) for _ in range(3)])
    instance.end(*ids)
    given = {card for s in spans(instance).values() for card in s.cards}
    assert given <= {"MIG-sim-0000-0", "MIG-sim-0000-1", "GPU-sim-0001"}
    assert any(card.startswith("MIG-") for card in given)


def test_a_card_excluded_by_hand_is_left_alone_until_it_is_included(instance: Instance) -> None:
    instance.up("sim:1x24")
    until(lambda: instance.call("gpus")["gpus"])
    assert instance.run("gpus", "--exclude", "0")[0] == 0
    (id,) = instance.submit(job(0.01))
    assert instance.reason(id, "gpus")["gpus"][0]["code"] == "excluded"
    code, _, err = instance.run("gpus", "--exclude", "7")
    assert (code, "there is no GPU 7" in err) == (4, True)
    instance.ok("gpus", "--include", "0")
    assert instance.end(id) == ["succeeded"]
