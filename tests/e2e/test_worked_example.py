"""The worked example of the old documents: GPUs 4 and 7, queues a→b, c→d→e, f; real processes, for 100 seeds.

What the document allows: one queue after another in itself, queues side by side, a card for one task at a time, heads of idle
queues in any order, and never another card than 4 and 7.
"""

from __future__ import annotations

import itertools
from typing import Any

from tests.e2e.instance import Instance

QUEUES = {"1": "ab", "2": "cde", "3": "f"}
HEADS = {"a", "c", "f"}
POLICY = {"gpus": [4, 7], "order": "random", "strangers": "share", "on_failure": "stop", "retry": {"max": None}}


def allowed(tasks: list[dict[str, Any]]) -> str:
    """Nothing, or what is wrong with this story of (name, queue, gpu, from, until)."""
    by_start = sorted(tasks, key=lambda t: t["from"])
    for one, other in itertools.combinations(by_start, 2):
        together = other["from"] < one["until"]
        if together and one["gpu"] == other["gpu"]:
            return f"{one['name']} and {other['name']} on one card"
        if together and one["queue"] == other["queue"]:
            return f"{one['name']} and {other['name']} of one queue at once"
    for queue, names in QUEUES.items():
        if [t["name"] for t in by_start if t["queue"] == queue] != list(names):
            return f"queue {queue} out of order"
    if not {t["name"] for t in by_start[:2]} <= HEADS:
        return "the first two are not heads of queues"
    return "" if {t["gpu"] for t in tasks} <= {4, 7} else "another card"


def test_the_check_itself_finds_what_is_not_allowed() -> None:
    def task(name: str, queue: str, gpu: int, start: float) -> dict[str, Any]:
        return {"name": name, "queue": queue, "gpu": gpu, "from": start, "until": start + 1}

    good = [task("f", "3", 4, 0), task("a", "1", 7, 0), task("c", "2", 4, 1), task("b", "1", 7, 1), task("d", "2", 4, 2), task("e", "2", 7, 3)]  # fmt: skip  # noqa: E501
    assert allowed(good) == ""
    assert "one card" in allowed([*good[:2], {**good[2], "from": 0.5}, *good[3:]])
    assert "another card" in allowed([{**good[0], "gpu": 5}, *good[1:]])
    assert "out of order" in allowed([*good[:4], {**good[4], "name": "e"}, {**good[5], "name": "d"}])


def test_a15_a16_the_worked_example_gives_an_order_that_the_document_allows_for_100_seeds(instance: Instance) -> None:
    instance.up("sim:8x24")
    instance.see_cards()
    jobs = [
        {"name": name, "queue": queue, "memory_mib": 20 * 1024, "commands": [f"echo {name} $CUDA_VISIBLE_DEVICES >> order.$SEED"]}
        for queue, names in QUEUES.items()
        for name in names
    ]
    firsts = set()
    for seed in range(100):
        told = [{**job, "env": {"SEED": str(seed)}} for job in jobs]
        instance.know_cards()  # both are free: with one of them, the first task may end before the second begins
        ids = instance.submit(*told, policy=POLICY, queues="own", seed=seed)
        instance.end(*ids)
        rows = list(instance.jobs(ids).values())
        assert {row["state"] for row in rows} == {"succeeded"}
        story = [
            {"name": row["name"], "queue": row["queue"].partition("/")[2], "gpu": row["gpus"][0],
             "from": row["started_at"], "until": row["ended_at"]}
            for row in rows
        ]  # fmt: skip
        assert allowed(story) == "", (seed, story)
        seen = (instance.work / f"order.{seed}").read_text().split()
        assert sorted(seen[::2]) == list("abcdef") and set(seen[1::2]) <= {"4", "7"}
        firsts.add("".join(sorted(t["name"] for t in sorted(story, key=lambda t: t["from"])[:2])))
    assert firsts == {"ac", "af", "cf"}, "each pair of queues comes first now and then"


def test_a16_the_same_seed_draws_the_same_order(instance: Instance) -> None:
    """On one card, so that the order is all there is."""
    instance.up("sim:1x24")
    orders = []
    for seed in (7, 7, 8):
        ids = instance.submit(*({"name": str(k), "queue": str(k)} for k in range(12)), policy={"order": "random"}, seed=seed)
        instance.end(*ids)
        orders.append([row["name"] for row in sorted(instance.jobs(ids).values(), key=lambda row: row["started_at"])])
    assert orders[0] == orders[1] != orders[2]
