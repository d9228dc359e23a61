"""A card that breaks jobs, with real processes: none fails for good, the card is set aside, and a person is told and decides."""

from __future__ import annotations

from tests.e2e.instance import Instance, until

BROKEN = 'case "$CUDA_VISIBLE_DEVICES" in {0}|{1}) echo "CUDA error: uncorrectable ECC error encountered"; exit 1;; esac'


def broken_on(instance: Instance, index: int) -> str:
    (card,) = [g for g in instance.json("gpus")["gpus"] if g["index"] == index]
    return BROKEN.format(index, card["uuid"])


def test_a_card_with_memory_errors_does_not_eat_the_queue(instance: Instance) -> None:
    instance.up("sim:2x24")
    instance.see_cards()
    ids = instance.submit(*[{"commands": [broken_on(instance, 0)]}] * 10)
    assert instance.end(*ids) == ["succeeded"] * 10
    said = "set aside as faulty"
    (told,) = instance.events("quarantined")
    assert (told["data"]["gpu"], told["data"]["uuid"]) == (0, "GPU-sim-0000")
    assert said in instance.ok("show", str(told["job"]))
    (card,) = [g for g in instance.json("gpus")["gpus"] if g["index"] == 0]
    assert card["refusal"]["code"] == "faulty_said" and said in card["quarantine"]
    code, out, _ = instance.run("doctor")
    assert code == 1 and said in out
    assert f"GPU 0: {said}" in instance.run("ps")[2]
    assert "GPU 0：因故障已隔离" in instance.run("ps", env={"JOSTLE_LANG": "zh"})[2]
    (both,) = instance.submit({"gpus": [2, 2]})
    until(lambda: said in instance.ok("why", str(both)), "why names the card")

    instance.ok("down")
    instance.up("sim:2x24")
    until(lambda: said in instance.ok("why", str(both)), "the next engine knows it")
    assert instance.job(both)["state"] == "queued"
    instance.ok("gpus", "--include", "0")
    assert instance.end(both) == ["succeeded"]
    assert said not in instance.run("ps")[2]
    assert instance.run("doctor")[0] == 0


def test_errors_that_the_driver_counts_set_a_card_aside_and_the_run_goes_on(instance: Instance) -> None:
    quiet = "gpus: {count: 2, total: 24GiB}\n"
    instance.up(instance.scenario(quiet))
    (id,) = instance.submit({"commands": ["until test -e go; do sleep 0.02; done"]})
    instance.reach(id, "running")
    where = instance.job(id)["gpus"][0]
    instance.scenario(quiet + f"faults: [{{gpu: {where}, state: ecc}}]\n")
    until(lambda: instance.call("gpus") and instance.events("quarantined"), "the card is set aside")  # each call is a look
    (told,) = instance.events("quarantined")
    assert told["data"]["gpu"] == where and told["data"]["reason"]["code"] == "faulty_memory"
    others = instance.submit({}, {})
    assert instance.end(*others) == ["succeeded"] * 2
    assert all(instance.job(other)["gpus"] == [1 - where] for other in others)
    (instance.work / "go").touch()
    assert instance.end(id) == ["succeeded"]


def test_a_card_whose_mode_forbids_programs_is_refused_with_that_reason_and_an_exclusive_one_is_not_shared(
    instance: Instance,
) -> None:
    modes = "{total: 24GiB, compute_mode: prohibited}, {total: 24GiB, compute_mode: exclusive_process}"
    instance.up(instance.scenario(f"gpus: [{modes}]\n"))
    share = {"memory_mib": 1024, "share": True, "commands": ["until test -e go; do sleep 0.02; done"]}
    first, second = instance.submit(share, share)
    instance.reach(first, "running")
    why = until(lambda: instance.json("why", str(second))["gpus"], "it is looked at")
    assert {g["index"]: g["code"] for g in why} == {0: "prohibited", 1: "exclusive"}
    (instance.work / "go").touch()
    assert instance.end(first, second) == ["succeeded"] * 2
    assert instance.job(second)["gpus"] == [1]
