"""Ids as people write them."""

import pytest

from jostle.errors import NotFound, Usage
from jostle.intake import ids


class Reader:
    def last_id(self):
        return 20


class Nothing:
    def last_id(self):
        return None


def test_ids_are_read_in_the_order_given_and_each_once():
    assert ids.jobs(["12", "3-5", "1,4", "last"], Reader, lambda: [99]) == [12, 3, 4, 5, 1, 20]


def test_all_means_what_the_verb_says():
    assert ids.jobs(["all"], Reader, lambda: [7, 8]) == [7, 8]


def test_a_range_means_what_there_is_of_it():
    assert ids.jobs(["18-999999999"], Reader) == [18, 19, 20]


def test_the_store_is_not_read_for_plain_numbers():
    def never():
        raise AssertionError("the store was read")

    assert ids.jobs(["1", "2,3"], never) == [1, 2, 3]


@pytest.mark.parametrize("word", ["-1", "1.5", "1e3", "x", "5-3", "1--2", "٣", "9" * 30, "a5f0-11ee", "all"])
def test_what_is_no_id_is_a_usage_error(word):
    with pytest.raises(Usage):
        ids.jobs([word], Reader)


def test_a_range_beyond_the_last_job_is_not_found():
    with pytest.raises(NotFound):
        ids.jobs(["30-40"], Reader)


def test_the_last_of_nothing_is_not_found():
    with pytest.raises(NotFound):
        ids.jobs(["last"], Nothing)


def test_one_job_must_be_one():
    assert ids.single("last", Reader) == 20
    with pytest.raises(Usage):
        ids.single("1-3", Reader)
