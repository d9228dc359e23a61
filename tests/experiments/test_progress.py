"""How a run tells how it stands: counts, a bar, what is left, the cards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jostle.cli.watching import LiveCards, bar, picture
from jostle.follow.progress import Progress
from jostle.session import Session
from jostle.wording.labels import occupancy


def row(id: int, state: str = "queued", **more: Any) -> dict[str, Any]:
    return {"id": id, "name": f"n{id}", "state": state, "gpus": [], "started_at": None, "reason": None, **more}


def event(at: float, kind: str, job: int, **data: Any) -> dict[str, Any]:
    return {"seq": int(at), "at": at, "kind": kind, "job": job, "run": 1, "data": data}


DONE = {"code": "done_before", "params": {"job": 1, "run": 1}}


def test_b7_what_was_done_before_is_success_and_is_counted_by_itself() -> None:
    progress = Progress([row(1, "skipped", reason=DONE), row(2, "succeeded")])
    assert (progress.succeeded, progress.summary()) == (True, "1 succeeded, 1 done before")
    assert progress.take(event(1, "skipped", 1, reason=DONE)) is None, "ten thousand such lines tell nobody anything"


def test_b6_what_another_failure_kept_from_running_is_no_success() -> None:
    because = {"code": "after_failed", "params": {"job": 2, "state": "failed"}}
    progress = Progress([row(1), row(2)])
    assert "exit" in (progress.take(event(1, "failed", 2, exit_code=3)) or "")
    progress.take(event(1, "skipped", 1, reason=because))
    assert (progress.over, progress.succeeded, progress.why) == (True, False, {2: "exit code 3"})


def test_a_job_that_failed_before_this_client_came_is_in_the_summary_too() -> None:
    because = {"code": "wait_timeout", "params": {"limit_s": 3.0}}
    assert list(Progress([row(1, "failed", reason=because), row(2, "failed", error_type="oom")]).why.values())[1] == "oom"


def test_what_is_left_comes_from_what_has_finished() -> None:
    progress = Progress([row(k) for k in range(1, 11)])
    assert progress.left(0.0) is None, "nothing has finished: nobody can tell"
    for k in (1, 2):
        progress.take(event(100.0, "starting", k, gpus=[k]))
    for k in (1, 2):
        progress.take(event(160.0, "succeeded", k, ran_s=60.0))
        progress.take(event(160.0, "starting", k + 2, gpus=[k]))
    assert progress.left(160.0) == pytest.approx(240.0), "8 of 60 s each, two at a time"
    assert progress.left(190.0) == pytest.approx(210.0)
    assert bar(progress, 190.0, 60).endswith(" 2/10  20%  about 3m30s left")


def test_a_lasting_job_is_not_said_to_end_in_the_past() -> None:
    progress = Progress([row(1, "succeeded", ran_s=10.0), row(2, "running", started_at=10.0)])
    assert progress.left(25.0) == 0.0
    assert progress.left(1000.0) is None, "it takes much longer than the other: nobody can tell"


def test_an_end_that_nobody_recorded_has_no_duration() -> None:
    lost = {"code": "exit_unknown", "params": {"failures": 1}}
    progress = Progress([row(1, "failed", started_at=10.0, ended_at=9000.0, ran_s=None), row(2), row(3)])
    for k in (2, 3):
        progress.take(event(100.0, "starting", k, gpus=[0]))
    line = progress.take(event(9000.0, "failed", 2, reason=lost))
    assert line is not None and line.startswith("failed     2 n2: ") and not progress.never_ran
    assert progress.left(9000.0) is None, "and tells nothing of how long others take"
    assert progress.take(event(9000.0, "succeeded", 3, ran_s=12.0)) == "succeeded  3 n3 after 12s", "whenever it is told"


@pytest.mark.parametrize("columns", [10, 25, 40, 200])
def test_the_bar_fits_and_fills(columns: int) -> None:
    progress = Progress([row(k, "succeeded") for k in range(3)] + [row(9, "running", started_at=0.0)])
    drawn = bar(progress, 5.0, columns)
    assert drawn.endswith("3/4  75%") and len(drawn) <= max(columns, 9)
    if columns == 200:
        assert (drawn.count("█"), drawn.count("░")) == (22, 8)


def test_the_view_has_counts_bar_cards_and_jobs() -> None:
    progress = Progress([row(1, "succeeded"), row(2, "running", started_at=0.0, gpus=[3]), row(3)])
    lines = picture(progress, 12.0, 100, 12, "next: 3 n3: busy", "4 GPUs: 1 ours, 3 free")
    assert lines[0] == "1 running, 1 queued, 1 succeeded  |  4 GPUs: 1 ours, 3 free"
    assert " 1/3  33%" in lines[1]
    assert lines[2:] == ["  2 n2  GPU 3  12s", "  next: 3 n3: busy"]


def test_cards_are_ours_free_or_not_to_be_had() -> None:
    ours: dict[str, Any] = {"runs": ["1.1"], "refusal": {}}
    free: dict[str, Any] = {"runs": [], "refusal": None}
    theirs: dict[str, Any] = {"runs": [], "refusal": {"code": "stranger"}}
    assert occupancy([ours, ours, free, theirs], "en") == "4 GPUs: 2 ours, 1 not to be had, 1 free"
    assert (occupancy([free], "en"), occupancy([], "en")) == ("1 GPU: 1 free", "")


class Cards(Session):
    """With an engine whose cards are what the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.gpus: list[dict[str, Any]] = []
        self.asked = 0

    def client(self, *, start: bool = True, gpus: str | None = None) -> Any:
        self.asked += 1
        return SimpleNamespace(call=lambda op: {"gpus": self.gpus}, close=lambda: None)


def test_the_cards_are_those_of_now_while_events_follow_each_other_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    ours: dict[str, Any] = {"runs": ["1.1"], "refusal": {}}
    free: dict[str, Any] = {"runs": [], "refusal": None}
    session, progress = Cards(), Progress([row(k, "running", started_at=0.0) for k in range(1, 4)])
    session.gpus = [ours, ours]
    screen = LiveCards(cast(Any, session), progress)
    assert screen.cards == "2 GPUs: 2 ours", "with the first picture"
    session.gpus = [ours, free]
    screen.event(event(1.0, "succeeded", 1), progress.take(event(1.0, "succeeded", 1)))
    assert (screen.cards, session.asked) == ("2 GPUs: 2 ours", 1), "not with every event"
    screen.looked_at -= 3.0
    screen.event(event(1.0, "succeeded", 2), progress.take(event(1.0, "succeeded", 2)))
    assert screen.cards == "2 GPUs: 1 ours, 1 free"
    session.gpus = [free, free]
    screen.event(event(1.0, "succeeded", 3), progress.take(event(1.0, "succeeded", 3)))
    screen.note("over")
    assert (screen.cards, session.asked) == ("2 GPUs: 2 free", 3)
    assert "3 succeeded  |  2 GPUs: 2 free" in capsys.readouterr().out
