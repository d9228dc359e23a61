"""What every backend promises the engine, whatever carries its runs: the engine's fake, this host, a cluster on a bad line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from beds import CARDS, Bed, ClusterBed, FakeBed, LocalBed

from jostle.port import Phase, Void

RUN = (7, 1)
BEDS = {"fake": FakeBed, "local": LocalBed, "cluster": partial(ClusterBed, bad_line=False)} | {
    f"cluster on a bad line {seed}": partial(ClusterBed, seed=seed) for seed in range(8)
}


@pytest.fixture(params=BEDS)
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bed]:
    made: Bed = BEDS[request.param](tmp_path)
    made.open()
    yield made
    made.backend.stop(list(made.rows), kill=True)
    made.backend.close()


def test_a_run_begins_once_however_often_it_is_started(bed: Bed) -> None:
    launch = bed.start(RUN)
    bed.backend.start([launch])
    bed.begun(RUN)
    bed.backend.start([launch, launch])
    bed.let_go(RUN)
    bed.report(RUN, Phase.ENDED)
    assert bed.times_begun(RUN) == 1


def test_an_end_is_told_with_its_code_until_it_is_forgotten(bed: Bed) -> None:
    bed.start(RUN, code=3)
    bed.begun(RUN)
    bed.let_go(RUN)
    for _ in range(2):
        exit = bed.report(RUN, Phase.ENDED).exit
        assert exit is not None and (exit.code, exit.lost) == (3, "")
    bed.restart()
    again = bed.report(RUN, Phase.ENDED).exit
    assert again is not None and again.code == 3
    bed.backend.forget([RUN])
    bed.backend.forget([RUN])
    assert RUN not in {report.run for report in bed.backend.reports()}


def test_a_run_that_has_begun_is_never_called_anything_else_while_it_lives(bed: Bed) -> None:
    """Whatever is heard late of the time before: what is older than what is known is no news."""
    bed.start(RUN)
    bed.begun(RUN)
    told = set()
    for _ in range(30):
        bed.pass_time()
        told |= {report.kind for report in bed.backend.reports([RUN])}
    assert told == {Phase.ALIVE}


def test_a_run_goes_on_without_an_engine_and_the_next_one_adopts_it(bed: Bed) -> None:
    bed.start(RUN, code=5)
    bed.begun(RUN)
    bed.restart()
    assert bed.report(RUN, Phase.ALIVE).supervised
    bed.let_go(RUN)
    exit = bed.report(RUN, Phase.ENDED).exit
    assert exit is not None and exit.code == 5 and bed.times_begun(RUN) == 1


def test_an_engine_that_dies_right_after_a_start_loses_and_doubles_nothing(bed: Bed) -> None:
    """Whatever became of it: the next engine finds that it begins, or makes sure that it never will."""
    bed.start(RUN)
    bed.restart()
    report = bed.until(lambda: r if (r := bed.hear(RUN)) is not None and r.kind in (Phase.ALIVE, Phase.NOT_STARTED) else None)
    if report.kind is Phase.NOT_STARTED and bed.backend.void(RUN) is Void.NEVER:
        bed.report(RUN, Phase.VOIDED)
        assert bed.times_begun(RUN) == 0
    else:
        bed.report(RUN, Phase.ALIVE)
        assert bed.times_begun(RUN) == 1


def test_a_run_that_was_recorded_and_never_started_can_be_made_impossible(bed: Bed) -> None:
    launch = bed.record(RUN)
    bed.restart()
    bed.report(RUN, Phase.NOT_STARTED)
    assert [bed.backend.void(RUN), bed.backend.void(RUN)] == [Void.NEVER, Void.NEVER]
    bed.backend.start([launch])
    for _ in range(50):
        bed.pass_time()
    assert bed.report(RUN, Phase.VOIDED) and bed.times_begun(RUN) == 0


def test_a_run_that_has_begun_cannot_be_voided(bed: Bed) -> None:
    bed.start(RUN)
    bed.begun(RUN)
    assert bed.backend.void(RUN) is Void.STARTED
    assert bed.report(RUN, Phase.ALIVE)


@pytest.mark.parametrize("kill", [False, True], ids=["gently", "at once"])
def test_a_run_that_is_told_to_stop_ends_and_that_is_told(bed: Bed, kill: bool) -> None:
    bed.start(RUN)
    bed.begun(RUN)

    def stopped() -> bool:
        bed.backend.stop([RUN], kill=kill)  # said again, as the engine does
        report = bed.hear(RUN)
        return report is not None and report.kind is Phase.ENDED

    bed.until(stopped)
    exit = bed.report(RUN, Phase.ENDED).exit
    assert exit is not None and exit.code != 0
    bed.backend.stop([RUN], kill=kill)
    assert bed.report(RUN, Phase.ENDED).exit == exit


def test_a_stop_for_a_run_that_nobody_knows_does_nothing(bed: Bed) -> None:
    bed.start(RUN)
    bed.begun(RUN)
    bed.backend.stop([(99, 1)], kill=True)
    bed.pass_time()
    assert bed.report(RUN, Phase.ALIVE)


def test_a_run_that_died_with_its_keeper_is_gone_and_never_a_success(bed: Bed) -> None:
    bed.start(RUN)
    bed.begun(RUN)
    bed.lose(RUN)
    report = bed.report(RUN, Phase.GONE)
    assert (report.cause, report.exit) == ("exit_unknown", None)


def test_a_backend_that_hears_nothing_has_no_bad_news(bed: Bed) -> None:
    bed.start(RUN)
    bed.begun(RUN)
    bed.silence(True)
    bed.restart()
    for _ in range(50):
        assert (report := bed.hear(RUN)) is None or report.kind is Phase.ALIVE
        bed.pass_time()
    bed.silence(False)
    assert bed.report(RUN, Phase.ALIVE) and bed.times_begun(RUN) == 1


def test_many_runs_are_asked_of_and_stopped_in_one_call(bed: Bed) -> None:
    runs = [(job, 1) for job in (3, 4, 5)]
    for run in runs:
        bed.start(run)
        bed.begun(run)
    assert {report.run for report in bed.backend.reports()} == set(runs)

    def stopped() -> bool:
        bed.backend.stop(runs, kill=True)
        return all((r := bed.hear(run)) is not None and r.kind is Phase.ENDED for run in runs)

    bed.until(stopped)
    bed.backend.forget(runs)
    assert bed.backend.reports() == []


def test_where_its_output_will_be_is_known_before_it_starts(bed: Bed) -> None:
    path = bed.backend.log_path(RUN, "0123456789abcdef")
    assert path.startswith("/") and path == bed.backend.log_path(RUN, "0123456789abcdef")
    assert path != bed.backend.log_path((8, 1), "fedcba9876543210")


@pytest.fixture(params=[name for name in BEDS if "cluster" not in name])
def placing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bed]:
    made: Bed = BEDS[request.param](tmp_path)
    made.open()
    yield made
    made.backend.stop(list(made.rows), kill=True)
    made.backend.close()


def test_a_run_gets_other_cards_by_an_order_that_is_obeyed_once(placing: Bed) -> None:
    """Reserved, recorded, told, seen in the report; the next engine learns what became of an order that was lost."""
    a, b, c = CARDS
    placing.start(RUN, cards=[a])
    placing.begun(RUN)
    placing.until(lambda: placing.times_begun(RUN))
    placing.resize(RUN, 2, a, b, more=[b])
    assert placing.footing(RUN, 2)[:4] == (2, 2, True, (a, b)) and placing.held(RUN) == [a, b]
    placing.resize(RUN, 2, a, b)
    assert placing.footing(RUN, 2).cards == (a, b), "said again it changes nothing"
    placing.resize(RUN, 3, b)
    placing.restart()
    assert placing.footing(RUN, 3).cards in ((b,), (a, b)), "it arrived, or it never will"
    placing.resize(RUN, 4, b, c, more=[c])
    assert placing.footing(RUN, 4)[:4] == (4, 4, True, (b, c)) and placing.held(RUN) == [b, c]
    placing.rows[RUN] = placing.rows[RUN]._replace(order=5)
    placing.restart()
    assert placing.footing(RUN, 5)[:4] == (4, 5, False, (b, c)), "recorded, and never sent"
    assert placing.held(RUN) == [b, c] and placing.hear(RUN).kind is Phase.ALIVE  # type: ignore[union-attr]


def test_cards_that_are_reserved_and_not_recorded_are_given_back(placing: Bed) -> None:
    a, b, _ = CARDS
    placing.start(RUN, cards=[a])
    placing.begun(RUN)
    assert placing.backend.reserve_more(RUN, [(b, None)], frozenset(), alone=True) is None
    placing.backend.withdraw([RUN])
    assert placing.held(RUN) == [a]


def test_a_run_that_is_told_to_stand_still_does_whoever_asks_and_goes_on(placing: Bed) -> None:
    """A level, not an order: said again it changes nothing, and the next engine finds it as it was."""

    def still() -> bool:
        report = placing.hear(RUN)
        assert report is not None and report.kind is Phase.ALIVE and report.supervised
        return report.still

    placing.start(RUN, cards=[CARDS[0]])
    placing.begun(RUN)
    placing.backend.pause((99, 1), paused=True)  # nobody knows it
    placing.backend.pause(RUN, paused=False)  # as it is
    assert not still()
    for _ in range(2):
        placing.backend.pause(RUN, paused=True)
        placing.until(still)
    placing.restart()
    assert still() and placing.held(RUN) == [CARDS[0]], "it keeps its card"
    for _ in range(2):
        placing.backend.pause(RUN, paused=False)
        placing.until(lambda: not still())
    placing.backend.pause(RUN, paused=True)
    placing.until(still)
    placing.backend.stop([RUN], kill=False)
    exit = placing.report(RUN, Phase.ENDED).exit
    assert exit is not None and exit.signal == 15
