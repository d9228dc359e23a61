"""What an edited command file means to a batch that is not finished."""

from __future__ import annotations

import random
from typing import Any

from jostle.compete.edits import Edits, current, edits
from tests.compete.rows import row, spec

REASON = {"code": "queue_failed", "params": {}}


def test_a33_a_file_that_was_not_edited_changes_nothing() -> None:
    rows = [row(1, state="succeeded"), row(2, state="running"), row(3), row(4, queue=2)]
    found = edits([spec(r) for r in rows], rows)
    assert found == Edits(tasks=(1, 2, 3, 4), drop=(), replaced=frozenset(), order=tuple(("job", k) for k in (1, 2, 3, 4)))
    assert found.new == ()


def test_a33_finished_stay_finished_running_run_on_gone_ones_are_dropped_and_changed_ones_are_taken_over() -> None:
    done, runs, waits, gone = row(1, state="succeeded"), row(2, state="running"), row(3), row(4)
    changed = spec(waits, commands=["something else"])
    found = edits([spec(done), changed, spec(row(9))], [done, runs, waits, gone])
    assert found.tasks == (1, None, None) and found.new == (1, 2)
    assert found.drop == (3, 4) and found.order == (("job", 2), ("job", 1), ("index", 0), ("index", 1))


def test_a33_the_order_of_the_file_is_the_order_of_the_tasks() -> None:
    rows = [row(1, state="succeeded"), row(2), row(3)]
    found = edits([spec(rows[2]), spec(row(9)), spec(rows[1]), spec(rows[0])], rows)
    assert found.order == (("job", 3), ("index", 0), ("job", 2), ("job", 1))


def test_a33_equal_blocks_are_the_finished_tasks_first() -> None:
    alike = [row(k, commands=["x"], state=state) for k, state in ((1, "queued"), (2, "running"), (3, "succeeded"))]
    found = edits([spec(alike[0])] * 4, alike)
    assert found.tasks == (3, 2, 1, None)


def test_a33_memory_that_was_raised_after_a_failure_is_still_the_same_task() -> None:
    raised = row(1, attempt=2, retries=1, memory_mib=14 * 1024)
    assert edits([spec(raised, memory_mib=10 * 1024)], [raised]).tasks == (1,)
    assert edits([spec(raised, memory_mib=20 * 1024)], [raised]).tasks == (None,), "a person asks for more than it has"
    assert edits([spec(row(2), memory_mib=1024)], [row(2)]).drop == (2,), "it never ran: the block was changed"
    done = row(3, state="succeeded")
    assert edits([spec(done, memory_mib=1024)], [done]).tasks == (3,)


def test_a33_memory_that_was_raised_to_the_whole_card_is_still_the_same_task() -> None:
    raised = row(1, attempt=2, retries=2, memory_mib=None)
    found = edits([spec(raised, memory_mib=22 * 1024)], [raised])
    assert found.tasks == (1,) and found.drop == () and found.order == (("job", 1),)


def test_a33_what_runs_or_has_succeeded_is_not_run_again_because_its_queue_was_renumbered() -> None:
    rows = [row(1, state="succeeded"), row(2, state="running"), row(3), row(4, state="failed", queue=2), row(5, attempt=1)]
    found = edits([spec(r, queue="5") for r in rows], rows)
    assert found.tasks == (1, 2, None, None, 5) and found.drop == (3,) and found.replaced == {4}
    assert found.into == ((1, "5"), (2, "5"), (5, "5")), "it is in that queue now, and heads it if it has begun"
    assert edits([spec(rows[0]), spec(rows[0], queue="5")], rows[:1]).tasks == (1, None), "one more of the same is new"
    twice = [row(1, state="succeeded", commands=["x"]), row(2, state="succeeded", commands=["x"], queue=2)]
    assert edits([spec(twice[1]), spec(twice[0])], twice).tasks == (2, 1), "the same queue comes first"


def test_a33_a_block_is_the_same_in_another_work_dir_and_only_what_was_never_tried_moves() -> None:
    def at(place: str, id: int, **more: Any) -> dict[str, Any]:
        return row(id, commands=[f"cd {place}", f"run {id}"], workdir=place, log=f"{place}/logs/t{id}.log", **more)

    rows = [at("/old", 1, state="succeeded"), at("/old", 2, state="running"), at("/old", 3), at("/old", 4, attempt=1, retries=1)]
    now = [at("/new", k) for k in (1, 2, 3, 4)]
    specs = [spec(r, workdir="/new", log=r["log"]) for r in now]
    texts = [["cd {work_dir}", f"run {k}"] for k in (1, 2, 3, 4)]
    found = edits(specs, rows, texts)
    assert found.tasks == (1, 2, None, 4) and found.drop == (3,) and found.replaced == frozenset()
    assert found.moved == ((2, 3),) and found.unmoved == (4,)
    assert found.order == (("job", 1), ("job", 2), ("index", 0), ("job", 4))
    same = [spec(r, workdir="/old", log=r["log"]) for r in rows]
    assert edits(same, rows, texts).tasks == (1, 2, 3, 4)


def test_a33_another_log_dir_or_uni_id_file_moves_what_waits_but_another_number_in_its_queue_does_not() -> None:
    waits = row(1, workdir="/w", log="/w/logs/queue1_task1.log", env={"F": "a"})
    block = spec(waits, workdir="/w", log="/w/logs/queue1_task2.log", env={"F": "a"})
    assert edits([block], [waits]).tasks == (1,)
    assert edits([{**block, "log": "/w/other/queue1_task1.log"}], [waits]).moved == ((0, 1),)
    assert edits([{**block, "env": {"F": "b"}}], [waits]).moved == ((0, 1),)


def test_a33_the_same_memory_is_preferred_to_one_that_may_have_been_raised() -> None:
    small, big = row(1, commands=["x"], attempt=1, memory_mib=8), row(2, commands=["x"], attempt=1, memory_mib=4)
    assert edits([spec(small, memory_mib=4), spec(small, memory_mib=8)], [small, big]).tasks == (2, 1)


def test_a33_tasks_behind_a_failed_one_are_new_when_that_was_mended() -> None:
    failed, behind = row(1, state="failed"), row(2, state="skipped", reason=REASON)
    same = edits([spec(failed), spec(behind)], [failed, behind])
    assert same.tasks == (1, 2) and same.replaced == frozenset()
    mended = edits([spec(failed, commands=["mended"]), spec(behind)], [failed, behind])
    assert mended.tasks == (None, None) and mended.replaced == {1, 2}


def test_a33_what_was_dropped_may_come_back_and_what_was_tried_again_is_its_copy() -> None:
    dropped = row(1, state="cancelled", attempt=0, reason={"code": "dropped", "params": {}})
    cancelled = row(2, state="cancelled", reason={"code": "cancelled", "params": {}})
    old, copy = row(3, state="failed"), row(4, commands=row(3)["commands"], retry_of=3)
    rows = [dropped, cancelled, old, copy]
    assert edits([spec(r) for r in rows[:3]], rows).tasks == (None, 2, 4)
    assert [r["id"] for r in current(rows)] == [2, 4]


def test_a33_every_task_is_told_once_whatever_was_edited() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        states = ("queued", "running", "succeeded", "failed", "cancelled", "skipped")
        rows = [
            row(k, queue=chance.randint(1, 2), state=chance.choice(states), commands=[chance.choice("abc")])
            for k in range(1, chance.randint(1, 9))
        ]
        specs = [spec(r) for r in rows if chance.random() < 0.7] + [spec(row(50, commands=["new"]))]
        chance.shuffle(specs)
        found = edits(specs, rows)
        named = [id for id in found.tasks if id is not None]
        assert len(named) == len(set(named)) and not set(named) & (set(found.drop) | found.replaced)
        for block, id in zip(specs, found.tasks, strict=True):
            if id is not None:
                done = rows[id - 1]["state"] in ("running", "succeeded")
                assert spec(rows[id - 1], **({"queue": block["queue"]} if done else {})) == block
        told = {r["id"] for r in rows} - set(found.drop) - found.replaced
        assert {n for kind, n in found.order if kind == "job"} == told
        assert [n for kind, n in found.order if kind == "index"] == list(range(len(found.new)))
