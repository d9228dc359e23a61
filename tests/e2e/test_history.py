"""What an ended run was like, with a real engine: seen in `show`, and true over a kill of the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.instance import Instance, until

WORLD = "gpus: {count: 1, total: 24GiB, name: RTX 4090}\nruns: {use: 0.5, utilization: 70}\n"
UNTIL = "until [ -e go ]; do sleep 0.02; done"


def profile_of(instance: Instance, id: int) -> Any:
    """It is recorded after the end, not with it."""
    return until(lambda: instance.runs(id)[0]["profile"], "the profile is recorded")


def seen_for(instance: Instance, seconds: float) -> None:
    """Until the engine has looked at the card while the run had it for so long."""

    def look() -> bool:
        loaded = [at for card in instance.call("history", seconds=True)["cards"] for at, load, _ in card["recent"] if load]
        return bool(loaded) and loaded[-1] - loaded[0] >= seconds

    until(look, "the run is watched")


def test_show_says_how_a_run_used_its_card(make_instance: Callable[..., Any]) -> None:
    instance = make_instance()
    instance.up(instance.scenario(WORLD))
    (instance.work / "wait.sh").write_text(UNTIL)
    (id,) = instance.submit({"commands": ["bash wait.sh --lr 0.1"]})
    instance.reach(id, "running")
    seen_for(instance, 3.0)
    (instance.work / "go").touch()
    assert instance.end(id) == ["succeeded"]
    profile = profile_of(instance, id)
    (run,) = instance.json("show", str(id))["runs"]
    assert (run["command_key"], run["gpu_name"], run["profile"]) == ("bash wait.sh --lr", "RTX 4090", profile)
    assert profile["load_mean"] == profile["load_p95"] == 70 and profile["idle_share"] == 0 and profile["gpu_mib"] == 24576
    assert 3.0 <= profile["observed_s"] <= run["ran_s"] + 2
    assert "load: mean 70%" in instance.ok("show", str(id))
    assert "负载：平均 70%" in instance.ok("show", str(id), env={"JOSTLE_LANG": "zh"})


def test_a_killed_engine_costs_what_nobody_saw_and_nothing_else(make_instance: Callable[..., Any]) -> None:
    instance = make_instance()
    instance.up(instance.scenario(WORLD))
    (id,) = instance.submit({"commands": [UNTIL]})
    instance.reach(id, "running")
    seen_for(instance, 3.0)
    instance.kill_engine()
    instance.up(None)
    seen_for(instance, 2.0)
    (instance.work / "go").touch()
    assert instance.end(id) == ["succeeded"]
    profile, (run,) = profile_of(instance, id), instance.runs(id)
    assert 2.0 <= profile["observed_s"] <= run["ran_s"] + 2 and profile["load_mean"] == 70
    assert len(instance.runs(id)) == 1
