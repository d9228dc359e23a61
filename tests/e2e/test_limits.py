"""Limits of a person (SPEC C3) with real engines, homes and processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.instance import PATIENCE, Instance, until

CLIENTS = 50
TOTAL, BY_HAND, AUTOMATIC = 4, 3, 2

# A job holds its card from before its first line until after its last, and an allocation until it is given up: what is in `held`
# is held, and perhaps more is. Nobody leaves before as many have met as may; then they come and go.
SEEN = """
mkdir "$HELD/$KIND-$CUDA_VISIBLE_DEVICES" || echo doubled >> "$HELD.doubled"
echo $(ls "$HELD") >> "$HELD.log"
sleep 0.15
until [ -e "$HELD.met" ]; do [ $(ls "$HELD" | wc -l) -lt $TOTAL ] || touch "$HELD.met"; sleep 0.05; done
rmdir "$HELD/$KIND-$CUDA_VISIBLE_DEVICES"
"""


class Held:
    """An allocation that does what a job does by SEEN; nothing runs in it, so that the test does it."""

    def __init__(self, home: Instance, id: int, kind: str, held: Path) -> None:
        self.home, self.id, self.kind, self.held = home, id, kind, held
        self.mark: Path | None = None

    def step(self) -> bool:
        """Whether it has been given up."""
        row = self.home.job(self.id)
        if self.mark is None:
            if row["state"] != "running":
                return False
            self.mark = self.held / f"{self.kind}-{row['gpus'][0]}"
            try:
                self.mark.mkdir()
            except FileExistsError:
                Path(f"{self.held}.doubled").touch()
            seen = os.listdir(self.held)
            with open(f"{self.held}.log", "a") as f:
                f.write(" ".join(seen) + "\n")
        met = Path(f"{self.held}.met")
        if not met.exists() and len(os.listdir(self.held)) < TOTAL:
            return False
        met.touch()
        self.mark.rmdir()
        self.home.call("intent", ids=[self.id], do="cancel")
        return True


def test_c3_fifty_clients_from_two_homes_never_go_above_a_limit_together(
    make_instance: Callable[..., Instance], tmp_path: Path
) -> None:
    """Jobs and allocations. Each home is slow between publishing its claims and counting them, so that both are there at once."""
    rules = tmp_path / "limits.yaml"
    rules.write_text(f"max_total_gpus: {TOTAL}\nmax_manual_gpus: {BY_HAND}\nmax_reserved_gpus: {AUTOMATIC}\n")
    shared = {"JOSTLE_LEASE_DIR": str(tmp_path / "leases"), "JOSTLE_SIM_DIR": str(tmp_path / "sim")}
    slow = {"JOSTLE_LIMITS_FILE": str(rules), "JOSTLE_FAILPOINTS": "leases.published=sleep:0.02"}
    homes = [make_instance(name, **shared, **slow) for name in ("a", "b")]
    for home in homes:
        home.up("sim:8x24")
        home.see_cards()
    held = tmp_path / "held"
    held.mkdir()
    ids: dict[Instance, list[int]] = {home: [] for home in homes}
    allocations: list[Held] = []

    def client(k: int) -> None:
        home, automatic = homes[k % 2], k % 4 < 2
        kind = "automatic" if automatic else "manual"
        env = {"HELD": str(held), "TOTAL": str(TOTAL), "KIND": kind}
        job = {"commands": [], "name": f"held-{k}"} if k % 3 == 0 else {"commands": [SEEN], "env": env}
        (id,) = home.submit(job, policy={"automatic": automatic})
        ids[home].append(id)
        if not job["commands"]:
            allocations.append(Held(home, id, kind, held))

    threads = [threading.Thread(target=client, args=(k,)) for k in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, ids.values())) == CLIENTS
    left = list(allocations)

    def stepped() -> bool:
        left[:] = [one for one in left if not one.step()]
        return not left

    until(stepped, "all allocations have been held and given up")
    for home in homes:
        assert set(home.end(*ids[home])) == {"succeeded"}
    looks = [line.split() for line in Path(f"{held}.log").read_text().splitlines()]
    assert len(looks) == CLIENTS and not Path(f"{held}.doubled").exists()
    for look in looks:
        assert len({name.rpartition("-")[2] for name in look}) == len(look), "each card once"
        by_hand = [name for name in look if name.startswith("manual")]
        assert len(look) <= TOTAL and len(by_hand) <= BY_HAND and len(look) - len(by_hand) <= AUTOMATIC
    assert max(map(len, looks)) == TOTAL, "the limits were used up"


def test_c3_limits_of_the_person_are_kept_shown_and_told(instance: Instance) -> None:
    """`jostle limits` sets, shows, clears; why, the submit and `set` carry the numbers; an edit of the lab's file holds."""
    lab = instance.root / "lab.yaml"
    instance.env["JOSTLE_LIMITS_FILE"] = str(lab)
    instance.up()
    instance.see_cards()
    instance.ok("limits", "set", "max_total_gpus=2", "max_gpus_per_task=2")
    (first,) = instance.submit({"commands": ["sleep 600"], "gpus": [2, 2]})
    instance.reach(first, "running")
    (second,) = instance.submit({})
    params = instance.reason(second, "user_limit")["params"]
    assert params == {"limit": "max_total_gpus", "most": 2, "held": 2, "needed": 1, "source": "own"}
    out, err = instance.run("add", "-g", "3", "--", "true")[1:]
    assert "max_gpus_per_task is 2, set by you" in err
    third = int(out)
    assert "max_gpus_per_task is 2" in instance.run("set", str(third), "gpus=4")[2]
    assert "max_gpus_per_task is 2" in instance.run("add", "--strict", "-g", "3", "--", "true")[2]
    lab.write_text("# the host is for all of us\nmax_total_gpus: 1\n")
    until(lambda: instance.reason(second, "user_limit")["params"]["source"] == "lab", "the lab's file is heard of")
    assert instance.json("limits")["limits"][0] == {"name": "max_total_gpus", "most": 1, "source": "lab", "held": 2}
    shown = instance.ok("limits").splitlines()
    assert shown[1].split()[:3] == ["max_total_gpus", "1", "2"] and shown[1].endswith(f"set in the lab's file: {lab}")
    lab.unlink()
    instance.ok("limits", "clear")
    instance.reach(second, "succeeded")
    assert [limit["most"] for limit in instance.json("limits")["limits"]] == [None] * 4


def test_c3_alloc_above_a_limit_waits_with_the_numbers_and_is_refused_where_it_could_never_be_had(instance: Instance) -> None:
    """What is too much at present can be had later; what is above the limit itself never. `--now` waits for neither."""
    instance.up()
    instance.see_cards()
    instance.ok("limits", "set", "max_total_gpus=2")
    instance.ok("alloc", "first", "-g", "2")
    full = "You hold 2 cards that count for max_total_gpus, which is 2, set by you (`jostle limits`); 1 is needed"
    second = instance.start("alloc", "second")
    assert second.stderr is not None and any(full in line for line in second.stderr)
    code, _, err = instance.run("alloc", "third", "--now")
    assert code == 1 and full in err
    code, _, err = instance.run("alloc", "never", "-g", "3")
    assert code == 6 and "needs 3 cards, and max_total_gpus is 2, set by you" in err
    assert "never" not in {row["name"] for row in instance.jobs().values()}, "nothing of it was taken"
    instance.ok("release", "first")
    out, err = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0 and len(out.split(",")) == 1, err


def test_c3_limits_outlive_the_engine_and_those_of_config_yaml_are_reloaded(instance: Instance) -> None:
    instance.up()
    instance.ok("limits", "set", "max_manual_gpus=3")
    instance.kill_engine()
    (instance.home / "config.yaml").write_text("limits:\n  max_total_gpus: 2\n")
    instance.up()
    said = {limit["name"]: (limit["most"], limit["source"]) for limit in instance.json("limits")["limits"]}
    assert said["max_manual_gpus"] == (3, "own") and said["max_total_gpus"] == (2, "config")
    (instance.home / "config.yaml").write_text("limits:\n  max_total_gpus: 1\n")
    instance.ok("up")
    assert instance.json("limits")["limits"][0]["most"] == 1
    (instance.home / "config.yaml").write_text("limits:\n  max_total_gpu: 1\n  max_manual_gpus: many\n")
    code, _, err = instance.run("up")
    assert code == 6
    assert 'config.yaml:2: unknown key "max_total_gpu" in limits; expected max_total_gpus?' in err
    assert 'config.yaml:3: max_manual_gpus: "many" is not understood; expected a whole number from 0 to 1024' in err


def test_c3_a_file_of_the_lab_that_cannot_be_understood_holds_up_gpus_only(instance: Instance) -> None:
    """It never said anything, so nobody knows the limit; when it has said something, that goes on."""
    lab = instance.root / "lab.yaml"
    lab.write_text("max_total_gpus: four\n")
    instance.env["JOSTLE_LIMITS_FILE"] = str(lab)
    instance.up()
    instance.see_cards()
    first, without = instance.submit({}, {"gpus": [0, 0]})
    instance.reach(without, "succeeded")
    reason = instance.reason(first, "on_hold")
    assert f'{lab}:1: max_total_gpus: "four" is not understood' in reason["text"]
    code, _, err = instance.run("limits")
    assert code == 1 and "cannot be understood" in err
    lab.write_text("max_total_gpus: 4\n")
    instance.reach(first, "succeeded")
    lab.write_text("max_total_gpus 1\n")
    until(lambda: "expected a limit such as" in instance.log(), "the file was read again")
    assert instance.json("limits")["limits"][0]["most"] == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["set", "max_total=4"], "there is no limit 'max_total'; expected max_total_gpus"),
        (["set", "max_total_gpus=-1"], "expected a whole number from 0 to 1024, or none"),
        (["set"], "expected a limit such as max_total_gpus=4"),
        (["set", "max_total_gpus"], "'max_total_gpus' is not understood"),
        (["clear", "all"], "there is no limit 'all'"),
        (["show", "max_total_gpus"], "expected `set NAME=N` or `clear NAME`"),
    ],
)
def test_c3_a_limit_that_is_not_understood_is_told(shared: Instance, words: list[str], said: str) -> None:
    code, _, err = shared.run("limits", *words)
    assert code == 2 and said in err
