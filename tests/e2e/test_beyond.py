"""A job that uses more GPU memory than it asked for, as people see it."""

from __future__ import annotations

import sys

from tests.e2e.instance import Instance, until


def test_use_beyond_the_request_is_an_event_and_a_mark_while_it_lasts(instance: Instance) -> None:
    instance.up("sim:2x24")
    hold = f"{sys.executable} -m jostle burn 600 3072 & until test -e less; do sleep 0.02; done; kill $!; wait; "
    id = instance.add("-m", "1GiB", "--", hold + "until test -e go; do sleep 0.02; done")
    until(lambda: instance.call("gpus") and instance.events("beyond"), "it is seen")
    uses, zh = "It uses 3 GiB of GPU 0 and asked for 1 GiB.", {"JOSTLE_LANG": "zh"}
    assert uses in instance.ok("ps") and "它在 GPU 0 上用了 3 GiB，而只要求了 1 GiB。" in instance.ok("ps", env=zh)
    assert uses.replace("It", "it") in instance.ok("why", str(id))
    assert f"job {id} (3 GiB, asked for 1 GiB)" in instance.ok("gpus")
    assert f"任务 {id} (3 GiB，只要求了 1 GiB)" in instance.ok("gpus", env=zh)
    shown = instance.ok("show", str(id))
    assert "starting (run 1): GPU 0 (GPU-sim-0000)" in shown
    assert "beyond (run 1): GPU 0 (GPU-sim-0000): used_mib 3072, asked_mib 1024" in shown
    (instance.work / "less").touch()
    until(lambda: not instance.call("gpus")["gpus"][0]["beyond"], "it is over")
    assert uses not in instance.ok("ps") and "asked for" not in instance.ok("gpus")
    (instance.work / "go").touch()
    assert instance.end(id) == ["succeeded"]


IDLE = "gpus: {count: 2, total: 24GiB}\nruns: {utilization: 0}\n"


def test_c13_a_card_that_stands_idle_is_told_everywhere_while_it_lasts(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("idle_after: 1\n")
    instance.up(instance.scenario(IDLE))
    id = instance.add("--", "sleep 600")
    until(lambda: instance.events("idle", id), "it is told")
    instance.reason(id, "no_load")
    says, zh = "It has held GPU 0 without any load for ", {"JOSTLE_LANG": "zh"}
    assert says in instance.ok("ps") and "它占用 GPU 0 已 " in instance.ok("ps", env=zh)
    assert says.replace("It", "it") in instance.ok("why", str(id)) and says in instance.ok("show", str(id))
    assert "; no load for " in instance.ok("gpus") and "无负载" in instance.ok("gpus", env=zh)
    gpus = instance.json("gpus")["gpus"]
    assert gpus[0]["idle_s"] >= 1 and gpus[1]["idle_s"] is None
    assert "idle (run 1): GPU 0 (GPU-sim-0000): idle_s " in instance.ok("show", str(id))
    instance.scenario(IDLE.replace("utilization: 0", "utilization: 50"))
    until(lambda: instance.events("busy_again", id), "it is busy again")
    until(lambda: instance.call("why", id=id)["reason"] is None, "and there is nothing to say")
    assert instance.json("gpus")["gpus"][0]["idle_s"] is None and "no load" not in instance.ok("gpus")


def test_c13_an_allocation_is_idle_while_no_process_is_on_its_cards(instance: Instance) -> None:
    """The same events and the same setting: what differs is that who holds a card need not compute."""
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("idle_after: 1\n")
    instance.up("sim:1x24")
    id = int(instance.json("alloc", "held")["id"])
    (told,) = until(lambda: instance.events("idle", id), "nothing is on its card")
    assert told["data"]["gpus"] == [0] and told["data"]["idle_s"] >= 1
    started = instance.start("start", "held", "--", sys.executable, "-m", "jostle", "burn", "600", "2048", "--load", "0")
    until(lambda: instance.events("busy_again", id), "a program is on it, though it does not compute")
    assert len(instance.events("idle", id)) == 1
    instance.ok("release", "held")
    started.communicate(timeout=60)
