"""docs/compat.md: every point of the source systems and of the console has tests or pictures, and what it names exists."""

import ast
import pathlib
import re

import pytest

from tests.browser.pictures import PICTURES, SHOWN

ROOT = pathlib.Path(__file__).parents[1]
POINTS = [*(f"A{n}" for n in range(1, 40)), *(f"B{n}" for n in range(1, 13)), *(f"C{n}" for n in (*range(1, 10), 11, 12, 13))]


CONSOLE = [str(n) for n in range(1, 14)]


def rows(point=r"[ABC]\d+"):
    text = (ROOT / "docs" / "compat.md").read_text("utf-8")
    return dict(re.findall(rf"^\| ({point}) \| [^|]+ \| (.+) \|$", text, re.MULTILINE))


def named_tests(row):
    """The tests that a row names; each exists."""
    named = re.findall(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)", row)
    for name, file in named:
        assert name in functions(ROOT / file), f"{file} has no {name}"
    return [name for name, _ in named]


def functions(path):
    return {node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("point", POINTS)
def test_each_point_names_tests_that_exist_and_carry_its_number(point):
    named = named_tests(rows().get(point, ""))
    assert named, f"docs/compat.md names no test for {point}"
    for name in named:
        assert re.search(rf"_{point.lower()}(?=_)", name), f"{name} does not carry {point}"


@pytest.mark.parametrize("number", CONSOLE)
def test_each_number_of_the_console_names_tests_or_pictures_that_exist(number):
    row = rows(r"\d+").get(number, "")
    pictures = re.findall(r"picture `([\w-]+)`", row)
    assert named_tests(row) or pictures, f"docs/compat.md names nothing for {number}"
    assert set(pictures) <= set(PICTURES)


def test_the_pictures_that_the_pages_show_are_those_that_are_taken():
    assert {path.stem for path in (ROOT / "docs" / "img").glob("*.png")} == set(SHOWN.values())


def test_the_page_has_no_point_that_does_not_exist():
    assert set(rows()) <= set(POINTS) and set(rows(r"\d+")) == set(CONSOLE)
