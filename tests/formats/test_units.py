"""Sizes, durations and instants as people write them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle import units


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("20GiB", 20480),
        ("20GB", 20480),
        ("20", 20480),
        ("1.5", 1536),
        ("500MiB", 500),
        ("500 mb", 500),
        ("1T", 1 << 20),
        ("1KiB", 1),
    ],
)
def test_a_size_is_read_in_mib(text, mib):
    assert units.size_mib(text) == mib


@pytest.mark.parametrize(("bare", "mib"), [("B", 1), ("K", 1024), ("M", 1 << 20), ("G", 1 << 30)])
def test_of_sizes_only_the_unit_of_a_bare_number_differs_from_file_to_file(bare, mib):
    assert units.in_mib(str(1 << 20), bare) == mib
    assert units.in_mib("2048 B", bare) == 2048 / (1 << 20) and units.in_mib("10MB", bare) == 10


@pytest.mark.parametrize(
    "text", ["", "lots", "-1", "nan", "inf", "1e309", "0", "true", "20 GPUs", "0x10", "٣", "9" * 400, "20B", "0.5K"]
)
def test_what_is_no_size_is_refused_with_what_was_expected(text):
    with pytest.raises(ValueError, match="a size such as 20GiB"):
        units.size_mib(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("45s", 45),
        ("30m", 1800),
        ("2h30m", 9000),
        ("1d", 86400),
        ("1:30:00", 5400),
        ("0", 0),
        ("1.5h", 5400),
        ("10min", 600),
    ],
)
def test_a_duration_is_read_in_seconds(text, seconds):
    assert units.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5", "1e309", "nan", "2h 30", "1w", "m", "5:00", "9" * 400])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="a duration such as"):
        units.seconds(text)


def test_an_instant_may_count_from_now():
    assert units.instant("+10m", now=1000.0) == 1600.0


def test_an_instant_with_a_zone_is_absolute():
    assert units.instant("1970-01-02T00:00:00Z") == 86400.0
    assert units.instant("1970-01-02T01:00:00+01:00") == 86400.0


def test_a_time_of_day_is_the_next_one():
    now = time.mktime((2031, 5, 1, 12, 0, 0, 0, 0, -1))
    assert units.instant("12:30", now=now) == now + 1800
    assert units.instant("11:30", now=now) == pytest.approx(now + 23.5 * 3600, abs=3601)  # a day may have 23 or 25 hours


@pytest.mark.parametrize("text", ["", "yesterday", "+", "+soon", "25:00", "2031-13-01", "nan", "Z"])
def test_what_is_no_instant_is_refused(text):
    with pytest.raises(ValueError, match="a time such as"):
        units.instant(text)


@pytest.mark.parametrize(("text", "counts"), [("2", (2, 2)), ("1-4", (1, 4)), ("0", (0, 0)), (" 3 ", (3, 3))])
def test_a_count_of_gpus_is_a_range(text, counts):
    assert units.gpu_range(text) == counts


@pytest.mark.parametrize("text", ["-1", "4-1", "0-2", "1.0", "true", "", "99999", "1e3", "two"])
def test_an_impossible_count_of_gpus_is_refused(text):
    with pytest.raises(ValueError, match="a count of GPUs"):
        units.gpu_range(text)


def test_numbers_are_lists_and_ranges():
    assert units.numbers("0,2-4 7") == [0, 2, 3, 4, 7]
    with pytest.raises(ValueError, match="numbers such as"):
        units.numbers("4-1")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.44, "0.4s"),
        (9.99, "10s"),
        (59.6, "1m00s"),
        (185, "3m05s"),
        (9000, "2h30m"),
        (97200, "1d03h"),
        (-3, "0.0s"),
    ],
)
def test_a_duration_is_shown_by_its_two_largest_parts(seconds, text):
    assert units.show_duration(seconds) == text


@given(st.integers(min_value=1, max_value=10**7))
def test_a_shown_duration_reads_back_to_within_its_last_part(seconds):
    shown = units.show_duration(seconds)
    assert abs(units.seconds(shown.replace(" ", "")) - seconds) <= max(60, seconds / 24)


@pytest.mark.parametrize(("mib", "text"), [(None, "-"), (0, "0 MiB"), (500, "500 MiB"), (20480, "20 GiB"), (1536, "1.5 GiB")])
def test_a_size_is_shown_as_people_say_it(mib, text):
    assert units.show_size(mib) == text


def test_an_instant_of_another_day_shows_its_date():
    now = time.mktime((2031, 5, 1, 12, 0, 0, 0, 0, -1))
    assert units.show_instant(now + 60, now) == "12:01:00"
    assert units.show_instant(now - 86400, now) == "2031-04-30 12:00:00"
