"""Allocations in the store: a name belongs to one at a time, and nobody is left waiting inside one that has ended (SPEC C2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jostle.core.model import Exit
from jostle.engine import checks
from jostle.errors import Declined, Invalid
from jostle.store import intents, jobs, runs
from jostle.store.reads import Reader
from jostle.store.store import Store


class Book:
    """A store, and what is asked of it."""

    def __init__(self, home: str) -> None:
        self.store, self.reader = Store(home), Reader(home)

    def submit(self, *asked: dict[str, Any], **more: Any) -> list[int]:
        request = checks.request({"jobs": [{"workdir": "/", **job} for job in asked], **more})
        with self.store.transaction():
            first, last = jobs.submit(self.store, request, at=1.0, now=1.0, rank=lambda: 0.5)["ids"]
        return list(range(first, last + 1))

    def allocate(self, name: str = "train", **more: Any) -> int:
        return self.submit({"commands": [], "name": name, **more})[0]

    def begin(self, id: int) -> None:
        with self.store.transaction():
            runs.begin(self.store, (id, 1), batch=1, uni_id=f"u{id}", memory_mib=None, share=False, log="/l", leases=[], at=2.0,
                       now=2.0)  # fmt: skip
            runs.running(self.store, (id, 1), 1, 2.0)

    def finish(self, id: int, state: str = "succeeded", exit: Exit | None = None) -> None:
        with self.store.transaction():
            runs.finish(self.store, (id, 1), batch=1, state=state, exit=exit or Exit(code=0), error_type=None, reason=None,
                        peak_mib=0, at=3.0, now=3.0)  # fmt: skip

    def set(self, id: int, **values: Any) -> str | None:
        with self.store.transaction():
            why = intents.change(self.store, id, checks.settable(values), at=2.0, now=2.0)
        return why and why.code

    def row(self, id: int) -> dict[str, Any]:
        row = self.reader.job(id)
        assert row is not None
        return row

    def ended(self, *ids: int) -> list[tuple[str, str]]:
        return [(self.row(id)["state"], (self.row(id)["reason"] or {}).get("code", "")) for id in ids]


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    tmp_path.chmod(0o700)
    made = Book(str(tmp_path))
    yield made
    made.reader.close()
    made.store.close()


def refused(book: Book, *asked: dict[str, Any], **more: Any) -> str:
    with pytest.raises(Declined) as why:
        book.submit(*asked, **more)
    return str(why.value.why["code"])


def test_c2_a_name_belongs_to_one_allocation_until_that_has_ended(book: Book) -> None:
    first = book.allocate()
    assert refused(book, {"commands": [], "name": "train"}) == "name_taken"
    book.allocate("other")
    book.submit({"commands": ["true"], "name": "train"})  # a job is no allocation
    book.begin(first)
    assert refused(book, {"commands": [], "name": "train"}) == "name_taken"
    book.finish(first)
    assert book.allocate() > first


def test_a_submit_that_was_taken_is_answered_the_same_way_again(book: Book) -> None:
    """An engine may die before it answers."""
    asked = {"commands": [], "name": "train"}
    assert book.submit(asked, once="k") == book.submit(asked, once="k")


def test_a_job_inside_names_an_allocation_that_lives(book: Book) -> None:
    (plain,), held = book.submit({"commands": ["true"]}), book.allocate()
    inside = {"commands": ["true"], "inside": held}
    assert refused(book, {**inside, "inside": 99}) == "no_allocation"
    assert refused(book, {**inside, "inside": plain}) == "no_allocation"
    book.submit(inside)
    book.begin(held)
    with book.store.transaction():
        intents.cancel(book.store, [held], False, at=2.0, now=2.0)
    assert refused(book, inside) == "allocation_leaves"
    book.finish(held)
    assert refused(book, inside) == "allocation_ended"


def test_a_second_program_is_refused_while_one_is_inside_unless_it_is_to_run_beside(book: Book) -> None:
    held = book.allocate()
    inside = {"commands": ["true"], "inside": held}
    (first,) = book.submit(inside, beside=False)
    assert refused(book, inside, beside=False) == "program_inside"
    book.submit(inside, beside=True)
    with book.store.transaction():
        intents.cancel(book.store, [first, first + 1], False, at=2.0, now=2.0)
    book.submit(inside, beside=False)


def test_who_waits_inside_an_allocation_that_has_ended_is_skipped_and_so_is_who_comes_after_it(book: Book) -> None:
    held = book.allocate()
    book.begin(held)
    waits = book.submit(*[{"commands": ["true"], "inside": held, "queue": "q"}] * 2)
    (after,) = book.submit({"commands": ["true"], "needs": [["job", waits[0], False]]})
    book.finish(held)
    assert book.ended(*waits, after) == [("skipped", "allocation_over")] * 2 + [("skipped", "after_failed")]


@pytest.mark.parametrize("state", ["cancelled", "lost"])
def test_also_of_one_that_was_given_up_or_lost(book: Book, state: str) -> None:
    held = book.allocate()
    (inside,) = book.submit({"commands": ["true"], "inside": held})
    if state == "cancelled":
        with book.store.transaction():
            intents.cancel(book.store, [held], False, at=2.0, now=2.0)
    else:
        book.begin(held)
        book.finish(held, "failed", Exit(lost="exit_unknown"))
    assert book.ended(inside) == [("skipped", "allocation_over")]


def test_one_that_failed_inside_an_allocation_that_has_ended_meanwhile_is_not_queued_again(book: Book) -> None:
    held = book.allocate()
    (inside,) = book.submit({"commands": ["true"], "inside": held})
    for id in (held, inside):
        book.begin(id)
    book.finish(held)
    with book.store.transaction():
        runs.requeue(book.store, (inside, 1), outcome="failed", exit=Exit(code=1), counts=True, excused=False, not_before=0.0,
                     error_type="exit_code_1", memory_mib=None, avoid=(), reason=None, peak_mib=0, at=4.0, now=4.0)  # fmt: skip
    assert book.ended(inside) == [("skipped", "allocation_over")]


@pytest.mark.parametrize(("lost", "evicted"), [(False, True), (True, False)])
def test_the_next_engine_knows_which_runs_have_outlived_their_allocation(book: Book, lost: bool, evicted: bool) -> None:
    held = book.allocate()
    (inside,) = book.submit({"commands": ["true"], "inside": held})
    for id in (held, inside):
        book.begin(id)
    assert [bool(row["evicted"]) for row in runs.open_runs(book.store)] == [False, False]
    book.finish(held, "failed" if lost else "succeeded", Exit(lost="exit_unknown") if lost else None)
    assert [bool(row["evicted"]) for row in runs.open_runs(book.store)] == [evicted]


def test_what_means_nothing_for_an_allocation_cannot_be_set_or_tried_again(book: Book) -> None:
    held, other = book.allocate(), book.allocate("other")
    assert book.set(held, queue="q") == book.set(held, on=["slurm"]) == "not_of_allocation"
    assert book.set(held, gpus=[0, 2]) == "holds_no_card"
    assert book.set(held, name="other") == "name_taken"
    assert book.set(held, name="mine", gpus=[2, 2], priority=3, time_limit=60.0) is None
    assert book.set(other, name="train") is None, "nobody is called so any more"
    (inside,) = book.submit({"commands": ["true"], "inside": held})
    assert book.set(inside, on=["slurm"]) == "not_of_inside"
    for act in (book.begin, book.finish):
        act(inside)
        act(held)
    with book.store.transaction():
        _, declined = intents.retry(book.store, [held, inside], at=4.0, now=4.0)
    assert {id: why.code for id, why in declined} == {held: "not_retried", inside: "allocation_ended"}


@pytest.mark.parametrize("wrong", [
    {}, {"name": None}, {"name": "a", "queue": "q"}, {"name": "a", "gpus": [0, 2]}, {"name": "a", "gpus": [0, 0]},
    {"name": "a", "on": ["slurm"]}, {"name": "a", "inside": 1}, {"name": "a", "share": True}, {"name": "a", "retry": {"max": 2}},
    {"name": "a", "needs": [["job", 1, False]]}, {"name": "a", "log": "/l"}, {"name": "a", "env": {"A": "b"}},
    {"name": "a", "tied_to": [0, 1]}, {"name": "a", "tied_to": [1 << 40, 1]}, {"name": "a", "tied_to": [1]},
    {"name": "a", "tied_to": [1, -1]}, {"name": "a", "idle_release": 0}, {"name": "a", "idle_release": float("inf")},
    {"name": "a", "idle_release": True}, {"name": "a", "inputs": []}, {"name": "a", "retry_of": 1},
    {"name": "a", "done_by": [1, 1]},
])  # fmt: skip
def test_an_allocation_that_says_what_it_cannot_is_refused_whole(book: Book, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        book.submit({"commands": [], **wrong})
    assert book.reader.jobs() == []


@pytest.mark.parametrize("wrong", [
    {"tied_to": [1, 1]}, {"idle_release": 5.0}, {"inside": 1, "on": ["slurm"]}, {"inside": 0}, {"inside": "1"},
])  # fmt: skip
def test_what_is_an_allocations_own_is_refused_of_a_job(book: Book, wrong: dict[str, Any]) -> None:
    book.allocate()
    with pytest.raises(Invalid):
        book.submit({"commands": ["true"], **wrong})


def test_an_allocation_is_asked_for_alone(book: Book) -> None:
    with pytest.raises(Invalid, match="alone"):
        book.submit({"commands": [], "name": "a"}, {"commands": ["true"]})
