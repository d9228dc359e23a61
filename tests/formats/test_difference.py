"""How two texts differ: as `diff -u` would tell it, and in bounded time whatever they are."""

import difflib
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.formats import difference

LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=30)


def made(old, new):
    """What the steps make of the old one."""
    steps = difference.steps(old, new)
    return [item for kind, i1, i2, j1, j2 in steps for item in (old[i1:i2] if kind == "equal" else new[j1:j2])]


@given(LINES, LINES)
def test_the_steps_make_the_new_list_of_the_old_one_and_leave_nothing_out(old, new):
    assert made(old, new) == new
    places = [(i1, i2, j1, j2) for _, i1, i2, j1, j2 in difference.steps(old, new)]
    ends = [(0, 0), *((i2, j2) for _, i2, _, j2 in places)]
    assert [(i1, j1) for i1, _, j1, _ in places] == ends[:-1] and ends[-1] == (len(old), len(new))


@pytest.mark.parametrize("long", [False, True], ids=["each line", "as a whole"])
@given(old=LINES, new=LINES)
def test_patch_makes_the_new_text_of_the_old_one_with_it(tmp_path_factory, long, old, new):
    if long:
        old, new = [*old, *(f"o{k}" for k in range(600)), *old], [*old, *(f"n{k}" for k in range(601)), *new]
    saved, text = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    told = difference.unified(saved, text)
    assert bool(told) == (saved != text)
    if told:
        path = tmp_path_factory.mktemp("p") / "f"
        path.write_text(saved)
        done = subprocess.run(["patch", "-s", str(path)], input="\n".join(told) + "\n", text=True, capture_output=True)
        assert (done.returncode, path.read_text()) == (0, text), (done, told)


def test_it_is_the_usual_one_where_that_is_short():
    old, new = "a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nX\nd\ne\nf\ng\nh\ni\n"
    assert difference.unified(old, new) == list(
        difflib.unified_diff(old.splitlines(), new.splitlines(), "saved", "new", lineterm="", n=2)
    )


def test_two_long_texts_that_have_nothing_and_everything_in_common_are_told_apart_at_once():
    """difflib would need hours: each line of one is many times in the other."""
    lines = [f"line {k % 997}" for k in range(200_000)]
    told = difference.unified("x\n" + "\n".join(lines), "\n".join(reversed(lines)) + "\ny")
    assert len(told) == 400_005
