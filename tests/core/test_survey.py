"""What `jostle gpus` says of each card is what a plain job would meet."""

from __future__ import annotations

from jostle.core.model import Policy
from jostle.core.survey import survey
from tests.core.worlds import gpus, running, with_runs, world


def test_a_free_card_is_to_be_had_and_a_taken_one_is_not() -> None:
    found = survey(world(gpus=gpus(2), **with_runs(running(1, 0))))
    assert [no and no.code for _, no in found.values()] == ["taken", None]


def test_a_free_card_that_would_be_one_too_many_says_so() -> None:
    policy = Policy(min_gpu=1, max_gpu=1)
    found = survey(world(gpus=gpus(2), policy=policy, **with_runs(running(1, 0))))
    assert [no and no.code for _, no in found.values()] == ["taken", "over_limit"]
