"""A job that uses more GPU memory than it asked for, as people see it."""

from __future__ import annotations

import sys

from tests.e2e.instance import Instance, until


def test_use_beyond_the_request_is_an_event_and_a_mark_while_it_lasts(instance: Instance) -> None:
    instance.up("sim:2x24")
    hold = f"{sys.executable} -m jostle burn 60 3072 & until test -e less; do sleep 0.02; done; kill $!; wait; "
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
