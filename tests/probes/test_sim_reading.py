"""The simulator's arithmetic, with numbers for time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.probes.scenario import Runs, Scenario, of_shape
from jostle.probes.scenario_file import parse
from jostle.probes.sim import reading
from jostle.probes.world import HeldCard, ProcessUse

TWO = "gpus: {count: 2, total: 24GiB}\n"


def script(text: str) -> Scenario:
    return parse(TWO + text, "s.yaml")


def used(scenario: Scenario, t: float = 0.0, **more: Any) -> list[int]:
    return [gpu["used_mib"] for gpu in reading(scenario, t, **more)]


def run(mib: int | None = 8000, age: float = 0.0, gone_for: float | None = None, gpu: int = 0) -> HeldCard:
    return HeldCard(f"GPU-sim-{gpu:04d}", mib, 123, age, gone_for)


def test_an_idle_world_is_empty() -> None:
    gpus = reading(of_shape("1x80+2x24"), 0.0)
    assert [gpu["total_mib"] for gpu in gpus] == [81920, 24576, 24576]
    assert [(gpu["used_mib"], gpu["utilization"], gpu["procs"]) for gpu in gpus] == [(0, 0, [])] * 3


def test_a_stranger_comes_grows_and_goes() -> None:
    world = script("strangers: [{user: bob, gpu: 1, from: 10, to: 30, used: 8000, ramp: 10, utilization: 60}]")
    seen = [used(world, t)[1] for t in (9.9, 10, 12.5, 15, 20, 29.9, 30)]
    assert seen == [0, 0, 2000, 4000, 8000, 8000, 0]
    gpu = reading(world, 25)[1]
    assert gpu["utilization"] == 60
    assert [(who["user"], who["uid"]) for who in gpu["procs"]] == [("bob", 60001)]


def test_strangers_of_one_name_are_one_user_and_many_processes() -> None:
    world = script("strangers: [{user: bob, gpu: 0, used: 1}, {user: eve, gpu: 0, used: 1}, {user: bob, gpu: 1, used: 1}]")
    procs = [who for gpu in reading(world, 0) for who in gpu["procs"]]
    assert [who["uid"] for who in procs] == [60001, 60002, 60001]
    assert len({who["pid"] for who in procs}) == 3


def test_errors_of_a_cards_memory_add_up_from_their_time_on() -> None:
    world = script("faults: [{gpu: 1, from: 10, state: ecc}, {gpu: 1, from: 20, state: ecc}]")
    assert [[gpu["ecc_uncorrected"] for gpu in reading(world, t)] for t in (9, 10, 20)] == [[0, 0], [0, 1], [0, 2]]


def test_the_driver_keeps_what_a_run_on_the_whole_card_leaves() -> None:
    gpu = reading(of_shape("2x24"), 0.0, [run(None)])[0]
    assert gpu["reserved_mib"] == gpu["free_mib"] == 512


def test_a_script_repeats() -> None:
    world = script("repeat: 100\nstrangers: [{gpu: 0, from: 10, for: 5, used: 1000}]")
    assert [used(world, t)[0] for t in (9, 12, 15, 109, 112, 115, 1012)] == [0, 1000, 0, 0, 1000, 0, 1000]


def test_a_run_uses_its_promise_at_once_by_default() -> None:
    assert used(of_shape("2x24"), claims=[run(8000)]) == [8000, 0]


def test_a_run_with_the_whole_card_leaves_512_mib() -> None:
    gpu = reading(of_shape("2x24"), 0.0, [run(None)])[0]
    assert (gpu["used_mib"], gpu["free_mib"], gpu["overcommitted"]) == (24064, 512, False)
    assert [who["pid"] for who in gpu["procs"]] == [123]


@pytest.mark.parametrize(("age", "shown"), [(0, 0), (29.9, 0), (30, 0), (35, 4000), (40, 8000), (1000, 8000)])
def test_a_runs_memory_shows_after_lag_and_ramp(age: float, shown: int) -> None:
    world = script("runs: {lag: 30, ramp: 10}")
    gpu = reading(world, 0.0, [run(8000, age)])[0]
    assert gpu["used_mib"] == shown
    assert len(gpu["procs"]) == (1 if age >= 30 else 0)
    assert gpu["utilization"] == (90 if age >= 30 else 0)


def test_an_ended_runs_memory_shows_until_the_free_lag_is_over() -> None:
    world = script("runs: {free_lag: 5}")
    assert [used(world, claims=[run(8000, 50, gone)])[0] for gone in (0, 4.9, 5, 100)] == [8000, 8000, 0, 0]
    assert reading(world, 0.0, [run(8000, 50, 1)])[0]["procs"] == []
    assert used(script(""), claims=[run(8000, 50, 0)])[0] == 0


def test_a_run_may_use_a_fraction_or_an_amount() -> None:
    assert used(script("runs: {use: 0.5}"), claims=[run(8000)])[0] == 4000
    assert used(script("runs: {use: 0.5}"), claims=[run(None)])[0] == 12032
    assert used(script("runs: {use: 1}"), claims=[run(8000)])[0] == 8000
    assert used(script("runs: {use: 3GiB}"), claims=[run(8000)])[0] == 3072


def test_a_process_that_says_what_it_uses_counts_by_index_or_uuid() -> None:
    uses = [
        ProcessUse(7, "0", 1000, 30), ProcessUse(8, "GPU-sim-0001", 500), ProcessUse(9, "17", 1), ProcessUse(10, "GPU-other", 1),
    ]  # fmt: skip
    gpus = reading(of_shape("2x24"), 0.0, (), uses)
    assert [gpu["used_mib"] for gpu in gpus] == [1000, 500]
    assert gpus[0]["utilization"] == 30
    assert [who["pid"] for gpu in gpus for who in gpu["procs"]] == [7, 8]


def test_too_big_promises_show_as_overcommitted_never_beyond_the_card() -> None:
    gpu, other = reading(of_shape("2x24"), 0.0, [run(20000), run(20000), run(24576, gpu=1)])
    assert (gpu["used_mib"], gpu["free_mib"], gpu["overcommitted"]) == (24576, 0, True)
    assert (other["used_mib"], other["free_mib"], other["overcommitted"]) == (24576, 0, False)


def test_a_claim_on_a_slice_is_the_slices_use() -> None:
    world = script("mig: [{gpu: 0, slices: 2}]")
    gpus = reading(world, 0.0, [HeldCard("MIG-sim-0000-1", None, 5, 0.0)])
    assert [(gpu["uuid"], gpu["used_mib"]) for gpu in gpus][2:] == [("MIG-sim-0000-0", 0), ("MIG-sim-0000-1", 11776)]


def test_slices_of_a_lost_or_missing_gpu_are_lost_or_missing() -> None:
    lost = reading(script("mig: [{gpu: 0, slices: 2}]\nfaults: [{gpu: 0, state: lost}]"), 0.0)
    assert [gpu["state"] for gpu in lost] == ["lost", "ok", "lost", "lost"]
    gone = reading(script("mig: [{gpu: 0, slices: 2}]\nmissing: [{gpu: 0}]"), 0.0)
    assert [gpu["uuid"] for gpu in gone] == ["GPU-sim-0001"]


def test_mig_can_be_switched_on_and_off() -> None:
    world = script("mig: [{gpu: 0, slices: 2, from: 10, to: 20}]")
    assert [[gpu["state"] for gpu in reading(world, t)] for t in (0, 10, 20)] == [
        ["ok", "ok"],
        ["mig", "ok", "ok", "ok"],
        ["ok", "ok"],
    ]


BUSY = script("repeat: 300\nstrangers: [{gpu: all, used: 9GiB, from: 5, to: 250, ramp: 60}]")


@given(
    claims=st.lists(st.tuples(st.integers(0, 1), st.none() | st.integers(0, 30000), st.floats(0, 300))),
    t=st.floats(0, 1000),
    lag=st.integers(0, 120),
    ramp=st.integers(0, 120),
)
def test_used_and_free_always_add_up_to_the_card(
    claims: list[tuple[int, int | None, float]], t: float, lag: int, ramp: int
) -> None:
    world = replace(BUSY, runs=Runs(lag=lag, ramp=ramp))
    for gpu in reading(world, t, [run(mib, age, gpu=place) for place, mib, age in claims]):
        assert gpu["used_mib"] >= 0 and gpu["free_mib"] >= 0
        assert gpu["used_mib"] + gpu["free_mib"] == gpu["total_mib"]
