"""A workspace through any history: killed, resumed, edited, with tasks that fail, in random order. Order, count and results hold.

More of them: `python -m tests.compete.histories 5000`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.compete import histories
from tests.compete.judge import Judge

PART = 50


@pytest.mark.parametrize("first", range(0, 500, PART))
def test_a33_a_task_that_has_begun_heads_its_queue_until_it_ends_and_the_rest_follow_the_file(first: int) -> None:
    with tempfile.TemporaryDirectory(dir=histories.MEMORY) as made:
        histories.run(range(first, first + PART), Path(made))


def test_the_judge_of_histories_knows_the_order_that_it_asks_for() -> None:
    judge = Judge(most=1)
    judge.read([(1, "a"), (1, "b"), (2, "c"), (1, "d")])
    assert (judge.next(1), judge.next(2), judge.next(3)) == ({"a"}, {"c"}, set())
    judge.began("a")
    assert judge.next(1) == set()
    judge.ended("a", good=False)
    judge.read([(1, "new"), (2, "a"), (1, "d"), (1, "b"), (2, "c")])
    assert (judge.next(1), judge.next(2)) == ({"new"}, {"a"}), "what has begun heads its queue, the rest follows the file"
    with pytest.raises(AssertionError, match=r"c began in queue 2, where it was for \{'a'\}"):
        judge.began("c")
    judge.began("a")
    judge.ended("a", good=False)
    assert judge.next(2) == set() and judge.tasks["c"].state == "skipped", "for good, and the rest of its queue is not started"
