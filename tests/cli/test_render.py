"""Text for people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.cli import render


def test_wide_characters_count_twice():
    assert render.width("作业a") == 5
    assert render.width("e\u0301") == 1


@given(st.text(max_size=40), st.integers(min_value=1, max_value=30))
def test_a_cut_text_fits(text, columns):
    shown = render.plain(text)
    assert render.width(render.cut(shown, columns)) <= columns


@given(st.text(max_size=60))
def test_nothing_that_a_terminal_obeys_is_printed(text):
    assert render.plain(text).isprintable()


def test_names_with_control_characters_stay_in_their_line():
    out = render.table(("A", "B"), [("x\x1b[2Jy\nz", "\u202etxt")])
    assert out.count("\n") == 1 and "\x1b" not in out and "\u202e" not in out


def test_columns_align_with_wide_names():
    lines = render.table(("NAME", "STATE"), [("作业", "ok"), ("ab", "ok")]).split("\n")
    assert [render.width(line[: line.index("ok")]) for line in lines[1:]] == [6, 6]


def test_a_table_fits_the_screen():
    rows = [("1", "n" * 80, "q" * 60, "why " * 50)]
    lines = render.table(("ID", "NAME", "QUEUE", "WHY"), rows, columns=80).split("\n")
    assert all(render.width(line) <= 80 for line in lines) and "…" in lines[1]


def test_colours_are_only_where_they_are_wanted():
    rows = [("a", "failed")]
    assert "\x1b[31m" in render.table(("A", "STATE"), rows, paint_column=1, colours=True)
    assert "\x1b" not in render.table(("A", "STATE"), rows, paint_column=1)


@pytest.mark.parametrize(("indices", "text"), [([], "-"), ([3], "3"), ([0, 1], "0,1"), ([5, 0, 1, 2], "0-2,5")])
def test_gpus_are_shown_as_ranges(indices, text):
    assert render.gpus(indices) == text


def test_counts_agree_with_their_noun():
    assert [render.count(1, "job"), render.count(10_000, "job")] == ["1 job", "10,000 jobs"]
